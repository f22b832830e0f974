/*
 * ICMPv6 (RFC 4443) as far as a node in the tunnel needs it: echo is answered, or told to be too
 * big when the answer would be longer than the tunnel's MTU. Nothing else can be: what we send fits
 * in 1280 bytes, which every link of IPv6 carries, nothing is forwarded, and a longer packet of TCP
 * that arrived whole is taken. Hence also, one that a peer tells changes nothing (RFC 8201 section
 * 4).
 *
 * Deliberately absent: neighbour and router discovery, multicast listeners, other errors (they are
 * recognised as such and change nothing).
 */
#ifndef ZC_TUNNEL_ICMP6_H
#define ZC_TUNNEL_ICMP6_H

#include "tunnel/ip6.h"

enum zc_icmp6_kind {
    ZC_ICMP6_BAD, /* too short or wrong checksum */
    ZC_ICMP6_ECHO_REQUEST,
    ZC_ICMP6_ECHO_REPLY,
    ZC_ICMP6_TOO_BIG,
    ZC_ICMP6_ERROR, /* any other error */
    ZC_ICMP6_OTHER,
};

struct zc_icmp6 {
    enum zc_icmp6_kind kind;
    uint16_t id, seq;     /* echo */
    uint32_t mtu;         /* too big: bytes */
    struct zc_slice rest; /* echo: its data; errors: the packet they are about, cut off somewhere */
};

/* Takes the ICMPv6 message of ip apart; never fails, see ZC_ICMP6_BAD. */
struct zc_icmp6 zc_icmp6_parse(const struct zc_ip6 *ip);
/* Whole packets into buf; the size, or 0 when cap is too small. */
size_t zc_icmp6_echo(uint8_t *buf, size_t cap, const struct zc_ip6_addr *src,
                     const struct zc_ip6_addr *dst, bool reply, uint16_t id, uint16_t seq,
                     struct zc_slice data);
/* Tells the sender of `packet` that it is larger than mtu bytes; quotes what fits in 1280 bytes.
 * 0 also when the packet is one that must not be answered (an ICMPv6 error, a source that is no
 * single host). */
size_t zc_icmp6_too_big(uint8_t *buf, size_t cap, const struct zc_ip6_addr *src,
                        struct zc_slice packet, uint32_t mtu);

#endif
