/*
 * A small sorted set of sequence ranges that neither touch nor overlap: what arrived out of order,
 * what the peer said it holds. Bounded; O(count) each.
 */
#ifndef ZC_TUNNEL_TCP_RANGES_H
#define ZC_TUNNEL_TCP_RANGES_H

#include <stddef.h>

#include "tunnel/tcp_seq.h"

#define ZC_TCP_RANGES_MAX 64

struct zc_tcp_ranges {
    uint32_t count;
    struct zc_tcp_range at[ZC_TCP_RANGES_MAX];
};

/* Adds r (not empty), joined with what it meets. All must lie within 2^31 of each other. False: it
 * would need one range too many, and nothing changed. */
bool zc_tcp_ranges_add(struct zc_tcp_ranges *s, struct zc_tcp_range r);
/* Forgets all before seq. */
void zc_tcp_ranges_cut(struct zc_tcp_ranges *s, uint32_t seq);
/* The range that holds seq, or NULL. */
const struct zc_tcp_range *zc_tcp_ranges_find(const struct zc_tcp_ranges *s, uint32_t seq);
/* Sum of all lengths. */
uint32_t zc_tcp_ranges_bytes(const struct zc_tcp_ranges *s);

#endif
