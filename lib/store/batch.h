/*
 * Batches: records that wait to be written, or were written and wait for the fsync, in order. A
 * batch takes records until its first byte is handed to the disk; the next one fills meanwhile.
 *
 *   first ... items done with | written, not synced | waiting ... last (open for more)
 *             kept ^           written ^
 *
 * Bytes stay here until they are durable, because after a failed write they must be written again
 * somewhere else. Batches are recycled, so a steady stream of records allocates nothing.
 */
#ifndef ZC_STORE_BATCH_H
#define ZC_STORE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/segment.h"

/* Bytes kept free before the records: a write that opens a segment puts its SEALs there. */
#define ZC_BATCH_ROOM ZC_SEGMENT_SEALS

struct zc_batch_item {
    uint64_t *place; /* of the caller, or NULL */
    uint64_t at;     /* its place, once it is written */
    uint32_t size;   /* of the record, padded */
    bool kept;       /* lives until it is forgotten: a message or a setting */
    bool copy;       /* such a record, moved from an older segment */
    bool wanted;     /* somebody waits for SYNCED */
};

struct zc_batch {
    struct zc_batch *next;
    struct zc_buf data; /* ZC_BATCH_ROOM, then the records */
    struct zc_batch_item *items;
    uint32_t count;
    uint32_t cap;
    uint32_t kept;    /* items before it are done with */
    uint32_t written; /* items before it are written; kept <= written <= count */
    size_t kept_pos;  /* the same as positions in data */
    size_t written_pos;
    uint64_t ticket; /* of items[0]; the others follow */
    bool closed;     /* takes no more */
};

/* All zero is a valid empty one. */
struct zc_batches {
    struct zc_batch *first;
    struct zc_batch *last;
    struct zc_batch *at; /* the first with something to write, or NULL */
    struct zc_batch *spare;
    uint32_t spare_count;
    uint64_t waiting;  /* bytes of records not written */
    uint64_t unsynced; /* bytes of records written but not done with */
};

/* Copies one record to the tail. ZC_ENOMEM: nothing changed. */
ZC_MUST_CHECK int zc_batch_append(struct zc_batches *q, uint64_t ticket, enum zc_record_type type,
                                  uint64_t seq, struct zc_slice body, bool wanted, uint64_t *place);
/* The next n items of q->at are written: moves the cursor. */
void zc_batch_written(struct zc_batches *q, uint32_t n);
/* What is written of the records up to ticket is done with: its memory is recycled. */
void zc_batch_release(struct zc_batches *q, uint64_t ticket);
/* Items of b from index `from` on (not before its written ones) move to a batch of their own, so
 * that those before it can be handed out and these still gather company. Does nothing when b takes
 * no more anyway, or without memory. */
void zc_batch_split(struct zc_batches *q, struct zc_batch *b, uint32_t from);
/* What was written but is not done with waits to be written again. */
void zc_batch_rewind(struct zc_batches *q);
/* Forgets the items of `at` from index `from` on (not before its written ones) and all behind. */
void zc_batch_cut(struct zc_batches *q, struct zc_batch *at, uint32_t from);
/* Forgets everything, keeps spare memory. */
void zc_batch_clear(struct zc_batches *q);
void zc_batch_done(struct zc_batches *q);

#endif
