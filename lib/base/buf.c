/* Growable byte buffer. Grows by doubling, so that appending n bytes costs O(n) over all. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

#define BUF_CAP_MIN 64

int zc_buf_reserve(struct zc_buf *b, size_t more)
{
    if (more <= b->cap - b->len)
        return 0;
    if (more > PTRDIFF_MAX - b->len)
        return ZC_ENOMEM;
    size_t need = b->len + more;
    size_t cap = b->cap * 2; /* cannot wrap: an object ends below PTRDIFF_MAX */
    if (cap < BUF_CAP_MIN)
        cap = BUF_CAP_MIN;
    if (cap < need)
        cap = need;
    uint8_t *data = realloc(b->data, cap);
    if (data == NULL && cap > need) {
        /* The doubling may be what memory cannot give; the need may still fit. */
        cap = need;
        data = realloc(b->data, cap);
    }
    if (data == NULL)
        return ZC_ENOMEM;
    b->data = data;
    b->cap = cap;
    return 0;
}

int zc_buf_append(struct zc_buf *b, const void *data, size_t len)
{
    if (len == 0)
        return 0;
    int err = zc_buf_reserve(b, len);
    if (err != 0)
        return err;
    memcpy(b->data + b->len, data, len);
    b->len += len;
    return 0;
}

void zc_buf_consume(struct zc_buf *b, size_t n)
{
    ZC_ASSERT(n <= b->len);
    if (n == 0)
        return;
    b->len -= n;
    if (b->len > 0)
        memmove(b->data, b->data + n, b->len);
}

void zc_buf_done(struct zc_buf *b)
{
    free(b->data);
    *b = (struct zc_buf){0};
}
