/*
 * One peer of a WireGuard device: its sessions, timers and kept packets. For the files of the
 * device only; owners see tunnel/wg.h.
 *
 *   initiator   want --> due --output--> under way --response--> session `current`
 *                 ^                         | 5 s: due again, 20 times, then given up
 *   responder   initiation --> session `next`, response due --first packet--> session `current`
 *
 * The session that was current becomes `previous` and is received under until it is too old. Each
 * session and the initiation under way has an entry in the device's table of indices.
 *
 * Unlike the Go implementation, answering the peer's initiation leaves our own one under way, so
 * that two that cross both end well.
 */
#ifndef ZC_TUNNEL_WGPEER_H
#define ZC_TUNNEL_WGPEER_H

#include "tunnel/replay.h"
#include "tunnel/twin.h"
#include "tunnel/wg.h"

#define ZC_WGPEER_OLD 8

struct zc_wgpeer_session;

struct zc_wgpeer_index {
    struct zc_map_node node; /* hash: the index itself, which is random */
    struct zc_wgpeer *peer;
    struct zc_wgpeer_session *session; /* NULL: the initiation under way */
};

struct zc_wgpeer_session {
    struct zc_wgpeer_index index;
    uint32_t remote_index;
    bool initiator;
    struct zc_secret send, receive;
    uint64_t counter; /* of the next packet sent */
    struct zc_mono created;
    bool used; /* the peer sent under it, first at: */
    struct zc_mono used_at;
    struct zc_replay replay;
};

/* A kept inner packet. */
struct zc_wgpeer_packet {
    struct zc_list link;
    uint32_t len;
    uint8_t data[];
};

struct zc_wgpeer {
    struct zc_map_node node;
    struct zc_list link, dirty, told;
    struct zc_timer timer; /* not later than the earliest of the instants below */
    struct zc_noise_peer noise;
    struct zc_cookie cookie;
    uint8_t address[16];
    bool any_source;
    void *data;

    struct zc_wgpeer_session *current, *previous, *next;
    struct zc_noise handshake; /* our initiation, while under_way */
    struct zc_wgpeer_index index;
    bool under_way;
    uint32_t tries; /* initiations since the last success */
    uint8_t stamp_sent[ZC_NOISE_STAMP_BYTES];
    uint8_t stamp_seen[ZC_NOISE_STAMP_BYTES]; /* greatest accepted */
    /* A genuine initiation came later than it should, and first at: */
    bool late;
    struct zc_mono late_at;
    struct zc_twin twins, twins_of_ours;
    uint32_t old[ZC_WGPEER_OLD]; /* indices of sessions that are gone, the last ones */
    uint32_t old_next;
    bool seen; /* an initiation was accepted, at: */
    struct zc_mono seen_at;
    bool sent; /* a handshake message was made, at: */
    struct zc_mono sent_at;

    /* ZC_NEVER when not set. */
    struct zc_mono retry_at;     /* no response to the initiation */
    struct zc_mono start_at;     /* an initiation that had to wait for the gap after the last */
    struct zc_mono keepalive_at; /* data came, nothing was sent back */
    struct zc_mono renew_at;     /* data was sent, nothing came back */
    struct zc_mono erase_at;     /* keys are too old to keep */
    bool start_asked;            /* start_at stands also while there is a session */
    bool refreshed;              /* an old session already caused an initiation by receiving */

    /* For the output. */
    bool initiation_due, response_due, keepalive_due;
    uint8_t response[ZC_NOISE_RESPONSE_BYTES];
    struct zc_list staged;
    uint32_t staged_count;

    /* Events not yet told. */
    bool done, unanswered, gave_up, bad_response, erased, twin_of_peer, twin_of_ours;
    bool bad_told; /* of the initiation under way */

    uint64_t rx_bytes, tx_bytes;
    bool have_handshake;
    struct zc_mono last_handshake;
};

static inline bool zc_wgpeer_due(struct zc_mono at, struct zc_now now)
{
    return at.ns <= now.mono.ns;
}

/* A session (NULL is none) under which data can be sent and received. */
bool zc_wgpeer_alive(const struct zc_wgpeer_session *s, struct zc_now now);
/* A fresh random index for e in the table. ZC_ENOMEM. */
ZC_MUST_CHECK int zc_wgpeer_index_add(struct zc_wg *wg, struct zc_wgpeer_index *e);
static inline uint32_t zc_wgpeer_index_value(const struct zc_wgpeer_index *e)
{
    return (uint32_t)e->node.hash;
}

/* Wiped and freed; NULL is fine. */
void zc_wgpeer_session_free(struct zc_wg *wg, struct zc_wgpeer_session *s);
/* A response was answered with s by the initiator / s was made for a response we send / a packet
 * came under s. They take s over, shift the slots and set the timers. */
void zc_wgpeer_session_initiated(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                                 struct zc_wgpeer_session *s);
void zc_wgpeer_session_answered(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                                struct zc_wgpeer_session *s);
void zc_wgpeer_session_used(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                            struct zc_wgpeer_session *s);
/* Forgets the initiation under way. */
void zc_wgpeer_abandon(struct zc_wg *wg, struct zc_wgpeer *p);

/* A handshake is needed: one becomes due, unless one is under way, now or when 5 s have passed
 * since the last. */
void zc_wgpeer_want(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now);
/* Something authentic came in. data: with an inner packet. */
void zc_wgpeer_heard(struct zc_wgpeer *p, struct zc_now now, bool data);
/* Something authentic was made to be sent. */
void zc_wgpeer_spoke(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now, bool data);
/* Does what is due, and sets the timer anew. */
void zc_wgpeer_tick(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now);
/* Moves the timer forward when an instant became earlier. */
void zc_wgpeer_arm(struct zc_wg *wg, struct zc_wgpeer *p);
/* Has something to send / to tell. */
void zc_wgpeer_mark(struct zc_wg *wg, struct zc_wgpeer *p);
void zc_wgpeer_tell(struct zc_wg *wg, struct zc_wgpeer *p);

/* Keeps a copy of an inner packet; drops the oldest, or this one when memory is short. */
void zc_wgpeer_stage(struct zc_wg *wg, struct zc_wgpeer *p, const uint8_t *data, size_t len);
/* The oldest kept packet, or NULL. */
struct zc_wgpeer_packet *zc_wgpeer_staged(const struct zc_wgpeer *p);
void zc_wgpeer_unstage(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_wgpeer_packet *packet);
/* Drops all kept packets. */
void zc_wgpeer_flush(struct zc_wg *wg, struct zc_wgpeer *p);

#endif
