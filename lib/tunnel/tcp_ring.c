/* Byte rings within a shared budget, see tcp_ring.h. */
#include "tunnel/tcp_ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { RING_CAP_MIN = 2048 };

int zc_tcp_ring_reserve(struct zc_tcp_ring *r, struct zc_tcp_budget *b, size_t n)
{
    if (n <= r->cap)
        return 0;
    if (n > ZC_TCP_RING_MAX)
        return ZC_ELIMIT;
    uint32_t cap = r->cap > 0 ? r->cap : RING_CAP_MIN;
    while (cap < n)
        cap *= 2;
    size_t more = cap - r->cap;
    if (cap > ZC_TCP_RING_FREE && (b->used > b->max || more > b->max - b->used))
        return ZC_ELIMIT;
    uint8_t *data = malloc(cap);
    if (data == NULL)
        return ZC_ENOMEM;
    /* Everything moves, also what stands behind the end. */
    if (r->cap > 0) {
        memcpy(data, r->data + r->head, r->cap - r->head);
        memcpy(data + (r->cap - r->head), r->data, r->head);
    }
    free(r->data);
    r->data = data;
    r->cap = cap;
    r->head = 0;
    b->used += more;
    return 0;
}

size_t zc_tcp_ring_reach(const struct zc_tcp_ring *r, const struct zc_tcp_budget *b, size_t max)
{
    size_t reach = r->cap > ZC_TCP_RING_FREE ? r->cap : ZC_TCP_RING_FREE;
    size_t left = b->used < b->max ? b->max - b->used : 0;
    while (reach < max && 2 * reach - r->cap <= left)
        reach *= 2;
    return reach < max ? reach : max;
}

void zc_tcp_ring_put(struct zc_tcp_ring *r, size_t offset, struct zc_slice bytes)
{
    ZC_ASSERT(offset <= r->cap && bytes.len <= r->cap - offset);
    if (bytes.len == 0)
        return;
    uint32_t at = (r->head + (uint32_t)offset) & (r->cap - 1);
    size_t first = r->cap - at < bytes.len ? r->cap - at : bytes.len;
    memcpy(r->data + at, bytes.data, first);
    memcpy(r->data, bytes.data + first, bytes.len - first);
}

size_t zc_tcp_ring_slices(const struct zc_tcp_ring *r, size_t offset, size_t n,
                          struct zc_slice ret_slices[2])
{
    ZC_ASSERT(offset <= r->len && n <= r->len - offset);
    if (n == 0)
        return 0;
    uint32_t at = (r->head + (uint32_t)offset) & (r->cap - 1);
    size_t first = r->cap - at < n ? r->cap - at : n;
    ret_slices[0] = zc_slice(r->data + at, first);
    if (first == n)
        return 1;
    ret_slices[1] = zc_slice(r->data, n - first);
    return 2;
}

void zc_tcp_ring_drop(struct zc_tcp_ring *r, size_t n)
{
    ZC_ASSERT(n <= r->len);
    if (n == 0)
        return;
    r->head = (r->head + (uint32_t)n) & (r->cap - 1);
    r->len -= (uint32_t)n;
}

void zc_tcp_ring_trim(struct zc_tcp_ring *r, struct zc_tcp_budget *b, size_t keep)
{
    if (r->len == 0 && r->cap > keep)
        zc_tcp_ring_done(r, b);
}

void zc_tcp_ring_done(struct zc_tcp_ring *r, struct zc_tcp_budget *b)
{
    if (r->cap > 0) {
        ZC_ASSERT(b->used >= r->cap);
        b->used -= r->cap;
    }
    free(r->data);
    *r = (struct zc_tcp_ring){0};
}
