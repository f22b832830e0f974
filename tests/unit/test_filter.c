/* Filters over `from`. */
#include <stdlib.h>

#include "test.h"
#include "zmqc/filter.h"

static const uint8_t key[16] = {7};

static const struct {
    const char *filter, *allows, *refuses; /* words; "me" is the reader */
} cases[] = {
    {"", "me other", ""},     {"*", "me other", ""},   {".", "me", "other"},
    {"~", "me", "other"},     {"a,b", "a b", "me c"},  {"!a", "me b", "a"},
    {"!.", "a", "me"},        {"!~", "a", "me"},       {"a,!b", "a", "b c me"},
    {"!a,a", "a", "b"},       {"a,!a", "", "a b"},     {"a,*", "a b me", ""},
    {"!a,*", "a b me", ""},   {"a,*,b", "b", "a me"},  {"!a,!", "a b me", ""},
    {"!a,!,!b", "a me", "b"}, {" a , b ", "a b", "c"}, {"\t! a\n", "b", "a"},
    {",,a,,", "a", "b"},      {"a,a,a", "a", "b"},     {"A", "A", "a"},
    {"a.b", "a.b", "a b me"},
};

/* Words of which the filter says otherwise than it should. */
static int wrong(const struct zc_filter *f, const char *words, bool allowed)
{
    int n = 0;
    while (*words != '\0') {
        size_t len = strcspn(words, " ");
        n += zc_filter_allows(f, zc_filter_hash(key, zc_slice(words, len))) != allowed;
        words += len + (words[len] == ' ');
    }
    return n;
}

TEST(table)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zc_filter *f = NULL;
        int err = zc_filter_new(key, zc_slice_str(cases[i].filter), zc_slice_str("me"), &f);
        CHECK_INT(err, 0);
        if (wrong(f, cases[i].allows, true) + wrong(f, cases[i].refuses, false) > 0)
            printf("filter \"%s\"\n", cases[i].filter);
        CHECK_INT(wrong(f, cases[i].allows, true), 0);
        CHECK_INT(wrong(f, cases[i].refuses, false), 0);
        free(f);
    }
}

TEST(equal_whatever_the_order)
{
    struct zc_filter *a, *b, *c;
    CHECK_INT(zc_filter_new(key, zc_slice_str("x,y,!z"), zc_slice_str("me"), &a), 0);
    CHECK_INT(zc_filter_new(key, zc_slice_str("!z, y,x,x"), zc_slice_str("you"), &b), 0);
    CHECK_INT(zc_filter_new(key, zc_slice_str("x,y,z"), zc_slice_str("me"), &c), 0);
    CHECK(zc_filter_equal(a, b));
    CHECK(!zc_filter_equal(a, c));
    free(a);
    free(b);
    free(c);
}

TEST(too_many_names)
{
    static char text[2 * ZC_FILTER_NAMES_MAX + 3];
    struct zc_filter *f = NULL;
    for (int i = 0; i < ZC_FILTER_NAMES_MAX; i++)
        memcpy(text + 2 * i, "a,", 2);
    CHECK_INT(zc_filter_new(key, zc_slice_str(text), zc_slice_str("me"), &f), 0);
    CHECK(f->allow == 1);
    free(f);
    text[2 * ZC_FILTER_NAMES_MAX] = '!';
    text[2 * ZC_FILTER_NAMES_MAX + 1] = 'b';
    CHECK_INT(zc_filter_new(key, zc_slice_str(text), zc_slice_str("me"), &f), ZC_EINVAL);
}
