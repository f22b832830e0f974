/*
 * Scanner of strict JSON (RFC 8259) that decodes strings where they lie.
 *
 * A decoded string is never longer than its literal, so it is written over it; numbers and
 * composites stay as they are and are given as slices. Plain runs of a string are searched a word
 * at a time. Recursion is bounded by ZC_JSON_DEPTH_MAX.
 */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/word.h"

/* End of the run from pos of bytes that stand for themselves in a string literal. Sets high bits of
 * *high when one of them is not ASCII. */
static inline size_t json_run(const struct zc_json *j, size_t pos, uint64_t *high)
{
    const uint8_t *d = j->data;
    while (j->len - pos >= 8) {
        uint64_t w = zc_word_load(d + pos);
        uint64_t stop = zc_word_eq(w, '"') | zc_word_eq(w, '\\') | zc_word_below(w, 0x20);
        if (stop != 0) {
            /* Bytes below the stop: everything under its lowest set bit. */
            *high |= w & ((stop & -stop) - 1);
            return pos + zc_word_first(stop);
        }
        *high |= w;
        pos += 8;
    }
    while (pos < j->len && d[pos] >= 0x20 && d[pos] != '"' && d[pos] != '\\')
        *high |= d[pos++];
    return pos;
}

static bool json_fail(struct zc_json *j, const char *error)
{
    if (j->error == NULL)
        j->error = error;
    return false;
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

static int json_hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits at pos, or -1. */
static int32_t json_hex4(const struct zc_json *j, size_t pos)
{
    int32_t code = 0;
    if (j->len - pos < 4)
        return -1;
    for (size_t i = pos; i < pos + 4; i++) {
        int digit = json_hex(j->data[i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

static uint8_t *json_put_char(uint8_t *out, uint32_t code)
{
    if (code < 0x80) {
        *out++ = (uint8_t)code;
    } else if (code < 0x800) {
        *out++ = (uint8_t)(0xc0 | code >> 6);
        *out++ = (uint8_t)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *out++ = (uint8_t)(0xe0 | code >> 12);
        *out++ = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        *out++ = (uint8_t)(0x80 | (code & 0x3f));
    } else {
        *out++ = (uint8_t)(0xf0 | code >> 18);
        *out++ = (uint8_t)(0x80 | (code >> 12 & 0x3f));
        *out++ = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        *out++ = (uint8_t)(0x80 | (code & 0x3f));
    }
    return out;
}

/* Character of the escape whose backslash is at j->pos; moves past it. A lone surrogate is given as
 * it is. -1 with the error set when there is no such escape. */
static int32_t json_escape_code(struct zc_json *j)
{
    static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (j->len - j->pos < 2) {
        json_fail(j, "string without end");
        return -1;
    }
    uint8_t c = j->data[j->pos + 1];
    if (c != 'u') {
        const char *found = c == 0 ? NULL : strchr(letters, c);
        if (found == NULL) {
            json_fail(j, "unknown escape in a string");
            return -1;
        }
        j->pos += 2;
        return codes[found - letters];
    }
    int32_t code = json_hex4(j, j->pos + 2);
    if (code < 0) {
        json_fail(j, "\\u without four hex digits");
        return -1;
    }
    j->pos += 6;
    if (code < 0xd800 || code > 0xdbff || j->len - j->pos < 6 || j->data[j->pos] != '\\' ||
        j->data[j->pos + 1] != 'u')
        return code;
    int32_t low = json_hex4(j, j->pos + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return code; /* the second escape is judged on its own */
    j->pos += 6;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* A string literal, decoded in place; the opening quote is at j->pos. */
static bool json_string(struct zc_json *j, struct zc_slice *ret_text, bool *ret_utf8_bad)
{
    uint64_t high = 0;
    size_t start = j->pos + 1;
    bool lone = false;
    j->pos = json_run(j, start, &high);
    uint8_t *out = j->data + j->pos;
    while (j->pos < j->len && j->data[j->pos] == '\\') {
        int32_t code = json_escape_code(j);
        if (code < 0)
            return false;
        lone |= code >= 0xd800 && code <= 0xdfff;
        out = json_put_char(out, (uint32_t)code);
        size_t end = json_run(j, j->pos, &high);
        memmove(out, j->data + j->pos, end - j->pos);
        out += end - j->pos;
        j->pos = end;
    }
    if (j->pos == j->len)
        return json_fail(j, "string without end");
    if (j->data[j->pos] != '"')
        return json_fail(j, "control character in a string");
    j->pos++;
    *ret_text = zc_slice(j->data + start, (size_t)(out - (j->data + start)));
    *ret_utf8_bad = lone || ((high & ZC_WORD_HIGHS) != 0 && !zc_text_utf8_valid(*ret_text));
    return true;
}

/* Moves past a string without changing it. */
static bool json_skip_string(struct zc_json *j)
{
    uint64_t high = 0;
    j->pos = json_run(j, j->pos + 1, &high);
    while (j->pos < j->len && j->data[j->pos] == '\\') {
        if (json_escape_code(j) < 0)
            return false;
        j->pos = json_run(j, j->pos, &high);
    }
    if (j->pos == j->len)
        return json_fail(j, "string without end");
    if (j->data[j->pos] != '"')
        return json_fail(j, "control character in a string");
    j->pos++;
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
        return json_fail(j, "not a value of JSON");
    if (json_at(j, '-', '-'))
        j->pos++;
    if (json_at(j, '0', '0'))
        j->pos++; /* a further digit is left over and so a fault */
    else if (!json_digits(j))
        return json_fail(j, bad);
    if (json_at(j, '.', '.')) {
        j->pos++;
        if (!json_digits(j))
            return json_fail(j, bad);
    }
    if (json_at(j, 'e', 'E')) {
        j->pos++;
        if (json_at(j, '+', '-'))
            j->pos++;
        if (!json_digits(j))
            return json_fail(j, bad);
    }
    return true;
}

static bool json_word_is(struct zc_json *j, const char *word, size_t len)
{
    if (j->len - j->pos < len || memcmp(j->data + j->pos, word, len) != 0)
        return json_fail(j, "not a value of JSON");
    j->pos += len;
    return true;
}

/* Before a member or element: true when there is one, false at the closing bracket or on a fault.
 */
static bool json_more(struct zc_json *j, bool *first, char close)
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
            return json_fail(j, c < 0 ? "ends too early" : "no comma between two values");
        j->pos++;
        json_next(j);
    }
    *first = false;
    return j->pos < j->len ? true : json_fail(j, "ends too early");
}

static bool json_skip_value(struct zc_json *j, unsigned depth);

/* Moves past an array or object whose opening bracket is at j->pos. */
static bool json_skip_composite(struct zc_json *j, unsigned depth)
{
    if (depth >= ZC_JSON_DEPTH_MAX)
        return json_fail(j, "nested too deep");
    bool object = j->data[j->pos] == '{', first = true;
    j->pos++;
    while (json_more(j, &first, object ? '}' : ']')) {
        if (object) {
            if (j->data[j->pos] != '"')
                return json_fail(j, "a key is not a string");
            if (!json_skip_string(j))
                return false;
            if (!zc_json_eat(j, ':'))
                return json_fail(j, "no colon after a key");
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
        return json_skip_string(j);
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

struct zc_json_value zc_json_value(struct zc_json *j, unsigned depth)
{
    struct zc_json_value v = {.type = ZC_JSON_BAD};
    if (j->error != NULL)
        return v;
    int c = json_next(j);
    if (c == '"') {
        if (json_string(j, &v.text, &v.utf8_bad))
            v.type = ZC_JSON_STRING;
        return v;
    }
    if (c < 0) {
        json_fail(j, "ends too early");
        return v;
    }
    size_t start = j->pos;
    if (!json_skip_value(j, depth))
        return v;
    v.text = zc_slice(j->data + start, j->pos - start);
    v.type = c == '{'   ? ZC_JSON_OBJECT
             : c == '[' ? ZC_JSON_ARRAY
             : c == 'n' ? ZC_JSON_NULL
             : c > '9'  ? ZC_JSON_BOOL
                        : ZC_JSON_NUMBER;
    v.boolean = c == 't';
    if (v.type == ZC_JSON_OBJECT || v.type == ZC_JSON_ARRAY)
        v.utf8_bad = !zc_text_utf8_valid(v.text);
    return v;
}

bool zc_json_eat(struct zc_json *j, char c)
{
    if (j->error != NULL || json_next(j) != (uint8_t)c)
        return false;
    j->pos++;
    return true;
}

bool zc_json_at_end(struct zc_json *j)
{
    return j->error == NULL && json_next(j) < 0;
}

bool zc_json_member(struct zc_json *j, bool *first, unsigned depth, struct zc_slice *ret_key,
                    bool *ret_key_utf8_bad, struct zc_json_value *ret_value)
{
    if (!json_more(j, first, '}'))
        return false;
    if (j->data[j->pos] != '"')
        return json_fail(j, "a key is not a string");
    if (!json_string(j, ret_key, ret_key_utf8_bad))
        return false;
    if (!zc_json_eat(j, ':'))
        return json_fail(j, "no colon after a key");
    *ret_value = zc_json_value(j, depth);
    return ret_value->type != ZC_JSON_BAD;
}

bool zc_json_element(struct zc_json *j, bool *first, unsigned depth,
                     struct zc_json_value *ret_value)
{
    if (!json_more(j, first, ']'))
        return false;
    *ret_value = zc_json_value(j, depth);
    return ret_value->type != ZC_JSON_BAD;
}
