/* The sending half of a TCP connection, see tcp_out.h. Congestion control is in tcp_loss.c. */
#include "tunnel/tcp_out.h"

#include "base/check.h"

enum {
    INITIAL_SEGMENTS = 10, /* RFC 6928 */
    SEGMENTS_AFTER_SYN_LOSS = 1,
    MSS_DEFAULT = 1220, /* RFC 9293 3.7.1, IPv6 */
};

void zc_tcp_out_init(struct zc_tcp_out *o, uint32_t iss, uint32_t ring_max, struct zc_mono now)
{
    *o = (struct zc_tcp_out){
        .iss = iss,
        .una = iss,
        .max = iss,
        .ring_max = ring_max,
        .syn = true,
        .mss = ZC_TCP_MSS,
        .cwnd = INITIAL_SEGMENTS * ZC_TCP_MSS,
        .ssthresh = UINT32_MAX,
        .recover = iss,
        .rxt = iss,
        .lost = iss,
        .resend_at = ZC_NEVER,
        .persist_at = ZC_NEVER,
        .progress_at = now,
        .sent_at = now,
    };
}

void zc_tcp_out_done(struct zc_tcp_out *o, struct zc_tcp_budget *b)
{
    zc_tcp_ring_done(&o->ring, b);
    o->resend_at = o->persist_at = ZC_NEVER;
}

void zc_tcp_out_peer(struct zc_tcp_out *o, const struct zc_tcp_segment *syn, bool scaled)
{
    uint16_t mss = syn->mss == 0 ? MSS_DEFAULT : syn->mss;
    if (mss > ZC_TCP_MSS)
        mss = ZC_TCP_MSS;
    if (mss < ZC_TCP_MSS_LEAST)
        mss = ZC_TCP_MSS_LEAST;
    o->mss = mss;
    o->sack = syn->sack_ok;
    o->scale = scaled ? syn->scale : 0;
    o->wnd = o->wnd_max = syn->window; /* never scaled in a SYN */
    o->wl1 = syn->seq;
    o->wl2 = syn->ack;
    o->cwnd = mss * (uint32_t)(o->rtt.backoff > 0 ? SEGMENTS_AFTER_SYN_LOSS : INITIAL_SEGMENTS);
}

/* ---- the queue ---- */

/* Sequence number of the first byte of the ring, and of the one after its last. */
static uint32_t data_start(const struct zc_tcp_out *o)
{
    return o->una + o->syn;
}

static uint32_t data_end(const struct zc_tcp_out *o)
{
    return data_start(o) + o->ring.len;
}

uint32_t zc_tcp_out_end(const struct zc_tcp_out *o)
{
    /* Once FIN itself is acknowledged, nothing follows una. */
    return zc_tcp_out_finished(o) ? o->una : data_end(o) + o->fin;
}

bool zc_tcp_out_finished(const struct zc_tcp_out *o)
{
    return o->fin_acked;
}

size_t zc_tcp_out_room(const struct zc_tcp_out *o, const struct zc_tcp_budget *b)
{
    if (o->fin)
        return 0;
    size_t reach = zc_tcp_ring_reach(&o->ring, b, o->ring_max);
    return reach > o->ring.len ? reach - o->ring.len : 0;
}

size_t zc_tcp_out_write(struct zc_tcp_out *o, struct zc_tcp_budget *b, struct zc_slice data)
{
    size_t n = zc_tcp_out_room(o, b);
    if (n > data.len)
        n = data.len;
    if (zc_tcp_ring_reserve(&o->ring, b, o->ring.len + n) != 0) {
        /* Memory is refused: what there is must do. */
        n = o->ring.cap - o->ring.len < n ? o->ring.cap - o->ring.len : n;
    }
    zc_tcp_ring_put(&o->ring, o->ring.len, zc_slice(data.data, n));
    o->ring.len += (uint32_t)n;
    return n;
}

size_t zc_tcp_out_slices(const struct zc_tcp_out *o, const struct zc_tcp_chunk *c,
                         struct zc_slice ret_slices[2])
{
    if (c->len == 0)
        return 0;
    return zc_tcp_ring_slices(&o->ring, c->seq - data_start(o), c->len, ret_slices);
}

uint32_t zc_tcp_out_seq(const struct zc_tcp_out *o)
{
    uint32_t edge = o->una + o->wnd;
    if (o->probing) /* the peer has hardly taken it */
        return o->una;
    /* A scaled window is told rounded down; within that it is still open. */
    if (zc_tcp_seq_diff(o->max, edge) < (INT32_C(1) << o->scale))
        return o->max;
    return edge;
}

/* ---- what to send ---- */

/* Data from seq on, of at most room bytes and below limit, with FIN when it fits. */
static void cut_chunk(const struct zc_tcp_out *o, uint32_t seq, uint32_t limit, uint32_t room,
                      struct zc_tcp_chunk *c)
{
    uint32_t end = zc_tcp_seq_min(data_end(o), limit);
    uint32_t len = zc_tcp_seq_lt(seq, end) ? end - seq : 0;
    c->seq = seq;
    c->len = len < room ? len : room;
    c->fin = o->fin && seq + c->len == data_end(o) && zc_tcp_seq_lt(seq + c->len, limit);
}

/* The next lost bytes. */
static bool next_lost(struct zc_tcp_out *o, uint32_t room, struct zc_tcp_chunk *c)
{
    uint32_t limit = o->max;
    for (uint32_t i = 0; i < o->sacked.count; i++) {
        const struct zc_tcp_range *r = &o->sacked.at[i];
        if (zc_tcp_seq_lt(o->rxt, r->start)) {
            limit = r->start;
            break;
        }
        o->rxt = zc_tcp_seq_max(o->rxt, r->end);
    }
    if (!zc_tcp_seq_lt(o->rxt, o->lost)) {
        o->rxt = o->lost;
        return false;
    }
    if (limit == o->max && o->lost == o->max) {
        /* Nothing but new data follows: it may fill the segment. */
        uint32_t edge = zc_tcp_seq_min(o->una + o->wnd, zc_tcp_out_end(o));
        limit = zc_tcp_seq_max(limit, edge);
    } else {
        limit = zc_tcp_seq_min(limit, o->lost);
    }
    cut_chunk(o, o->rxt, limit, room, c);
    c->again = true;
    uint32_t pipe = zc_tcp_loss_pipe(o);
    if (!o->hurry && pipe > 0 && pipe + c->len > o->cwnd) {
        o->limited = true;
        return false;
    }
    return true;
}

/* New data that the peer's window takes, without silly small segments (RFC 9293 3.8.6.2.1). */
static bool cut_fresh(const struct zc_tcp_out *o, uint32_t room, struct zc_tcp_chunk *c)
{
    uint32_t edge = o->una + o->wnd, end = zc_tcp_out_end(o);
    if (o->max == end || !zc_tcp_seq_lt(o->max, edge))
        return false;
    cut_chunk(o, o->max, zc_tcp_seq_min(edge, end), room, c);
    bool all = c->seq + c->len == data_end(o);
    return all || c->len >= room || c->len >= o->wnd_max / 2;
}

static bool next_fresh(struct zc_tcp_out *o, uint32_t room, struct zc_tcp_chunk *c)
{
    o->limited = false;
    if (!cut_fresh(o, room, c))
        return false;
    uint32_t pipe = zc_tcp_loss_pipe(o);
    if (pipe > 0 && c->len > 0 && pipe + c->len > o->cwnd) {
        o->limited = true;
        return false;
    }
    return true;
}

static bool next_syn(const struct zc_tcp_out *o, struct zc_tcp_chunk *c)
{
    c->seq = o->iss;
    c->syn = true;
    c->again = o->max != o->iss;
    return !c->again || (o->rxt == o->iss && zc_tcp_seq_lt(o->iss, o->lost));
}

bool zc_tcp_out_next(struct zc_tcp_out *o, uint32_t room, struct zc_tcp_chunk *ret_chunk)
{
    struct zc_tcp_chunk c = {0};
    bool found;
    if (o->syn) {
        found = next_syn(o, &c);
    } else if (o->probe) {
        uint32_t limit = o->una + (o->wnd > 0 ? o->wnd : 1);
        cut_chunk(o, o->una, zc_tcp_seq_min(limit, zc_tcp_out_end(o)), room, &c);
        c.again = o->max != o->una;
        found = true;
    } else {
        found = next_lost(o, room, &c) || (c = (struct zc_tcp_chunk){0}, next_fresh(o, room, &c));
    }
    if (found)
        *ret_chunk = c;
    return found;
}

/* ---- timers ---- */

/* Data waits and only the window holds it, with nothing in flight whose acknowledgement could open
 * it again. */
static bool stuck(const struct zc_tcp_out *o)
{
    struct zc_tcp_chunk c;
    if (o->syn || zc_tcp_out_finished(o))
        return false;
    if (o->una != o->max)
        return o->probing;
    return o->max != zc_tcp_out_end(o) && !cut_fresh(o, o->mss, &c);
}

static struct zc_mono persist_after(const struct zc_tcp_out *o, struct zc_mono now)
{
    struct zc_tcp_rtt rtt = o->rtt;
    rtt.backoff = o->persist_backoff;
    return zc_mono_add_ms(now, zc_tcp_rtt_timeout_ms(&rtt));
}

void zc_tcp_out_timers(struct zc_tcp_out *o, struct zc_mono now)
{
    if (o->una == o->max || o->probing)
        o->resend_at = ZC_NEVER;
    else if (o->resend_at.ns == ZC_NEVER.ns)
        o->resend_at = zc_mono_add_ms(now, zc_tcp_rtt_timeout_ms(&o->rtt));
    if (!stuck(o)) {
        o->persist_at = ZC_NEVER;
        o->persist_backoff = 0;
        o->probe = false;
    } else if (o->persist_at.ns == ZC_NEVER.ns) {
        o->persist_at = persist_after(o, now);
        o->progress_at = now;
    }
}

void zc_tcp_out_tick(struct zc_tcp_out *o, struct zc_mono now)
{
    if (o->resend_at.ns <= now.ns) {
        zc_tcp_loss_timeout(o);
        o->resend_at = zc_mono_add_ms(now, zc_tcp_rtt_timeout_ms(&o->rtt));
    }
    if (o->persist_at.ns <= now.ns) {
        o->probe = true;
        if (o->persist_backoff < UINT8_MAX)
            o->persist_backoff++;
        o->persist_at = persist_after(o, now);
    }
}

struct zc_mono zc_tcp_out_deadline(const struct zc_tcp_out *o)
{
    return zc_mono_min(o->resend_at, o->persist_at);
}

bool zc_tcp_out_waiting(const struct zc_tcp_out *o)
{
    return o->una != o->max || o->persist_at.ns != ZC_NEVER.ns;
}

void zc_tcp_out_nudge(struct zc_tcp_out *o, struct zc_mono now)
{
    o->rtt.backoff = 0;
    if (o->persist_at.ns != ZC_NEVER.ns) {
        o->probe = true;
        o->persist_backoff = 0;
        o->persist_at = persist_after(o, now);
    } else if (o->una != o->max) {
        zc_tcp_loss_all(o);
        if (o->cwnd < INITIAL_SEGMENTS * (uint32_t)o->mss)
            o->cwnd = INITIAL_SEGMENTS * (uint32_t)o->mss;
        o->resend_at = zc_mono_add_ms(now, zc_tcp_rtt_timeout_ms(&o->rtt));
    }
}

/* After a pause the path is no longer what it was (RFC 5681 4.1). */
static void restart_after_idle(struct zc_tcp_out *o, struct zc_mono now)
{
    uint32_t initial = INITIAL_SEGMENTS * (uint32_t)o->mss;
    if (o->una == o->max && o->cwnd > initial &&
        zc_mono_diff_ms(o->sent_at, now) > zc_tcp_rtt_timeout_ms(&o->rtt))
        o->cwnd = initial;
}

void zc_tcp_out_sent(struct zc_tcp_out *o, struct zc_mono now, const struct zc_tcp_chunk *c)
{
    uint32_t end = c->seq + c->len + c->syn + c->fin;
    restart_after_idle(o, now);
    if (o->una == o->max && !o->probe)
        o->progress_at = now;
    if (o->probe) {
        o->probe = false;
        o->probing = true;
    }
    if (c->again) {
        o->retransmitted++;
        o->timed = false; /* Karn */
        o->hurry = false;
        o->rxt = zc_tcp_seq_max(o->rxt, zc_tcp_seq_min(end, o->lost));
        if (c->seq == o->una)
            o->resent_at = now;
        if (c->seq == o->una && o->resend_at.ns != ZC_NEVER.ns)
            o->resend_at = zc_mono_add_ms(now, zc_tcp_rtt_timeout_ms(&o->rtt));
    } else if (!o->timed) {
        o->timed = true;
        o->timed_seq = c->seq;
        o->timed_at = now;
    }
    o->max = zc_tcp_seq_max(o->max, end);
    o->sent_at = now;
    zc_tcp_out_timers(o, now);
}
