/*
 * Disco: sealed messages between two peers that look for a path. Over the relay only pings are
 * answered; the rest belongs to direct paths.
 *
 *   packet:  "TS" f0 9f 92 ac, sender disco key (32), nonce (24), NaCl box of the payload
 *   payload: u8 type, u8 version 0, body; bytes beyond what is known are ignored
 *     01 ping         txid (12), node key (32) [old peers: absent] [zero padding]
 *     02 pong         txid (12), IPv6 form of the address seen (16), u16 port
 *     03 callMeMaybe  n times address (16), u16 port
 */
#ifndef ZC_TUNNEL_DISCO_H
#define ZC_TUNNEL_DISCO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rng.h"
#include "crypto/secret.h"

#define ZC_DISCO_HEAD 62     /* magic, key, nonce */
#define ZC_DISCO_OVERHEAD 78 /* and the box's tag */
#define ZC_DISCO_TXID 12
#define ZC_DISCO_PING_LEN 46
#define ZC_DISCO_PONG_LEN 32
#define ZC_DISCO_ENDPOINTS_MAX 64 /* more are ignored */
#define ZC_DISCO_PAYLOAD_MAX (2 + 18 * ZC_DISCO_ENDPOINTS_MAX)
#define ZC_DISCO_PACKET_MAX 1500 /* longer ones are none */

enum zc_disco_type { ZC_DISCO_PING = 1, ZC_DISCO_PONG = 2, ZC_DISCO_CALL = 3 };

struct zc_disco_endpoint {
    uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint16_t port;
};

struct zc_disco_msg {
    enum zc_disco_type type;
    uint8_t txid[ZC_DISCO_TXID]; /* PING, PONG */
    bool has_node_key;           /* PING */
    struct zc_key node_key;
    struct zc_disco_endpoint seen; /* PONG */
    uint32_t endpoints_count;      /* CALL */
    uint32_t padding;              /* PING: bytes behind the node key */
    struct zc_disco_endpoint endpoints[ZC_DISCO_ENDPOINTS_MAX];
};

/* The key shared with one peer, computed once. Wipe with zc_disco_peer_done. */
struct zc_disco_peer {
    struct zc_key own_key;  /* our public one */
    struct zc_key peer_key; /* theirs */
    struct zc_secret shared;
};

/* ZC_EBADMSG: peer_key is a point that gives no secret. About 50 microseconds. */
ZC_MUST_CHECK int zc_disco_peer_init(struct zc_disco_peer *p, const struct zc_secret *own_private,
                                     const struct zc_key *own_key, const struct zc_key *peer_key);
void zc_disco_peer_done(struct zc_disco_peer *p);

/* The packet is a disco packet by its looks; then ret_key is the sender's, not yet proven. */
bool zc_disco_sender(struct zc_slice packet, struct zc_key *ret_key);
/* Seals payload; returns the packet's length (payload.len + ZC_DISCO_OVERHEAD), 0 when cap is
 * less. */
size_t zc_disco_seal(const struct zc_disco_peer *p, struct zc_rng *rng, struct zc_slice payload,
                     uint8_t *ret_packet, size_t cap);
/* Opens a packet of this peer into msg. False: not from it, damaged, or a type we do not know. */
bool zc_disco_open(const struct zc_disco_peer *p, struct zc_slice packet,
                   struct zc_disco_msg *ret_msg);

/* Payloads. decode: false for what is cut or of an unknown type. encode returns the length. */
bool zc_disco_decode(struct zc_slice payload, struct zc_disco_msg *ret_msg);
size_t zc_disco_encode(const struct zc_disco_msg *msg, uint8_t ret_payload[ZC_DISCO_PACKET_MAX]);

/* The whole answer to a packet that came over the relay of region_id from this peer: the length of
 * the pong in ret_packet, or 0 when none is due. */
size_t zc_disco_answer(const struct zc_disco_peer *p, struct zc_rng *rng, uint16_t region_id,
                       struct zc_slice packet, uint8_t *ret_packet, size_t cap);

#endif
