/* Byte rings and range sets against plain models. */
#include "base/rng.h"
#include "test.h"
#include "tunnel/tcp_ranges.h"
#include "tunnel/tcp_ring.h"
#include "tunnel/tcp_rtt.h"

static unsigned rnd(struct zc_rng *r, unsigned n)
{
    return (unsigned)(zc_rng_u64(r) % n);
}

TEST(ring_against_a_plain_queue)
{
    enum { MAX = 100000 };
    static uint8_t model[2 * MAX];
    uint8_t seed[32] = {4}, bytes[5000];
    struct zc_rng r;
    struct zc_tcp_ring ring = {0};
    struct zc_tcp_budget budget = {.max = 300000};
    zc_rng_init(&r, seed);
    for (int i = 0; i < 20000; i++) {
        unsigned what = rnd(&r, 8);
        if (what < 4) {
            size_t n = rnd(&r, sizeof(bytes)), ahead = rnd(&r, 3) == 0 ? rnd(&r, 5000) : 0;
            zc_rng_bytes(&r, bytes, n);
            if (ring.len + ahead + n > MAX)
                continue;
            CHECK_INT(zc_tcp_ring_reserve(&ring, &budget, ring.len + ahead + n), 0);
            zc_tcp_ring_put(&ring, ring.len + ahead, zc_slice(bytes, n));
            memcpy(model + ring.len + ahead, bytes, n);
            if (ahead == 0)
                ring.len += (uint32_t)n;
        } else if (what < 7) {
            size_t n = rnd(&r, ring.len + 1);
            zc_tcp_ring_drop(&ring, n);
            memmove(model, model + n, sizeof(model) - n);
        } else if (rnd(&r, 10) == 0) {
            zc_tcp_ring_drop(&ring, ring.len);
            zc_tcp_ring_trim(&ring, &budget, 2048 * rnd(&r, 3));
        }
        size_t from = rnd(&r, ring.len + 1), n = rnd(&r, ring.len - (unsigned)from + 1), at = from;
        struct zc_slice parts[2];
        size_t count = zc_tcp_ring_slices(&ring, from, n, parts);
        for (size_t k = 0; k < count; k++) {
            CHECK(parts[k].len > 0 && memcmp(parts[k].data, model + at, parts[k].len) == 0);
            at += parts[k].len;
        }
        CHECK_INT(at, from + n);
        CHECK_INT(budget.used, ring.cap);
    }
    zc_tcp_ring_done(&ring, &budget);
    CHECK_INT(budget.used, 0);
}

TEST(bytes_behind_the_end_survive_growth)
{
    struct zc_tcp_ring ring = {0};
    struct zc_tcp_budget budget = {.max = 1 << 20};
    CHECK_INT(zc_tcp_ring_reserve(&ring, &budget, 2048), 0);
    ring.len = 2000;
    zc_tcp_ring_drop(&ring, 1990); /* so that what follows wraps */
    zc_tcp_ring_put(&ring, 1000, zc_slice("behind", 6));
    CHECK_INT(zc_tcp_ring_reserve(&ring, &budget, 100000), 0);
    ring.len = 1006;
    struct zc_slice parts[2];
    CHECK_INT(zc_tcp_ring_slices(&ring, 1000, 6, parts), 1);
    CHECK(zc_slice_is(parts[0], "behind"));
    zc_tcp_ring_done(&ring, &budget);
}

TEST(ring_budget)
{
    struct zc_tcp_budget budget = {.max = 100000};
    struct zc_tcp_ring a = {0}, b = {0};
    CHECK_INT(zc_tcp_ring_reach(&a, &budget, 1 << 20), 65536);
    CHECK_INT(zc_tcp_ring_reach(&a, &budget, 5000), 5000);
    CHECK_INT(zc_tcp_ring_reserve(&a, &budget, 65537), ZC_ELIMIT);
    CHECK_INT(zc_tcp_ring_reserve(&a, &budget, 65536), 0);
    CHECK_INT(zc_tcp_ring_reach(&a, &budget, 1 << 20), 65536);
    CHECK_INT(zc_tcp_ring_reach(&b, &budget, 1 << 20), 32768);
    CHECK_INT(zc_tcp_ring_reserve(&b, &budget, 32769), ZC_ELIMIT);
    CHECK_INT(zc_tcp_ring_reserve(&b, &budget, 32768), 0);
    CHECK_INT(budget.used, 98304);
    /* What is free for each is there even now. */
    struct zc_tcp_ring c = {0};
    CHECK_INT(zc_tcp_ring_reach(&c, &budget, 1 << 20), ZC_TCP_RING_FREE);
    CHECK_INT(zc_tcp_ring_reserve(&c, &budget, ZC_TCP_RING_FREE), 0);
    CHECK_INT(zc_tcp_ring_reserve(&c, &budget, ZC_TCP_RING_FREE + 1), ZC_ELIMIT);
    CHECK_INT(zc_tcp_ring_reserve(&c, &budget, (size_t)1 << 40), ZC_ELIMIT);
    /* What reach promises, reserve gives. */
    CHECK_INT(zc_tcp_ring_reserve(&c, &budget, zc_tcp_ring_reach(&c, &budget, 1 << 30)), 0);
    zc_tcp_ring_done(&a, &budget);
    CHECK_INT(zc_tcp_ring_reserve(&c, &budget, zc_tcp_ring_reach(&c, &budget, 1 << 30)), 0);
    CHECK_INT(c.cap, 65536);
    zc_tcp_ring_done(&b, &budget);
    zc_tcp_ring_done(&c, &budget);
    CHECK_INT(budget.used, 0);
}

/* A bit for each number around a place where numbers wrap. */
TEST(ranges_against_bits)
{
    enum { SPAN = 400 };
    const uint32_t base = UINT32_C(0) - SPAN / 2;
    uint8_t seed[32] = {5};
    struct zc_rng r;
    zc_rng_init(&r, seed);
    for (int round = 0; round < 300; round++) {
        bool bits[SPAN] = {false};
        struct zc_tcp_ranges s = {0};
        for (int i = 0; i < 60; i++) {
            uint32_t start = rnd(&r, SPAN - 1), len = 1 + rnd(&r, rnd(&r, 4) == 0 ? 60 : 6);
            uint32_t end = start + len < SPAN ? start + len : SPAN;
            if (rnd(&r, 10) == 0) {
                zc_tcp_ranges_cut(&s, base + start);
                memset(bits, 0, start);
            } else {
                CHECK(zc_tcp_ranges_add(&s, (struct zc_tcp_range){base + start, base + end}));
                memset(bits + start, 1, end - start);
            }
            uint32_t count = 0, sum = 0;
            for (uint32_t k = 0; k < SPAN; k++) {
                sum += bits[k];
                count += bits[k] && (k == 0 || !bits[k - 1]);
                CHECK_INT(zc_tcp_ranges_find(&s, base + k) != NULL, bits[k]);
            }
            CHECK_INT(s.count, count);
            CHECK_INT(zc_tcp_ranges_bytes(&s), sum);
        }
    }
}

TEST(ranges_are_bounded)
{
    struct zc_tcp_ranges s = {0};
    for (uint32_t i = 0; i < ZC_TCP_RANGES_MAX; i++)
        CHECK(zc_tcp_ranges_add(&s, (struct zc_tcp_range){10 * i, 10 * i + 5}));
    struct zc_tcp_ranges full = s;
    CHECK(!zc_tcp_ranges_add(&s, (struct zc_tcp_range){7, 8}));
    CHECK(!zc_tcp_ranges_add(&s, (struct zc_tcp_range){10000, 10001}));
    CHECK(memcmp(&s, &full, sizeof(s)) == 0);
    CHECK(zc_tcp_ranges_add(&s, (struct zc_tcp_range){5, 10})); /* joins two */
    CHECK_INT(s.count, ZC_TCP_RANGES_MAX - 1);
    CHECK(zc_tcp_ranges_add(&s, (struct zc_tcp_range){0, 10000}));
    CHECK_INT(s.count, 1);
}

/* ---- RFC 6298 ---- */

TEST(timeout_by_the_book)
{
    struct zc_tcp_rtt r = {0};
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 1000);
    zc_tcp_rtt_sample(&r, 400000); /* SRTT = R, RTTVAR = R/2: 400 + 4 * 200 */
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 1200);
    zc_tcp_rtt_sample(&r, 400000); /* RTTVAR = 150 */
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 1000);
    zc_tcp_rtt_sample(&r, 800000); /* RTTVAR = 3/4 * 150 + 1/4 * 400 = 212.5, SRTT = 450 */
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 1300);
    for (int i = 0; i < 200; i++)
        zc_tcp_rtt_sample(&r, 1000);
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 200); /* never less */
    zc_tcp_rtt_sample(&r, -5);
    CHECK(r.smooth_us >= 0);
}

TEST(timeout_doubles)
{
    struct zc_tcp_rtt r = {0};
    static const int64_t want[] = {2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        zc_tcp_rtt_backoff(&r);
        CHECK_INT(zc_tcp_rtt_timeout_ms(&r), want[i]);
    }
    for (int i = 0; i < 1000; i++)
        zc_tcp_rtt_backoff(&r);
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 60000);
    zc_tcp_rtt_sample(&r, 1000); /* a certain one starts over */
    CHECK_INT(r.backoff, 0);
    CHECK_INT(zc_tcp_rtt_timeout_ms(&r), 200);
}
