/* base/heap.h: against a plain search for the minimum. */
#include "base/heap.h"
#include "base/rng.h"
#include "test.h"

#define TIMERS 500

static struct zc_timer timers[TIMERS];

static struct zc_timer *model_min(void)
{
    struct zc_timer *min = NULL;
    for (int i = 0; i < TIMERS; i++) {
        if (zc_heap_has(&timers[i]) && (min == NULL || timers[i].deadline.ns < min->deadline.ns))
            min = &timers[i];
    }
    return min;
}

static uint32_t model_len(void)
{
    uint32_t n = 0;
    for (int i = 0; i < TIMERS; i++)
        n += zc_heap_has(&timers[i]);
    return n;
}

TEST(heap_as_a_model)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){3});
    struct zc_heap h = {0};
    memset(timers, 0, sizeof(timers));
    for (int round = 0; round < 30000; round++) {
        struct zc_timer *t = &timers[zc_rng_u64(&rng) % TIMERS];
        uint64_t range = round % 2 == 0 ? 20 : UINT64_MAX / 2; /* equal deadlines, too */
        switch (zc_rng_u64(&rng) % (round % 6000 < 3000 ? 3 : 8)) {
        case 0:
        case 1: /* insert or move */
            CHECK_INT(zc_heap_set(&h, t, (struct zc_mono){(int64_t)(zc_rng_u64(&rng) % range)}), 0);
            CHECK(zc_heap_has(t));
            break;
        case 2:
        case 3:
            zc_heap_remove(&h, t);
            CHECK(!zc_heap_has(t));
            break;
        default: /* as the owner does when time passes */
            t = zc_heap_min(&h);
            if (t != NULL)
                zc_heap_remove(&h, t);
        }
        struct zc_timer *want = model_min(), *got = zc_heap_min(&h);
        CHECK((want == NULL) == (got == NULL));
        CHECK(want == NULL || got == NULL || got->deadline.ns == want->deadline.ns);
        CHECK_INT(h.len, model_len());
        CHECK(h.cap <= 16 || h.len >= h.cap / 4);
    }
    zc_heap_done(&h);
    CHECK(h.nodes == NULL && h.len == 0);
}

TEST(heap_gives_sorted_order)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){4});
    struct zc_heap h = {0};
    memset(timers, 0, sizeof(timers));
    for (int i = 0; i < TIMERS; i++)
        CHECK_INT(zc_heap_set(&h, &timers[i], (struct zc_mono){(int64_t)(zc_rng_u64(&rng) >> 1)}),
                  0);
    int64_t last = 0;
    for (int i = 0; i < TIMERS; i++) {
        struct zc_timer *t = zc_heap_min(&h);
        CHECK(t != NULL && t->deadline.ns >= last);
        last = t->deadline.ns;
        zc_heap_remove(&h, t);
    }
    CHECK(zc_heap_min(&h) == NULL);
    zc_heap_done(&h);
}

TEST(heap_remove_of_a_stranger)
{
    struct zc_heap h = {0};
    struct zc_timer t = {0};
    zc_heap_remove(&h, &t);
    CHECK(zc_heap_min(&h) == NULL);
    zc_heap_done(&h);
}
