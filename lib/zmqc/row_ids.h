/*
 * Which row has a message id: a table over the rows of all mailboxes, by the first part of the
 * id's key, which is a keyed hash. 5 bytes an entry; some four fifths of a large table are in use.
 *
 * Open addressing where who is farther from home stays (robin hood). Beside the number of the row,
 * which is that of its chunk and its index, stands how far it is from home and three bits of its
 * hash, so that what is not there is mostly told without a look at any row.
 */
#ifndef ZC_ZMQC_ROW_IDS_H
#define ZC_ZMQC_ROW_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct zc_row;
struct zc_row_chunk;

/* All zero is a valid empty one. */
struct zc_row_ids {
    uint32_t *refs;
    uint8_t *marks; /* 0: free; else distance + 1, above three bits of the hash */
    uint32_t cap, len;
    struct zc_row_chunk **chunks; /* by number; free ones hold the next free number, odd */
    uint32_t chunks_len, chunks_cap, chunks_used;
    uint32_t chunks_free; /* number + 1; 0: none */
};

/* Gives the chunk its number. */
ZC_MUST_CHECK int zc_row_ids_enter(struct zc_row_ids *ids, struct zc_row_chunk *c);
void zc_row_ids_leave(struct zc_row_ids *ids, struct zc_row_chunk *c);
/* The row has this key from now on. ZC_ENOMEM: it has not. */
ZC_MUST_CHECK int zc_row_ids_add(struct zc_row_ids *ids, struct zc_row *row, const uint64_t key[2]);
/* No-op for one without. */
void zc_row_ids_drop(struct zc_row_ids *ids, struct zc_row *row);
struct zc_row *zc_row_ids_find(const struct zc_row_ids *ids, const uint64_t key[2]);
/* The rows belong to their mailboxes. */
void zc_row_ids_done(struct zc_row_ids *ids);

#endif
