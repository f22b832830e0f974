/*
 * The Noise_IKpsk2 handshake of WireGuard as functions over a handshake's state; no timers, no
 * tables.
 *
 *   initiation 148   01 00 00 00 | sender 4 | ephemeral 32 | static 32+16 | stamp 12+16 | macs 32
 *   response    92   02 00 00 00 | sender 4 | receiver 4 | ephemeral 32 | empty 16 | macs 32
 *
 * Indices are little-endian. The MACs are cookie.h's: signed after create, checked before consume.
 *
 *   initiator   create_initiation .................. consume_response, keys(true)
 *   responder   read_static (who is it?), read_stamp, create_response, keys(false)
 */
#ifndef ZC_TUNNEL_NOISE_H
#define ZC_TUNNEL_NOISE_H

#include <stdbool.h>

#include "base/time.h"
#include "crypto/secret.h"
#include "tunnel/cookie.h"

#define ZC_NOISE_INITIATION_BYTES 148
#define ZC_NOISE_RESPONSE_BYTES 92
#define ZC_NOISE_STAMP_BYTES 12

/* Ourselves. */
struct zc_noise_self {
    struct zc_secret private;
    struct zc_key public;
    struct zc_cookie_keys cookie_keys;
};

/* A peer and what can be computed about it once. */
struct zc_noise_peer {
    struct zc_key public;
    struct zc_secret psk; /* all zero: none */
    struct zc_secret static_static;
    struct zc_cookie_keys cookie_keys;
};

/* One handshake under way. All zero is a fresh one. */
struct zc_noise {
    struct zc_secret chain;
    uint8_t hash[32];
    struct zc_secret ephemeral;     /* ours */
    struct zc_key remote_ephemeral; /* responder: from the initiation */
    uint32_t remote_index;          /* responder: the initiator's; initiator: after the response */
};

void zc_noise_self_init(struct zc_noise_self *s, const struct zc_secret *private);
void zc_noise_self_done(struct zc_noise_self *s);
/* ZC_EBADMSG when public is a point of small order. psk NULL: none. */
ZC_MUST_CHECK int zc_noise_peer_init(struct zc_noise_peer *p, const struct zc_noise_self *self,
                                     const struct zc_key *public, const struct zc_secret *psk);
void zc_noise_peer_done(struct zc_noise_peer *p);

/* TAI64N of the wall clock with the low 24 bits of the nanoseconds cleared, but always one step
 * (16.8 ms) later than last, so that stamps rise while the clock does not. last may be NULL, and
 * may be ret_stamp. */
void zc_noise_stamp(struct zc_wall wall, const uint8_t last[ZC_NOISE_STAMP_BYTES],
                    uint8_t ret_stamp[ZC_NOISE_STAMP_BYTES]);

/* Writes all but the MACs. ephemeral is a fresh private key. ZC_EBADMSG cannot happen with a peer
 * that zc_noise_peer_init accepted, save by a broken ephemeral. */
ZC_MUST_CHECK int zc_noise_create_initiation(struct zc_noise *n, const struct zc_noise_self *self,
                                             const struct zc_noise_peer *peer,
                                             const struct zc_secret *ephemeral, uint32_t index,
                                             const uint8_t stamp[ZC_NOISE_STAMP_BYTES],
                                             uint8_t ret_msg[ZC_NOISE_INITIATION_BYTES]);
/* First half of an initiation: who sends it. ZC_EBADMSG: n is wiped. */
ZC_MUST_CHECK int zc_noise_read_static(struct zc_noise *n, const struct zc_noise_self *self,
                                       const uint8_t msg[ZC_NOISE_INITIATION_BYTES],
                                       struct zc_key *ret_static);
/* Second half: proves that it is peer, and says when. ZC_EBADMSG: n is wiped. */
ZC_MUST_CHECK int zc_noise_read_stamp(struct zc_noise *n, const struct zc_noise_peer *peer,
                                      const uint8_t msg[ZC_NOISE_INITIATION_BYTES],
                                      uint8_t ret_stamp[ZC_NOISE_STAMP_BYTES]);
/* Writes all but the MACs, after read_stamp. */
ZC_MUST_CHECK int zc_noise_create_response(struct zc_noise *n, const struct zc_noise_peer *peer,
                                           const struct zc_secret *ephemeral, uint32_t index,
                                           uint8_t ret_msg[ZC_NOISE_RESPONSE_BYTES]);
/* ZC_EBADMSG leaves n as it was: another response may still be the right one. A wrong pre-shared
 * key shows only here. */
ZC_MUST_CHECK int zc_noise_consume_response(struct zc_noise *n, const struct zc_noise_self *self,
                                            const struct zc_noise_peer *peer,
                                            const uint8_t msg[ZC_NOISE_RESPONSE_BYTES]);
/* The session's keys; wipes n. */
void zc_noise_keys(struct zc_noise *n, bool initiator, struct zc_secret *ret_send,
                   struct zc_secret *ret_receive);
void zc_noise_done(struct zc_noise *n);

#endif
