/*
 * A WireGuard device: one identity, many peers, packets in and out. It knows neither relays nor
 * sockets: what it hands out names the peer, and the owner finds the way.
 *
 * Peers are added by the owner (when they meow, or from the token); an initiation of anybody else
 * is dropped without an answer. Handshakes, their retries, rekeying, keepalives and the erasure of
 * keys go by the time constants below, from the times of the calls.
 *
 *   send:   owner --IP packet--> zc_wg_send --+-- session: sealed in place, the owner sends it
 *                                             +-- none: kept in a bounded queue, a handshake starts
 *   else:   zc_wg_output gives handshakes, keepalives and the kept packets; call until it is 0
 *   input:  zc_wg_input opens in place; then zc_wg_event until it is false
 *
 * An initiation is made when it is taken by zc_wg_output, not before: while the owner has no way to
 * the peer it lets the output wait, and the first one to leave is fresh.
 *
 * Absent on purpose: cookie replies to others, endpoints and roaming, inner IPv4, persistent
 * keepalives.
 */
#ifndef ZC_TUNNEL_WG_H
#define ZC_TUNNEL_WG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/time.h"
#include "tunnel/noise.h"
#include "tunnel/stamps.h"

#define ZC_WG_MTU 1280
#define ZC_WG_HEADER 16   /* before the inner packet */
#define ZC_WG_OVERHEAD 32 /* header and tag */
#define ZC_WG_PACKET_MAX (ZC_WG_MTU + ZC_WG_OVERHEAD)
#define ZC_WG_STAGED_MAX 128      /* packets kept per peer, the oldest dropped */
#define ZC_WG_STAGED_ALL_MAX 4096 /* packets kept for all peers */

#define ZC_WG_REKEY_AFTER_MESSAGES (UINT64_C(1) << 60)
#define ZC_WG_REJECT_AFTER_MESSAGES (UINT64_MAX - (UINT64_C(1) << 13))
#define ZC_WG_REKEY_AFTER_MS 120000
#define ZC_WG_REJECT_AFTER_MS 180000
#define ZC_WG_REKEY_TIMEOUT_MS 5000
#define ZC_WG_JITTER_MS 334 /* 0..333 */
#define ZC_WG_TRIES 20      /* initiations in REKEY_ATTEMPT_TIME, 90 s and a bit */
#define ZC_WG_KEEPALIVE_MS 10000
#define ZC_WG_NEW_HANDSHAKE_MS (ZC_WG_KEEPALIVE_MS + ZC_WG_REKEY_TIMEOUT_MS)
#define ZC_WG_REFRESH_AFTER_MS (ZC_WG_REJECT_AFTER_MS - ZC_WG_NEW_HANDSHAKE_MS)
#define ZC_WG_ERASE_MS (3 * ZC_WG_REJECT_AFTER_MS)
#define ZC_WG_INITIATION_GAP_MS 20

struct zc_wgpeer;

struct zc_wg_stats {
    uint64_t rx_bytes, tx_bytes; /* WireGuard packets, all kinds */
    bool have_handshake;
    struct zc_mono last_handshake; /* end of the last one; only with have_handshake */
    bool have_session;             /* data can be sent now */
};

enum zc_wg_event_kind {
    ZC_WG_HANDSHAKE_DONE, /* a session is confirmed */
    /* An initiation had no answer for 5 s; the next one is due in the output. The peer may have
     * forgotten us: meow again. */
    ZC_WG_UNANSWERED,
    ZC_WG_GAVE_UP, /* after ZC_WG_TRIES; kept packets are dropped, new data starts again */
    /* A response to our initiation is not authentic: most likely another pre-shared key. Once per
     * initiation. */
    ZC_WG_BAD_RESPONSE,
    /* Another process uses the peer's key, or ours with this peer; see twin.h. */
    ZC_WG_TWIN_OF_PEER,
    ZC_WG_TWIN_OF_OURS,
    ZC_WG_ERASED, /* no new session for 540 s: all keys are gone */
    ZC_WG_DATA,   /* an inner IPv6 packet */
};

struct zc_wg_event {
    enum zc_wg_event_kind kind;
    struct zc_wgpeer *peer;
    /* DATA: without padding, its length and source checked. It lies in the memory given to
     * zc_wg_input and is to be taken before the next call of that. */
    struct zc_slice packet;
    uint32_t tries; /* UNANSWERED: initiations sent so far */
};

struct zc_wg {
    struct zc_noise_self self;
    struct zc_rng *rng;
    struct zc_map peers;   /* by public key */
    struct zc_map indices; /* our random 32-bit indices: sessions and initiations */
    struct zc_heap timers; /* one per peer */
    struct zc_list all;    /* peers */
    struct zc_list dirty;  /* peers with something to send */
    struct zc_list told;   /* peers with an event */
    uint8_t hash_key[16];
    struct zc_stamps stamps; /* of our initiations; the owner may give it bounds before any peer */
    uint32_t peers_max;
    uint32_t staged;             /* packets kept for all peers */
    uint64_t dropped_packets;    /* input that was of no use, and kept packets thrown away */
    struct zc_wgpeer *data_peer; /* of the DATA event that waits, or NULL */
    struct zc_slice data;
};

struct zc_wg_peer_config {
    struct zc_key public;
    const struct zc_secret *psk; /* copied; NULL: none */
    uint8_t address[16];         /* the only source address the peer may use inside */
    bool any_source;             /* but this one may use any (a client's server) */
    void *data;                  /* the owner's, see zc_wg_peer_data */
};

/* rng is borrowed and outlives the device. wg is not to be moved from here on. */
void zc_wg_init(struct zc_wg *wg, const struct zc_secret *private, struct zc_rng *rng,
                uint32_t peers_max);
/* Frees all peers, wipes all keys. */
void zc_wg_done(struct zc_wg *wg);

/* ZC_EEXIST, ZC_ELIMIT (peers_max), ZC_ENOMEM, ZC_EINVAL (our own key, or a point of small
 * order). */
ZC_MUST_CHECK int zc_wg_add(struct zc_wg *wg, const struct zc_wg_peer_config *config,
                            struct zc_wgpeer **ret_peer);
/* Its waiting events and packets vanish with it. */
void zc_wg_remove(struct zc_wg *wg, struct zc_wgpeer *peer);
/* NULL when there is none. */
struct zc_wgpeer *zc_wg_find(const struct zc_wg *wg, const struct zc_key *public);
void *zc_wg_peer_data(const struct zc_wgpeer *peer);
const struct zc_key *zc_wg_peer_public(const struct zc_wgpeer *peer);
void zc_wg_peer_stats(const struct zc_wgpeer *peer, struct zc_now now,
                      struct zc_wg_stats *ret_stats);

/* One packet received. data is changed. */
void zc_wg_input(struct zc_wg *wg, struct zc_now now, uint8_t *data, size_t len);
/* Before zc_wg_input, where the way tells whose packet it is: one for a session that is none of
 * ours may be for another process with our key. */
void zc_wg_stray(struct zc_wg *wg, struct zc_now now, struct zc_wgpeer *peer, const uint8_t *data,
                 size_t len);
/* buf[16..16+len) is an inner packet (1..1280 bytes) and buf has room for ZC_WG_PACKET_MAX. Length
 * of the packet that now lies at buf[0] and is to be sent to the peer, or 0: it was copied and
 * comes out of zc_wg_output later, or is dropped when there is never a session. */
size_t zc_wg_send(struct zc_wg *wg, struct zc_now now, struct zc_wgpeer *peer, uint8_t *buf,
                  size_t len);
/* Asks for a new handshake, at once even when the last initiation is younger than 5 s (but not
 * 20 ms): after the peer forgot us and said it knows us again. */
void zc_wg_handshake(struct zc_wg *wg, struct zc_now now, struct zc_wgpeer *peer);
void zc_wg_tick(struct zc_wg *wg, struct zc_now now);
struct zc_mono zc_wg_deadline(const struct zc_wg *wg);
/* The next packet and its peer; 0 when there is none. buf has room for ZC_WG_PACKET_MAX. Peers take
 * turns. */
size_t zc_wg_output(struct zc_wg *wg, struct zc_now now, uint8_t *buf, struct zc_wgpeer **ret_peer);
/* False when there is none. */
bool zc_wg_event(struct zc_wg *wg, struct zc_wg_event *ret_event);

#endif
