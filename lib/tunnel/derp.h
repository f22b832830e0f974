/*
 * The client's end of a relay connection (DERP): HTTP upgrade, login, packets to and from keys,
 * inside an established TLS stream that the host carries.
 *
 *   frame: u8 type, u32 big-endian length, payload
 *
 *   start --> HTTP --101--> KEY --ServerKey--> LOGIN --ServerInfo--> UP
 *     any of them --fault, silence, wrong answer--> CLOSED --start--> HTTP ...
 *
 * One zc_derp lives as long as its key: packets that wait outlive a connection. When to dial again
 * and whom is derp_dial.h's business.
 * Deliberately absent: mesh frames, the key from the TLS certificate (fast start).
 */
#ifndef ZC_TUNNEL_DERP_H
#define ZC_TUNNEL_DERP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/time.h"
#include "crypto/secret.h"

#define ZC_DERP_PACKET_MAX 65536
#define ZC_DERP_FRAME_MAX (1u << 20) /* longer ones end the connection */
#define ZC_DERP_QUEUE_MAX 32         /* packets that wait to be sent */
#define ZC_DERP_LOGIN_MS 10000       /* start to UP */
#define ZC_DERP_TEXT_MAX 256

struct zc_derp;

struct zc_derp_config {
    struct zc_secret private_key; /* the node key; copied, wiped by zc_derp_free */
    const char *app_name;         /* "tailcat-client" or "tailcat-server"; static */
    bool home;                    /* tell the relay that it is our home */
};

enum zc_derp_state {
    ZC_DERP_HTTP,
    ZC_DERP_KEY,
    ZC_DERP_LOGIN,
    ZC_DERP_UP,
    ZC_DERP_CLOSED, /* also before the first start */
};

enum zc_derp_why {
    ZC_DERP_WHY_HTTP,     /* the answer to the upgrade was no */
    ZC_DERP_WHY_PROTOCOL, /* it does not speak DERP as we know it */
    ZC_DERP_WHY_LOGIN,    /* login not done within ZC_DERP_LOGIN_MS */
    ZC_DERP_WHY_SILENT,   /* no frame, not even an answer to a ping */
    ZC_DERP_WHY_STREAM,   /* the host said so: zc_derp_lost */
};

enum zc_derp_event_kind {
    ZC_DERP_EVENT_UP,         /* logged in */
    ZC_DERP_EVENT_PACKET,     /* key: source; data, len */
    ZC_DERP_EVENT_PEER_GONE,  /* key; was_here: true when it left, false when it is not there */
    ZC_DERP_EVENT_HEALTH,     /* text: what the relay complains about; "": well again */
    ZC_DERP_EVENT_RESTARTING, /* the relay will: dial again after in_ms */
    ZC_DERP_EVENT_CLOSED,     /* why, text; once per start */
};

struct zc_derp_event {
    enum zc_derp_event_kind kind;
    struct zc_key key;
    uint8_t *data; /* may be changed in place; valid until the next call with this zc_derp */
    size_t len;
    bool was_here;
    uint32_t in_ms;
    uint32_t for_ms;
    enum zc_derp_why why;
    const char *text; /* NUL-terminated, unescaped; valid until the next call */
};

struct zc_derp_status {
    enum zc_derp_state state;
    struct zc_key relay_key; /* of the current or last connection */
    uint64_t packets_in;
    uint64_t packets_out;
    uint64_t bytes_in; /* of packets, without frame heads */
    uint64_t bytes_out;
    uint64_t dropped_queue; /* oldest ones that made room */
    uint64_t dropped_rate;  /* beyond the rate that the relay allows */
    uint64_t skipped;       /* frames of unknown type or too short or too long for a packet */
    int64_t rtt_us;         /* of the last ping that was answered; -1: none yet */
};

/* NULL when memory is refused. */
struct zc_derp *zc_derp_new(const struct zc_derp_config *config);
void zc_derp_free(struct zc_derp *d);

/* A new TLS stream to this relay is open. port 443 is left out of the Host header. host must pass
 * zc_derpmap_host_valid and not be empty. Packets that wait are kept. */
void zc_derp_start(struct zc_derp *d, struct zc_now now, const char *host, uint16_t port);
/* The stream is gone (text: why, or NULL). Gives CLOSED unless that was given already. */
void zc_derp_lost(struct zc_derp *d, struct zc_now now, const char *text);

/* Takes plaintext; returns how much. Less than len: drain the events, then give the rest. */
size_t zc_derp_input(struct zc_derp *d, struct zc_now now, const uint8_t *data, size_t len);
/* rng: nonces and ping bodies. Call until false after input, tick, lost. */
bool zc_derp_event(struct zc_derp *d, struct zc_now now, struct zc_rng *rng,
                   struct zc_derp_event *ret_event);
/* Plaintext to send; 0 when there is none. */
size_t zc_derp_output(struct zc_derp *d, struct zc_now now, uint8_t *ret_data, size_t cap);
void zc_derp_tick(struct zc_derp *d, struct zc_now now, struct zc_rng *rng);
struct zc_mono zc_derp_deadline(const struct zc_derp *d);
/* Asks for a sign of life now, as after a change of network: CLOSED follows if none comes within
 * limit_ms. */
void zc_derp_probe(struct zc_derp *d, struct zc_now now, struct zc_rng *rng, int64_t limit_ms);

/*
 * Sending. A packet is built in place: begin gives room for len bytes, commit queues it (with a len
 * that is not larger). Between the two only calls that send nothing and take no output; a begin
 * without commit is forgotten. Queued packets leave after the login. Begin drops the oldest packet
 * when ZC_DERP_QUEUE_MAX wait: callers that must not lose any ask zc_derp_room first. NULL: longer
 * than ZC_DERP_PACKET_MAX, beyond the relay's rate (counted), or memory is refused; the packet is
 * lost as any can be.
 */
uint8_t *zc_derp_begin(struct zc_derp *d, struct zc_now now, const struct zc_key *key, size_t len);
void zc_derp_commit(struct zc_derp *d, struct zc_now now, size_t len);
/* The same with a copy. False: dropped. */
bool zc_derp_send(struct zc_derp *d, struct zc_now now, const struct zc_key *key,
                  struct zc_slice packet);
/* Packets that can be queued before one is dropped. */
uint32_t zc_derp_room(const struct zc_derp *d);
void zc_derp_status(const struct zc_derp *d, struct zc_derp_status *ret_status);

#endif
