/*
 * Arithmetic of TCP sequence numbers (RFC 9293 section 3.4): modulo 2^32, an order only between
 * numbers less than 2^31 apart. Timestamps (RFC 7323) compare the same way.
 */
#ifndef ZC_TUNNEL_TCP_SEQ_H
#define ZC_TUNNEL_TCP_SEQ_H

#include <stdbool.h>
#include <stdint.h>

/* a - b as a signed distance. */
static inline int32_t zc_tcp_seq_diff(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

static inline bool zc_tcp_seq_lt(uint32_t a, uint32_t b)
{
    return zc_tcp_seq_diff(a, b) < 0;
}

static inline bool zc_tcp_seq_le(uint32_t a, uint32_t b)
{
    return zc_tcp_seq_diff(a, b) <= 0;
}

static inline uint32_t zc_tcp_seq_max(uint32_t a, uint32_t b)
{
    return zc_tcp_seq_lt(a, b) ? b : a;
}

static inline uint32_t zc_tcp_seq_min(uint32_t a, uint32_t b)
{
    return zc_tcp_seq_lt(a, b) ? a : b;
}

/* [start, end), not empty. */
struct zc_tcp_range {
    uint32_t start, end;
};

#endif
