/* UTF-8 (RFC 3629), hex, and escaping for people. */
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

size_t zc_text_uint(char ret_digits[ZC_TEXT_UINT_MAX], uint64_t v)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char digits[ZC_TEXT_UINT_MAX];
    size_t at = sizeof(digits);
    for (; v >= 100; v /= 100) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * (v % 100), 2);
    }
    if (v >= 10) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * v, 2);
    } else {
        digits[--at] = (char)('0' + v);
    }
    memcpy(ret_digits, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at;
}

size_t zc_text_int(char ret_digits[ZC_TEXT_INT_MAX], int64_t v)
{
    if (v >= 0)
        return zc_text_uint(ret_digits, (uint64_t)v);
    ret_digits[0] = '-';
    return 1 + zc_text_uint(ret_digits + 1, -(uint64_t)v);
}
