/*
 * STUN (RFC 8489) as far as finding one's own UDP address needs it: the binding request and its
 * success response, bytes to values and back. Relays that speak it answer our request only in the
 * form below, and answer so. All integers are big-endian.
 *
 *   message (section 5):  u16 type, u16 length of what follows the 20 bytes, cookie 2112a442,
 *                         txid (12), attributes
 *   attribute (14):       u16 type, u16 length, value, padding of any value up to 4 bytes
 *
 *   request  0001:  8022 SOFTWARE (14.14) "tailnode"
 *                   8028 FINGERPRINT (14.7), the last: CRC-32 of all before it, XOR 5354554e
 *   response 0101:  0020 XOR-MAPPED-ADDRESS (14.2)   u8 ignored, u8 family (1 IPv4, 2 IPv6),
 *                        u16 port XOR 2112, address XOR (cookie, txid)
 *                   8020 the same, as old servers number it
 *                   0001 MAPPED-ADDRESS (14.1), the same without XOR: RFC 3489, and only used where
 *                        none of the others is there
 *
 * The first attribute of a kind counts (section 14). What else a response holds is stepped over,
 * even where section 6.3.3 wants it understood: old servers send such attributes. Nor is a
 * response's FINGERPRINT looked at: the random txid says that the answer is one.
 * Deliberately absent: sending again (section 6.2.1), error responses, authentication, TCP.
 */
#ifndef ZC_TUNNEL_STUN_H
#define ZC_TUNNEL_STUN_H

#include "tunnel/disco.h"

#define ZC_STUN_TXID 12
#define ZC_STUN_REQUEST_LEN 40
#define ZC_STUN_RESPONSE_MAX 44 /* with an IPv6 address; 32 with IPv4 */
#define ZC_STUN_PACKET_MAX 1500 /* longer ones are none */

/* A request or a response by its looks, which tells it from disco and WireGuard on one socket
 * (section 5: two zero bits, the cookie). */
bool zc_stun_is(struct zc_slice packet);

/* The request with this txid, which must be random and new each time (section 5). */
void zc_stun_encode_request(const uint8_t txid[ZC_STUN_TXID],
                            uint8_t ret_packet[ZC_STUN_REQUEST_LEN]);
/* The txid of a request. False: another SOFTWARE or none, a FINGERPRINT that is wrong or not the
 * last attribute, malformed attributes, or a length that is not the packet's. */
bool zc_stun_decode_request(struct zc_slice packet, uint8_t ret_txid[ZC_STUN_TXID]);

/* The response that tells the sender of txid that it was seen as `mapped`; returns its length. */
size_t zc_stun_encode_response(const uint8_t txid[ZC_STUN_TXID],
                               const struct zc_disco_endpoint *mapped,
                               uint8_t ret_packet[ZC_STUN_RESPONSE_MAX]);
/* The txid and the address of a response, in the form that disco tells to peers; the caller looks
 * whether the txid is one of its own. Bytes behind the stated length are ignored. False: malformed
 * attributes, an address of unknown family or wrong length, or none; no success response; a length
 * beyond the packet. */
bool zc_stun_decode_response(struct zc_slice packet, uint8_t ret_txid[ZC_STUN_TXID],
                             struct zc_disco_endpoint *ret_mapped);

#endif
