/*
 * Messages that merely wait, as rows of 32 bytes: those of a mailbox stand in chunks, in the order
 * of their sequence numbers. Pure memory; rest.h says what becomes a row and what a row becomes.
 *
 * New rows join the end. One from the middle leaves a gap, and a chunk goes when all of it is gone.
 * Rows never change their address, so that the log may know that of `place`.
 */
#ifndef ZC_ZMQC_ROWS_H
#define ZC_ZMQC_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_ROWS_CHUNK 256               /* rows of one chunk, at most */
#define ZC_ROW_BYTES_MAX 4096           /* a body that is kept in a chunk */
#define ZC_ROW_BODY_END (1u << 24)      /* above the lengths that a row can tell */
#define ZC_ROW_HEAD_END (1u << 16)      /* the same of what is not payload */
#define ZC_ROW_SPAN (UINT64_C(1) << 24) /* sequence numbers and ms within a chunk */

struct zc_mailbox;

struct zc_row {
    uint64_t place;         /* in the log; without one: offset of the packed body in its chunk */
    uint8_t owner;          /* enum zc_owner, right behind place */
    uint8_t index;          /* in its chunk */
    uint16_t tag;           /* second part of the id's key */
    uint32_t body_len : 24; /* of the stored form */
    uint32_t gone : 1;
    uint32_t request : 1;
    uint32_t deduped : 1; /* key and tag count, and row_ids.h has them */
    uint32_t scoped : 1;  /* the scopes of the chunk have more */
    uint32_t seq : 24;    /* behind that of the chunk */
    uint32_t at_high : 8;
    uint16_t at_low;   /* ms behind those of the chunk */
    uint16_t head_len; /* of the stored form, all but the payload */
    uint64_t key;
};

/* Of a put whose id belongs to a scope, as in struct zc_message. */
struct zc_row_scope {
    uint64_t id_tag;
    uint32_t seen_s;
};

struct zc_row_chunk {
    struct zc_mailbox *mailbox;
    uint64_t seq;
    int64_t at_ms;
    uint64_t from;               /* of all rows, unless: */
    uint64_t *froms;             /* that of each, cap of them; or NULL */
    struct zc_row_scope *scopes; /* of each row, when one has a scope; or NULL */
    struct zc_buf bytes;         /* packed bodies, without a log */
    /* In bytes: id, from and by of the first, which the others need not repeat. */
    uint16_t like_id, like_from, like_by;
    uint32_t like_at;
    uint32_t number; /* in row_ids.h */
    bool packed;     /* the rows have their bodies here */
    uint16_t cap, len, live;
    uint16_t first; /* before it all are gone */
    struct zc_row rows[];
};

/* All zero is a valid empty one. */
struct zc_rows {
    struct zc_row_chunk **chunks;
    uint32_t first, len, cap; /* len of them from `first` on */
    uint64_t count;           /* of rows */
};

struct zc_row_ids;

/* What a row is made of. */
struct zc_row_like {
    uint64_t seq, from;
    int64_t at_ms;
    uint32_t body_len, payload_len;
    bool bytes; /* the body is kept in the chunk */
};

static inline struct zc_row_chunk *zc_row_chunk(const struct zc_row *r)
{
    return (struct zc_row_chunk *)((char *)(uintptr_t)(r - r->index) -
                                   offsetof(struct zc_row_chunk, rows));
}

static inline uint64_t zc_row_seq(const struct zc_row *r)
{
    return zc_row_chunk(r)->seq + r->seq;
}

static inline int64_t zc_row_at_ms(const struct zc_row *r)
{
    return zc_row_chunk(r)->at_ms + (int64_t)((uint32_t)r->at_high << 16 | r->at_low);
}

static inline uint64_t zc_row_from(const struct zc_row *r)
{
    const struct zc_row_chunk *c = zc_row_chunk(r);
    return c->froms != NULL ? c->froms[r->index] : c->from;
}

/* A new row at the end, all zero but for what `like` says; its seq is above all others. NULL: no
 * memory, or it cannot be one. */
struct zc_row *zc_rows_push(struct zc_rows *rows, struct zc_row_ids *ids, struct zc_mailbox *mb,
                            const struct zc_row_like *like);
/* The row has a scope, which is to be filled in. NULL: no memory. */
struct zc_row_scope *zc_rows_scope(struct zc_row *row);
/* The row goes; its id was forgotten before. */
void zc_rows_drop(struct zc_rows *rows, struct zc_row_ids *ids, struct zc_row *row);
/* The first row of this sequence number or above, or NULL. */
struct zc_row *zc_rows_from(const struct zc_rows *rows, uint64_t seq);
/* The row behind this one, or NULL. */
struct zc_row *zc_rows_next(const struct zc_rows *rows, const struct zc_row *row);
/* The highest sequence number; 0: none. */
uint64_t zc_rows_last(const struct zc_rows *rows);
void zc_rows_done(struct zc_rows *rows);

#endif
