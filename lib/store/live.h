/*
 * The records of one segment that are wanted still, by offset: messages that are not taken, and
 * settings. Each knows its owner, the caller's variable that holds its place, so that a record can
 * move to another segment while the caller goes on.
 *
 * Records come in the order of their offsets, so the table is an array and a look-up a binary
 * search; what is gone is squeezed out now and then. 16 bytes a record.
 */
#ifndef ZC_STORE_LIVE_H
#define ZC_STORE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct zc_live_item {
    uint64_t *owner;     /* NULL: nobody's, it stays for ever */
    uint32_t at8 : 28;   /* offset in the file / 8 */
    uint32_t gone : 1;   /* not wanted any more */
    uint32_t moving : 1; /* a copy is on its way to the disk */
    uint32_t coming : 1; /* it is such a copy, not durable yet */
    uint32_t size;       /* of the record, padded */
};

/* All zero is a valid empty one. */
struct zc_live {
    struct zc_live_item *items;
    uint32_t len;
    uint32_t cap;
    uint32_t gone; /* of the items */
};

static inline uint64_t zc_live_offset(const struct zc_live_item *item)
{
    return (uint64_t)item->at8 << 3;
}

/* Makes room for n more at once. Without memory nothing changes. */
void zc_live_reserve(struct zc_live *t, uint32_t n);
/* Appends; offset must be beyond all others and a multiple of 8. ZC_ENOMEM: nothing changed. */
ZC_MUST_CHECK int zc_live_add(struct zc_live *t, uint64_t offset, uint32_t size, uint64_t *owner,
                              bool coming);
/* The item at offset, or NULL. Valid until the next add or drop. */
struct zc_live_item *zc_live_find(const struct zc_live *t, uint64_t offset);
/* The first item at offset or behind, or NULL. */
struct zc_live_item *zc_live_from(const struct zc_live *t, uint64_t offset);
/* The item is gone. */
void zc_live_drop(struct zc_live *t, struct zc_live_item *item);
/* No more come: gives back the room for them. */
void zc_live_trim(struct zc_live *t);
void zc_live_done(struct zc_live *t);

#endif
