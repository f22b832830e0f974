/*
 * Writer of JSON strings and integers. Escapes what the original escapes, byte for byte: < > &
 * U+2028 U+2029 and controls; DEL, '/' and other characters go out raw.
 */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/word.h"

/* Bytes of each ASCII character inside a string literal. */
static size_t json_ascii_len(uint8_t c)
{
    if (c >= 0x20)
        return c == '"' || c == '\\' ? 2 : c == '<' || c == '>' || c == '&' ? 6 : 1;
    return c == '\b' || c == '\f' || c == '\n' || c == '\r' || c == '\t' ? 2 : 6;
}

/* Marks bytes of w that do not go out as they are, and all that are not ASCII. */
static inline uint64_t json_special(uint64_t w)
{
    /* '"' and '&' differ in one bit, '<' and '>' in another. A byte above 127 is marked by itself,
     * so the comparisons may mark it too. */
    uint64_t quote = (w | ZC_WORD_ONES * 4) ^ ZC_WORD_ONES * '&';
    uint64_t angle = (w | ZC_WORD_ONES * 2) ^ ZC_WORD_ONES * '>';
    uint64_t slash = w ^ ZC_WORD_ONES * '\\';
    return ((quote - ZC_WORD_ONES) | (angle - ZC_WORD_ONES) | (slash - ZC_WORD_ONES) |
            (w - ZC_WORD_ONES * 0x20) | w) &
           ZC_WORD_HIGHS;
}

#ifdef __SSE2__
/* The same of sixteen bytes, a bit for each. */
static inline unsigned json_special_wide(__m128i w)
{
    __m128i pairs = _mm_or_si128(zc_word_wide_eq(w, 4, '&'), zc_word_wide_eq(w, 2, '>'));
    __m128i others = _mm_or_si128(zc_word_wide_eq(w, 0, '\\'), zc_word_wide_odd(w));
    return zc_word_wide_bits(_mm_or_si128(pairs, others));
}
#endif

/* Length of the run at p that is ASCII and goes out as it is. */
static size_t json_plain(const uint8_t *p, size_t len)
{
    size_t n = 0;
#ifdef __SSE2__
    for (; len - n >= 16; n += 16) {
        unsigned stop = json_special_wide(zc_word_wide(p + n));
        if (stop != 0)
            return n + (size_t)__builtin_ctz(stop);
    }
#endif
    for (; len - n >= 8; n += 8) {
        uint64_t stop = json_special(zc_word_load(p + n));
        if (stop != 0)
            return n + zc_word_first(stop);
    }
    if (n == len)
        return n;
    uint64_t stop = json_special(zc_word_load_short(p + n, len - n));
    return stop != 0 ? n + zc_word_first(stop) : len;
}

/* Bytes of the character at p inside a literal; *ret_taken: its own bytes, *ret_code: U+FFFD for an
 * invalid byte. */
static size_t json_char_len(const uint8_t *p, size_t len, size_t *ret_taken, uint32_t *ret_code)
{
    if (p[0] < 0x80) {
        *ret_taken = 1;
        *ret_code = p[0];
        return json_ascii_len(p[0]);
    }
    size_t n = zc_text_utf8_char(zc_slice(p, len), ret_code);
    *ret_taken = n > 0 ? n : 1;
    if (n == 0)
        *ret_code = 0xfffd;
    return n == 0 || *ret_code == 0x2028 || *ret_code == 0x2029 ? 6 : n;
}

size_t zc_json_escaped_len(struct zc_slice s)
{
    size_t out = 0, taken;
    uint32_t code;
    for (size_t i = 0; i < s.len; i += taken) {
        taken = json_plain(s.data + i, s.len - i);
        out += taken;
        if (taken == 0)
            out += json_char_len(s.data + i, s.len - i, &taken, &code);
    }
    return out;
}

uint8_t *zc_json_escape(uint8_t *ret_out, struct zc_slice s)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn?fr"; /* of \b to \r; U+000B has no short form */
    uint8_t *out = ret_out;
    size_t taken;
    for (size_t i = 0; i < s.len; i += taken) {
        taken = json_plain(s.data + i, s.len - i);
        if (taken > 0) {
            memcpy(out, s.data + i, taken);
            out += taken;
            continue;
        }
        uint32_t code;
        size_t n = json_char_len(s.data + i, s.len - i, &taken, &code);
        if (n == 6) {
            const uint8_t u[6] = {'\\',
                                  'u',
                                  (uint8_t)hex[code >> 12],
                                  (uint8_t)hex[code >> 8 & 15],
                                  (uint8_t)hex[code >> 4 & 15],
                                  (uint8_t)hex[code & 15]};
            memcpy(out, u, 6);
        } else if (code < 0x80) {
            out[0] = '\\';
            out[1] = code < 0x20 ? (uint8_t)letters[code - '\b'] : (uint8_t)code;
        } else {
            memcpy(out, s.data + i, n);
        }
        out += n;
    }
    return out;
}

int zc_json_put_string(struct zc_buf *b, struct zc_slice s)
{
    size_t len = zc_json_escaped_len(s);
    int err = zc_buf_reserve(b, len + 2);
    if (err != 0)
        return err;
    b->data[b->len] = '"';
    uint8_t *end = zc_json_escape(b->data + b->len + 1, s);
    *end = '"';
    b->len += len + 2;
    return 0;
}

int zc_json_put_int(struct zc_buf *b, int64_t v)
{
    char digits[ZC_TEXT_INT_MAX];
    return zc_buf_append(b, digits, zc_text_int(digits, v));
}

int zc_json_put_raw(struct zc_buf *b, const char *text)
{
    return zc_buf_append(b, text, strlen(text));
}

int zc_json_put_member(struct zc_buf *b, const char *key, int64_t value)
{
    int err = 0;
    if (b->len > 0 && b->data[b->len - 1] != '{')
        err = zc_json_put_raw(b, ",");
    if (err == 0)
        err = zc_json_put_string(b, zc_slice_str(key));
    if (err == 0)
        err = zc_json_put_raw(b, ":");
    return err != 0 ? err : zc_json_put_int(b, value);
}
