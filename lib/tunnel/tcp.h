/*
 * One TCP connection (RFC 9293), without sockets, clock or callbacks. Who it belongs to and how it
 * is found is the business of tcpmux.h.
 *
 *   connect: SYN_SENT ----------------> ESTABLISHED --shutdown--> FIN_WAIT_1 --> FIN_WAIT_2
 *               \--(crossing SYN)--\    ^    |                        |              |
 *   SYN came: SYN_RECEIVED ---------'--'     | FIN                 CLOSING ----> TIME_WAIT
 *                                            v                                       |
 *                                       CLOSE_WAIT --shutdown--> LAST_ACK -------> CLOSED
 *
 * Resets and SYNs in a living connection are judged by RFC 5961: only an exact number resets, the
 * rest is answered with a challenge. Timestamps, window scale and SACK (RFC 7323, 2018) are
 * offered. Deliberately absent: urgent data, ECN, fast open, Nagle, path MTU discovery.
 */
#ifndef ZC_TUNNEL_TCP_H
#define ZC_TUNNEL_TCP_H

#include "base/rate.h"
#include "tunnel/tcp_in.h"
#include "tunnel/tcp_out.h"

enum zc_tcp_state {
    ZC_TCP_CLOSED,
    ZC_TCP_SYN_SENT,
    ZC_TCP_SYN_RECEIVED,
    ZC_TCP_ESTABLISHED,
    ZC_TCP_FIN_WAIT_1,
    ZC_TCP_FIN_WAIT_2,
    ZC_TCP_CLOSING,
    ZC_TCP_TIME_WAIT,
    ZC_TCP_CLOSE_WAIT,
    ZC_TCP_LAST_ACK,
};

/* Why a connection is over. */
enum zc_tcp_reason {
    ZC_TCP_OPEN,    /* it is not */
    ZC_TCP_DONE,    /* both sides closed, everything was acknowledged */
    ZC_TCP_REFUSED, /* nobody listens there */
    ZC_TCP_RESET,   /* by the peer */
    ZC_TCP_TIMEOUT, /* the peer does not answer */
    ZC_TCP_ABORTED, /* by us */
};

/* Short English text, never NULL. */
const char *zc_tcp_reason_text(enum zc_tcp_reason reason);

struct zc_tcp_config {
    uint32_t send_max, recv_max; /* bytes of each queue; default 4 MiB, at most 16 MiB */
    uint32_t syn_retries;        /* default 6: gives up after 127 s */
    int64_t dead_ms;      /* no acknowledgement for so long while one is owed: over; default 60 s */
    int64_t time_wait_ms; /* default 30 s */
    int64_t fin_wait_ms;  /* released and only the peer's FIN missing: default 60 s */
    int64_t
        keepalive_ms; /* silent for so long: probe, then 9 times each 75 s; 0: never; default 2 h */
};

void zc_tcp_config_init(struct zc_tcp_config *c);

struct zc_tcp_ends {
    struct zc_ip6_addr local, remote;
    uint16_t local_port, remote_port;
};

/* Bits of zc_tcp.events, in the order in which they are told. */
enum zc_tcp_event {
    ZC_TCP_EVENT_OPENED = 1, /* connected or accepted */
    ZC_TCP_EVENT_READABLE = 2,
    ZC_TCP_EVENT_WRITABLE = 4,
    ZC_TCP_EVENT_PEER_FIN = 8,
    ZC_TCP_EVENT_CLOSED = 16,
};

struct zc_tcp {
    const struct zc_tcp_config *config;
    struct zc_tcp_budget *budget;
    struct zc_tcp_ends ends;
    enum zc_tcp_state state;
    enum zc_tcp_reason reason;
    uint8_t events;  /* not yet told; whoever tells one clears it */
    bool passive;    /* began with the peer's SYN */
    bool released;   /* nobody will read or write any more */
    bool write_full; /* a write found too little room */
    uint32_t stamp_offset;
    struct zc_tcp_in in;
    struct zc_tcp_out out;
    struct zc_rate replies;   /* answers to segments that are out of place and carry nothing */
    struct zc_mono heard_at;  /* last acceptable segment */
    struct zc_mono end_at;    /* of TIME_WAIT or of a released FIN_WAIT_2 */
    struct zc_mono idle_at;   /* empty queues give their memory back */
    uint8_t keepalives;       /* probes without an answer */
    struct zc_mono probed_at; /* the last of them */
    bool keepalive;           /* a probe goes now */
};

/* Starts to connect; the SYN is the first output. config and budget are borrowed. */
void zc_tcp_connect(struct zc_tcp *t, const struct zc_tcp_config *config,
                    struct zc_tcp_budget *budget, const struct zc_tcp_ends *ends, uint32_t iss,
                    uint32_t stamp_offset, struct zc_mono now);
/* Answers a SYN (SYN without ACK, RST, FIN); its data is ignored. */
void zc_tcp_accept(struct zc_tcp *t, const struct zc_tcp_config *config,
                   struct zc_tcp_budget *budget, const struct zc_tcp_ends *ends, uint32_t iss,
                   uint32_t stamp_offset, struct zc_mono now, const struct zc_tcp_segment *syn);
/* Frees the queues. */
void zc_tcp_done(struct zc_tcp *t);

/* One segment of this connection. True: *ret_reset is a reset to send, with its ports set. */
bool zc_tcp_input(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s,
                  struct zc_tcp_segment *ret_reset);
void zc_tcp_tick(struct zc_tcp *t, struct zc_mono now);
struct zc_mono zc_tcp_deadline(const struct zc_tcp *t);
/* The next packet into buf (cap at least ZC_IP6_MTU); its size, 0 when there is none. */
size_t zc_tcp_output(struct zc_tcp *t, struct zc_mono now, uint8_t *buf, size_t cap);

size_t zc_tcp_write(struct zc_tcp *t, struct zc_mono now, struct zc_slice data);
void zc_tcp_consume(struct zc_tcp *t, struct zc_mono now, size_t n);
void zc_tcp_shutdown(struct zc_tcp *t, struct zc_mono now);
/* Over, for reason. True: as in zc_tcp_input. */
bool zc_tcp_abort(struct zc_tcp *t, enum zc_tcp_reason reason, struct zc_tcp_segment *ret_reset);
/* Nobody reads or writes any more. True: as in zc_tcp_input. */
bool zc_tcp_release(struct zc_tcp *t, struct zc_mono now, struct zc_tcp_segment *ret_reset);
void zc_tcp_nudge(struct zc_tcp *t, struct zc_mono now);
/* If it is idle and the peer was not heard after `since`: asks for a sign of life. */
void zc_tcp_probe(struct zc_tcp *t, struct zc_mono since);

/* A write can still be taken, now or later. */
bool zc_tcp_writable(const struct zc_tcp *t);

#endif
