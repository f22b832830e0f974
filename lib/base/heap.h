/*
 * Binary min-heap of intrusive timer nodes, ordered by deadline. O(log n) insert, remove, move.
 */
#ifndef ZC_BASE_HEAP_H
#define ZC_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

struct zc_timer {
    struct zc_mono deadline;
    uint32_t slot; /* index + 1 in the heap; 0: not in a heap */
    uint8_t kind;  /* the owner's tag, so that one heap serves several kinds */
};

struct zc_heap {
    struct zc_timer **nodes;
    uint32_t len;
    uint32_t cap;
};

/* Inserts t, or moves it when it is in the heap already. ZC_ENOMEM: not inserted. */
ZC_MUST_CHECK int zc_heap_set(struct zc_heap *h, struct zc_timer *t, struct zc_mono deadline);
/* No-op when t is in no heap. */
void zc_heap_remove(struct zc_heap *h, struct zc_timer *t);
/* Earliest node, or NULL. */
struct zc_timer *zc_heap_min(const struct zc_heap *h);
static inline bool zc_heap_has(const struct zc_timer *t)
{
    return t->slot != 0;
}
/* Frees the array; the nodes belong to their owners. */
void zc_heap_done(struct zc_heap *h);

#endif
