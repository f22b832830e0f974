/*
 * Scanner of strict JSON (RFC 8259) without a tree. Strings are decoded where they lie
 * (json_string.c); numbers and composites stay as they are and are given as slices. Recursion is
 * bounded by ZC_JSON_DEPTH_MAX.
 */
#include <string.h>

#include "base/json_scan.h"
#include "base/text.h"
#include "base/word.h"

/* Marks quotes, backslashes, controls and all bytes that are not ASCII. Such a byte is marked by
 * itself, so the comparisons may mark it too. */
static inline uint64_t json_stop(uint64_t w)
{
    return (((w ^ ZC_WORD_ONES * '"') - ZC_WORD_ONES) | ((w ^ ZC_WORD_ONES * '\\') - ZC_WORD_ONES) |
            (w - ZC_WORD_ONES * 0x20) | w) &
           ZC_WORD_HIGHS;
}

/* Index of the quote that ends the string whose bytes begin at pos, when the string is plain: ASCII
 * without escapes. Else 0. Most strings are, and need neither decoding nor validation. */
static inline size_t json_plain_end(const struct zc_json *j, size_t pos)
{
#ifdef __SSE2__
    for (; j->len - pos >= 16; pos += 16) {
        __m128i w = zc_word_wide(j->data + pos);
        unsigned stop = zc_word_wide_bits(
            _mm_or_si128(_mm_or_si128(zc_word_wide_eq(w, 0, '"'), zc_word_wide_eq(w, 0, '\\')),
                         zc_word_wide_odd(w)));
        if (stop != 0) {
            pos += (size_t)__builtin_ctz(stop);
            return j->data[pos] == '"' ? pos : 0;
        }
    }
#endif
    for (;;) {
        size_t left = j->len - pos;
        uint64_t w;
        if (left >= 8)
            w = zc_word_load(j->data + pos);
        else if (left > 0 && j->len >= 8) /* the last bytes; the rest is 0, a control */
            w = zc_word_load(j->data + j->len - 8) >> 8 * (8 - left);
        else
            return 0;
        uint64_t stop = json_stop(w);
        if (stop != 0) {
            pos += zc_word_first(stop);
            return pos < j->len && j->data[pos] == '"' ? pos : 0;
        }
        pos += 8;
    }
}

/* Next byte after white space, or -1 at the end. */
static inline int json_next(struct zc_json *j)
{
    while (j->pos < j->len) {
        uint8_t c = j->data[j->pos];
        if (c > ' ' || (c != ' ' && c != '\n' && c != '\r' && c != '\t'))
            return c;
        j->pos++;
    }
    return -1;
}

/* A string literal, decoded in place; the opening quote is at j->pos. */
static inline bool json_string(struct zc_json *j, struct zc_slice *ret_text, bool *ret_utf8_bad)
{
    size_t start = j->pos + 1, end = json_plain_end(j, start);
    if (end == 0)
        return zc_json_string_decode(j, ret_text, ret_utf8_bad);
    *ret_text = zc_slice(j->data + start, end - start);
    *ret_utf8_bad = false;
    j->pos = end + 1;
    return true;
}

static bool json_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* At least one digit; moves past all of them. */
static bool json_digits(struct zc_json *j)
{
    size_t start = j->pos;
    while (j->pos < j->len && json_digit(j->data[j->pos]))
        j->pos++;
    return j->pos > start;
}

static bool json_at(const struct zc_json *j, char a, char b)
{
    return j->pos < j->len && (j->data[j->pos] == a || j->data[j->pos] == b);
}

static bool json_number(struct zc_json *j)
{
    static const char bad[] = "malformed number";
    if (!json_at(j, '-', '-') && !(j->pos < j->len && json_digit(j->data[j->pos])))
        return zc_json_fail(j, "not a value of JSON");
    if (json_at(j, '-', '-'))
        j->pos++;
    if (json_at(j, '0', '0'))
        j->pos++; /* a further digit is left over and so a fault */
    else if (!json_digits(j))
        return zc_json_fail(j, bad);
    if (json_at(j, '.', '.')) {
        j->pos++;
        if (!json_digits(j))
            return zc_json_fail(j, bad);
    }
    if (json_at(j, 'e', 'E')) {
        j->pos++;
        if (json_at(j, '+', '-'))
            j->pos++;
        if (!json_digits(j))
            return zc_json_fail(j, bad);
    }
    return true;
}

static bool json_word_is(struct zc_json *j, const char *word, size_t len)
{
    if (j->len - j->pos < len || memcmp(j->data + j->pos, word, len) != 0)
        return zc_json_fail(j, "not a value of JSON");
    j->pos += len;
    return true;
}

/* Before a member or element: true when there is one, false at the closing bracket or on a fault.
 */
static inline bool json_more(struct zc_json *j, bool *first, char close)
{
    if (j->error != NULL)
        return false;
    int c = json_next(j);
    if (c == close) {
        j->pos++;
        return false;
    }
    if (!*first) {
        if (c != ',')
            return zc_json_fail(j, c < 0 ? "ends too early" : "no comma between two values");
        j->pos++;
        json_next(j);
    }
    *first = false;
    return j->pos < j->len ? true : zc_json_fail(j, "ends too early");
}

static bool json_skip_value(struct zc_json *j, unsigned depth);

/* Moves past an array or object whose opening bracket is at j->pos. */
static bool json_skip_composite(struct zc_json *j, unsigned depth)
{
    if (depth >= ZC_JSON_DEPTH_MAX)
        return zc_json_fail(j, "nested too deep");
    bool object = j->data[j->pos] == '{', first = true;
    j->pos++;
    while (json_more(j, &first, object ? '}' : ']')) {
        if (object) {
            if (j->data[j->pos] != '"')
                return zc_json_fail(j, "a key is not a string");
            if (!zc_json_string_skip(j))
                return false;
            if (!zc_json_eat(j, ':'))
                return zc_json_fail(j, "no colon after a key");
            json_next(j);
        }
        if (!json_skip_value(j, depth + 1))
            return false;
    }
    return j->error == NULL;
}

/* Moves past the value at j->pos, without white space before it. */
static bool json_skip_value(struct zc_json *j, unsigned depth)
{
    switch (j->pos < j->len ? j->data[j->pos] : 0) {
    case '"':
        return zc_json_string_skip(j);
    case '{':
    case '[':
        return json_skip_composite(j, depth);
    case 't':
        return json_word_is(j, "true", 4);
    case 'f':
        return json_word_is(j, "false", 5);
    case 'n':
        return json_word_is(j, "null", 4);
    default:
        return json_number(j);
    }
}

void zc_json_init(struct zc_json *j, uint8_t *data, size_t len)
{
    *j = (struct zc_json){.data = data, .len = len};
}

/* A value that is no string, at j->pos. */
static void json_scan_other(struct zc_json *j, unsigned depth, struct zc_json_value *ret_value)
{
    size_t start = j->pos;
    uint8_t c = j->data[start];
    if (!json_skip_value(j, depth))
        return;
    ret_value->text = zc_slice(j->data + start, j->pos - start);
    ret_value->type = c == '{'   ? ZC_JSON_OBJECT
                      : c == '[' ? ZC_JSON_ARRAY
                      : c == 'n' ? ZC_JSON_NULL
                      : c > '9'  ? ZC_JSON_BOOL
                                 : ZC_JSON_NUMBER;
    ret_value->boolean = c == 't';
    if (c == '{' || c == '[')
        ret_value->utf8_bad = !zc_text_utf8_valid(ret_value->text);
}

static inline void json_scan(struct zc_json *j, unsigned depth, struct zc_json_value *ret_value)
{
    int c = j->error != NULL ? -1 : json_next(j);
    ret_value->type = ZC_JSON_BAD;
    ret_value->boolean = ret_value->utf8_bad = false;
    if (c == '"') {
        if (json_string(j, &ret_value->text, &ret_value->utf8_bad))
            ret_value->type = ZC_JSON_STRING;
    } else if (c >= 0) {
        json_scan_other(j, depth, ret_value);
    } else {
        zc_json_fail(j, "ends too early");
    }
}

struct zc_json_value zc_json_value(struct zc_json *j, unsigned depth)
{
    struct zc_json_value v = {.type = ZC_JSON_BAD};
    json_scan(j, depth, &v);
    return v;
}

static inline bool json_eat(struct zc_json *j, char c)
{
    if (j->error != NULL || json_next(j) != (uint8_t)c)
        return false;
    j->pos++;
    return true;
}

bool zc_json_eat(struct zc_json *j, char c)
{
    return json_eat(j, c);
}

bool zc_json_at_end(struct zc_json *j)
{
    return j->error == NULL && json_next(j) < 0;
}

/* The form that nearly all members have: `"key":"text"` without white space, key and text plain,
 * the key below eight bytes. False, and nothing moved, when it is another. */
static inline bool json_member_plain(struct zc_json *j, bool *first, struct zc_slice *ret_key,
                                     struct zc_slice *ret_text)
{
    size_t pos = j->pos + !*first;
    if (j->len < 16 || pos > j->len - 16 || j->data[pos] != '"' ||
        (!*first && j->data[j->pos] != ','))
        return false;
    pos++;
    uint64_t stop = json_stop(zc_word_load(j->data + pos));
    size_t end = pos + zc_word_first(stop | ZC_WORD_HIGHS << 56);
    if (memcmp(j->data + end, "\":\"", 3) != 0)
        return false;
    size_t text = end + 3, text_end = json_plain_end(j, text);
    if (text_end == 0)
        return false;
    *ret_key = zc_slice(j->data + pos, end - pos);
    *ret_text = zc_slice(j->data + text, text_end - text);
    *first = false;
    j->pos = text_end + 1;
    return true;
}

bool zc_json_member(struct zc_json *j, bool *first, unsigned depth, struct zc_slice *ret_key,
                    bool *ret_key_utf8_bad, struct zc_json_value *ret_value)
{
    if (j->error == NULL && json_member_plain(j, first, ret_key, &ret_value->text)) {
        *ret_key_utf8_bad = ret_value->boolean = ret_value->utf8_bad = false;
        ret_value->type = ZC_JSON_STRING;
        return true;
    }
    if (!json_more(j, first, '}'))
        return false;
    if (j->data[j->pos] != '"')
        return zc_json_fail(j, "a key is not a string");
    if (!json_string(j, ret_key, ret_key_utf8_bad))
        return false;
    if (!json_eat(j, ':'))
        return zc_json_fail(j, "no colon after a key");
    json_scan(j, depth, ret_value);
    return ret_value->type != ZC_JSON_BAD;
}

bool zc_json_element(struct zc_json *j, bool *first, unsigned depth,
                     struct zc_json_value *ret_value)
{
    if (!json_more(j, first, ']'))
        return false;
    json_scan(j, depth, ret_value);
    return ret_value->type != ZC_JSON_BAD;
}
