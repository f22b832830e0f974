/* Little-endian integers in bytes, whatever the machine and the alignment. */
#ifndef ZC_BASE_LE_H
#define ZC_BASE_LE_H

#include <stdint.h>

/* The n lowest bytes of v (n at most 8). */
static inline void zc_le_put(uint8_t *p, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint64_t zc_le_get(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = n; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

#endif
