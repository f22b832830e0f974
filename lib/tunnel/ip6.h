/*
 * IPv6 as it runs inside the tunnel (RFC 8200): a fixed header, then TCP or ICMPv6. Also the
 * Internet checksum of upper layers (RFC 8200 section 8.1). Deliberately absent: extension headers,
 * fragments, neighbour discovery, IPv4. The tunnel never needs them and a packet that carries one
 * is not ours.
 */
#ifndef ZC_TUNNEL_IP6_H
#define ZC_TUNNEL_IP6_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define ZC_IP6_HEADER 40
#define ZC_IP6_MTU 1280 /* of the tunnel, and the least that IPv6 allows */

enum zc_ip6_next { ZC_IP6_TCP = 6, ZC_IP6_UDP = 17, ZC_IP6_ICMP = 58 };

struct zc_ip6_addr {
    uint8_t b[16];
};

static inline bool zc_ip6_addr_eq(const struct zc_ip6_addr *a, const struct zc_ip6_addr *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

/* One host: neither unspecified, loopback, multicast nor link-local. */
bool zc_ip6_addr_unicast(const struct zc_ip6_addr *a);

/* A packet taken apart; payload points into it. */
struct zc_ip6 {
    struct zc_ip6_addr src, dst;
    uint8_t next; /* protocol of the payload, enum zc_ip6_next or another */
    uint8_t hops;
    struct zc_slice payload;
};

/* Takes the packet at data[0..len) apart. Bytes after the length that the header states are padding
 * of the tunnel and left out. ZC_EBADMSG: not IPv6, or shorter than it says. */
ZC_MUST_CHECK int zc_ip6_parse(const uint8_t *data, size_t len, struct zc_ip6 *ret_ip);
/* Writes the header in front of len payload bytes: hop limit 64, class and flow label 0. */
void zc_ip6_header(uint8_t ret_out[ZC_IP6_HEADER], const struct zc_ip6_addr *src,
                   const struct zc_ip6_addr *dst, uint8_t next, size_t len);
/* Internet checksum of payload with its pseudo header, ready to be stored. Over a payload that
 * holds its own right checksum the result is 0. */
uint16_t zc_ip6_checksum(const struct zc_ip6_addr *src, const struct zc_ip6_addr *dst, uint8_t next,
                         struct zc_slice payload);

#endif
