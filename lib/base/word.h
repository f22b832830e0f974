/*
 * Searching bytes eight at a time in a plain 64-bit word (Mycroft's trick; no vector instructions,
 * so the same on every machine). A mark is the high bit of a byte. Only the lowest mark is certain,
 * because a borrow may run on from it; zc_word_first gives that one.
 */
#ifndef ZC_BASE_WORD_H
#define ZC_BASE_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ZC_WORD_ONES UINT64_C(0x0101010101010101)
#define ZC_WORD_HIGHS UINT64_C(0x8080808080808080)

/* Eight bytes at p, the first one lowest. */
static inline uint64_t zc_word_load(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof(w));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* The len bytes at p, 1 to 7, the first one lowest, and spaces after them. */
static inline uint64_t zc_word_load_short(const uint8_t *p, size_t len)
{
    uint64_t w;
    if (len >= 4) { /* two loads that overlap */
        uint32_t low, high;
        memcpy(&low, p, sizeof(low));
        memcpy(&high, p + len - sizeof(high), sizeof(high));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        low = __builtin_bswap32(low);
        high = __builtin_bswap32(high);
#endif
        w = low | (uint64_t)high << 8 * (len - sizeof(high));
    } else {
        w = p[0] | (uint64_t)p[len / 2] << 8 * (len / 2) | (uint64_t)p[len - 1] << 8 * (len - 1);
    }
    return w | ZC_WORD_ONES * ' ' << 8 * len;
}

/* Marks bytes equal to c. */
static inline uint64_t zc_word_eq(uint64_t w, uint8_t c)
{
    uint64_t x = w ^ (ZC_WORD_ONES * c);
    return (x - ZC_WORD_ONES) & ~x & ZC_WORD_HIGHS;
}

/* Marks bytes below c; c is at most 128. */
static inline uint64_t zc_word_below(uint64_t w, uint8_t c)
{
    return (w - ZC_WORD_ONES * c) & ~w & ZC_WORD_HIGHS;
}

/* Index of the first marked byte; marks is not 0. */
static inline size_t zc_word_first(uint64_t marks)
{
    return (size_t)__builtin_ctzll(marks) / 8;
}

#endif
