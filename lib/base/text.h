/*
 * Text: UTF-8 validation, base64, hex, and escaping for logs and terminals.
 */
#ifndef ZC_BASE_TEXT_H
#define ZC_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Valid UTF-8: no overlong forms, no surrogates, at most U+10FFFF. U+0000 is fine. */
bool zc_text_utf8_valid(struct zc_slice s);
/* Length and code point of the character that s begins with; 0 when it begins with none. */
size_t zc_text_utf8_char(struct zc_slice s, uint32_t *ret_code);
/* Standard padded base64 with CR and LF ignored and non-zero padding bits accepted. Decodes into
 * ret_data, which has room for s.len / 4 * 3 bytes and may be the same memory as s.data. false on
 * any other byte, missing padding or trailing data. */
bool zc_text_base64_decode(struct zc_slice s, uint8_t *ret_data, size_t *ret_len);
static inline size_t zc_text_base64_len(size_t len)
{
    return (len + 2) / 3 * 4;
}
/* Writes zc_text_base64_len(s.len) characters, returns the end. */
uint8_t *zc_text_base64_encode(uint8_t *ret_out, struct zc_slice s);
/* Decimal digits of v, with a sign when it is negative, no NUL; returns how many characters. */
#define ZC_TEXT_UINT_MAX 20
#define ZC_TEXT_INT_MAX (1 + ZC_TEXT_UINT_MAX)
size_t zc_text_uint(char ret_digits[ZC_TEXT_UINT_MAX], uint64_t v);
size_t zc_text_int(char ret_digits[ZC_TEXT_INT_MAX], int64_t v);
/* Lower-case hex, 2 * s.len characters, no NUL. */
void zc_text_hex(char *ret_hex, struct zc_slice s);
/* Escapes s for a log line or a terminal into out (cap bytes, always NUL-terminated, cut with "..."
 * when it does not fit): control characters (C0, DEL, C1, U+2028, U+2029, bidi controls) and
 * invalid UTF-8 as \xNN or \u{N}, backslash doubled. Returns the length. */
size_t zc_text_escape(char *ret_out, size_t cap, struct zc_slice s);

#endif
