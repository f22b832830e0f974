/* Table of segments and the codec of their heads; the picture is in segment.h. */
#include "store/segment.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/crc32c.h"

#define MAGIC "ZMQCLOG1"
#define VERSION 1
#define COPY 64

/* Index of the first entry with at least this number. */
static uint32_t lower_bound(const struct zc_segments *t, uint32_t number)
{
    uint32_t low = 0, high = t->len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->items[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int zc_segment_reserve(struct zc_segments *t)
{
    if (t->len < t->cap)
        return 0;
    uint32_t cap = t->cap == 0 ? 8 : t->cap * 2;
    if (cap < t->cap)
        return ZC_ENOMEM;
    struct zc_segment *items = realloc(t->items, cap * sizeof(*items));
    if (items == NULL)
        return ZC_ENOMEM;
    t->items = items;
    t->cap = cap;
    return 0;
}

struct zc_segment *zc_segment_add(struct zc_segments *t, uint32_t number)
{
    uint32_t i = lower_bound(t, number);
    ZC_ASSERT(t->len < t->cap && (i == t->len || t->items[i].number != number));
    memmove(t->items + i + 1, t->items + i, (t->len - i) * sizeof(*t->items));
    t->items[i] = (struct zc_segment){.number = number, .end = ZC_SEGMENT_HEAD};
    t->len++;
    return &t->items[i];
}

struct zc_segment *zc_segment_find(const struct zc_segments *t, uint32_t number)
{
    uint32_t i = lower_bound(t, number);
    return i < t->len && t->items[i].number == number ? &t->items[i] : NULL;
}

void zc_segment_drop(struct zc_segments *t, uint32_t number)
{
    uint32_t i = lower_bound(t, number);
    if (i == t->len || t->items[i].number != number)
        return;
    zc_live_done(&t->items[i].table);
    memmove(t->items + i, t->items + i + 1, (t->len - i - 1) * sizeof(*t->items));
    t->len--;
}

void zc_segment_done(struct zc_segments *t)
{
    for (uint32_t i = 0; i < t->len; i++)
        zc_live_done(&t->items[i].table);
    free(t->items);
    *t = (struct zc_segments){0};
}

void zc_segment_head_encode(uint8_t ret_head[ZC_SEGMENT_HEAD], const struct zc_segment *s)
{
    memset(ret_head, 0, ZC_SEGMENT_HEAD);
    memcpy(ret_head, MAGIC, 8);
    zc_record_set32(ret_head + 8, VERSION);
    zc_record_set32(ret_head + 12, s->number);
    zc_record_set64(ret_head + 16, s->salt);
    zc_record_set64(ret_head + 24, s->seq);
    zc_record_set32(ret_head + 60, zc_crc32c(0, ret_head, 60));
    memcpy(ret_head + COPY, ret_head, COPY);
}

int zc_segment_head_decode(const uint8_t head[ZC_SEGMENT_HEAD], struct zc_segment *s)
{
    for (const uint8_t *h = head; h < head + ZC_SEGMENT_HEAD; h += COPY) {
        if (memcmp(h, MAGIC, 8) != 0 || zc_record_get32(h + 60) != zc_crc32c(0, h, 60))
            continue;
        if (zc_record_get32(h + 8) != VERSION)
            return ZC_EINVAL;
        if (zc_record_get32(h + 12) != s->number)
            continue;
        s->salt = zc_record_get64(h + 16);
        s->seq = zc_record_get64(h + 24);
        return 0;
    }
    return ZC_EBADMSG;
}

void zc_segment_seals_encode(uint8_t ret_seals[ZC_SEGMENT_SEALS], const struct zc_segment *s,
                             uint64_t seq, uint32_t number, uint64_t end)
{
    uint8_t body[ZC_RECORD_SEAL_BODY] = {0};
    zc_record_set32(body, number);
    zc_record_set64(body + 8, end);
    for (size_t at = 0; at < ZC_SEGMENT_SEALS; at += ZC_SEGMENT_SEALS / 2) {
        zc_record_encode(ret_seals + at, ZC_RECORD_SEAL, seq, zc_slice(body, sizeof(body)));
        zc_record_stamp(ret_seals + at, s->salt, ZC_SEGMENT_HEAD + at);
    }
}

int zc_segment_seals_decode(const uint8_t seals[ZC_SEGMENT_SEALS], const struct zc_segment *s,
                            uint64_t *ret_seq, uint32_t *ret_number, uint64_t *ret_end)
{
    for (size_t at = 0; at < ZC_SEGMENT_SEALS; at += ZC_SEGMENT_SEALS / 2) {
        struct zc_record r;
        const uint8_t *body = seals + at + ZC_RECORD_HEAD;
        if (zc_record_decode(seals + at, s->salt, ZC_SEGMENT_HEAD + at, &r) != 0 ||
            r.type != ZC_RECORD_SEAL || !zc_record_body_ok(&r, body))
            continue;
        *ret_seq = r.seq;
        *ret_number = zc_record_get32(body);
        *ret_end = zc_record_get64(body + 8);
        return 0;
    }
    return ZC_EBADMSG;
}
