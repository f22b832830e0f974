/*
 * All TCP of one address of the tunnel: which connection a packet belongs to, who may connect to
 * which port, connects, TIME-WAIT, limits. Beside that it answers ICMPv6 echo. The protocol of one
 * connection is in tcp.h.
 *
 *   IP packets --input--> zc_tcpmux --output--> IP packets of at most 1280 bytes
 *                            | event: CONNECTED ACCEPTED READABLE WRITABLE PEER_FIN CLOSED
 *                            | readable/consume, write, shutdown, abort, release
 *
 * Life of a connection: it begins with zc_tcpmux_connect or with the event ACCEPTED. The caller
 * holds it until zc_tcpmux_release, which may come at any time; after CLOSED it must come, because
 * that is what frees it. The stack finishes released connections by itself (what was written is
 * still sent, within time limits).
 *
 * Deliberately absent: UDP, IPv4, path MTU discovery (the tunnel's MTU is IPv6's least), urgent
 * data (its bytes are ordinary ones), TSMP.
 */
#ifndef ZC_TUNNEL_TCPMUX_H
#define ZC_TUNNEL_TCPMUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/time.h"
#include "tunnel/ip6.h"
#include "tunnel/tcp.h"

struct zc_tcpmux;
/* One connection. All its functions are below; see the life of a connection above. */
struct zc_tcpmux_conn;

struct zc_tcpmux_config {
    struct zc_ip6_addr local;
    struct zc_tcp_config tcp; /* of each connection */
    uint32_t conns_max;       /* with those that end and wait; default 8192 */
    uint32_t half_open_max;   /* SYNs that are not answered yet; one remote gets at most two thirds;
                                 default 1024 */
    size_t bytes_max; /* in all send and receive queues; default 256 MiB. Beyond it each queue still
                         has ZC_TCP_RING_FREE bytes */
};

/* The defaults, for the address local. */
void zc_tcpmux_config_init(struct zc_tcpmux_config *c, const struct zc_ip6_addr *local);
/* ZC_ENOMEM, ZC_EINVAL for a limit of 0. Takes 32 bytes from rng, then has its own stream. */
ZC_MUST_CHECK int zc_tcpmux_new(const struct zc_tcpmux_config *c, struct zc_rng *rng,
                                struct zc_tcpmux **ret_mux);
/* Frees everything, also connections that the caller still holds. NULL is fine. */
void zc_tcpmux_free(struct zc_tcpmux *m);

/* Ports first..last (0 to 65535) pass the filter: a SYN to one without a listener is answered with
 * a reset. SYNs to all other ports are dropped without an answer. ZC_ELIMIT after 64 ranges. */
ZC_MUST_CHECK int zc_tcpmux_pass(struct zc_tcpmux *m, uint16_t first, uint16_t last);
/* Connections to ports first..last are accepted; they pass the filter too. ZC_ELIMIT as above. */
ZC_MUST_CHECK int zc_tcpmux_listen(struct zc_tcpmux *m, uint16_t first, uint16_t last);

/* ---- the five verbs ---- */

/* One IP packet, with or without padding behind it. Anything that is not for us is dropped and
 * counted. The caller has checked that the source address belongs to the peer it came from. */
void zc_tcpmux_input(struct zc_tcpmux *m, struct zc_now now, const uint8_t *packet, size_t len);
void zc_tcpmux_tick(struct zc_tcpmux *m, struct zc_now now);
struct zc_mono zc_tcpmux_deadline(const struct zc_tcpmux *m);
/* The next packet, for remote only unless that is NULL. cap is at least ZC_IP6_MTU. Connections
 * take turns. *ret_n is 0 when there is none; else *ret_dst is its destination. */
void zc_tcpmux_output(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote,
                      uint8_t *buf, size_t cap, size_t *ret_n, struct zc_ip6_addr *ret_dst);

enum zc_tcpmux_event_kind {
    ZC_TCPMUX_CONNECTED, /* by zc_tcpmux_connect */
    ZC_TCPMUX_ACCEPTED,  /* a new connection to a port of ours */
    ZC_TCPMUX_READABLE,  /* bytes came since the last such event */
    ZC_TCPMUX_WRITABLE,  /* there is room again after a write that did not take all */
    ZC_TCPMUX_PEER_FIN,  /* the peer writes no more; unread bytes may still be there */
    ZC_TCPMUX_CLOSED,    /* over, with a reason; unread bytes may still be there; the last event */
};

struct zc_tcpmux_event {
    enum zc_tcpmux_event_kind kind;
    struct zc_tcpmux_conn *conn;
    enum zc_tcp_reason reason; /* CLOSED */
};

/* False when there is none. Released connections have none. */
bool zc_tcpmux_event(struct zc_tcpmux *m, struct zc_tcpmux_event *ret_event);

/* ---- one connection ---- */

/* Starts to connect from a free port. ZC_ELIMIT: conns_max reached or no port free; ZC_ENOMEM;
 * ZC_EINVAL: remote is no single host, or ourselves. owner: see zc_tcpmux_set_owner. */
ZC_MUST_CHECK int zc_tcpmux_connect(struct zc_tcpmux *m, struct zc_now now,
                                    const struct zc_ip6_addr *remote, uint16_t port, void *owner,
                                    struct zc_tcpmux_conn **ret_conn);
/* Received bytes in order, as 0 to 2 slices that stay valid until the next call with this mux other
 * than zc_tcpmux_readable; returns how many slices. */
size_t zc_tcpmux_readable(const struct zc_tcpmux_conn *c, struct zc_slice ret_slices[2]);
/* The first n of them are done with; opens the window for as many. */
void zc_tcpmux_consume(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c, size_t n);
/* Copies what finds room into the send queue and returns how much that was: 0 also when nothing can
 * be sent any more. Less than data.len: the event WRITABLE follows. Before CONNECTED is fine. */
size_t zc_tcpmux_write(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c,
                       struct zc_slice data);
/* Bytes that the next write takes at most. */
size_t zc_tcpmux_room(const struct zc_tcpmux_conn *c);
/* Bytes in the send queue that the peer has not acknowledged, sent or not. */
size_t zc_tcpmux_unacked(const struct zc_tcpmux_conn *c);
/* No more writes; FIN after what is queued. Reading goes on. */
void zc_tcpmux_shutdown(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c);
/* Ends it now, with a reset to the peer. CLOSED with ZC_TCP_ABORTED follows. */
void zc_tcpmux_abort(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c);
/* The caller's pointer is given up. An open connection is shut down first; when there are unread
 * bytes, or bytes come later, it is reset (RFC 9293 3.6.1). */
void zc_tcpmux_release(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c);

/* The caller's own pointer, NULL at first for accepted connections. Only kept. */
void zc_tcpmux_set_owner(struct zc_tcpmux_conn *c, void *owner);
void *zc_tcpmux_owner(const struct zc_tcpmux_conn *c);
const struct zc_ip6_addr *zc_tcpmux_remote(const struct zc_tcpmux_conn *c);
uint16_t zc_tcpmux_remote_port(const struct zc_tcpmux_conn *c);
uint16_t zc_tcpmux_local_port(const struct zc_tcpmux_conn *c);
enum zc_tcp_state zc_tcpmux_state(const struct zc_tcpmux_conn *c);

/* ---- all connections with one remote ---- */

/* The path to remote is new or works again: what waits for a retransmission goes at once and
 * backed-off timers start over; idle connections are probed, so that a remote that has forgotten
 * them resets them. */
void zc_tcpmux_nudge(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote);
/* Idle connections of remote over which nothing came after `since` are probed (again). */
void zc_tcpmux_probe(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, struct zc_mono since);
/* The remote is gone for good: ends all its connections, without a packet, with
 * ZC_TCP_TIMEOUT. */
void zc_tcpmux_forget(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote);
/* The remote is to go: ends its connections with ZC_TCP_ABORTED, up to one that owes it a reset,
 * which is written to buf (cap as in zc_tcpmux_output). Its length; 0: all are ended. */
size_t zc_tcpmux_expel(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, uint8_t *buf,
                       size_t cap);

/* ---- figures ---- */

struct zc_tcpmux_stats {
    uint32_t conns;         /* that exist, with those in TIME-WAIT */
    uint32_t half_open;     /* not answered yet */
    uint32_t time_wait;     /* of conns */
    size_t bytes;           /* memory of all queues */
    uint64_t in, out;       /* packets */
    uint64_t retransmitted; /* segments */
    uint64_t bad;           /* packets dropped: not IPv6, checksum, options, not for us */
    uint64_t filtered;      /* SYNs to ports that are not open */
    uint64_t refused;       /* SYNs reset, or ignored because of a limit */
    uint64_t stray;         /* segments that belong to no connection */
};

struct zc_tcpmux_stats zc_tcpmux_stats(const struct zc_tcpmux *m);

#endif
