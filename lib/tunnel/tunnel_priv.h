/* What the files of a tunnel's end share; see tunnel.h. */
#ifndef ZC_TUNNEL_TUNNEL_PRIV_H
#define ZC_TUNNEL_TUNNEL_PRIV_H

#include "base/list.h"
#include "base/map.h"
#include "base/rate.h"
#include "tunnel/derp.h"
#include "tunnel/disco.h"
#include "tunnel/meow.h"
#include "tunnel/refused.h"
#include "tunnel/tunnel.h"
#include "tunnel/twin.h"
#include "tunnel/wg.h"

#define ZC_TUNNEL_TEXT_MAX 256

/* A client of a server, or the server of a client. */
struct zc_tunnel_peer {
    struct zc_list all;     /* in the order in which they came; or leaving */
    struct zc_list owed;    /* SERVER: a Meowed is due */
    struct zc_list told;    /* an event is due; leaving: resets are */
    struct zc_list probing; /* it came up: idle connections are probed until they answer */
    struct zc_mono up_at, probe_at;
    uint32_t probes;
    bool leaving; /* SERVER: it may hear that its connections are over, and say nothing */
    struct zc_mono leave_till;
    struct zc_map_node by_addr; /* by_key is the WireGuard device's */
    struct zc_wgpeer *wg;
    struct zc_key key;
    struct zc_key disco_key;
    struct zc_ip6_addr addr;
    bool up;       /* a handshake succeeded, and nothing says since that it is gone */
    bool up_due;   /* PEER_UP is not told yet */
    bool down_due; /* PEER_DOWN, likewise */
    bool psk_due;
    bool twin_due;
    /* SERVER: it meowed. What waits for it goes when the handshake is done: with the answer to the
     * meow it could push that out of the relay's queue. */
    bool came_back;
    const char *why; /* of down_due */
    struct zc_mono heard_at;
    bool has_disco; /* disco is computed */
    struct zc_disco_peer disco;
    bool pinging;
    struct zc_mono pinged_at; /* last ping for the round trip time */
    uint8_t txid[ZC_DISCO_TXID];
    int64_t rtt_us;
};

enum zc_tunnel_stream { ZC_TUNNEL_NO_STREAM, ZC_TUNNEL_DIALLING, ZC_TUNNEL_STREAM };

struct zc_tunnel {
    enum zc_tunnel_role role;
    struct zc_rng *rng;
    struct zc_secret private_key;
    struct zc_key node_key;
    struct zc_secret disco_private;
    struct zc_key disco_key;
    bool has_psk;
    struct zc_secret psk;
    struct zc_derpmap_node relays[ZC_TUNNEL_RELAYS_MAX];
    uint32_t relays_count;
    uint16_t region_id;

    struct zc_derp_dial dial;
    const struct zc_derpmap_node *relay; /* dialled or connected; NULL: none */
    enum zc_tunnel_stream stream;
    struct zc_mono dial_till; /* the host must have a stream by then; ZC_NEVER */
    bool v6;
    bool hangup;
    struct zc_derp *derp;
    bool online; /* logged in */
    bool relay_up_due, relay_down_due, relay_says_due;
    char relay_text[ZC_TUNNEL_TEXT_MAX]; /* of relay_down_due */
    char says_text[ZC_TUNNEL_TEXT_MAX];

    struct zc_wg wg;
    struct zc_tcpmux *mux;
    struct zc_list peers; /* all */
    uint32_t peers_count;
    struct zc_map by_addr;
    uint8_t hash_key[16];
    struct zc_list owed, told, probing;
    bool twin_due; /* another process has our key */
    bool twin_told;
    struct zc_mono twin_at;          /* the last that a peer said so */
    struct zc_list leaving, parting; /* forgotten soon; those of them with resets to send */
    struct zc_mono probe_at;         /* no later than any of probing */
    struct zc_tunnel_peer *cursor;   /* the peer of index cursor_index, or NULL */
    uint32_t cursor_index;

    /* SERVER */
    bool allow_on;
    struct zc_key *allow; /* sorted */
    uint32_t allow_count;
    uint32_t clients_max;
    struct zc_rate newcomers;
    struct zc_mono sweep_at; /* next look for clients to forget */
    uint64_t refused;
    struct zc_refused strangers; /* those that allow does not hold */

    /* CLIENT */
    struct zc_tunnel_peer *server;
    enum zc_tunnel_state state;
    struct zc_mono meow_at; /* the next meow; ZC_NEVER: none */
    struct zc_mono meow_since;
    struct zc_mono ask_at; /* not before */
};

/* ---- tunnel_peer.c ---- */
/* The address of a node inside the tunnel. */
void zc_tunnel_peer_address(const struct zc_key *key, struct zc_ip6_addr *ret_addr);
ZC_MUST_CHECK int zc_tunnel_peer_add(struct zc_tunnel *t, struct zc_now now,
                                     const struct zc_key *key, const struct zc_key *disco_key,
                                     struct zc_tunnel_peer **ret_peer);
/* Ends its connections and frees it. */
void zc_tunnel_peer_forget(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p);
/* It is none of ours any more, but hears resets for a moment. */
void zc_tunnel_peer_leave(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p);
/* The next reset for one of these. False: none. */
bool zc_tunnel_peer_part(struct zc_tunnel *t, struct zc_now now);
/* Forgets those that had their moment. */
void zc_tunnel_peer_left(struct zc_tunnel *t, struct zc_now now);
struct zc_mono zc_tunnel_peer_leave_at(const struct zc_tunnel *t);
struct zc_tunnel_peer *zc_tunnel_peer_find(const struct zc_tunnel *t, const struct zc_key *key);
struct zc_tunnel_peer *zc_tunnel_peer_at(const struct zc_tunnel *t, const struct zc_ip6_addr *addr);
/* A handshake succeeded. doubt: though it never was down it may have forgotten the connections. */
void zc_tunnel_peer_is_up(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p,
                          bool doubt);
/* Probes that are due. */
void zc_tunnel_peer_probe(struct zc_tunnel *t, struct zc_now now);
/* why is static text. */
void zc_tunnel_peer_is_down(struct zc_tunnel *t, struct zc_tunnel_peer *p, const char *why);
void zc_tunnel_peer_psk_wrong(struct zc_tunnel *t, struct zc_tunnel_peer *p);
/* Two processes have its key, or ours. */
void zc_tunnel_peer_twin(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p,
                         bool ours);
/* A ping or pong of this peer. */
void zc_tunnel_peer_disco(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p,
                          struct zc_slice packet);

/* ---- tunnel_server.c ---- */
void zc_tunnel_server_meow(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from,
                           const struct zc_meow *meow);
/* Forgets clients that were not heard of for long. */
void zc_tunnel_server_sweep(struct zc_tunnel *t, struct zc_now now);

/* ---- tunnel_client.c ---- */
/* The server must be asked (again) whether it knows us. */
void zc_tunnel_client_meow(struct zc_tunnel *t, struct zc_now now, const char *why);
void zc_tunnel_client_meowed(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from);
void zc_tunnel_client_wg(struct zc_tunnel *t, struct zc_now now, const struct zc_wg_event *ev);
/* The meow that is due; false when none is. */
bool zc_tunnel_client_ping(struct zc_tunnel *t, struct zc_now now,
                           uint8_t ret_packet[ZC_MEOW_PING_LEN]);

/* ---- tunnel_input.c ---- */
/* One packet that the relay brought; data is changed. */
void zc_tunnel_input_packet(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from,
                            uint8_t *data, size_t len);
/* Carries out what WireGuard has to tell. */
void zc_tunnel_input_events(struct zc_tunnel *t, struct zc_now now);

/* ---- tunnel_relay.c ---- */
void zc_tunnel_relay_send(struct zc_tunnel *t, struct zc_now now, const struct zc_key *key,
                          const uint8_t *data, size_t len);
/* Takes the events of the relay client. */
void zc_tunnel_relay_events(struct zc_tunnel *t, struct zc_now now);
void zc_tunnel_relay_tick(struct zc_tunnel *t, struct zc_now now);
struct zc_mono zc_tunnel_relay_deadline(const struct zc_tunnel *t);

#endif
