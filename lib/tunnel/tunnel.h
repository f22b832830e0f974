/*
 * One end of the tunnel: a relay connection, who may talk to us through it, WireGuard and TCP, put
 * together. A SERVER takes clients that introduce themselves (meow); a CLIENT knows one server.
 *
 *   zc_tcpmux --IPv6--> zc_wg --packets--> zc_derp --bytes--> host: TLS, TCP to the relay
 *
 * The host's part is the byte stream:
 *   zc_tunnel_relay_dial says whom to connect to (TCP and TLS); then exactly one of
 *     zc_tunnel_relay_started   the stream stands
 *     zc_tunnel_relay_lost      it could not be made
 *   while it stands: zc_tunnel_relay_input, zc_tunnel_relay_output; zc_tunnel_relay_lost when it
 *   ends; when zc_tunnel_relay_hangup says so the host closes it without a further word.
 *
 * Packets are made when zc_tunnel_relay_output asks for bytes, and only as many as the relay
 * client has room for: a slow stream slows TCP down and loses nothing here.
 *
 * CLIENT:  DOWN --login--> MEOW --Meowed--> HANDSHAKE --done--> UP
 *             ^-- relay lost --'  ^---- no answer, or the relay says that the server is gone ---'
 *
 * Deliberately absent: direct paths over UDP.
 */
#ifndef ZC_TUNNEL_TUNNEL_H
#define ZC_TUNNEL_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/time.h"
#include "crypto/secret.h"
#include "tunnel/derp_dial.h"
#include "tunnel/derpmap.h"
#include "tunnel/stamps.h"
#include "tunnel/tcpmux.h"

#define ZC_TUNNEL_RELAYS_MAX 16
#define ZC_TUNNEL_IDLE_MS 600000    /* a client without session and traffic is forgotten */
#define ZC_TUNNEL_MEOW_MS 1000      /* between meows, at first */
#define ZC_TUNNEL_MEOW_SLOW_MS 5000 /* and after */
#define ZC_TUNNEL_MEOW_FAST_FOR_MS 30000
#define ZC_TUNNEL_KEEPALIVE_MS                                                                     \
    60000                        /* a client's connection that is silent for so long is probed */
#define ZC_TUNNEL_SPREAD_MS 1000 /* within this all clients of a server that left dial again */

struct zc_tunnel;

enum zc_tunnel_role { ZC_TUNNEL_SERVER, ZC_TUNNEL_CLIENT };

struct zc_tunnel_config {
    enum zc_tunnel_role role;
    const struct zc_secret *private_key; /* the node key; copied */
    const struct zc_secret *psk;         /* copied; NULL: none */
    /* Relays of the one region, tried in turn; copied. None: nothing is dialled until
     * zc_tunnel_set_relays. */
    const struct zc_derpmap_node *relays;
    uint32_t relays_count;
    uint16_t region_id;             /* only told in answers to pings */
    struct zc_stamps_bounds stamps; /* of our initiations */
    /* SERVER. With allow_on only these keys get any answer; copied. */
    bool allow_on;
    const struct zc_key *allow;
    uint32_t allow_count;
    uint32_t clients_max;
    /* CLIENT: from the token. */
    struct zc_key server_key;
    struct zc_key server_disco_key;
};

/* rng is borrowed and outlives the tunnel. ZC_ENOMEM, ZC_EINVAL (a key that is none of a peer's, or
 * too many relays). */
ZC_MUST_CHECK int zc_tunnel_new(const struct zc_tunnel_config *config, struct zc_rng *rng,
                                struct zc_now now, struct zc_tunnel **ret_tunnel);
/* Frees everything, all connections with it; wipes keys. NULL is fine. */
void zc_tunnel_free(struct zc_tunnel *t);

/* ---- the relay's stream, for the host ---- */

/* True: connect to this now. ret_try points into the tunnel and is valid until the next call of
 * zc_tunnel_set_relays or zc_tunnel_free. */
bool zc_tunnel_relay_dial(struct zc_tunnel *t, struct zc_now now, struct zc_derp_dial_try *ret_try);
/* The TLS stream to the node of the last dial stands; v6: over IPv6. */
void zc_tunnel_relay_started(struct zc_tunnel *t, struct zc_now now, bool v6);
/* The dial failed or the stream ended; text: why, one line. */
void zc_tunnel_relay_lost(struct zc_tunnel *t, struct zc_now now, const char *text);
/* True once: close the stream (or give the dial up) and say nothing more about it. */
bool zc_tunnel_relay_hangup(struct zc_tunnel *t);
/* The tunnel takes the place of another on the same host: what stream there is belongs to that and
 * is to be closed. */
void zc_tunnel_relay_inherit(struct zc_tunnel *t);
/* Plaintext from the relay; all of it is used. */
void zc_tunnel_relay_input(struct zc_tunnel *t, struct zc_now now, const uint8_t *data, size_t len);
/* Plaintext for the relay, at most cap bytes; 0 when there is none. Call it after anything that was
 * done to the tunnel, also to one of its connections, as long as the stream takes bytes. */
size_t zc_tunnel_relay_output(struct zc_tunnel *t, struct zc_now now, uint8_t *buf, size_t cap);
/* No answers come, the machine's network changed or it woke up: look whether the relay still
 * answers, or dial at once. A dial that is under way has 3 s. */
void zc_tunnel_relay_hurry(struct zc_tunnel *t, struct zc_now now);

void zc_tunnel_tick(struct zc_tunnel *t, struct zc_now now);
struct zc_mono zc_tunnel_deadline(const struct zc_tunnel *t);

/* ---- what happens, for the node above ---- */

enum zc_tunnel_event_kind {
    ZC_TUNNEL_RELAY_UP,   /* logged in */
    ZC_TUNNEL_RELAY_DOWN, /* text: why the dial failed or the connection ended */
    ZC_TUNNEL_RELAY_SAYS, /* text: what the relay complains about; "": well again */
    ZC_TUNNEL_PEER_UP,    /* key: a handshake succeeded; the first, or after PEER_DOWN */
    ZC_TUNNEL_PEER_DOWN,  /* key; text: why it cannot be reached. Its connections live on */
    ZC_TUNNEL_TWIN,       /* two processes use our key and take each other's packets */
    ZC_TUNNEL_PEER_TWIN,  /* key: the same of a peer's */
    ZC_TUNNEL_PSK_WRONG,  /* CLIENT: the server has another pre-shared key */
    ZC_TUNNEL_CONN,       /* key, conn, tcp: an event of a connection, see tcpmux.h */
};

struct zc_tunnel_event {
    enum zc_tunnel_event_kind kind;
    const char *text; /* NUL-terminated, unescaped; valid until the next call */
    struct zc_key key;
    struct zc_tcpmux_event tcp; /* CONN */
};

/* False when there is none. */
bool zc_tunnel_event(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_event *ret_event);

/* Connections are used through tcpmux.h with this. Do not call its verbs (input, tick, output,
 * event). */
struct zc_tcpmux *zc_tunnel_mux(struct zc_tunnel *t);
/* CLIENT: connects to a port of the server; errors as zc_tcpmux_connect. */
ZC_MUST_CHECK int zc_tunnel_connect(struct zc_tunnel *t, struct zc_now now, uint16_t port,
                                    void *owner, struct zc_tcpmux_conn **ret_conn);
/* CLIENT: there is a doubt whether the server still knows us: it is asked, at most every 5 s.
 * PEER_DOWN follows when it does not answer. */
void zc_tunnel_ask(struct zc_tunnel *t, struct zc_now now);
/* The key of a connection's peer; zero when the peer was forgotten. */
struct zc_key zc_tunnel_conn_key(const struct zc_tunnel *t, const struct zc_tcpmux_conn *conn);

/* ---- changes while it runs ---- */

/* Another region, or the first: the stream is hung up and dialled anew. ZC_EINVAL: too many. */
ZC_MUST_CHECK int zc_tunnel_set_relays(struct zc_tunnel *t, struct zc_now now,
                                       const struct zc_derpmap_node *relays, uint32_t count,
                                       uint16_t region_id);
/* SERVER: replaces the allow list. Clients that are not on it are forgotten: nothing that they send
 * counts any more, and their connections end, with a reset to those that can be reached. ZC_ENOMEM:
 * nothing changed. */
ZC_MUST_CHECK int zc_tunnel_set_allow(struct zc_tunnel *t, struct zc_now now, bool on,
                                      const struct zc_key *allow, uint32_t count);
/* SERVER: a key that asked to come in and is not on the list, or found no room, for the
 * administrator: each once in a quarter of an hour, and few of all. It got no answer, and proved
 * nothing. False: none. */
bool zc_tunnel_refused(struct zc_tunnel *t, struct zc_key *ret_key);
/* SERVER: another pre-shared key, NULL: none. All clients are forgotten as above. */
void zc_tunnel_set_psk(struct zc_tunnel *t, struct zc_now now, const struct zc_secret *psk);

/* True once: the ceiling of stamps, see stamps.h, is to be stored as this; zc_tunnel_stamps_raise
 * when that is done. */
bool zc_tunnel_stamps_wanted(struct zc_tunnel *t, struct zc_wall *ret_most);
void zc_tunnel_stamps_raise(struct zc_tunnel *t, struct zc_wall most);
/* What the tunnel that takes this one's place begins with. */
struct zc_stamps_bounds zc_tunnel_stamps(const struct zc_tunnel *t);

/* ---- figures ---- */

enum zc_tunnel_state {
    ZC_TUNNEL_DOWN,      /* no relay */
    ZC_TUNNEL_ONLINE,    /* SERVER: logged in */
    ZC_TUNNEL_MEOW,      /* CLIENT: the server does not answer yet */
    ZC_TUNNEL_HANDSHAKE, /* CLIENT: it does */
    ZC_TUNNEL_UP,        /* CLIENT: data flows */
};

struct zc_tunnel_status {
    enum zc_tunnel_state state;
    const struct zc_derpmap_node *relay; /* dialled or connected, or NULL */
    int64_t relay_rtt_us;                /* -1: not known */
    struct zc_key node_key, disco_key;   /* ours */
    uint32_t peers;
    uint64_t refused; /* meows of clients that are not allowed, or too many */
};
void zc_tunnel_status(const struct zc_tunnel *t, struct zc_tunnel_status *ret_status);

struct zc_tunnel_peer_status {
    struct zc_key key;
    bool up;
    int64_t handshake_age_ms; /* -1: none yet */
    int64_t rtt_us;           /* peer to peer, through the relay; -1: not known */
    uint64_t rx_bytes, tx_bytes;
};
/* The index-th peer, in the order in which they came; false when there is none. Walking all of them
 * is linear: keep the index going up. */
bool zc_tunnel_peer(struct zc_tunnel *t, struct zc_now now, uint32_t index,
                    struct zc_tunnel_peer_status *ret_status);

#endif
