/* The stored form of a message, see item.h. */
#include "zmqc/item.h"

#include <string.h>

#include "base/check.h"

enum { FLAG_REQUEST = 1 };

static uint8_t *put_u16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    return p + 2;
}

static uint8_t *put_u32(uint8_t *p, size_t v)
{
    p = put_u16(p, v & 0xffff);
    return put_u16(p, v >> 16);
}

static uint8_t *put_i64(uint8_t *p, int64_t v)
{
    p = put_u32(p, (uint64_t)v & 0xffffffff);
    return put_u32(p, (uint64_t)v >> 32);
}

static uint8_t *put_bytes(uint8_t *p, struct zc_slice s)
{
    if (s.len > 0)
        memcpy(p, s.data, s.len);
    return p + s.len;
}

static uint32_t get_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get_u32(const uint8_t *p)
{
    return get_u16(p) | get_u16(p + 2) << 16;
}

static int64_t get_i64(const uint8_t *p)
{
    return (int64_t)((uint64_t)get_u32(p) | (uint64_t)get_u32(p + 4) << 32);
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
    p = put_u32(p, item->payload.len);
    p = put_u32(p, headers_len);
    p = put_u16(p, item->name.len);
    p = put_u16(p, item->id.len);
    p = put_u16(p, item->from.len);
    p = put_u16(p, item->by.len);
    p = put_u16(p, count);
    p = put_u16(p, item->request ? FLAG_REQUEST : 0);
    p = put_i64(p, item->at_ms);
    p = put_i64(p, item->expires_ms);
    p = put_i64(p, item->due_ms);
    p = put_bytes(p, item->name);
    p = put_bytes(p, item->id);
    p = put_bytes(p, item->from);
    p = put_bytes(p, item->by);
    for (uint32_t i = 0; i < count; i++) {
        p = put_u32(p, headers[i].key.len);
        p = put_u32(p, headers[i].value.len);
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
        size_t key = get_u32(headers.data + pos), value = get_u32(headers.data + pos + 4);
        pos += 8;
        if (key > headers.len - pos || value > headers.len - pos - key)
            return false;
        pos += key + value;
    }
    return pos == headers.len;
}

int zc_item_decode(struct zc_slice body, struct zc_item *ret_item)
{
    if (body.len < ZC_ITEM_FIXED)
        return ZC_EBADMSG;
    const uint8_t *p = body.data;
    struct zc_item item = {.headers_count = (uint16_t)get_u16(p + 16),
                           .request = (get_u16(p + 18) & FLAG_REQUEST) != 0,
                           .at_ms = get_i64(p + 20),
                           .expires_ms = get_i64(p + 28),
                           .due_ms = get_i64(p + 36)};
    size_t lens[] = {get_u16(p + 8),  get_u16(p + 10), get_u16(p + 12),
                     get_u16(p + 14), get_u32(p + 4),  get_u32(p)};
    struct zc_slice *parts[] = {&item.name, &item.id,      &item.from,
                                &item.by,   &item.headers, &item.payload};
    size_t pos = ZC_ITEM_FIXED;
    for (size_t i = 0; i < ZC_ARRAY_LEN(lens); i++) {
        if (lens[i] > body.len - pos)
            return ZC_EBADMSG;
        *parts[i] = zc_slice(p + pos, lens[i]);
        pos += lens[i];
    }
    if (pos != body.len || item.name.len > ZC_MSG_STRING_MAX ||
        item.id.len > ZC_MSG_MESSAGE_ID_MAX || item.from.len > ZC_MSG_STRING_MAX ||
        item.by.len > ZC_MSG_STRING_MAX || item.headers_count > ZC_MSG_HEADERS_CAP ||
        !headers_sound(item.headers, item.headers_count))
        return ZC_EBADMSG;
    *ret_item = item;
    return 0;
}

size_t zc_item_headers(const struct zc_item *item, struct zc_header *ret_headers)
{
    const uint8_t *p = item->headers.data;
    size_t sum = 0;
    for (uint32_t i = 0; i < item->headers_count; i++) {
        size_t key = get_u32(p), value = get_u32(p + 4);
        ret_headers[i].key = zc_slice(p + 8, key);
        ret_headers[i].value = zc_slice(p + 8 + key, value);
        p += 8 + key + value;
        sum += key + value;
    }
    return sum;
}
