/* base/rate.h: against a bucket that counts tokens. */
#include "base/rate.h"
#include "base/rng.h"
#include "test.h"

static struct zc_mono ms(int64_t n)
{
    return (struct zc_mono){n * ZC_NS_PER_MS};
}

TEST(rate_burst_then_interval)
{
    struct zc_rate r;
    zc_rate_init(&r, 1000, 3);
    for (int i = 0; i < 3; i++)
        CHECK(zc_rate_allow(&r, ms(5000)));
    CHECK(!zc_rate_allow(&r, ms(5000)));
    CHECK(!zc_rate_allow(&r, ms(5999)));
    CHECK_INT(r.suppressed, 2);
    CHECK(zc_rate_allow(&r, ms(6000)));
    CHECK_INT(r.suppressed, 0);
    CHECK(!zc_rate_allow(&r, ms(6000)));
    CHECK_INT(r.suppressed, 1);
    /* A long pause fills the bucket, and no further. */
    for (int i = 0; i < 3; i++)
        CHECK(zc_rate_allow(&r, ms(1000000)));
    CHECK(!zc_rate_allow(&r, ms(1000000)));
}

TEST(rate_as_a_model)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){13});
    for (int run = 0; run < 50; run++) {
        int64_t interval = 1 + (int64_t)(zc_rng_u64(&rng) % 50);
        int64_t burst = 1 + (int64_t)(zc_rng_u64(&rng) % 5);
        /* The model counts ms of saved time, interval of which make a token. */
        int64_t stock = burst * interval, now = 0;
        struct zc_rate r;
        zc_rate_init(&r, interval, burst);
        for (int i = 0; i < 500; i++) {
            int64_t step = (int64_t)(zc_rng_u64(&rng) % (uint64_t)(interval * 2));
            now += step;
            stock = stock + step > burst * interval ? burst * interval : stock + step;
            bool want = stock >= interval;
            CHECK_INT(zc_rate_allow(&r, ms(now)), want);
            if (want)
                stock -= interval;
        }
    }
}

TEST(rate_extremes)
{
    struct zc_rate r;
    zc_rate_init(&r, 1000, 0);
    CHECK(!zc_rate_allow(&r, ms(0)));
    zc_rate_init(&r, 0, 1);
    CHECK(zc_rate_allow(&r, ms(0)) && zc_rate_allow(&r, ms(0)));
    zc_rate_init(&r, INT64_MAX, 1);
    CHECK(zc_rate_allow(&r, ms(0)));
    zc_rate_init(&r, 1000, INT64_MAX);
    for (int i = 0; i < 1000; i++)
        CHECK(zc_rate_allow(&r, ms(1)));
}
