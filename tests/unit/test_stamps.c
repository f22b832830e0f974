/*
 * tunnel/stamps.h: the text, what a start begins with, and a life of many processes with clocks
 * that jump: no stamp is above the ceiling that is stored, each is later than all before it, and
 * the ceiling is stored seldom.
 */
#include "tunnel/stamps.h"

#include "base/check.h"
#include "base/rng.h"
#include "test.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define YEAR_MS (INT64_C(31557600) * 1000)
#define NOW_MS INT64_C(1790000000000) /* 2026-09 */

static struct zc_wall at(int64_t ms)
{
    return (struct zc_wall){ms};
}

TEST(stamps_text_is_a_label)
{
    char text[ZC_STAMPS_TEXT_MAX];
    struct zc_wall got;
    zc_stamps_encode(at(0), text);
    CHECK(strcmp(text, "@400000000000000a00000000\n") == 0);
    zc_stamps_encode(at(-5), text);
    CHECK(strcmp(text, "@400000000000000a00000000\n") == 0);
    zc_stamps_encode(at(INT64_C(0x6a000000) * 1000 + 302), text);
    CHECK(strcmp(text, "@400000006a00000a12002780\n") == 0);
    for (int64_t ms = 0; ms < INT64_C(253402300799000); ms += INT64_C(7777777777777) + 1) {
        zc_stamps_encode(at(ms), text);
        CHECK(zc_stamps_decode(zc_slice_str(text), &got) && got.ms == ms);
        CHECK(zc_stamps_decode(zc_slice(text, 25), &got) && got.ms == ms);
    }
    /* Below a millisecond: up. */
    CHECK(zc_stamps_decode(zc_slice_str("@400000000000000a00000001"), &got) && got.ms == 1);
}

TEST(stamps_text_that_is_damaged)
{
    static const char *const bad[] = {
        "",
        "@",
        "@400000006a00000a1200218",
        "@400000006a00000a12002780\n\n",
        "@400000006a00000a120027800",
        "4400000006a00000a12002780",
        "@400000006A00000a12002780",
        "@400000006g00000a12002780",
        "@400000006a00000a3b9aca00", /* a whole second of nanoseconds */
        "@400000000000000900000000", /* before 1970 */
        "@0000000000000000000000000",
        "@7fffffffffffffff00000000",
        "@ffffffffffffffff00000000",
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(bad); i++) {
        struct zc_wall got = {77};
        CHECK(!zc_stamps_decode(zc_slice_str(bad[i]), &got) && got.ms == 77);
    }
    CHECK(!zc_stamps_decode(zc_slice("@400000006a00000a1200218\0", 25), &(struct zc_wall){0}));
}

TEST(stamps_start_of_a_process)
{
    struct zc_stamps_bounds b;
    /* The first of all. */
    CHECK_INT(zc_stamps_begin(at(0), at(NOW_MS), &b), ZC_STAMPS_FINE);
    CHECK(b.limited);
    CHECK_INT(b.after.ms, 0);
    CHECK_INT(b.most.ms, NOW_MS + HOUR_MS);
    /* Soon after a crash the ceiling is ahead, and moves little. */
    CHECK_INT(zc_stamps_begin(at(NOW_MS + HOUR_MS), at(NOW_MS + 1), &b), ZC_STAMPS_FINE);
    CHECK_INT(b.after.ms, NOW_MS + HOUR_MS);
    CHECK_INT(b.most.ms, NOW_MS + HOUR_MS + 2000);
    /* A day back. */
    CHECK_INT(zc_stamps_begin(at(NOW_MS), at(NOW_MS - DAY_MS), &b), ZC_STAMPS_CLOCK_BEHIND);
    CHECK_INT(b.after.ms, NOW_MS);
    CHECK_INT(b.most.ms, NOW_MS + 2000);
    /* A clock that was never set. */
    for (int64_t ms = -5; ms <= DAY_MS; ms += DAY_MS + 5) {
        CHECK_INT(zc_stamps_begin(at(NOW_MS), at(ms), &b), ZC_STAMPS_CLOCK_BEHIND);
        CHECK_INT(b.after.ms, NOW_MS);
    }
    /* Years. */
    CHECK_INT(zc_stamps_begin(at(NOW_MS + 9 * YEAR_MS), at(NOW_MS), &b), ZC_STAMPS_CLOCK_BEHIND);
    CHECK_INT(b.after.ms, NOW_MS + 9 * YEAR_MS);
    CHECK_INT(zc_stamps_begin(at(NOW_MS + 11 * YEAR_MS), at(NOW_MS), &b), ZC_STAMPS_ABSURD);
    CHECK_INT(b.after.ms, 0);
    CHECK_INT(b.most.ms, NOW_MS + HOUR_MS);
    CHECK_INT(zc_stamps_begin(at(NOW_MS + 11 * YEAR_MS), at(0), &b), ZC_STAMPS_ABSURD);
    CHECK_INT(zc_stamps_begin(at(INT64_MAX), at(INT64_MIN), &b), ZC_STAMPS_ABSURD);
    CHECK_INT(zc_stamps_begin(at(INT64_MIN), at(INT64_MAX), &b), ZC_STAMPS_FINE);
}

TEST(stamps_without_bounds_follow_the_clock)
{
    struct zc_stamps s;
    uint8_t last[12] = {0}, want[12];
    struct zc_wall most;
    zc_stamps_init(&s, &(struct zc_stamps_bounds){0});
    CHECK(zc_stamps_next(&s, at(NOW_MS), last));
    zc_noise_stamp(at(NOW_MS), NULL, want);
    CHECK(memcmp(last, want, 12) == 0);
    CHECK(zc_stamps_next(&s, at(NOW_MS + 100 * YEAR_MS), last));
    CHECK(!zc_stamps_wanted(&s, &most));
    /* The next device of the process begins behind. */
    struct zc_stamps_bounds b = zc_stamps_bounds(&s);
    CHECK(!b.limited && b.after.ms > NOW_MS + 100 * YEAR_MS - 17);
    zc_stamps_init(&s, &b);
    CHECK(memcmp(s.floor, last, 12) == 0);
}

/* The clock leaps over the ceiling: stamps stay below until it is raised. */
TEST(stamps_stand_still_below_the_ceiling)
{
    struct zc_stamps s;
    uint8_t last[12] = {0}, before[12], most[12];
    struct zc_wall want;
    int made = 0;
    zc_stamps_init(&s, &(struct zc_stamps_bounds){true, at(0), at(NOW_MS + 100)});
    zc_noise_stamp(at(NOW_MS + 100), NULL, most);
    CHECK(zc_stamps_next(&s, at(NOW_MS), last));
    for (;; made++) {
        memcpy(before, last, 12);
        if (!zc_stamps_next(&s, at(NOW_MS + DAY_MS), last))
            break;
        CHECK(memcmp(last, before, 12) > 0 && memcmp(last, most, 12) <= 0);
    }
    CHECK(made >= 1 && memcmp(last, before, 12) == 0);
    CHECK(zc_stamps_wanted(&s, &want));
    CHECK_INT(want.ms, NOW_MS + DAY_MS + HOUR_MS);
    CHECK(!zc_stamps_wanted(&s, &want));
    zc_stamps_raise(&s, want);
    CHECK(zc_stamps_next(&s, at(NOW_MS + DAY_MS), last) && memcmp(last, most, 12) > 0);
    CHECK(!zc_stamps_wanted(&s, &want));
    zc_stamps_raise(&s, at(5)); /* never down */
    CHECK_INT(s.bounds.most.ms, NOW_MS + DAY_MS + HOUR_MS);
}

/* A handshake each two minutes for a day: the ceiling is stored once in half an hour. */
TEST(stamps_are_stored_seldom)
{
    struct zc_stamps s;
    struct zc_stamps_bounds b;
    uint8_t last[12] = {0};
    struct zc_wall want;
    int stored = 0;
    zc_stamps_begin(at(0), at(NOW_MS), &b);
    zc_stamps_init(&s, &b);
    for (int64_t ms = 0; ms < DAY_MS; ms += 120000) {
        CHECK(zc_stamps_next(&s, at(NOW_MS + ms), last));
        if (zc_stamps_wanted(&s, &want)) {
            stored++;
            zc_stamps_raise(&s, want);
        }
    }
    CHECK(stored >= 23 && stored <= 48);
    /* And with a clock that stays behind. */
    zc_stamps_begin(at(NOW_MS), at(NOW_MS - DAY_MS), &b);
    zc_stamps_init(&s, &b);
    memcpy(last, s.floor, 12);
    stored = 0;
    for (int64_t ms = 0; ms < DAY_MS / 2; ms += 120000) {
        CHECK(zc_stamps_next(&s, at(NOW_MS - DAY_MS + ms), last));
        if (zc_stamps_wanted(&s, &want)) {
            stored++;
            zc_stamps_raise(&s, want);
        }
    }
    CHECK(stored >= 1 && stored <= 10);
}

/* Started again each second, for two days, the ceiling does not run away. */
TEST(stamps_of_a_process_that_crashes_at_once)
{
    struct zc_stamps_bounds b = {0};
    int64_t ms = NOW_MS;
    for (int i = 0; i < 2 * 86400; i++, ms += 1000)
        CHECK(zc_stamps_begin(b.most, at(ms), &b) != ZC_STAMPS_ABSURD);
    CHECK(b.most.ms - ms < 3 * DAY_MS);
}

/* Processes that crash at any time, each with another clock. */
TEST(stamps_rise_through_all_processes)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){9});
    struct zc_wall disk = {0}, want;
    uint8_t greatest[12] = {0};
    int behind = 0;
    for (int life = 0; life < 300; life++) {
        struct zc_stamps s;
        struct zc_stamps_bounds b;
        uint8_t last[12];
        int64_t ms = NOW_MS + (int64_t)(zc_rng_u64(&rng) % (uint64_t)YEAR_MS);
        behind += zc_stamps_begin(disk, at(ms), &b) == ZC_STAMPS_CLOCK_BEHIND;
        disk = b.most;
        zc_stamps_init(&s, &b);
        memcpy(last, s.floor, 12);
        for (uint64_t n = zc_rng_u64(&rng) % 300; n > 0; n--) {
            uint8_t most[12];
            zc_noise_stamp(disk, NULL, most);
            if (zc_stamps_next(&s, at(ms), last)) {
                CHECK(memcmp(last, greatest, 12) > 0 && memcmp(last, most, 12) <= 0);
                memcpy(greatest, last, 12);
            }
            if (zc_stamps_wanted(&s, &want)) {
                disk = want;
                zc_stamps_raise(&s, want);
            }
            ms += (int64_t)(zc_rng_u64(&rng) % (uint64_t)(2 * HOUR_MS)) - HOUR_MS;
        }
        if (life % 3 == 0 && disk.ms > zc_stamps_bounds(&s).after.ms) /* a clean end */
            disk = zc_stamps_bounds(&s).after;
    }
    CHECK(behind > 20);
}
