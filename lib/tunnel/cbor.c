/* Strict reading and writing of a small part of CBOR; see cbor.h. */
#include "tunnel/cbor.h"

#include <string.h>

#include "base/text.h"

static bool cbor_fail(struct zc_cbor *c, const char *error)
{
    if (c->error == NULL)
        c->error = error;
    return false;
}

static bool cbor_cut(struct zc_cbor *c)
{
    c->cut = c->cut || c->error == NULL;
    return cbor_fail(c, "it ends too early");
}

void zc_cbor_init(struct zc_cbor *c, struct zc_slice data)
{
    *c = (struct zc_cbor){.rest = data};
}

static bool cbor_take(struct zc_cbor *c, size_t len, const uint8_t **ret_data)
{
    if (len > c->rest.len)
        return cbor_cut(c);
    *ret_data = c->rest.data;
    c->rest.data += len;
    c->rest.len -= len;
    return true;
}

/* The argument that follows an initial byte whose low bits are `info`. */
static bool cbor_argument(struct zc_cbor *c, unsigned info, uint64_t *ret_value)
{
    const uint8_t *p;
    if (info < 24) {
        *ret_value = info;
        return true;
    }
    if (info > 27)
        return cbor_fail(c, info == 31 ? "it has an item of indefinite length"
                                       : "it has a byte that begins nothing");
    size_t len = (size_t)1 << (info - 24);
    if (!cbor_take(c, len, &p))
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++)
        v = v << 8 | p[i];
    *ret_value = v;
    return true;
}

/* Could the value have been written in fewer bytes? */
static bool cbor_longer_than_needed(unsigned info, uint64_t value)
{
    if (info == 24)
        return value < 24;
    if (info < 24)
        return false;
    return value >> (4 << (info - 24)) == 0;
}

bool zc_cbor_next(struct zc_cbor *c, struct zc_cbor_item *ret_item)
{
    struct zc_cbor_item item = {0};
    const uint8_t *p;
    if (c->error != NULL || !cbor_take(c, 1, &p))
        return false;
    unsigned info = *p & 31;
    item.type = (enum zc_cbor_type)(*p >> 5);
    if (!cbor_argument(c, info, &item.value))
        return false;
    item.number = item.type == ZC_CBOR_SIMPLE && info > 24;
    if (item.type == ZC_CBOR_SIMPLE ? info == 24 && item.value < 32
                                    : cbor_longer_than_needed(info, item.value))
        return cbor_fail(c, "it has a number in a longer form than needed");
    if (item.type == ZC_CBOR_BYTES || item.type == ZC_CBOR_TEXT) {
        if (item.value > c->rest.len)
            return cbor_cut(c);
        item.bytes.len = (size_t)item.value;
        if (!cbor_take(c, item.bytes.len, &item.bytes.data))
            return false;
        if (item.type == ZC_CBOR_TEXT && !zc_text_utf8_valid(item.bytes))
            return cbor_fail(c, "it has text that is not UTF-8");
    }
    *ret_item = item;
    return true;
}

/* Items that belong to this one. */
static bool cbor_children(struct zc_cbor *c, const struct zc_cbor_item *item, uint64_t *ret_count)
{
    uint64_t per = item->type == ZC_CBOR_MAP ? 2 : 1;
    *ret_count = 0;
    if (item->type == ZC_CBOR_TAG)
        *ret_count = 1;
    if (item->type != ZC_CBOR_ARRAY && item->type != ZC_CBOR_MAP)
        return true;
    /* Each needs a byte at least, so a huge count is a lie and no loop follows it. */
    if (item->value > c->rest.len / per)
        return cbor_cut(c);
    *ret_count = item->value * per;
    return true;
}

bool zc_cbor_skip(struct zc_cbor *c, const struct zc_cbor_item *item, unsigned depth)
{
    uint64_t left[ZC_CBOR_DEPTH_MAX];
    struct zc_cbor_item at = *item;
    unsigned open = 0;
    for (;;) {
        uint64_t count;
        if (!cbor_children(c, &at, &count))
            return false;
        bool nests = at.type == ZC_CBOR_ARRAY || at.type == ZC_CBOR_MAP || at.type == ZC_CBOR_TAG;
        if (nests && depth + open >= ZC_CBOR_DEPTH_MAX)
            return cbor_fail(c, "it is nested too deeply");
        if (count > 0)
            left[open++] = count;
        while (open > 0 && left[open - 1] == 0)
            open--;
        if (open == 0)
            return true;
        left[open - 1]--;
        if (!zc_cbor_next(c, &at))
            return false;
    }
}

bool zc_cbor_int(const struct zc_cbor_item *item, int64_t *ret_value)
{
    if ((item->type != ZC_CBOR_UINT && item->type != ZC_CBOR_NINT) || item->value > INT64_MAX)
        return false;
    *ret_value = item->type == ZC_CBOR_UINT ? (int64_t)item->value : -1 - (int64_t)item->value;
    return true;
}

static void cbor_put(struct zc_cbor_out *o, const void *data, size_t len)
{
    if (o->full || len > o->cap - o->len) {
        o->full = true;
        return;
    }
    if (len > 0)
        memcpy(o->data + o->len, data, len);
    o->len += len;
}

void zc_cbor_put_head(struct zc_cbor_out *o, enum zc_cbor_type type, uint64_t value)
{
    uint8_t head[9];
    unsigned info = 24;
    size_t len = 1;
    if (value < 24) {
        info = (unsigned)value;
    } else {
        while (info < 27 && value >> (8 << (info - 24)) != 0)
            info++;
        size_t bytes = (size_t)1 << (info - 24);
        for (size_t i = 0; i < bytes; i++)
            head[1 + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
        len += bytes;
    }
    head[0] = (uint8_t)((unsigned)type << 5 | info);
    cbor_put(o, head, len);
}

void zc_cbor_put_int(struct zc_cbor_out *o, int64_t value)
{
    if (value >= 0)
        zc_cbor_put_head(o, ZC_CBOR_UINT, (uint64_t)value);
    else
        zc_cbor_put_head(o, ZC_CBOR_NINT, (uint64_t)(-1 - value));
}

void zc_cbor_put_bytes(struct zc_cbor_out *o, struct zc_slice bytes)
{
    zc_cbor_put_head(o, ZC_CBOR_BYTES, bytes.len);
    cbor_put(o, bytes.data, bytes.len);
}

void zc_cbor_put_text(struct zc_cbor_out *o, const char *text)
{
    size_t len = strlen(text);
    zc_cbor_put_head(o, ZC_CBOR_TEXT, len);
    cbor_put(o, text, len);
}
