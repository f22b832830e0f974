/*
 * UTF-8 (RFC 3629), base64 (RFC 4648 section 4), hex, and escaping for people.
 * Base64 has its own decoder because the protocol accepts non-zero padding bits and line ends
 * anywhere, which libsodium refuses.
 */
#include <string.h>

#include "base/text.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Length of the valid UTF-8 character at s[0..len), 0 when there is none. len >= 1. */
static size_t text_char(const uint8_t *s, size_t len, uint32_t *ret_code)
{
    uint8_t c = s[0];
    if (c < 0x80) {
        *ret_code = c;
        return 1;
    }
    size_t n = c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (n == 0 || n > len)
        return 0;
    /* The second byte's range shuts out overlong forms, surrogates and what is above U+10FFFF. */
    uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 0;
    uint32_t code = c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    *ret_code = code;
    return n;
}

size_t zc_text_utf8_char(struct zc_slice s, uint32_t *ret_code)
{
    return s.len == 0 ? 0 : text_char(s.data, s.len, ret_code);
}

bool zc_text_utf8_valid(struct zc_slice s)
{
    size_t i = 0;
    while (i < s.len) {
        uint64_t word;
        if (s.len - i >= sizeof(word)) {
            memcpy(&word, s.data + i, sizeof(word));
            if ((word & HIGH_BITS) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        uint32_t code;
        size_t n = text_char(s.data + i, s.len - i, &code);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

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

bool zc_text_base64_decode(struct zc_slice s, uint8_t *ret_data, size_t *ret_len)
{
    struct base64_group g = {0};
    size_t i = 0, n = 0;
    while (i < s.len) {
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

static const char hex_digits[] = "0123456789abcdef";

void zc_text_hex(char *ret_hex, struct zc_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        ret_hex[2 * i] = hex_digits[s.data[i] >> 4];
        ret_hex[2 * i + 1] = hex_digits[s.data[i] & 15];
    }
}

/* Characters that move the cursor, end lines or reorder what a reader sees. */
static bool text_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Escaped form of the next character into ret_piece (at most 8 bytes); returns its length and the
 * bytes it took in *ret_taken. */
static size_t text_piece(const uint8_t *s, size_t len, uint8_t ret_piece[8], size_t *ret_taken)
{
    uint32_t code;
    size_t taken = text_char(s, len, &code);
    *ret_taken = taken > 0 ? taken : 1;
    if (taken == 0 || (code < 0x80 && text_is_control(code))) {
        const uint8_t piece[] = {'\\', 'x', (uint8_t)hex_digits[s[0] >> 4],
                                 (uint8_t)hex_digits[s[0] & 15]};
        memcpy(ret_piece, piece, sizeof(piece));
        return sizeof(piece);
    }
    if (code == '\\') {
        memcpy(ret_piece, "\\\\", 2);
        return 2;
    }
    if (!text_is_control(code)) {
        memcpy(ret_piece, s, taken);
        return taken;
    }
    size_t n = 3;
    memcpy(ret_piece, "\\u{", 3);
    for (int shift = code > 0xfff ? 12 : code > 0xff ? 8 : 4; shift >= 0; shift -= 4)
        ret_piece[n++] = (uint8_t)hex_digits[code >> shift & 15];
    ret_piece[n++] = '}';
    return n;
}

size_t zc_text_escape(char *ret_out, size_t cap, struct zc_slice s)
{
    size_t len = 0, cut = 0; /* cut: the last end of a piece that leaves room for the dots */
    if (cap == 0)
        return 0;
    for (size_t i = 0, taken; i < s.len; i += taken) {
        uint8_t piece[8];
        size_t n = text_piece(s.data + i, s.len - i, piece, &taken);
        if (n >= cap - len) {
            size_t dots = cap - 1 < 3 ? cap - 1 : 3;
            memcpy(ret_out + cut, "...", dots);
            len = cut + dots;
            break;
        }
        memcpy(ret_out + len, piece, n);
        len += n;
        if (cap - len > 3)
            cut = len;
    }
    ret_out[len] = '\0';
    return len;
}
