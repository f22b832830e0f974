/*
 * A byte queue of one connection: a ring that grows by doubling within a budget that many share.
 * Bytes may be put behind the end, for segments that arrive out of order.
 */
#ifndef ZC_TUNNEL_TCP_RING_H
#define ZC_TUNNEL_TCP_RING_H

#include "base/buf.h"

/* What each ring may have when the budget is used up, so that every connection can go on. */
#define ZC_TCP_RING_FREE 16384
/* What an emptied ring of a busy connection keeps. */
#define ZC_TCP_RING_KEEP 65536
#define ZC_TCP_RING_MAX (UINT32_C(1) << 30)

struct zc_tcp_budget {
    size_t used, max; /* bytes of memory in rings */
};

/* All zero is a valid empty one. */
struct zc_tcp_ring {
    uint8_t *data;
    uint32_t cap;  /* power of two, or 0 */
    uint32_t head; /* index of the first byte */
    uint32_t len;
};

/* Makes the memory at least n bytes. ZC_ELIMIT: the budget says no; ZC_ENOMEM. */
ZC_MUST_CHECK int zc_tcp_ring_reserve(struct zc_tcp_ring *r, struct zc_tcp_budget *b, size_t n);
/* The largest n that zc_tcp_ring_reserve grants now, memory allowing; at most max. */
size_t zc_tcp_ring_reach(const struct zc_tcp_ring *r, const struct zc_tcp_budget *b, size_t max);
/* Copies to offset bytes after the first one; the memory must reach there. len does not change. */
void zc_tcp_ring_put(struct zc_tcp_ring *r, size_t offset, struct zc_slice bytes);
/* n bytes from offset on as 0 to 2 slices; returns how many. */
size_t zc_tcp_ring_slices(const struct zc_tcp_ring *r, size_t offset, size_t n,
                          struct zc_slice ret_slices[2]);
/* Drops the first n bytes, n <= len. Memory stays. */
void zc_tcp_ring_drop(struct zc_tcp_ring *r, size_t n);
/* Frees the memory when there is nothing in it and it is more than keep bytes. For a ring without
 * bytes behind its end. */
void zc_tcp_ring_trim(struct zc_tcp_ring *r, struct zc_tcp_budget *b, size_t keep);
/* Frees the memory and leaves an empty ring. */
void zc_tcp_ring_done(struct zc_tcp_ring *r, struct zc_tcp_budget *b);

#endif
