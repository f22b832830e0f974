/*
 * The index of a sealed segment: what opening needs of it, so that payloads need not be read. A
 * file of its own beside the segment, made in the background and never needed: when it is missing,
 * damaged, or does not fit its segment, the segment is read instead.
 *
 *    0  "ZMQCIDX1"             8  u32 version (1)        12  u32 number of the segment
 *   16  u64 salt of the segment                          24  u64 its end
 *   32  u64 size of its file                             40  u64 highest sequence number in it
 *   48  u32 damaged records that were left out           52  u32 number of entries
 *   56  u32 bytes of all entries  60  u32 their CRC32C   64  u32 CRC32C of bytes 0..63, 4 zeros
 *   72  entries, each on a multiple of 8:
 *        0  u8 type, 3 zeros     4  u32 offset of the record / 8
 *        8  u32 length of its body                       12  u32 bytes of it that follow
 *       16  u64 seq             24  the first bytes of the body, then zeros
 *
 * Entries stand in the order of their records. Messages that were gone when it was made are left
 * out; REMOVE records never are, because they also speak of older segments.
 */
#ifndef ZC_STORE_INDEX_H
#define ZC_STORE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/segment.h"

#define ZC_INDEX_HEAD 72
#define ZC_INDEX_ENTRY 24
/* Larger ones are not made: all of one is in memory at once. */
#define ZC_INDEX_MAX (UINT32_C(16) << 20)

struct zc_index {
    uint64_t seq_max;
    uint64_t size; /* of the segment's file */
    uint32_t damaged;
    uint32_t count;
    uint32_t kept; /* of them: entries of records that live */
};

struct zc_index_entry {
    enum zc_record_type type;
    uint64_t seq;
    uint64_t offset;
    uint32_t body_len;    /* of the record */
    struct zc_slice body; /* its first bytes */
};

/* Begins an index in an empty buffer. */
ZC_MUST_CHECK int zc_index_begin(struct zc_buf *b);
/* ZC_ELIMIT: it would become too large; ZC_ENOMEM. */
ZC_MUST_CHECK int zc_index_add(struct zc_buf *b, struct zc_index *index,
                               const struct zc_index_entry *entry);
/* Fills in the head. */
void zc_index_end(struct zc_buf *b, const struct zc_index *index, const struct zc_segment *s);
/* All of it passes and speaks of this segment, which ends at s->limit: its numbers. Else
 * ZC_EBADMSG. */
ZC_MUST_CHECK int zc_index_open(struct zc_slice file, const struct zc_segment *s,
                                struct zc_index *ret_index);
/* The entry at *pos, which moves on; from ZC_INDEX_HEAD. False: no more, or not one. */
bool zc_index_next(struct zc_slice file, size_t *pos, struct zc_index_entry *ret_entry);

#endif
