/* tunnel/twin.h: how many signs it takes, and that an episode is told once. */
#include "tunnel/twin.h"

#include "test.h"

static bool sign(struct zc_twin *t, int64_t s)
{
    return zc_twin_sign(t, (struct zc_now){{(1000 + s) * ZC_NS_PER_S}, {0}});
}

TEST(twin_takes_three_signs_apart)
{
    struct zc_twin t = {0};
    CHECK(!sign(&t, 0));
    for (int i = 0; i < 100; i++)
        CHECK(!sign(&t, 4)); /* a burst is one sign */
    CHECK(!sign(&t, 5));
    CHECK(!sign(&t, 9));
    CHECK(sign(&t, 10));
    CHECK(!sign(&t, 15));
}

TEST(twin_forgets_signs_that_are_far_from_each_other)
{
    struct zc_twin t = {0};
    for (int s = 0; s < 100000; s += 301)
        CHECK(!sign(&t, s));
}

TEST(twin_episode_is_told_once)
{
    struct zc_twin t = {0};
    int told = 0;
    for (int s = 0; s < 86400; s += 7)
        told += sign(&t, s);
    CHECK_INT(told, 1);
    for (int s = 86400; s < 90000; s += 1800) /* few are enough to go on */
        told += sign(&t, s);
    for (int s = 90000; s < 91000; s += 7)
        told += sign(&t, s);
    CHECK_INT(told, 1);
    for (int s = 95000; s < 96000; s += 7)
        told += sign(&t, s);
    CHECK_INT(told, 2);
}
