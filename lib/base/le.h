/* Little-endian integers in bytes, whatever the machine and the alignment. A constant n makes one
 * load or store of them. */
#ifndef ZC_BASE_LE_H
#define ZC_BASE_LE_H

#include <stdint.h>
#include <string.h>

/* The n lowest bytes of v (n at most 8). */
static inline void zc_le_put(uint8_t *p, uint64_t v, unsigned n)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, n);
}

static inline uint64_t zc_le_get(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

#endif
