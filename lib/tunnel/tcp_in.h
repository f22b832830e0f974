/*
 * The receiving half of a TCP connection: reassembly, the window that is offered, acknowledgements
 * that are owed, SACKs and timestamps to echo. Sources: RFC 9293 3.8.6 and 3.10.7.4, 2018, 7323.
 *
 *   ring:  | readable | ... out of order (ranges) ... |
 *          head       nxt                             edge (never goes back)
 */
#ifndef ZC_TUNNEL_TCP_IN_H
#define ZC_TUNNEL_TCP_IN_H

#include "base/time.h"
#include "tunnel/tcp_ranges.h"
#include "tunnel/tcp_ring.h"
#include "tunnel/tcp_segment.h"

#define ZC_TCP_SCALE 8 /* of our windows */
#define ZC_TCP_DELAY_MS 40

struct zc_tcp_in {
    uint32_t nxt, edge;
    struct zc_tcp_ring ring;
    uint32_t ring_max;
    struct zc_tcp_ranges ranges;
    uint32_t recent[ZC_TCP_SACKS]; /* places of the latest arrivals in ranges, latest first */
    uint32_t recent_count;
    bool fin_known, fin_read; /* where FIN is; all before it has arrived */
    uint32_t fin;
    uint8_t scale; /* of our windows: ZC_TCP_SCALE, or 0 when the peer scales nothing */
    bool sack;     /* the peer wants them */
    bool shut;     /* memory is short: the window was told closed before its edge */

    uint8_t owed;          /* acknowledgements to send now */
    uint32_t silent;       /* bytes that came since the last one */
    uint32_t segment_max;  /* bytes of the largest segment so far */
    struct zc_mono ack_at; /* a delayed one */

    bool stamp; /* timestamps are in use */
    uint32_t stamp_recent;
    struct zc_mono stamp_at;
    uint32_t acked; /* nxt as last told */
};

void zc_tcp_in_init(struct zc_tcp_in *i, uint32_t ring_max);
void zc_tcp_in_done(struct zc_tcp_in *i, struct zc_tcp_budget *b);
/* What the peer's SYN said. */
void zc_tcp_in_peer(struct zc_tcp_in *i, struct zc_mono now, const struct zc_tcp_segment *syn,
                    bool scaled);

/* The segment lies in the window (table of RFC 9293 3.10.7.4), or starts exactly where we wait and
 * the window is too small for it. */
bool zc_tcp_in_acceptable(const struct zc_tcp_in *i, const struct zc_tcp_segment *s);
/* Its timestamp says that it is an old duplicate (PAWS, RFC 7323 section 5). */
bool zc_tcp_in_paws(const struct zc_tcp_in *i, struct zc_mono now, const struct zc_tcp_segment *s);
/* Takes data, FIN and timestamp of an acceptable segment; returns how many bytes became readable.
 */
uint32_t zc_tcp_in_take(struct zc_tcp_in *i, struct zc_tcp_budget *b, struct zc_mono now,
                        const struct zc_tcp_segment *s);
/* Drops n readable bytes. An acknowledgement is owed when that opens the window noticeably. */
void zc_tcp_in_consume(struct zc_tcp_in *i, struct zc_tcp_budget *b, size_t n);
/* An acknowledgement goes now. */
void zc_tcp_in_owe(struct zc_tcp_in *i);

/* Fills ack, window, SACKs (as many as fit beside the other options) and the echoed timestamp. */
void zc_tcp_in_fill(const struct zc_tcp_in *i, const struct zc_tcp_budget *b,
                    struct zc_tcp_segment *s);
/* A segment so filled has gone. */
void zc_tcp_in_told(struct zc_tcp_in *i, const struct zc_tcp_segment *s);

#endif
