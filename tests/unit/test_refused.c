/* tunnel/refused.h: each key once in a while, and never more lines than the rate. */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>

#include "tunnel/refused.h"

static struct zc_refused r;
static struct zc_mono now;

static struct zc_key key(uint32_t n)
{
    struct zc_key k = {{0}};
    memcpy(k.b + 20, &n, sizeof(n));
    return k;
}

static void start(void)
{
    zc_refused_init(&r);
    now.ns = 5 * ZC_NS_PER_S;
}

static void later(int64_t ms)
{
    now.ns += ms * ZC_NS_PER_MS;
}

/* Whether the key, refused now, is told. Others are not. */
static bool told(uint32_t n)
{
    struct zc_key k = key(n), got;
    zc_refused_note(&r, now, &k);
    if (!zc_refused_next(&r, &got))
        return false;
    CHECK(memcmp(got.b, k.b, sizeof(k.b)) == 0);
    CHECK(!zc_refused_next(&r, &got));
    return true;
}

TEST(each_key_once_in_a_while)
{
    start();
    CHECK(told(1));
    CHECK(!told(1));
    CHECK(told(2));
    later(ZC_REFUSED_EVERY_MS - 1);
    CHECK(!told(1));
    later(1);
    CHECK(told(1));
    CHECK(!told(1));
    CHECK(told(2));
}

TEST(several_at_once)
{
    struct zc_key got, k;
    uint32_t n, sum = 0;
    start();
    for (n = 1; n <= 5; n++) {
        k = key(n);
        zc_refused_note(&r, now, &k);
        zc_refused_note(&r, now, &k);
    }
    for (n = 0; zc_refused_next(&r, &got); n++)
        sum += got.b[20];
    CHECK_INT(n, 5);
    CHECK_INT(sum, 15);
}

/* A flood of keys costs few lines, and hides no key for long. */
TEST(a_flood)
{
    int lines = 0;
    bool mine = false;
    start();
    for (uint32_t n = 100; n < 100000; n++) {
        lines += told(n);
        later(10);
    }
    CHECK(lines >= ZC_REFUSED_BURST);
    CHECK(lines <= ZC_REFUSED_BURST + 999 * 1000 / ZC_REFUSED_LINE_MS + 1);
    CHECK_INT(r.len <= ZC_REFUSED_KEYS, 1);
    for (int i = 0; i < 1000 && !mine; i++) {
        mine = told(7);
        later(5000);
    }
    CHECK(mine);
}

/* One that was pushed out is told anew; one that stands in the table is not. */
TEST(the_one_that_was_told_longest_ago_makes_room)
{
    start();
    for (uint32_t n = 0; n < ZC_REFUSED_KEYS; n++) {
        CHECK(told(n));
        later(1);
        zc_rate_init(&r.rate, ZC_REFUSED_LINE_MS, ZC_REFUSED_BURST);
    }
    CHECK(told(1000));
    CHECK(!told(1));
    CHECK(told(0));
}
