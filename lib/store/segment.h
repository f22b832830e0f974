/*
 * Segments: what the log knows of its files, and the head of a segment file.
 *
 *    0  "ZMQCLOG1"
 *    8  u32 version (1)       12  u32 number, as in the file name
 *   16  u64 salt              24  u64 highest sequence number given out when it was made
 *   32  zeros                 60  u32 CRC32C of bytes 0..59
 *   64  the same 64 bytes again, so that one flipped bit cannot lose a segment
 *  128  records; the first two of every segment but the first are equal SEAL records:
 *       body u32 number of the segment before, u32 zero, u64 offset where that one ends;
 *       seq: highest sequence number given out
 *
 * Whatever lies behind the end that a SEAL names does not exist: a put that was refused after a
 * failed write must not come back.
 */
#ifndef ZC_STORE_SEGMENT_H
#define ZC_STORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/live.h"
#include "store/record.h"

#define ZC_SEGMENT_HEAD 128
/* The two SEAL records. */
#define ZC_SEGMENT_SEALS (2 * (ZC_RECORD_HEAD + ZC_RECORD_SEAL_BODY))
/* All that a segment may hold before its first message. */
#define ZC_SEGMENT_START (ZC_SEGMENT_HEAD + ZC_SEGMENT_SEALS)

struct zc_segment {
    uint32_t number;
    bool head_ok; /* the salt is known */
    bool sealed;  /* end is final */
    bool damaged; /* something in it did not pass: the file is kept aside, not deleted */
    bool doomed;  /* when opening: to be removed */
    bool indexed; /* there is an index, or it was tried */
    uint64_t salt;
    uint64_t seq;        /* from the head */
    uint64_t size;       /* of the file */
    uint64_t end;        /* of the last record */
    uint64_t limit;      /* when opening: end that a SEAL names, or 0 */
    uint64_t dirty;      /* when opening: behind the last byte that is not zero */
    uint64_t live;       /* records not forgotten */
    uint64_t live_bytes; /* the same, without those that are not in `table` */
    uint32_t unlisted;   /* live, but no memory for their entry: this segment is never cleaned */
    uint32_t reads;      /* under way or waiting */
    struct zc_live table;
};

/* Ordered by number. All zero is a valid empty one. */
struct zc_segments {
    struct zc_segment *items;
    uint32_t len;
    uint32_t cap;
};

/* Room for one more, so that the next zc_segment_add cannot fail. */
ZC_MUST_CHECK int zc_segment_reserve(struct zc_segments *t);
/* Adds an all-zero entry; number must be new, room must be reserved. Moves other entries. */
struct zc_segment *zc_segment_add(struct zc_segments *t, uint32_t number);
/* NULL when there is none. O(log n). */
struct zc_segment *zc_segment_find(const struct zc_segments *t, uint32_t number);
void zc_segment_drop(struct zc_segments *t, uint32_t number);
void zc_segment_done(struct zc_segments *t);

/* Writes both copies of the head. */
void zc_segment_head_encode(uint8_t ret_head[ZC_SEGMENT_HEAD], const struct zc_segment *s);
/* Takes salt and seq from either copy. ZC_EBADMSG: neither is usable or it is of another number;
 * ZC_EINVAL: a version that this program does not know. */
ZC_MUST_CHECK int zc_segment_head_decode(const uint8_t head[ZC_SEGMENT_HEAD], struct zc_segment *s);
/* Writes the two SEAL records of segment s, which follows `number` ending at `end`. */
void zc_segment_seals_encode(uint8_t ret_seals[ZC_SEGMENT_SEALS], const struct zc_segment *s,
                             uint64_t seq, uint32_t number, uint64_t end);
/* Reads what either SEAL says; ZC_EBADMSG when neither passes. */
ZC_MUST_CHECK int zc_segment_seals_decode(const uint8_t seals[ZC_SEGMENT_SEALS],
                                          const struct zc_segment *s, uint64_t *ret_seq,
                                          uint32_t *ret_number, uint64_t *ret_end);

#endif
