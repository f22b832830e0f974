/* base/json.h: the scanner, in tables. */
#include "base/json.h"
#include "test.h"

/* A document copied to the very end of its memory, for AddressSanitizer. */
static uint8_t *exact(const void *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

static bool whole(const char *text, size_t len)
{
    uint8_t *copy = exact(text, len);
    struct zc_json j;
    zc_json_init(&j, copy, len);
    struct zc_json_value v = zc_json_value(&j, 0);
    bool ok = v.type != ZC_JSON_BAD && zc_json_at_end(&j);
    CHECK((v.type == ZC_JSON_BAD) == (j.error != NULL));
    free(copy);
    return ok;
}

TEST(json_accepts)
{
    static const char *rows[] = {"null",
                                 "true",
                                 "false",
                                 "0",
                                 "-0",
                                 "7",
                                 "-1.5e+30",
                                 "1E9",
                                 "0.0",
                                 "\"\"",
                                 "[]",
                                 "{}",
                                 " \t\r\n{ \"a\" : [ 1 , {} , \"x\" , null ] }\n",
                                 "[[[[]]]]",
                                 "{\"\":{\"\":\"\"}}",
                                 "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD83D\\uDE00\"",
                                 "123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(whole(rows[i], strlen(rows[i])));
        if (!whole(rows[i], strlen(rows[i])))
            printf("  refused %s\n", rows[i]);
    }
}

TEST(json_refuses)
{
    static const char *rows[] = {"",
                                 " ",
                                 "nul",
                                 "nulll",
                                 "True",
                                 "NaN",
                                 "Infinity",
                                 "-Infinity",
                                 "+1",
                                 "01",
                                 "-01",
                                 "1.",
                                 ".5",
                                 "1e",
                                 "1e+",
                                 "-",
                                 "--1",
                                 "0x10",
                                 "1 2",
                                 "\"",
                                 "\"a",
                                 "\"\\",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\u12G4\"",
                                 "\"\\u",
                                 "\"\n\"",
                                 "\"\x1f\"",
                                 "'a'",
                                 "[",
                                 "]",
                                 "[1",
                                 "[1,",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 "{",
                                 "{\"a\"",
                                 "{\"a\":",
                                 "{\"a\":1",
                                 "{\"a\":1,",
                                 "{\"a\":1,}",
                                 "{,}",
                                 "{a:1}",
                                 "{\"a\" 1}",
                                 "{1:1}",
                                 "{\"a\":1 \"b\":2}",
                                 "[1}",
                                 "{\"a\":1]",
                                 "{}{}",
                                 "{} x",
                                 "\xef\xbb\xbf{}",
                                 "\f{}",
                                 "\v1",
                                 "\xc2\xa0"
                                 "1",
                                 "/**/1",
                                 "[1]//"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(!whole(rows[i], strlen(rows[i])));
        if (whole(rows[i], strlen(rows[i])))
            printf("  accepted %s\n", rows[i]);
    }
    CHECK(!whole("1\0", 2));
    CHECK(!whole("\"a\0b\"", 5));
}

TEST(json_depth)
{
    char text[200];
    for (size_t n = 1; n < 80; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        CHECK_INT(whole(text, 2 * n), n <= 32);
    }
    /* A million brackets end early instead of filling the stack. */
    uint8_t *many = malloc(1 << 20);
    memset(many, '[', 1 << 20);
    struct zc_json j;
    zc_json_init(&j, many, 1 << 20);
    CHECK(zc_json_value(&j, 0).type == ZC_JSON_BAD && j.pos < 40);
    free(many);
    char three[] = "[[[]]]";
    zc_json_init(&j, (uint8_t *)three, 6);
    CHECK(zc_json_value(&j, 29).type == ZC_JSON_ARRAY);
    zc_json_init(&j, (uint8_t *)three, 6);
    CHECK(zc_json_value(&j, 30).type == ZC_JSON_BAD);
}

/* Decodes the literal and compares; want NULL: utf8_bad. */
static bool string_is(const char *literal, const char *want, size_t want_len)
{
    size_t len = strlen(literal);
    uint8_t *copy = exact(literal, len);
    struct zc_json j;
    zc_json_init(&j, copy, len);
    struct zc_json_value v = zc_json_value(&j, 0);
    bool ok =
        v.type == ZC_JSON_STRING && zc_json_at_end(&j) && v.utf8_bad == (want == NULL) &&
        (want == NULL || (v.text.len == want_len && memcmp(v.text.data, want, want_len) == 0));
    if (!ok)
        printf("  %s: %.*s\n", literal, (int)v.text.len, (const char *)v.text.data);
    free(copy);
    return ok;
}

TEST(json_strings)
{
    CHECK(string_is("\"\"", "", 0));
    CHECK(string_is("\"plain, longer than one word\"", "plain, longer than one word", 27));
    CHECK(string_is("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8));
    CHECK(string_is("\"a\\u0000b\"", "a\0b", 3));
    CHECK(string_is("\"\\u00e9\\u20AC\\uFFFD\"", "\xc3\xa9\xe2\x82\xac\xef\xbf\xbd", 8));
    CHECK(string_is("\"\\ud83d\\ude00!\"", "\xf0\x9f\x98\x80!", 5));
    CHECK(string_is("\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 4));
    CHECK(string_is("\"caf\xc3\xa9\"", "caf\xc3\xa9", 5));
    CHECK(string_is("\"one\\ntwo, and a long run after\\tthat\"",
                    "one\ntwo, and a long run after\tthat", 34));
    CHECK(string_is("\"\\ud83d\"", NULL, 0));
    CHECK(string_is("\"\\ude00\"", NULL, 0));
    CHECK(string_is("\"\\ude00\\ud83d\"", NULL, 0));
    CHECK(string_is("\"\\ud83d\\ud83d\\ude00\"", NULL, 0));
    CHECK(string_is("\"\\ud83dx\"", NULL, 0));
    CHECK(string_is("\"\\ud83d\\n\"", NULL, 0));
    CHECK(string_is("\"\\ud83d\\u0041\"", NULL, 0));
    CHECK(string_is("\"\xff\"", NULL, 0));
    CHECK(string_is("\"12345678\xc3\"", NULL, 0));
    CHECK(string_is("\"\xed\xa0\xbd\xed\xb8\x80\"", NULL, 0)); /* CESU-8 */
    CHECK(string_is("\"\xc3\\n\xa9\"", NULL, 0)); /* halves of a character that an escape parts */
}

/* Every byte at every place of a word, with more words before and after it. */
TEST(json_every_byte_in_a_string)
{
    for (size_t at = 1; at < 30; at++) {
        for (unsigned c = 0; c < 256; c++) {
            char text[40];
            memset(text, 'x', sizeof(text));
            text[0] = text[30] = '"';
            text[at] = (char)c;
            struct zc_json j;
            zc_json_init(&j, (uint8_t *)text, sizeof(text));
            struct zc_json_value v = zc_json_value(&j, 0);
            if (c == '"') {
                CHECK(v.type == ZC_JSON_STRING && v.text.len == at - 1 && j.pos == at + 1);
            } else if (c < 0x20 || c == '\\') { /* "\x" is no escape either */
                CHECK(v.type == ZC_JSON_BAD);
            } else {
                CHECK(v.type == ZC_JSON_STRING && v.text.len == 29 && j.pos == 31);
                CHECK_INT(v.utf8_bad, c >= 0x80);
            }
        }
    }
}

TEST(json_composites_come_raw)
{
    char text[] = " {\"a\" : [\"\\n\", {\"b\":\"\\u0041\"}]} , ";
    struct zc_json j;
    zc_json_init(&j, (uint8_t *)text, strlen(text));
    struct zc_json_value v = zc_json_value(&j, 0);
    CHECK(v.type == ZC_JSON_OBJECT && !v.utf8_bad);
    CHECK(zc_slice_is(v.text, "{\"a\" : [\"\\n\", {\"b\":\"\\u0041\"}]}"));
    CHECK(!zc_json_at_end(&j) && zc_json_eat(&j, ',') && zc_json_at_end(&j));
    char bad[] = "[\"\xff\"]";
    zc_json_init(&j, (uint8_t *)bad, strlen(bad));
    v = zc_json_value(&j, 0);
    CHECK(v.type == ZC_JSON_ARRAY && v.utf8_bad);
}

TEST(json_walks)
{
    char text[] = "{\"a\":1, \"\\u0062\" : [true,null , \"x\"],\"c\":{}}";
    struct zc_json j;
    zc_json_init(&j, (uint8_t *)text, strlen(text));
    bool first = true, bad;
    struct zc_slice key;
    struct zc_json_value v;
    CHECK(zc_json_eat(&j, '{'));
    CHECK(zc_json_member(&j, &first, 1, &key, &bad, &v));
    CHECK(zc_slice_is(key, "a") && v.type == ZC_JSON_NUMBER && zc_slice_is(v.text, "1"));
    CHECK(zc_json_member(&j, &first, 1, &key, &bad, &v));
    CHECK(zc_slice_is(key, "b") && v.type == ZC_JSON_ARRAY);
    struct zc_json inner;
    zc_json_init(&inner, (uint8_t *)(uintptr_t)v.text.data, v.text.len);
    bool inner_first = true;
    CHECK(zc_json_eat(&inner, '['));
    CHECK(zc_json_element(&inner, &inner_first, 2, &v) && v.type == ZC_JSON_BOOL && v.boolean);
    CHECK(zc_json_element(&inner, &inner_first, 2, &v) && v.type == ZC_JSON_NULL);
    CHECK(zc_json_element(&inner, &inner_first, 2, &v) && zc_slice_is(v.text, "x"));
    CHECK(!zc_json_element(&inner, &inner_first, 2, &v) && zc_json_at_end(&inner));
    CHECK(zc_json_member(&j, &first, 1, &key, &bad, &v) && v.type == ZC_JSON_OBJECT);
    CHECK(!zc_json_member(&j, &first, 1, &key, &bad, &v));
    CHECK(zc_json_at_end(&j) && j.error == NULL);
}

TEST(json_error_stays)
{
    char text[] = "[1,2]";
    struct zc_json j;
    zc_json_init(&j, (uint8_t *)text, 5);
    j.error = "earlier";
    bool first = true;
    struct zc_json_value v;
    CHECK(zc_json_value(&j, 0).type == ZC_JSON_BAD && !zc_json_eat(&j, '['));
    CHECK(!zc_json_element(&j, &first, 1, &v) && !zc_json_at_end(&j) && j.pos == 0);
    CHECK(strcmp(j.error, "earlier") == 0);
}
