/* The record codec; the picture is in record.h and docs/man/zmqcat-log.5. */
#include "store/record.h"

#include "base/crc32c.h"

bool zc_record_shape_ok(enum zc_record_type type, size_t len)
{
    if (len > ZC_RECORD_BODY_MAX)
        return false;
    switch (type) {
    case ZC_RECORD_SEAL:
        return len == ZC_RECORD_SEAL_BODY;
    case ZC_RECORD_PUT:
    case ZC_RECORD_BIND:
    case ZC_RECORD_SEEN:
        return true;
    case ZC_RECORD_REMOVE:
        return len > 0 && len % 8 == 0;
    case ZC_RECORD_STATE:
        return len == ZC_RECORD_STATE_BODY;
    }
    return false;
}

static uint32_t head_crc(const uint8_t *record, uint64_t salt, uint64_t offset)
{
    uint8_t seed[16];
    zc_record_set64(seed, salt);
    zc_record_set64(seed + 8, offset);
    return zc_crc32c(zc_crc32c(0, seed, sizeof(seed)), record + 4, ZC_RECORD_HEAD - 4);
}

void zc_record_encode(uint8_t *ret_out, enum zc_record_type type, uint64_t seq,
                      struct zc_slice body)
{
    size_t used = ZC_RECORD_HEAD + body.len;
    memset(ret_out, 0, ZC_RECORD_HEAD);
    zc_record_set32(ret_out + 4, zc_crc32c(0, body.data, body.len));
    zc_record_set32(ret_out + 8, (uint32_t)used);
    ret_out[12] = (uint8_t)type;
    zc_record_set64(ret_out + 16, seq);
    if (body.len > 0)
        memcpy(ret_out + ZC_RECORD_HEAD, body.data, body.len);
    memset(ret_out + used, 0, zc_record_size(body.len) - used);
}

void zc_record_stamp(uint8_t *record, uint64_t salt, uint64_t offset)
{
    zc_record_set32(record, head_crc(record, salt, offset));
}

int zc_record_decode(const uint8_t *head, uint64_t salt, uint64_t offset,
                     struct zc_record *ret_record)
{
    uint32_t length = zc_record_get32(head + 8);
    /* Cheap refusals first: a search over zeros or a payload comes here at every place. */
    if (length < ZC_RECORD_HEAD || (zc_record_get32(head + 12) >> 8) != 0)
        return ZC_EBADMSG;
    if (!zc_record_shape_ok((enum zc_record_type)head[12], length - ZC_RECORD_HEAD))
        return ZC_EBADMSG;
    if (zc_record_get32(head) != head_crc(head, salt, offset))
        return ZC_EBADMSG;
    ret_record->type = (enum zc_record_type)head[12];
    ret_record->seq = zc_record_get64(head + 16);
    ret_record->len = length - ZC_RECORD_HEAD;
    ret_record->body_crc = zc_record_get32(head + 4);
    return 0;
}

bool zc_record_body_ok(const struct zc_record *r, const uint8_t *body)
{
    return zc_crc32c(0, body, r->len) == r->body_crc;
}

uint64_t zc_record_seq_max(const struct zc_record *r, const uint8_t *body)
{
    uint64_t most = r->seq;
    for (uint32_t i = 0; r->type == ZC_RECORD_REMOVE && i + 8 <= r->len; i += 8) {
        uint64_t seq = zc_record_get64(body + i);
        most = seq > most ? seq : most;
    }
    return most;
}
