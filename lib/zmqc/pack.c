/* Packed messages, see pack.h. */
#include "zmqc/pack.h"

#include <string.h>

#include "base/check.h"

enum { SAME = 1, REQUEST = 2 };
/* Flags and seven lengths. */
#define HEAD_MAX (1 + 7 * 5)

static uint8_t *put(uint8_t *p, size_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static const uint8_t *get(const uint8_t *p, size_t *ret_v)
{
    unsigned shift = 0;
    *ret_v = 0;
    for (; (*p & 0x80) != 0; shift += 7)
        *ret_v |= (size_t)(*p++ & 0x7f) << shift;
    *ret_v |= (size_t)*p++ << shift;
    return p;
}

static uint8_t *put_bytes(uint8_t *p, struct zc_slice s)
{
    if (s.len > 0)
        memcpy(p, s.data, s.len);
    return p + s.len;
}

static const uint8_t *get_bytes(const uint8_t *p, size_t len, struct zc_slice *ret_s)
{
    *ret_s = zc_slice(p, len);
    return p + len;
}

static size_t shared(struct zc_slice a, struct zc_slice b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.data[n] == b.data[n])
        n++;
    return n;
}

size_t zc_pack_size(const struct zc_item *item)
{
    return HEAD_MAX + item->id.len + item->from.len + item->by.len + item->headers.len +
           item->payload.len;
}

void zc_pack(struct zc_buf *out, const struct zc_item *item, const struct zc_pack_like *like,
             size_t *ret_strings)
{
    bool same = zc_slice_eq(item->from, like->from) && zc_slice_eq(item->by, like->by);
    size_t n = shared(item->id, like->id);
    ZC_ASSERT(item->expires_ms == 0 && item->due_ms == 0);
    ZC_ASSERT(out->cap - out->len >= zc_pack_size(item));
    uint8_t *start = out->data + out->len, *p = start;
    *p++ = (uint8_t)((same ? SAME : 0) | (item->request ? REQUEST : 0));
    p = put(p, item->id.len);
    p = put(p, n);
    if (!same) {
        p = put(p, item->from.len);
        p = put(p, item->by.len);
    }
    p = put(p, item->headers.len);
    p = put(p, item->headers_count);
    p = put(p, item->payload.len);
    *ret_strings = out->len + (size_t)(p - start);
    p = put_bytes(p, zc_slice(item->id.data + n, item->id.len - n));
    if (!same) {
        p = put_bytes(p, item->from);
        p = put_bytes(p, item->by);
    }
    p = put_bytes(p, item->headers);
    p = put_bytes(p, item->payload);
    out->len += (size_t)(p - start);
}

struct zc_block *zc_pack_open(const uint8_t *packed, const struct zc_pack_like *like,
                              struct zc_slice name, int64_t at_ms)
{
    struct zc_item item = {.name = name, .from = like->from, .by = like->by, .at_ms = at_ms};
    struct zc_header headers[ZC_MSG_HEADERS_CAP];
    uint8_t id[ZC_MSG_MESSAGE_ID_MAX], flags = *packed;
    size_t id_len, n, from = 0, by = 0, headers_len, count, payload;
    const uint8_t *p = get(get(packed + 1, &id_len), &n);
    if ((flags & SAME) == 0)
        p = get(get(p, &from), &by);
    p = get(get(get(p, &headers_len), &count), &payload);
    ZC_ASSERT(n <= id_len && id_len <= sizeof(id) && count <= ZC_MSG_HEADERS_CAP);
    if (n > 0)
        memcpy(id, like->id.data, n);
    if (id_len > n)
        memcpy(id + n, p, id_len - n);
    p += id_len - n;
    item.id = zc_slice(id, id_len);
    if ((flags & SAME) == 0)
        p = get_bytes(get_bytes(p, from, &item.from), by, &item.by);
    p = get_bytes(p, headers_len, &item.headers);
    item.headers_count = (uint16_t)count;
    item.payload = zc_slice(p, payload);
    item.request = (flags & REQUEST) != 0;
    (void)zc_item_headers(&item, headers);
    return zc_item_encode(&item, headers, item.headers_count);
}
