/*
 * Base64 (RFC 4648 section 4). Own, because the protocol accepts line ends anywhere and padding
 * bits that are not zero, which libsodium refuses, and because every payload passes through it:
 * sixteen characters at a time by the vector types of gcc and clang, which become SSE2 or NEON. The
 * rest, and everything on a big-endian machine, goes by groups of four through a table.
 */
#include <string.h>

#include "base/text.h"
#include "base/word.h"

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Value + 1 of each base64 digit; 0: not a digit. */
#define D(c, v) [c] = (v) + 1
static const uint8_t base64_values[256] = {
    D('A', 0),  D('B', 1),  D('C', 2),  D('D', 3),  D('E', 4),  D('F', 5),  D('G', 6),  D('H', 7),
    D('I', 8),  D('J', 9),  D('K', 10), D('L', 11), D('M', 12), D('N', 13), D('O', 14), D('P', 15),
    D('Q', 16), D('R', 17), D('S', 18), D('T', 19), D('U', 20), D('V', 21), D('W', 22), D('X', 23),
    D('Y', 24), D('Z', 25), D('a', 26), D('b', 27), D('c', 28), D('d', 29), D('e', 30), D('f', 31),
    D('g', 32), D('h', 33), D('i', 34), D('j', 35), D('k', 36), D('l', 37), D('m', 38), D('n', 39),
    D('o', 40), D('p', 41), D('q', 42), D('r', 43), D('s', 44), D('t', 45), D('u', 46), D('v', 47),
    D('w', 48), D('x', 49), D('y', 50), D('z', 51), D('0', 52), D('1', 53), D('2', 54), D('3', 55),
    D('4', 56), D('5', 57), D('6', 58), D('7', 59), D('8', 60), D('9', 61), D('+', 62), D('/', 63),
};
#undef D

/* The digits of one group of four that is broken by line ends or padding. */
struct base64_group {
    uint32_t bits;
    unsigned digits;
    unsigned pads;
};

/* Takes one character; false when it cannot stand here. */
static bool base64_take(struct base64_group *g, uint8_t c)
{
    if (c == '\r' || c == '\n')
        return true;
    if (c == '=') {
        g->pads++;
        return g->digits >= 2;
    }
    if (base64_values[c] == 0 || g->pads > 0)
        return false;
    g->bits = g->bits << 6 | (base64_values[c] - 1u);
    g->digits++;
    return true;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

typedef int8_t base64_chars __attribute__((vector_size(16)));
typedef uint16_t base64_pairs __attribute__((vector_size(16)));
typedef uint32_t base64_lanes __attribute__((vector_size(16)));
typedef uint64_t base64_halves __attribute__((vector_size(16)));

/* Sixteen characters to twelve bytes; writes sixteen. False, and nothing written, when one of them
 * is no digit. */
static inline bool base64_decode16(const uint8_t *p, uint8_t *ret_out)
{
    base64_chars c;
    memcpy(&c, p, sizeof(c));
    /* A comparison gives -1 or 0 for each; bytes above 127 are negative and in no range. */
    base64_chars upper = (c >= 'A') & (c <= 'Z'), lower = (c >= 'a') & (c <= 'z');
    base64_chars digit = (c >= '0') & (c <= '9'), plus = c == '+', slash = c == '/';
    base64_halves valid = (base64_halves)(upper | lower | digit | plus | slash);
    if ((valid[0] & valid[1]) != UINT64_MAX)
        return false;
    c += (upper & -'A') + (lower & (26 - 'a')) + (digit & (52 - '0')) + (plus & (62 - '+')) +
         (slash & (63 - '/'));
    /* Four values of 6 bits, the first lowest, become two of 12, one of 24, and in pairs 48. */
    base64_pairs pairs = (base64_pairs)c;
    pairs = (pairs & 63) << 6 | pairs >> 8;
    base64_lanes lanes = (base64_lanes)pairs;
    lanes = (lanes & 0xfff) << 12 | lanes >> 16;
    base64_halves halves = (base64_halves)lanes;
    halves = halves << 40 | halves >> 32 << 16;
    uint64_t first = __builtin_bswap64(halves[0]), second = __builtin_bswap64(halves[1]);
    memcpy(ret_out, &first, 8);
    memcpy(ret_out + 6, &second, 8);
    return true;
}

/* Twelve bytes to sixteen characters; reads fourteen. */
static inline void base64_encode12(const uint8_t *p, uint8_t *ret_out)
{
    uint64_t first = __builtin_bswap64(zc_word_load(p));
    uint64_t second = __builtin_bswap64(zc_word_load(p + 6));
    base64_lanes v = {(uint32_t)(first >> 40), (uint32_t)(first >> 16) & 0xffffff,
                      (uint32_t)(second >> 40), (uint32_t)(second >> 16) & 0xffffff};
    v = v >> 18 | (v >> 4 & 0x3f00) | (v << 10 & 0x3f0000) | (v << 24 & 0x3f000000);
    base64_chars c = (base64_chars)v;
    /* From one range of digits to the next the distance to the character changes. */
    c += 'A' + ((c > 25) & ('a' - 26 - 'A')) + ((c > 51) & ('0' - 52 - ('a' - 26))) +
         ((c > 61) & ('+' - 62 - ('0' - 52))) + ((c > 62) & ('/' - 63 - ('+' - 62)));
    memcpy(ret_out, &c, sizeof(c));
}

#endif

bool zc_text_base64_decode(struct zc_slice s, uint8_t *ret_data, size_t *ret_len)
{
    struct base64_group g = {0};
    size_t i = 0, n = 0;
    while (i < s.len) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        /* What is written beyond the twelve bytes lies below i, or has room for what follows. */
        if (g.digits == 0 && g.pads == 0 && s.len - i >= 24 &&
            base64_decode16(s.data + i, ret_data + n)) {
            i += 16;
            n += 12;
            continue;
        }
#endif
        if (g.digits == 0 && g.pads == 0 && s.len - i >= 4) {
            const uint8_t *p = s.data + i;
            unsigned a = base64_values[p[0]] - 1u, b = base64_values[p[1]] - 1u;
            unsigned c = base64_values[p[2]] - 1u, d = base64_values[p[3]] - 1u;
            if (((a | b | c | d) >> 6) == 0) {
                ret_data[n++] = (uint8_t)(a << 2 | b >> 4);
                ret_data[n++] = (uint8_t)(b << 4 | c >> 2);
                ret_data[n++] = (uint8_t)(c << 6 | d);
                i += 4;
                continue;
            }
        }
        if (!base64_take(&g, s.data[i++]))
            return false;
        if (g.digits == 4) {
            ret_data[n++] = (uint8_t)(g.bits >> 16);
            ret_data[n++] = (uint8_t)(g.bits >> 8);
            ret_data[n++] = (uint8_t)g.bits;
            g = (struct base64_group){0};
        }
    }
    if (g.digits + g.pads != 0 && g.digits + g.pads != 4)
        return false;
    if (g.digits >= 2)
        ret_data[n++] = (uint8_t)(g.bits >> (6 * g.digits - 8));
    if (g.digits == 3)
        ret_data[n++] = (uint8_t)(g.bits >> 2);
    *ret_len = n;
    return true;
}

uint8_t *zc_text_base64_encode(uint8_t *ret_out, struct zc_slice s)
{
    const uint8_t *p = s.data;
    size_t left = s.len;
    uint8_t *out = ret_out;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; left >= 14; left -= 12, p += 12, out += 16)
        base64_encode12(p, out);
#endif
    for (; left >= 3; left -= 3, p += 3) {
        uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
        *out++ = (uint8_t)base64_digits[v >> 18];
        *out++ = (uint8_t)base64_digits[v >> 12 & 63];
        *out++ = (uint8_t)base64_digits[v >> 6 & 63];
        *out++ = (uint8_t)base64_digits[v & 63];
    }
    if (left > 0) {
        uint32_t v = (uint32_t)p[0] << 16 | (left == 2 ? (uint32_t)p[1] << 8 : 0);
        *out++ = (uint8_t)base64_digits[v >> 18];
        *out++ = (uint8_t)base64_digits[v >> 12 & 63];
        *out++ = left == 2 ? (uint8_t)base64_digits[v >> 6 & 63] : '=';
        *out++ = '=';
    }
    return out;
}
