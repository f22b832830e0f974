/*
 * The sending half of a TCP connection: the queue, what of it is sent, acknowledged, selectively
 * acknowledged or lost, congestion control, retransmission and the probing of a closed window.
 * Sources: RFC 9293 3.8, 5681, 6298, 6582, 6675, 3042, 3465.
 *
 *   sequence numbers:   una ....... rxt ........ lost ............ max ............ end
 *                        |  resent   | to resend  |   in flight     |   not sent     |
 *   (what `sacked` holds is out of all this; SYN and FIN take one number each)
 *
 * After a timeout everything unacknowledged counts as lost and goes again in slow start, except
 * what the peer holds. Nagle's algorithm is absent: callers write whole messages.
 */
#ifndef ZC_TUNNEL_TCP_OUT_H
#define ZC_TUNNEL_TCP_OUT_H

#include "base/time.h"
#include "tunnel/tcp_ranges.h"
#include "tunnel/tcp_ring.h"
#include "tunnel/tcp_rtt.h"
#include "tunnel/tcp_segment.h"

#define ZC_TCP_MSS 1220      /* of the tunnel's MTU */
#define ZC_TCP_MSS_LEAST 256 /* a peer that asks for less gets this */

struct zc_tcp_out {
    uint32_t iss, una, max;
    struct zc_tcp_ring ring; /* from una on; from iss + 1 while syn */
    uint32_t ring_max;
    bool syn; /* not acknowledged yet: nothing else goes */
    bool fin; /* after the ring comes FIN */
    bool fin_acked;

    uint32_t wnd, wnd_max; /* offered by the peer: now, ever */
    uint32_t wl1, wl2;     /* seq and ack of the segment that said so */
    uint8_t scale;         /* of the peer's windows */
    bool sack;             /* the peer sends them */
    uint16_t mss;          /* data and options of a segment; see room in zc_tcp_out_next */

    uint32_t cwnd, ssthresh, grown; /* grown: acknowledged bytes towards the next cwnd step */
    bool limited;                   /* the last stop was for cwnd, not for want of data */
    bool recovering;
    bool hurry;       /* the first retransmission of a recovery, which cwnd does not hold */
    uint32_t recover; /* recovery, or its ban after a timeout, ends when this is acknowledged */
    uint32_t rxt, lost;
    uint32_t dups; /* duplicate acknowledgements in a row */
    bool bare;     /* the last of them had no SACK */
    struct zc_tcp_ranges sacked;

    struct zc_tcp_rtt rtt;
    uint32_t timed_seq; /* without timestamps: this number's acknowledgement is timed */
    struct zc_mono timed_at;
    bool timed;
    struct zc_mono resent_at;             /* una, when rxt is beyond it */
    struct zc_mono resend_at, persist_at; /* never both */
    bool probe;                           /* one byte goes now, whatever the window */
    bool probing;                         /* what is in flight is a probe */
    uint8_t persist_backoff;
    struct zc_mono progress_at; /* acknowledged last, or began to wait */
    struct zc_mono sent_at;     /* anything, last */
    uint64_t retransmitted;     /* segments */
};

/* What one segment carries. */
struct zc_tcp_chunk {
    uint32_t seq;
    uint32_t len; /* data bytes */
    bool syn, fin;
    bool again;
};

enum zc_tcp_out_ack {
    ZC_TCP_OUT_ACK_NEW, /* acknowledges something */
    ZC_TCP_OUT_ACK_OLD, /* nothing new: duplicate or window update */
    ZC_TCP_OUT_ACK_BAD, /* of what was never sent, or far too old: drop the segment */
};

void zc_tcp_out_init(struct zc_tcp_out *o, uint32_t iss, uint32_t ring_max, struct zc_mono now);
void zc_tcp_out_done(struct zc_tcp_out *o, struct zc_tcp_budget *b);
/* What the peer's SYN said. */
void zc_tcp_out_peer(struct zc_tcp_out *o, const struct zc_tcp_segment *syn, bool scaled);

/* Copies what finds room; returns how much. */
size_t zc_tcp_out_write(struct zc_tcp_out *o, struct zc_tcp_budget *b, struct zc_slice data);
size_t zc_tcp_out_room(const struct zc_tcp_out *o, const struct zc_tcp_budget *b);
/* Everything, FIN too, is acknowledged. */
bool zc_tcp_out_finished(const struct zc_tcp_out *o);
/* Something is in flight, or a closed window is probed: the peer owes an answer. */
bool zc_tcp_out_waiting(const struct zc_tcp_out *o);
/* The number after the last one of the queue. */
uint32_t zc_tcp_out_end(const struct zc_tcp_out *o);
/* The number for segments without data: what the peer's window lets it accept. */
uint32_t zc_tcp_out_seq(const struct zc_tcp_out *o);

/* The acknowledgement, window and SACKs of s. rtt_us: measured by timestamps, or -1. stale: a peer
 * that keeps its window closed does not count as alive. */
enum zc_tcp_out_ack zc_tcp_out_input(struct zc_tcp_out *o, struct zc_tcp_budget *b,
                                     struct zc_mono now, const struct zc_tcp_segment *s,
                                     int64_t rtt_us, bool stale);
/* Starts and stops the timers, after any change: of the queue too. */
void zc_tcp_out_timers(struct zc_tcp_out *o, struct zc_mono now);
void zc_tcp_out_tick(struct zc_tcp_out *o, struct zc_mono now);
struct zc_mono zc_tcp_out_deadline(const struct zc_tcp_out *o);
/* Retransmit at once and forget the backoff. */
void zc_tcp_out_nudge(struct zc_tcp_out *o, struct zc_mono now);

/* The next segment that may go, of at most room data bytes. False: none now. */
bool zc_tcp_out_next(struct zc_tcp_out *o, uint32_t room, struct zc_tcp_chunk *ret_chunk);
/* The bytes of a chunk, as 0 to 2 slices. */
size_t zc_tcp_out_slices(const struct zc_tcp_out *o, const struct zc_tcp_chunk *c,
                         struct zc_slice ret_slices[2]);
/* It went. */
void zc_tcp_out_sent(struct zc_tcp_out *o, struct zc_mono now, const struct zc_tcp_chunk *c);

/* ---- between tcp_out.c, tcp_ack.c and tcp_loss.c ---- */

/* Bytes in flight as congestion control counts them (pipe of RFC 6675). */
uint32_t zc_tcp_loss_pipe(const struct zc_tcp_out *o);
/* The peer said ack >= una; was: una before. Fast retransmit and recovery, growth of cwnd. */
void zc_tcp_loss_acked(struct zc_tcp_out *o, uint32_t was);
/* A duplicate acknowledgement, or SACKs that brought news. */
void zc_tcp_loss_dup(struct zc_tcp_out *o);
/* Takes the SACKs of s; true when they brought news. */
bool zc_tcp_loss_sacks(struct zc_tcp_out *o, const struct zc_tcp_segment *s);
/* The retransmission timer ran out. */
void zc_tcp_loss_timeout(struct zc_tcp_out *o);
/* All in flight counts as lost, without a change of cwnd. */
void zc_tcp_loss_all(struct zc_tcp_out *o);

#endif
