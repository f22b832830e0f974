/*
 * Searching bytes eight at a time in a plain 64-bit word (Mycroft's trick; no vector instructions,
 * so the same on every machine). A mark is the high bit of a byte. Only the lowest mark is certain,
 * because a borrow may run on from it; zc_word_first gives that one.
 *
 * Where every processor has SSE2, long runs go sixteen bytes at a time first.
 */
#ifndef ZC_BASE_WORD_H
#define ZC_BASE_WORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

#ifdef __SSE2__
/* Sixteen bytes at p. */
static inline __m128i zc_word_wide(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* All bits of the bytes equal to c after or_bits were set in them. */
static inline __m128i zc_word_wide_eq(__m128i w, char or_bits, char c)
{
    return _mm_cmpeq_epi8(_mm_or_si128(w, _mm_set1_epi8(or_bits)), _mm_set1_epi8(c));
}

/* All bits of the bytes that are controls or not ASCII. */
static inline __m128i zc_word_wide_odd(__m128i w)
{
    return _mm_cmplt_epi8(w, _mm_set1_epi8(' '));
}

/* A bit for each marked byte. */
static inline unsigned zc_word_wide_bits(__m128i marks)
{
    return (unsigned)_mm_movemask_epi8(marks);
}
#endif

/* Index of the first marked byte; marks is not 0. */
static inline size_t zc_word_first(uint64_t marks)
{
    return (size_t)__builtin_ctzll(marks) / 8;
}

#endif
