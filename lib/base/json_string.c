/*
 * String literals of JSON of any kind, decoded over themselves: a decoded string is never longer
 * than its literal. Runs of bytes that stand for themselves are searched a word at a time.
 */
#include <string.h>

#include "base/json_scan.h"
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
        zc_json_fail(j, "string without end");
        return -1;
    }
    uint8_t c = j->data[j->pos + 1];
    if (c != 'u') {
        const char *found = c == 0 ? NULL : strchr(letters, c);
        if (found == NULL) {
            zc_json_fail(j, "unknown escape in a string");
            return -1;
        }
        j->pos += 2;
        return codes[found - letters];
    }
    int32_t code = json_hex4(j, j->pos + 2);
    if (code < 0) {
        zc_json_fail(j, "\\u without four hex digits");
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

bool zc_json_string_decode(struct zc_json *j, struct zc_slice *ret_text, bool *ret_utf8_bad)
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
        return zc_json_fail(j, "string without end");
    if (j->data[j->pos] != '"')
        return zc_json_fail(j, "control character in a string");
    j->pos++;
    *ret_text = zc_slice(j->data + start, (size_t)(out - (j->data + start)));
    *ret_utf8_bad = lone || ((high & ZC_WORD_HIGHS) != 0 && !zc_text_utf8_valid(*ret_text));
    return true;
}

bool zc_json_string_skip(struct zc_json *j)
{
    uint64_t high = 0;
    j->pos = json_run(j, j->pos + 1, &high);
    while (j->pos < j->len && j->data[j->pos] == '\\') {
        if (json_escape_code(j) < 0)
            return false;
        j->pos = json_run(j, j->pos, &high);
    }
    if (j->pos == j->len)
        return zc_json_fail(j, "string without end");
    if (j->data[j->pos] != '"')
        return zc_json_fail(j, "control character in a string");
    j->pos++;
    return true;
}
