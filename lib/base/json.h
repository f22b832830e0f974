/*
 * Strict JSON (RFC 8259) without a tree: a scanner that decodes strings in place and a writer.
 * Used instead of a JSON library on the message path because it keeps U+0000, sees duplicate keys,
 * never rounds an integer, refuses bad UTF-8 and allocates nothing.
 * Deliberately absent: trees, comments, NaN, single quotes, trailing commas.
 */
#ifndef ZC_BASE_JSON_H
#define ZC_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_JSON_DEPTH_MAX 32

enum zc_json_type {
    ZC_JSON_NULL,
    ZC_JSON_BOOL,
    ZC_JSON_NUMBER,
    ZC_JSON_STRING,
    ZC_JSON_ARRAY,
    ZC_JSON_OBJECT,
    ZC_JSON_BAD /* syntax error */
};

/* A value as scanned. Strings are decoded in place: text points into the scanned buffer. */
struct zc_json_value {
    enum zc_json_type type;
    bool boolean;
    bool utf8_bad;        /* string: invalid UTF-8 or a lone surrogate, text is then undefined;
                             array, object: invalid UTF-8 somewhere inside */
    struct zc_slice text; /* string: decoded; number: the literal; array, object: raw with brackets,
                             unchanged bytes */
};

/* Cursor over a mutable buffer. error, once set, stays and names the first fault. */
struct zc_json {
    uint8_t *data;
    size_t len;
    size_t pos;
    const char *error; /* static text or NULL */
};

void zc_json_init(struct zc_json *j, uint8_t *data, size_t len);
/* Scans any one value (composites are validated, skipped and given raw). depth: how many brackets
 * are open around it, 0 for a whole document, 1 for the members of its object; at most
 * ZC_JSON_DEPTH_MAX may be open at once. On a fault type is ZC_JSON_BAD and j->error says why. */
struct zc_json_value zc_json_value(struct zc_json *j, unsigned depth);
/* Consumes white space and `c`; false, without error, when the next byte is another. */
bool zc_json_eat(struct zc_json *j, char c);
/* Only white space is left. */
bool zc_json_at_end(struct zc_json *j);
/* An object is walked with: eat '{'; then zc_json_member until false. Sets error on bad syntax.
 * *first must be true before the first call. Returns false at the closing brace. */
bool zc_json_member(struct zc_json *j, bool *first, unsigned depth, struct zc_slice *ret_key,
                    bool *ret_key_utf8_bad, struct zc_json_value *ret_value);
/* Likewise for arrays: eat '['; then zc_json_element until false. */
bool zc_json_element(struct zc_json *j, bool *first, unsigned depth,
                     struct zc_json_value *ret_value);
/* Number literal to int64: false for fractions, exponents and what does not fit. */
bool zc_json_int(struct zc_slice number, int64_t *ret_value);
/* Number literal of seconds to whole milliseconds (rounded up): false when negative, or above
 * max_s seconds. Fractions and exponents are fine. */
bool zc_json_seconds_ms(struct zc_slice number, int64_t max_s, int64_t *ret_ms);

/* Bytes of s as the inside of a JSON string literal: < > & U+2028 U+2029 and controls escaped,
 * other characters raw. s must be valid UTF-8 (invalid bytes become \ufffd). */
size_t zc_json_escaped_len(struct zc_slice s);
/* Writes exactly zc_json_escaped_len(s) bytes, returns the end. */
uint8_t *zc_json_escape(uint8_t *ret_out, struct zc_slice s);

/* Appends with commas kept right by the caller. All return 0 or ZC_ENOMEM. */
ZC_MUST_CHECK int zc_json_put_string(struct zc_buf *b, struct zc_slice s); /* with quotes */
ZC_MUST_CHECK int zc_json_put_int(struct zc_buf *b, int64_t v);
ZC_MUST_CHECK int zc_json_put_raw(struct zc_buf *b, const char *text);

/* "key":value, with the comma that parts it from a member before it. */
ZC_MUST_CHECK int zc_json_put_member(struct zc_buf *b, const char *key, int64_t value);

#endif
