/* What the files of the demultiplexer share. */
#ifndef ZC_TUNNEL_TCPMUX_PRIV_H
#define ZC_TUNNEL_TCPMUX_PRIV_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "tunnel/tcpmux.h"

enum {
    ZC_TCPMUX_RANGES = 64,
    ZC_TCPMUX_RESETS = 1024, /* waiting for output; more are left out, and not known to the peer */
    ZC_TCPMUX_ECHOES = 8,
};

/* All connections with one address. */
struct zc_tcpmux_remote {
    struct zc_map_node node; /* in remotes */
    struct zc_list ready;    /* in mux.ready */
    struct zc_list conns, ready_conns;
    struct zc_ip6_addr addr;
    uint32_t conn_count, half_open;
};

struct zc_tcpmux_conn {
    struct zc_tcp tcp;
    struct zc_map_node node; /* in conns_by_ends; not once it is CLOSED */
    struct zc_timer timer;
    struct zc_tcpmux_remote *remote;
    struct zc_list in_remote, ready, events, time_wait;
    void *owner;
    bool held;      /* the caller has the pointer, or the event that brings it */
    bool half_open; /* counted */
};

struct zc_tcpmux_ports {
    uint32_t count;
    struct {
        uint16_t first, last;
    } at[ZC_TCPMUX_RANGES];
};

/* A reset that no connection stands behind. */
struct zc_tcpmux_reset {
    struct zc_ip6_addr remote;
    struct zc_tcp_segment segment; /* without data */
};

struct zc_tcpmux_echo {
    struct zc_ip6_addr remote;
    uint16_t id, seq;
    uint16_t len;
    bool too_big; /* data is the whole packet that says so, else that of the echo */
    uint8_t data[ZC_IP6_MTU];
};

struct zc_tcpmux {
    struct zc_tcpmux_config config;
    struct zc_tcp_budget budget;
    uint8_t key[16], secret[16]; /* of the maps; of sequence numbers and timestamps */
    uint16_t next_port;
    struct zc_tcpmux_ports pass, listen;
    struct zc_map conns_by_ends, remotes;
    struct zc_heap timers;
    struct zc_list ready;     /* remotes with ready_conns */
    struct zc_list events;    /* connections with something to tell */
    struct zc_list time_wait; /* connections, the oldest first */
    struct zc_list closed;    /* connections that wait for release, by in_remote */
    uint32_t reset_count, echo_count;
    struct zc_tcpmux_reset resets[ZC_TCPMUX_RESETS];
    struct zc_tcpmux_echo echoes[ZC_TCPMUX_ECHOES];
    struct zc_tcpmux_stats stats;
};

/* ---- tcpmux_conn.c ---- */

struct zc_tcpmux_conn *zc_tcpmux_find(const struct zc_tcpmux *m, const struct zc_ip6_addr *remote,
                                      uint16_t remote_port, uint16_t local_port);
/* A connection that zc_tcp_connect or zc_tcp_accept has to follow; ZC_ELIMIT, ZC_ENOMEM. */
ZC_MUST_CHECK int zc_tcpmux_add(struct zc_tcpmux *m, const struct zc_tcp_ends *ends,
                                struct zc_tcpmux_conn **ret_conn);
/* Everything that may follow from a change of c; c may be gone afterwards. */
void zc_tcpmux_settle(struct zc_tcpmux *m, struct zc_tcpmux_conn *c);
/* Removes c, wherever it is. */
void zc_tcpmux_drop(struct zc_tcpmux *m, struct zc_tcpmux_conn *c);
struct zc_tcpmux_remote *zc_tcpmux_find_remote(const struct zc_tcpmux *m,
                                               const struct zc_ip6_addr *addr);

/* ---- tcpmux.c ---- */

/* Queues a reset; left out when there are too many. */
void zc_tcpmux_queue_reset(struct zc_tcpmux *m, const struct zc_ip6_addr *remote,
                           const struct zc_tcp_segment *reset);
/* Initial sequence number (RFC 6528) and timestamp offset of a connection. */
void zc_tcpmux_numbers(const struct zc_tcpmux *m, struct zc_now now, const struct zc_tcp_ends *ends,
                       uint32_t *ret_iss, uint32_t *ret_offset);

#endif
