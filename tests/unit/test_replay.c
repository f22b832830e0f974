/* tunnel/replay.h: the vectors, and random counters against a list of all that were seen. */
#include "tunnel/replay.h"

#include "base/check.h"
#include "base/rng.h"
#include "test.h"
#include "vector.h"

static uint64_t number(struct zc_slice text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n = n * 10 + (uint64_t)(text.data[i] - '0');
    return n;
}

TEST(replay_vectors)
{
    struct vec all = vec_object(vec_section("replay"));
    uint64_t limit = number(vec_get(&all, "limit").text);
    CHECK(limit == UINT64_MAX - 8192);
    CHECK_INT(vec_int(&all, "window"), ZC_REPLAY_WINDOW);
    struct vec_each it = vec_each(vec_get(&all, "sequences"));
    struct zc_json_value value, counter, want;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        struct zc_replay r = {0};
        struct vec_each counters = vec_each(vec_get(&v, "counters"));
        struct vec_each wants = vec_each(vec_get(&v, "accepted"));
        while (vec_next(&counters, &counter)) {
            CHECK(vec_next(&wants, &want));
            CHECK_INT(zc_replay_accept(&r, number(counter.text), limit), want.boolean);
        }
        CHECK(!vec_next(&wants, &want));
        seen++;
    }
    CHECK_INT(seen, 7);
}

/* The window as a set of all counters that were accepted. */
struct model {
    uint64_t seen[4000];
    size_t len;
    uint64_t greatest;
};

static bool model_accept(struct model *m, uint64_t counter, uint64_t limit)
{
    if (counter >= limit || (m->greatest > counter && m->greatest - counter > 8128))
        return false;
    for (size_t i = 0; i < m->len; i++) {
        if (m->seen[i] == counter)
            return false;
    }
    m->seen[m->len++] = counter;
    if (counter > m->greatest)
        m->greatest = counter;
    return true;
}

TEST(replay_as_a_model)
{
    static struct model m;
    static const uint64_t spans[] = {3, 64, 200, 8128, 8192, 8300, 20000, UINT64_C(1) << 40};
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){77});
    for (size_t run = 0; run < 4 * ZC_ARRAY_LEN(spans); run++) {
        uint64_t span = spans[run % ZC_ARRAY_LEN(spans)];
        uint64_t limit = run % 4 == 3 ? span * 3 : UINT64_MAX - 8192;
        uint64_t base = run % 3 == 2 ? limit - (limit < span * 2 ? limit : span * 2) : 0;
        struct zc_replay r = {0};
        memset(&m, 0, sizeof(m));
        for (int i = 0; i < 3000; i++) {
            uint64_t pick = zc_rng_u64(&rng), at = m.greatest > base ? m.greatest : base;
            uint64_t counter = at + zc_rng_u64(&rng) % (span + 1);
            if (pick % 3 != 0) { /* behind, about the window's edge, or just ahead */
                uint64_t back = zc_rng_u64(&rng) % (pick % 3 == 1 ? span + 1 : 8132);
                counter = at >= back ? at - back : 0;
            } else if (pick % 2 == 0) {
                counter = at + pick / 8 % 3;
            }
            bool want = model_accept(&m, counter, limit);
            bool got = zc_replay_accept(&r, counter, limit);
            CHECK_INT(got, want);
            if (got != want)
                return;
        }
    }
}
