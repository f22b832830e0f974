/* The stored form of a message, see item.h. */
#include "zmqc/item.h"

#include <string.h>

#include "base/check.h"
#include "base/le.h"

enum { FLAG_REQUEST = 1 };

static inline uint8_t *put(uint8_t *p, uint64_t v, unsigned n)
{
    zc_le_put(p, v, n);
    return p + n;
}

static uint8_t *put_bytes(uint8_t *p, struct zc_slice s)
{
    if (s.len > 0)
        memcpy(p, s.data, s.len);
    return p + s.len;
}

struct zc_block *zc_item_encode(const struct zc_item *item, const struct zc_header *headers,
                                uint32_t count)
{
    size_t headers_len = 0;
    for (uint32_t i = 0; i < count; i++)
        headers_len += 8 + headers[i].key.len + headers[i].value.len;
    size_t len = ZC_ITEM_FIXED + item->name.len + item->id.len + item->from.len + item->by.len +
                 headers_len + item->payload.len;
    struct zc_block *block = zc_block_new(len);
    if (block == NULL)
        return NULL;
    uint8_t *p = block->data;
    p = put(p, item->payload.len, 4);
    p = put(p, headers_len, 4);
    p = put(p, item->name.len, 2);
    p = put(p, item->id.len, 2);
    p = put(p, item->from.len, 2);
    p = put(p, item->by.len, 2);
    p = put(p, count, 2);
    p = put(p, item->request ? FLAG_REQUEST : 0, 2);
    p = put(p, (uint64_t)item->at_ms, 8);
    p = put(p, (uint64_t)item->expires_ms, 8);
    p = put(p, (uint64_t)item->due_ms, 8);
    p = put_bytes(p, item->name);
    p = put_bytes(p, item->id);
    p = put_bytes(p, item->from);
    p = put_bytes(p, item->by);
    for (uint32_t i = 0; i < count; i++) {
        p = put(p, headers[i].key.len, 4);
        p = put(p, headers[i].value.len, 4);
        p = put_bytes(p, headers[i].key);
        p = put_bytes(p, headers[i].value);
    }
    p = put_bytes(p, item->payload);
    ZC_ASSERT(p == block->data + len);
    return block;
}

/* Every header lies inside `headers` and nothing is left over. */
static bool headers_sound(struct zc_slice headers, uint32_t count)
{
    size_t pos = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (headers.len - pos < 8)
            return false;
        size_t key = zc_le_get(headers.data + pos, 4), value = zc_le_get(headers.data + pos + 4, 4);
        pos += 8;
        if (key > headers.len - pos || value > headers.len - pos - key)
            return false;
        pos += key + value;
    }
    return pos == headers.len;
}

int zc_item_decode(struct zc_slice body, struct zc_item *ret_item)
{
    return zc_item_decode_head(body, body.len, ret_item);
}

size_t zc_item_head(struct zc_slice body)
{
    size_t len = ZC_ITEM_FIXED;
    if (body.len < ZC_ITEM_FIXED)
        return body.len;
    for (size_t at = 8; at < 16; at += 2)
        len += zc_le_get(body.data + at, 2);
    return len < body.len ? len : body.len;
}

int zc_item_decode_head(struct zc_slice body, size_t body_len, struct zc_item *ret_item)
{
    if (body.len < ZC_ITEM_FIXED || body.len > body_len)
        return ZC_EBADMSG;
    const uint8_t *p = body.data;
    struct zc_item item = {.headers_count = (uint16_t)zc_le_get(p + 16, 2),
                           .request = (zc_le_get(p + 18, 2) & FLAG_REQUEST) != 0,
                           .at_ms = (int64_t)zc_le_get(p + 20, 8),
                           .expires_ms = (int64_t)zc_le_get(p + 28, 8),
                           .due_ms = (int64_t)zc_le_get(p + 36, 8)};
    size_t lens[] = {zc_le_get(p + 8, 2),  zc_le_get(p + 10, 2), zc_le_get(p + 12, 2),
                     zc_le_get(p + 14, 2), zc_le_get(p + 4, 4),  zc_le_get(p, 4)};
    struct zc_slice *parts[] = {&item.name, &item.id,      &item.from,
                                &item.by,   &item.headers, &item.payload};
    size_t pos = ZC_ITEM_FIXED;
    for (size_t i = 0; i < ZC_ARRAY_LEN(lens); i++) {
        bool there = pos + lens[i] <= body.len;
        if (lens[i] > body_len - pos ||
            (!there && parts[i] != &item.headers && parts[i] != &item.payload))
            return ZC_EBADMSG;
        *parts[i] = zc_slice(there ? p + pos : NULL, lens[i]);
        pos += lens[i];
    }
    if (pos != body_len || item.name.len > ZC_MSG_STRING_MAX ||
        item.id.len > ZC_MSG_MESSAGE_ID_MAX || item.from.len > ZC_MSG_STRING_MAX ||
        item.by.len > ZC_MSG_STRING_MAX || item.headers_count > ZC_MSG_HEADERS_CAP ||
        (item.headers.data != NULL && !headers_sound(item.headers, item.headers_count)))
        return ZC_EBADMSG;
    *ret_item = item;
    return 0;
}

size_t zc_item_headers(const struct zc_item *item, struct zc_header *ret_headers)
{
    const uint8_t *p = item->headers.data;
    size_t sum = 0;
    for (uint32_t i = 0; i < item->headers_count; i++) {
        size_t key = zc_le_get(p, 4), value = zc_le_get(p + 4, 4);
        ret_headers[i].key = zc_slice(p + 8, key);
        ret_headers[i].value = zc_slice(p + 8 + key, value);
        p += 8 + key + value;
        sum += key + value;
    }
    return sum;
}
