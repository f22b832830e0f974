/* What a router says to the sender of a packet that is too big for the next hop. */
#ifndef ZC_TESTS_LINK_TOO_BIG_H
#define ZC_TESTS_LINK_TOO_BIG_H

#include <stddef.h>
#include <stdint.h>

#define TOO_BIG_MAX 1280

/*
 * The IP packet of the ICMP message (RFC 792 and 1191; RFC 4443) for this one, as from the address
 * that it goes to. Returns its length; 0: none is due, since the packet may be cut into pieces,
 * which this link does not do, or is no IP packet.
 */
size_t too_big_answer(const uint8_t *packet, size_t len, uint32_t mtu,
                      uint8_t ret_answer[TOO_BIG_MAX]);

#endif
