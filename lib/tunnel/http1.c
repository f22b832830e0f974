/* The head of an HTTP response; see http1.h. */
#include "tunnel/http1.h"

#include <string.h>

#include "base/check.h"

static bool http1_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The line at *pos, without its CR LF; moves *pos behind it. The head ends in an empty line, so
 * there is always one more. */
static struct zc_slice http1_line(const struct zc_http1 *h, size_t *pos)
{
    size_t start = *pos, end = start;
    while (h->head[end] != '\r' || h->head[end + 1] != '\n') {
        end++;
        ZC_ASSERT(end + 1 < h->len);
    }
    *pos = end + 2;
    return zc_slice(h->head + start, end - start);
}

static bool http1_text(struct zc_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((s.data[i] < ' ' && s.data[i] != '\t') || s.data[i] == 0x7f)
            return false;
    }
    return true;
}

/* "HTTP/1.1 101 Switching Protocols" */
static const char *http1_status_line(struct zc_http1 *h, struct zc_slice line)
{
    const uint8_t *p = line.data;
    if (line.len < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') ||
        p[8] != ' ' || (line.len > 12 && p[12] != ' '))
        return "the answer is not HTTP/1.1";
    if (!http1_digit(p[9]) || !http1_digit(p[10]) || !http1_digit(p[11]) || p[9] < '1' ||
        p[9] > '5')
        return "the answer has no HTTP status";
    h->status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
    h->reason = line.len > 13 ? zc_slice(p + 13, line.len - 13) : zc_slice(NULL, 0);
    return NULL;
}

static bool http1_token_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || http1_digit(c) ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool http1_split(struct zc_slice line, struct zc_slice *ret_name, struct zc_slice *ret_value)
{
    size_t n = 0;
    while (n < line.len && http1_token_char(line.data[n]))
        n++;
    if (n == 0 || n == line.len || line.data[n] != ':')
        return false;
    *ret_name = zc_slice(line.data, n);
    struct zc_slice v = zc_slice(line.data + n + 1, line.len - n - 1);
    while (v.len > 0 && (v.data[0] == ' ' || v.data[0] == '\t'))
        v = zc_slice(v.data + 1, v.len - 1);
    while (v.len > 0 && (v.data[v.len - 1] == ' ' || v.data[v.len - 1] == '\t'))
        v.len--;
    *ret_value = v;
    return true;
}

static const char *http1_judge(struct zc_http1 *h)
{
    struct zc_slice name, value;
    size_t pos = 0;
    const char *error = http1_status_line(h, http1_line(h, &pos));
    if (error != NULL)
        return error;
    if (!http1_text(h->reason))
        return "the answer's status line has control characters";
    for (;;) {
        struct zc_slice line = http1_line(h, &pos);
        if (line.len == 0)
            return NULL;
        if (!http1_split(line, &name, &value) || !http1_text(value))
            return "the answer has a header that is none";
    }
}

size_t zc_http1_input(struct zc_http1 *h, const uint8_t *data, size_t len)
{
    static const char start[] = "HTTP/1.";
    size_t used = 0;
    while (used < len && !h->complete && h->error == NULL) {
        uint8_t c = data[used++];
        if (h->len < sizeof(start) - 1 && c != (uint8_t)start[h->len]) {
            h->error = "the answer is not HTTP/1.1"; /* said before a stranger fills the head */
            break;
        }
        h->head[h->len++] = c;
        if (h->len >= 4 && memcmp(h->head + h->len - 4, "\r\n\r\n", 4) == 0) {
            h->error = http1_judge(h);
            h->complete = h->error == NULL;
        } else if (h->len == ZC_HTTP1_HEAD_MAX) {
            h->error = "the answer's head is longer than 8 KiB";
        }
    }
    return used;
}

static bool http1_same(struct zc_slice a, const char *b)
{
    size_t i = 0;
    for (; i < a.len && b[i] != '\0'; i++) {
        uint8_t x = a.data[i], y = (uint8_t)b[i];
        x = x >= 'A' && x <= 'Z' ? (uint8_t)(x | 32) : x;
        y = y >= 'A' && y <= 'Z' ? (uint8_t)(y | 32) : y;
        if (x != y)
            return false;
    }
    return i == a.len && b[i] == '\0';
}

bool zc_http1_header(const struct zc_http1 *h, const char *name, struct zc_slice *ret_value)
{
    struct zc_slice key, value;
    size_t pos = 0;
    ZC_ASSERT(h->complete);
    http1_line(h, &pos);
    for (;;) {
        struct zc_slice line = http1_line(h, &pos);
        if (line.len == 0)
            return false;
        if (http1_split(line, &key, &value) && http1_same(key, name)) {
            *ret_value = value;
            return true;
        }
    }
}
