/*
 * The simulator's dice: splitmix64 (Steele, Lea, Flood 2014). Small and fast; the hub gets its own
 * stream from a seed, so that a change in one does not move the other.
 */
#ifndef ZC_TESTS_SIM_RND_H
#define ZC_TESTS_SIM_RND_H

#include <stdbool.h>
#include <stdint.h>

struct rnd {
    uint64_t state;
};

static inline uint64_t rnd_u64(struct rnd *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 .. n-1; 0 when n is 0. */
static inline uint64_t rnd_below(struct rnd *r, uint64_t n)
{
    return n == 0 ? 0 : rnd_u64(r) % n;
}

/* lo .. hi, both included. */
static inline int64_t rnd_range(struct rnd *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)rnd_below(r, (uint64_t)(hi - lo) + 1);
}

/* True once in `of` times. */
static inline bool rnd_one_in(struct rnd *r, uint64_t of)
{
    return rnd_below(r, of) == 0;
}

/* True with `ppm` chances in a million. */
static inline bool rnd_ppm(struct rnd *r, uint32_t ppm)
{
    return ppm > 0 && rnd_below(r, 1000000) < ppm;
}

#endif
