/*
 * Two clocks that cannot be mixed. The core never reads a clock: every call brings a zc_now.
 */
#ifndef ZC_BASE_TIME_H
#define ZC_BASE_TIME_H

#include <stdint.h>

/* Monotonic time, counted while the machine is suspended too. Never goes back. */
struct zc_mono {
    int64_t ns;
};

/* Wall time in unix milliseconds. May step either way. */
struct zc_wall {
    int64_t ms;
};

/* The instant of a call. */
struct zc_now {
    struct zc_mono mono;
    struct zc_wall wall;
};

#define ZC_NS_PER_MS INT64_C(1000000)
#define ZC_NS_PER_S INT64_C(1000000000)
/* Later than everything: no tick wanted. */
#define ZC_NEVER ((struct zc_mono){INT64_MAX})

/* base + ms, saturating at ZC_NEVER. ms >= 0. */
static inline struct zc_mono zc_mono_add_ms(struct zc_mono base, int64_t ms)
{
    if (ms > (INT64_MAX - base.ns) / ZC_NS_PER_MS)
        return ZC_NEVER;
    return (struct zc_mono){base.ns + ms * ZC_NS_PER_MS};
}

static inline struct zc_mono zc_mono_min(struct zc_mono a, struct zc_mono b)
{
    return a.ns < b.ns ? a : b;
}

/* Milliseconds from a to b, negative when b is earlier. */
static inline int64_t zc_mono_diff_ms(struct zc_mono a, struct zc_mono b)
{
    return (b.ns - a.ns) / ZC_NS_PER_MS;
}

#endif
