/* The codec of segment indexes, see index.h. */
#include "store/index.h"

#include <string.h>

#include "base/crc32c.h"

#define MAGIC "ZMQCIDX1"
#define VERSION 1

static size_t padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

int zc_index_begin(struct zc_buf *b)
{
    b->len = 0;
    int err = zc_buf_reserve(b, ZC_INDEX_HEAD);
    if (err != 0)
        return err;
    memset(b->data, 0, ZC_INDEX_HEAD);
    b->len = ZC_INDEX_HEAD;
    return 0;
}

int zc_index_add(struct zc_buf *b, struct zc_index *index, const struct zc_index_entry *entry)
{
    size_t size = ZC_INDEX_ENTRY + padded(entry->body.len);
    if (size > ZC_INDEX_MAX - b->len)
        return ZC_ELIMIT;
    int err = zc_buf_reserve(b, size);
    if (err != 0)
        return err;
    uint8_t *p = b->data + b->len;
    memset(p, 0, size);
    p[0] = (uint8_t)entry->type;
    zc_record_set32(p + 4, (uint32_t)(entry->offset >> 3));
    zc_record_set32(p + 8, entry->body_len);
    zc_record_set32(p + 12, (uint32_t)entry->body.len);
    zc_record_set64(p + 16, entry->seq);
    if (entry->body.len > 0)
        memcpy(p + ZC_INDEX_ENTRY, entry->body.data, entry->body.len);
    b->len += size;
    index->count++;
    return 0;
}

void zc_index_end(struct zc_buf *b, const struct zc_index *index, const struct zc_segment *s)
{
    uint8_t *p = b->data;
    size_t len = b->len - ZC_INDEX_HEAD;
    memcpy(p, MAGIC, 8);
    zc_record_set32(p + 8, VERSION);
    zc_record_set32(p + 12, s->number);
    zc_record_set64(p + 16, s->salt);
    zc_record_set64(p + 24, s->end);
    zc_record_set64(p + 32, s->size);
    zc_record_set64(p + 40, index->seq_max);
    zc_record_set32(p + 48, index->damaged);
    zc_record_set32(p + 52, index->count);
    zc_record_set32(p + 56, (uint32_t)len);
    zc_record_set32(p + 60, zc_crc32c(0, p + ZC_INDEX_HEAD, len));
    zc_record_set32(p + 64, zc_crc32c(0, p, 64));
}

/* Every entry lies inside, names a place inside the segment, behind the one before. */
static bool entries_sound(struct zc_slice file, const struct zc_segment *s, struct zc_index *index)
{
    struct zc_index_entry e;
    size_t pos = ZC_INDEX_HEAD;
    uint64_t least = ZC_SEGMENT_HEAD;
    for (uint32_t count = index->count; count > 0; count--) {
        if (!zc_index_next(file, &pos, &e) || e.offset < least ||
            e.offset + zc_record_size(e.body_len) > s->limit)
            return false;
        least = e.offset + zc_record_size(e.body_len);
        index->kept += zc_record_kept(e.type);
    }
    return pos == file.len;
}

int zc_index_open(struct zc_slice file, const struct zc_segment *s, struct zc_index *ret_index)
{
    const uint8_t *p = file.data;
    if (file.len < ZC_INDEX_HEAD || memcmp(p, MAGIC, 8) != 0 ||
        zc_record_get32(p + 64) != zc_crc32c(0, p, 64) || zc_record_get32(p + 68) != 0 ||
        zc_record_get32(p + 8) != VERSION || zc_record_get32(p + 12) != s->number ||
        zc_record_get64(p + 16) != s->salt || zc_record_get64(p + 24) != s->limit ||
        zc_record_get32(p + 56) != file.len - ZC_INDEX_HEAD ||
        zc_record_get32(p + 60) != zc_crc32c(0, p + ZC_INDEX_HEAD, file.len - ZC_INDEX_HEAD))
        return ZC_EBADMSG;
    struct zc_index index = {.size = zc_record_get64(p + 32),
                             .seq_max = zc_record_get64(p + 40),
                             .damaged = zc_record_get32(p + 48),
                             .count = zc_record_get32(p + 52)};
    if (index.size < s->limit || !entries_sound(file, s, &index))
        return ZC_EBADMSG;
    *ret_index = index;
    return 0;
}

bool zc_index_next(struct zc_slice file, size_t *pos, struct zc_index_entry *ret_entry)
{
    const uint8_t *p = file.data + *pos;
    if (file.len - *pos < ZC_INDEX_ENTRY)
        return false;
    uint32_t len = zc_record_get32(p + 12);
    struct zc_index_entry e = {.type = (enum zc_record_type)p[0],
                               .offset = (uint64_t)zc_record_get32(p + 4) << 3,
                               .body_len = zc_record_get32(p + 8),
                               .seq = zc_record_get64(p + 16),
                               .body = zc_slice(p + ZC_INDEX_ENTRY, len)};
    bool whole = e.type != ZC_RECORD_PUT;
    if (len > e.body_len || (whole && len != e.body_len) || e.type == ZC_RECORD_SEAL ||
        !zc_record_shape_ok(e.type, e.body_len) || padded(len) > file.len - *pos - ZC_INDEX_ENTRY)
        return false;
    *pos += ZC_INDEX_ENTRY + padded(len);
    *ret_entry = e;
    return true;
}
