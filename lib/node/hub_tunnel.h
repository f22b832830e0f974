/*
 * The tunnel's side of a node, shared by its files: a hub's sessions from spokes and forwarded
 * ports, or a spoke's connections to its hub. Private to lib/node.
 */
#ifndef ZC_NODE_HUB_TUNNEL_H
#define ZC_NODE_HUB_TUNNEL_H

#include "base/list.h"
#include "base/rate.h"
#include "node/hub_priv.h"
#include "node/splice.h"
#include "tunnel/tunnel.h"
#include "zmqc/admin.h"

#define ZC_HUB_LINE_MAX 768
#define ZC_HUB_LINES 16
#define ZC_HUB_ID_MAX 1024

/* What a connection of the tunnel belongs to: the first member of its owner. */
enum zc_hub_end { ZC_HUB_END_BUS, ZC_HUB_END_SPLICE };

/* One at a time. */
enum zc_hub_ask { ZC_HUB_ASK_NONE, ZC_HUB_ASK_ROTATE, ZC_HUB_ASK_RELOAD, ZC_HUB_ASK_REVOKE };

/* A spoke's session at the hub. */
struct zc_hub_bus {
    enum zc_hub_end end;
    struct zc_list all;
    struct zc_list ready; /* more bytes are there than one turn reads */
    struct zc_tcpmux_conn *conn;
    struct zc_session *session; /* NULL: over; what still comes is thrown away */
    bool fin;                   /* the peer sends nothing more */
    bool eof;                   /* and the session knows */
    struct zc_mono linger_till;
};

struct zc_splice {
    enum zc_hub_end end;
    struct zc_hub_tunnel *net;
    struct zc_list all, told;
    struct zc_list held;         /* until it is open */
    struct zc_list waiting;      /* held, and its turn to be opened has not come */
    struct zc_tcpmux_conn *conn; /* NULL: held, or over without one */
    void *data;
    uint64_t serial;  /* in the trace */
    uint64_t in, out; /* bytes of the local side */
    uint16_t port;
    struct zc_buf pending; /* local bytes that the connection has not taken */
    struct zc_buf last;    /* for the local side, after all else: an err frame */
    size_t last_sent;
    bool opening;        /* counts in the spoke's opening */
    bool opened;         /* connected */
    bool local_eof;      /* the local side sends nothing more */
    bool peer_fin;       /* the peer sends nothing more */
    bool ended;          /* given up: only `last` is still written */
    bool reset;          /* over by force */
    bool open_due;       /* SPLICE_OPEN is not told yet */
    bool output_due;     /* SPLICE_OUTPUT, likewise */
    bool eof_told;       /* SPLICE_EOF was */
    bool close_told;     /* SPLICE_CLOSE was */
    struct zc_mono till; /* held: given up then; ZC_NEVER */
};

struct zc_hub_line {
    enum zc_hub_level level;
    bool trace;
    char text[ZC_HUB_LINE_MAX];
};

/* Lines about the tunnel: few, whatever the network does. */
struct zc_hub_lines {
    struct zc_hub_line ring[ZC_HUB_LINES];
    uint32_t first, len;
    struct zc_hub_line told; /* lies here while the host reads it */
    char last[ZC_HUB_LINE_MAX];
    struct zc_hub_line kept; /* the newest that had to wait */
    bool has_kept;
    struct zc_rate rate;
};

struct zc_hub_tunnel {
    struct zc_hub *hub;
    struct zc_tunnel *t; /* NULL: a spoke without a token */
    struct zc_admin admin;
    struct zc_hub_lines lines;
    struct zc_list splices, splices_told;
    uint32_t splices_count;
    uint64_t splice_serial;
    bool online;

    /* hub */
    struct zc_list buses, buses_over, buses_ready; /* with a session, lingering */
    uint16_t forward[ZC_HUB_FORWARDS_MAX];
    uint32_t forward_count;
    struct zc_secret private_key;
    bool has_psk;
    struct zc_secret psk, psk_new;
    struct zc_derpmap_node token_node;
    bool has_token_node;
    bool allow_on;
    bool online_due;
    /* What the administrator waits for and the host does. */
    enum zc_hub_ask ask;
    bool ask_due; /* the host was not told yet */
    uint64_t ask_serial;
    uint8_t ask_id[ZC_HUB_ID_MAX];
    size_t ask_id_len;
    struct zc_key revoke_key;

    /* spoke */
    bool spoke;
    bool up;                /* the hub answers */
    bool psk_wrong;         /* it has another key than the token */
    bool lost_done;         /* it stayed away for so long that what was open was ended */
    struct zc_list held;    /* splices that are not open, by `till` */
    struct zc_list waiting; /* those of the bus that were not asked to be */
    uint32_t opening;       /* those that were */
    struct zc_mono down_at; /* since when it does not */
    struct zc_mono ask_at;  /* one of them should be open by then */
    int64_t wait_hub_ms;
    uint32_t conns_max;
    struct zc_stamps_bounds stamps; /* of the first tunnel */
};

/* ---- hub_tunnel.c ---- */
ZC_MUST_CHECK int zc_hub_tunnel_init(struct zc_hub *hub, struct zc_now now,
                                     const struct zc_hub_tunnel_config *config);
/* The part that hub and spoke share. */
ZC_MUST_CHECK int zc_hub_tunnel_new(struct zc_hub *hub);
void zc_hub_tunnel_done(struct zc_hub *hub);
void zc_hub_tunnel_tick(struct zc_hub *hub, struct zc_now now);
struct zc_mono zc_hub_tunnel_deadline(const struct zc_hub *hub);
/* The spokes have all that was written to them. */
bool zc_hub_tunnel_quiet(const struct zc_hub *hub);
/* Moves what there is to move; then the next event for the host. */
bool zc_hub_tunnel_event(struct zc_hub *hub, struct zc_now now, struct zc_hub_event *ret_event);

/* ---- hub_bus.c ---- */
void zc_hub_bus_accept(struct zc_hub_tunnel *net, struct zc_now now, struct zc_tcpmux_conn *conn,
                       const struct zc_key *key);
void zc_hub_bus_event(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus,
                      const struct zc_tcpmux_event *ev);
void zc_hub_bus_session(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus,
                        bool close);
/* Reads on where a turn was over. */
void zc_hub_bus_run(struct zc_hub_tunnel *net, struct zc_now now);
void zc_hub_bus_tick(struct zc_hub_tunnel *net, struct zc_now now);
struct zc_mono zc_hub_bus_deadline(const struct zc_hub_tunnel *net);
/* The peers have all that was written to them, and the end. */
bool zc_hub_bus_quiet(const struct zc_hub_tunnel *net);
/* Ends all; their sessions are the broker's to end. */
void zc_hub_bus_done(struct zc_hub_tunnel *net);

/* ---- hub_admin.c ---- */
void zc_hub_admin_init(struct zc_hub_tunnel *net);
/* The event that asks the host. */
void zc_hub_admin_event(struct zc_hub_tunnel *net, struct zc_hub_event *ret_event);
/* The end of a rotation; why NULL: it worked. */
void zc_hub_admin_rotated(struct zc_hub_tunnel *net, struct zc_now now, const char *why);

/* ---- hub_say.c ---- */
void zc_hub_say_init(struct zc_hub_lines *l);
/* A line; keep: when it is one too many it is said later, unless a newer one comes. */
__attribute__((format(printf, 5, 6))) void zc_hub_say(struct zc_hub_tunnel *net, struct zc_now now,
                                                      enum zc_hub_level level, bool keep,
                                                      const char *format, ...);
/* A line of the trace, when that is on. */
__attribute__((format(printf, 2, 3))) void zc_hub_trace(struct zc_hub_tunnel *net,
                                                        const char *format, ...);
/* The next line, valid until the next call; NULL: none. */
const struct zc_hub_line *zc_hub_say_next(struct zc_hub_lines *l, struct zc_now now);
struct zc_mono zc_hub_say_deadline(const struct zc_hub_lines *l);

/* ---- splice.c ---- */
/* NULL: no memory. */
struct zc_splice *zc_splice_new(struct zc_hub_tunnel *net, uint16_t port, void *data);
/* conn is its own from now on. */
void zc_splice_take(struct zc_splice *s, struct zc_now now, struct zc_tcpmux_conn *conn);
void zc_splice_conn_event(struct zc_splice *s, struct zc_now now, const struct zc_tcpmux_event *ev);
/* Over; last (may be empty) is what the local side gets before the end; else a reset. */
void zc_splice_end(struct zc_splice *s, struct zc_now now, struct zc_slice last);
bool zc_splice_event(struct zc_hub_tunnel *net, struct zc_hub_event *ret_event);
void zc_splice_free(struct zc_splice *s);

/* ---- spoke.c ---- */
void zc_spoke_tunnel_event(struct zc_hub_tunnel *net, struct zc_now now,
                           const struct zc_tunnel_event *ev);
/* Opens connections of the bus that wait, not too many at once. */
void zc_spoke_open(struct zc_hub_tunnel *net, struct zc_now now);
void zc_spoke_tick(struct zc_hub_tunnel *net, struct zc_now now);
struct zc_mono zc_spoke_deadline(const struct zc_hub_tunnel *net);
/* A splice whose connection could not be opened. */
void zc_spoke_refused(struct zc_splice *s, struct zc_now now, enum zc_tcp_reason reason);

#endif
