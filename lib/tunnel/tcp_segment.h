/*
 * TCP segments as bytes (RFC 9293 3.1, options of RFC 7323 and RFC 2018), inside IPv6.
 *
 *   +------+-----+-----------------------+------+
 *   | IPv6 | TCP | options, 0..40 bytes  | data |
 *   +------+-----+-----------------------+------+
 *
 * Options are written in the order MSS, SACK permitted, timestamps, NOP, window scale in a SYN, and
 * NOP NOP timestamps, NOP NOP SACK elsewhere. Unknown options are skipped.
 */
#ifndef ZC_TUNNEL_TCP_SEGMENT_H
#define ZC_TUNNEL_TCP_SEGMENT_H

#include "tunnel/ip6.h"
#include "tunnel/tcp_seq.h"

#define ZC_TCP_HEADER 20
#define ZC_TCP_HEADER_MAX 60
#define ZC_TCP_SACKS 4
#define ZC_TCP_SCALE_MAX 14 /* RFC 7323 2.3 */

enum zc_tcp_flag {
    ZC_TCP_FIN = 1,
    ZC_TCP_SYN = 2,
    ZC_TCP_RST = 4,
    ZC_TCP_PSH = 8,
    ZC_TCP_ACK = 16,
    ZC_TCP_URG = 32,
};

struct zc_tcp_segment {
    uint16_t src_port, dst_port;
    uint32_t seq, ack;
    uint8_t flags;
    uint16_t window; /* as on the wire, not scaled */
    uint16_t mss;    /* 0: no such option */
    bool sack_ok, has_scale, has_stamp;
    uint8_t scale;
    uint32_t stamp, echo; /* TSval, TSecr */
    uint8_t sack_count;
    struct zc_tcp_range sacks[ZC_TCP_SACKS];
    struct zc_slice data;
};

/* Sequence numbers that the segment takes: its data, SYN and FIN. */
static inline uint32_t zc_tcp_segment_len(const struct zc_tcp_segment *s)
{
    return (uint32_t)s->data.len + ((s->flags & ZC_TCP_SYN) != 0) + ((s->flags & ZC_TCP_FIN) != 0);
}

/* Takes the payload of ip apart; data points into it. ZC_EBADMSG: too short, wrong checksum or data
 * offset, or options that run over their end or have a length that is not theirs. */
ZC_MUST_CHECK int zc_tcp_segment_parse(const struct zc_ip6 *ip, struct zc_tcp_segment *ret_segment);
/* Bytes of TCP header and options that zc_tcp_segment_write makes for s, 20 to 60. */
size_t zc_tcp_segment_header(const struct zc_tcp_segment *s);
/* The whole packet into buf: s with the bytes of more (may be empty) after those of s->data.
 * Returns its size; cap must hold it. */
size_t zc_tcp_segment_write(const struct zc_tcp_segment *s, struct zc_slice more,
                            const struct zc_ip6_addr *src, const struct zc_ip6_addr *dst,
                            uint8_t *buf, size_t cap);
/* What to answer when s belongs to no connection (RFC 9293 3.10.7.1); s is not a reset itself. */
struct zc_tcp_segment zc_tcp_segment_reset(const struct zc_tcp_segment *s);

#endif
