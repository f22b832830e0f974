/*
 * Records: the unit of the log on disk. Each starts on a multiple of 8 bytes with a fixed head;
 * integers are little-endian.
 *
 *    0  u32 head_crc   CRC32C of salt, offset (u64 each) and bytes 4..23
 *    4  u32 body_crc   CRC32C of the body
 *    8  u32 length     head and body without padding; never 0, so zeros are never a record
 *   12  u8  type, 3 zero bytes
 *   16  u64 seq
 *   24  body, then zeros up to the next multiple of 8
 *
 * The head has a checksum of its own so that a damaged body costs that record only (the length is
 * still trusted) and so that a search for the next record costs 36 bytes at each place, whatever a
 * payload pretends to be. The salt of the segment and the offset are in it, so bytes that a client
 * sent, or an older file left, never pass as a record.
 *
 * Deliberately absent: compression, encryption, any knowledge of what a body holds.
 */
#ifndef ZC_STORE_RECORD_H
#define ZC_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "store/log.h"

#define ZC_RECORD_HEAD 24
#define ZC_RECORD_ALIGN 8
/* Largest body. Keeps memory bounded when a log is opened. */
#define ZC_RECORD_BODY_MAX (UINT32_C(16) << 20)
#define ZC_RECORD_SEAL_BODY 16
#define ZC_RECORD_STATE_BODY 12

struct zc_record {
    enum zc_record_type type;
    uint64_t seq;
    uint32_t len; /* of the body */
    uint32_t body_crc;
};

static inline uint32_t zc_record_get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t zc_record_get64(const uint8_t *p)
{
    return zc_record_get32(p) | (uint64_t)zc_record_get32(p + 4) << 32;
}

static inline void zc_record_set32(uint8_t *ret_p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        ret_p[i] = (uint8_t)(v >> (8 * i));
}

static inline void zc_record_set64(uint8_t *ret_p, uint64_t v)
{
    zc_record_set32(ret_p, (uint32_t)v);
    zc_record_set32(ret_p + 4, (uint32_t)(v >> 32));
}

/* A record that lives until it is forgotten. */
static inline bool zc_record_kept(enum zc_record_type type)
{
    return type == ZC_RECORD_PUT || type == ZC_RECORD_BIND || type == ZC_RECORD_SEEN;
}

/* The highest sequence number that a record speaks of. */
uint64_t zc_record_seq_max(const struct zc_record *r, const uint8_t *body);
/* Bytes that a record with this body takes, padding included. body_len <= ZC_RECORD_BODY_MAX. */
static inline size_t zc_record_size(size_t body_len)
{
    return (ZC_RECORD_HEAD + body_len + ZC_RECORD_ALIGN - 1) & ~(size_t)(ZC_RECORD_ALIGN - 1);
}

/* Writes zc_record_size(body.len) bytes; the head checksum waits for zc_record_stamp. */
void zc_record_encode(uint8_t *ret_out, enum zc_record_type type, uint64_t seq,
                      struct zc_slice body);
/* Sets the head checksum for the place where the record will lie. */
void zc_record_stamp(uint8_t *record, uint64_t salt, uint64_t offset);
/* Reads ZC_RECORD_HEAD bytes found at offset; ZC_EBADMSG when they are no head of this segment or
 * the body length does not suit the type. */
ZC_MUST_CHECK int zc_record_decode(const uint8_t *head, uint64_t salt, uint64_t offset,
                                   struct zc_record *ret_record);
/* The r->len bytes of body pass their checksum. */
bool zc_record_body_ok(const struct zc_record *r, const uint8_t *body);
/* A body of len bytes suits the type. */
bool zc_record_shape_ok(enum zc_record_type type, size_t len);

#endif
