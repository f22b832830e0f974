/* The table of wanted records against a naive model. */
#include "store/live.h"
#include "test.h"

#define MAX 3000

static uint64_t state = 7;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % n;
}

TEST(live_like_a_model)
{
    static bool there[MAX];
    static uint64_t places[MAX];
    struct zc_live t = {0};
    uint32_t next = 1, count = 0, most = 0;
    for (int step = 0; step < 40000; step++) {
        bool fill = step / 4000 % 2 == 0;
        if (next < MAX && below(4) < (fill ? 3u : 1u)) {
            next += below(3);
            if (next >= MAX)
                continue;
            CHECK_INT(zc_live_add(&t, next * 8, 24 + next, &places[next], false), 0);
            there[next++] = true;
            most = ++count > most ? count : most;
        } else {
            uint32_t at = below(next);
            struct zc_live_item *item = zc_live_find(&t, at * 8);
            CHECK((item != NULL) == there[at]);
            if (item != NULL) {
                CHECK_INT(item->size, 24 + at);
                CHECK(item->owner == &places[at]);
                zc_live_drop(&t, item);
                count -= there[at];
                there[at] = false;
            }
        }
        uint32_t from = below(next + 1), want = from;
        while (want < next && !there[want])
            want++;
        struct zc_live_item *item = zc_live_from(&t, from * 8);
        CHECK((item != NULL) == (want < next));
        if (item != NULL)
            CHECK_INT(zc_live_offset(item), want * 8);
        CHECK(t.len - t.gone == count && t.len <= 2 * count + 32);
        if (next == MAX && count == 0)
            break;
    }
    CHECK(most > 100);
    zc_live_done(&t);
    CHECK(zc_live_find(&t, 8) == NULL && zc_live_from(&t, 0) == NULL);
}

TEST(live_large_offsets)
{
    /* A segment of 1 GiB that its last record extends. */
    struct zc_live t = {0};
    uint64_t far = (UINT64_C(1) << 30) + (UINT64_C(16) << 20);
    CHECK_INT(zc_live_add(&t, 128, 24, NULL, true), 0);
    CHECK_INT(zc_live_add(&t, far, UINT32_C(1) << 24, NULL, false), 0);
    CHECK(zc_live_find(&t, far) != NULL && zc_live_offset(zc_live_from(&t, 129)) == far);
    CHECK(zc_live_find(&t, 128)->coming);
    zc_live_done(&t);
}
