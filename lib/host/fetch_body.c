/* Framing of HTTP bodies; see fetch_body.h. Source: RFC 9112 section 6 and 7.1. */
#include "host/fetch_body.h"

#include <string.h>

enum state { SIZE, DATA, DATA_END, TRAILER };

static bool parse_number(struct zc_slice text, unsigned base, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint64_t n = 0;
    if (text.len == 0 || text.len > 15)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = memchr(digits, text.data[i], sizeof(digits) - 1);
        unsigned digit = at != NULL ? (unsigned)(at - digits) % 16 : 16;
        if (digit >= base)
            return false;
        n = n * base + digit;
    }
    *ret = n;
    return true;
}

void zc_fetch_body_init(struct zc_fetch_body *b, const struct zc_http1 *head, struct zc_buf *out,
                        size_t bytes_max)
{
    struct zc_slice value;
    *b = (struct zc_fetch_body){.out = out, .bytes_max = bytes_max};
    if (zc_http1_header(head, "Transfer-Encoding", &value)) {
        b->chunked = value.len == 7 && memcmp(value.data, "chunked", 7) == 0;
        if (!b->chunked)
            b->bad = "its transfer coding is unknown";
    } else if (zc_http1_header(head, "Content-Length", &value)) {
        b->has_length = parse_number(value, 10, &b->left);
        if (!b->has_length)
            b->bad = "its length is no number";
        else if (b->left > bytes_max)
            b->bad = "it is too long";
        b->complete = b->has_length && b->left == 0;
    }
}

static const char *add(struct zc_fetch_body *b, const uint8_t *data, size_t len)
{
    if (len > b->bytes_max - b->out->len)
        return "it is too long";
    return len > 0 && zc_buf_append(b->out, data, len) != 0 ? "memory is short" : NULL;
}

/* A line of the chunked coding is whole. */
static const char *take_line(struct zc_fetch_body *b)
{
    size_t len = b->line_len;
    b->line_len = 0;
    if (len > 0 && b->line[len - 1] == '\r')
        len--;
    if (b->state == DATA_END) {
        b->state = SIZE;
        return len == 0 ? NULL : "a chunk does not end where it should";
    }
    if (b->state == TRAILER) {
        b->complete = len == 0;
        return NULL;
    }
    const char *extension = memchr(b->line, ';', len);
    if (extension != NULL)
        len = (size_t)(extension - b->line);
    while (len > 0 && (b->line[len - 1] == ' ' || b->line[len - 1] == '\t'))
        len--;
    if (!parse_number(zc_slice(b->line, len), 16, &b->left))
        return "a chunk's size is no number";
    b->state = b->left > 0 ? DATA : TRAILER;
    return NULL;
}

static const char *take_byte(struct zc_fetch_body *b, uint8_t byte)
{
    if (byte == '\n')
        return take_line(b);
    if (b->line_len < sizeof(b->line))
        b->line[b->line_len++] = (char)byte;
    else if (b->state != TRAILER)
        return "a chunk's head is too long";
    return NULL;
}

static const char *input_chunked(struct zc_fetch_body *b, const uint8_t *data, size_t len)
{
    const char *bad = NULL;
    while (len > 0 && bad == NULL && !b->complete) {
        size_t n = 1;
        if (b->state == DATA) {
            n = b->left < len ? (size_t)b->left : len;
            bad = add(b, data, n);
            b->left -= n;
            if (b->left == 0)
                b->state = DATA_END;
        } else {
            bad = take_byte(b, *data);
        }
        data += n;
        len -= n;
    }
    return bad;
}

const char *zc_fetch_body_input(struct zc_fetch_body *b, const uint8_t *data, size_t len)
{
    if (b->bad != NULL || b->complete)
        return b->bad;
    if (b->chunked)
        return input_chunked(b, data, len);
    if (b->has_length && len > b->left)
        len = (size_t)b->left;
    const char *bad = add(b, data, len);
    b->left -= b->has_length ? len : 0;
    b->complete = b->has_length && b->left == 0;
    return bad;
}

bool zc_fetch_body_end(const struct zc_fetch_body *b)
{
    return b->bad == NULL && !b->chunked && !b->has_length;
}
