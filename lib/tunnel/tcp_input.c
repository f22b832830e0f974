/* What a segment does to a connection (RFC 9293 3.10.7, RFC 5961, RFC 7323). */
#include "tunnel/tcp_priv.h"

/* An answer to a segment that is out of place. One without content may itself be such an answer, so
 * those are rationed. */
static void challenge(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s)
{
    if (s->data.len > 0 || zc_rate_allow(&t->replies, now))
        zc_tcp_in_owe(&t->in);
}

static bool reset_for(const struct zc_tcp_segment *s, struct zc_tcp_segment *ret_reset)
{
    *ret_reset = zc_tcp_segment_reset(s);
    return true;
}

static void open_connection(struct zc_tcp *t)
{
    t->state = t->out.fin ? ZC_TCP_FIN_WAIT_1 : ZC_TCP_ESTABLISHED;
    t->events |= ZC_TCP_EVENT_OPENED;
}

static int64_t measure(const struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s)
{
    if (!t->in.stamp || !s->has_stamp || s->echo == 0)
        return -1;
    int32_t ms = zc_tcp_seq_diff(zc_tcp_stamp(t, now), s->echo);
    return ms < 0 ? -1 : (int64_t)ms * 1000;
}

/* ---- SYN_SENT ---- */

static bool input_syn_sent(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s,
                           struct zc_tcp_segment *ret_reset)
{
    bool ack = (s->flags & ZC_TCP_ACK) != 0, rst = (s->flags & ZC_TCP_RST) != 0;
    if (ack && s->ack != t->out.iss + 1)
        return !rst && reset_for(s, ret_reset);
    if (ack && t->out.max == t->out.iss) /* guessed before the SYN has gone */
        return !rst && reset_for(s, ret_reset);
    if (rst) {
        if (ack)
            zc_tcp_close(t, ZC_TCP_REFUSED);
        return false;
    }
    if ((s->flags & ZC_TCP_SYN) == 0)
        return false;
    t->heard_at = now;
    zc_tcp_in_peer(&t->in, now, s, s->has_scale);
    /* What our SYN has offered; the peer may use it at once. */
    t->in.edge += t->in.ring_max < UINT16_MAX ? t->in.ring_max : UINT16_MAX;
    zc_tcp_out_peer(&t->out, s, s->has_scale);
    if (!ack) { /* crossing SYNs */
        t->state = ZC_TCP_SYN_RECEIVED;
        zc_tcp_loss_all(&t->out);
        return false;
    }
    (void)zc_tcp_out_input(&t->out, t->budget, now, s, measure(t, now, s), t->released);
    zc_tcp_in_owe(&t->in);
    open_connection(t);
    return false;
}

/* ---- the other states, in the order of RFC 9293 3.10.7.4 ---- */

static bool take_ack(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s);

/* An acknowledgement with the number before the one that we wait for. So speaks a peer that probes
 * our window and does not know yet that we took its byte; two that probe each other would never
 * hear each other again (RFC 9293 3.10.7.4 lets acknowledgements through a closed window). What it
 * says of its window may be older than what we know. */
static void take_late_ack(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s)
{
    struct zc_tcp_segment late = *s;
    if (s->seq + 1 != t->in.nxt || s->flags != ZC_TCP_ACK || s->data.len > 0 ||
        t->state == ZC_TCP_SYN_RECEIVED || t->state == ZC_TCP_TIME_WAIT)
        return;
    t->heard_at = now;
    t->keepalives = 0;
    late.seq = t->out.wl1 - 1;
    (void)take_ack(t, now, &late);
}

/* First: timestamp and sequence number. False: drop it. */
static bool in_place(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s)
{
    bool rst = (s->flags & ZC_TCP_RST) != 0;
    bool bare_syn = (s->flags & (ZC_TCP_SYN | ZC_TCP_ACK | ZC_TCP_RST)) == ZC_TCP_SYN;
    if (t->state == ZC_TCP_SYN_RECEIVED && bare_syn && s->seq + 1 == t->in.nxt) {
        /* Our answer was lost. */
        zc_tcp_loss_all(&t->out);
        return false;
    }
    if (!rst && t->in.stamp && !s->has_stamp)
        return false; /* RFC 7323 3.2 */
    bool old = !rst && zc_tcp_in_paws(&t->in, now, s);
    if (!old && zc_tcp_in_acceptable(&t->in, s))
        return true;
    if (rst)
        return false;
    if (!old && t->state == ZC_TCP_TIME_WAIT && (s->flags & ZC_TCP_FIN) != 0)
        t->end_at = zc_mono_add_ms(now, t->config->time_wait_ms);
    challenge(t, now, s);
    if (!old)
        take_late_ack(t, now, s);
    return false;
}

/* Second: a reset in the window. */
static void take_reset(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s)
{
    if (s->seq != t->in.nxt) {
        challenge(t, now, s);
        return;
    }
    bool quiet = zc_tcp_out_finished(&t->out) || t->out.ring.len == 0;
    if (t->state == ZC_TCP_SYN_RECEIVED)
        zc_tcp_close(t, ZC_TCP_REFUSED);
    else if ((t->state == ZC_TCP_LAST_ACK || t->state == ZC_TCP_CLOSING) && quiet)
        zc_tcp_close(t, ZC_TCP_DONE); /* only our FIN was open, and the peer no longer cares */
    else
        zc_tcp_close(t, ZC_TCP_RESET);
}

/* Fifth: the acknowledgement. False: drop it. */
static bool take_ack(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s)
{
    if (zc_tcp_out_input(&t->out, t->budget, now, s, measure(t, now, s), t->released) ==
        ZC_TCP_OUT_ACK_BAD) {
        challenge(t, now, s);
        return false;
    }
    zc_tcp_active(t, now);
    if (t->write_full && t->out.ring.len <= t->out.ring_max / 2 &&
        zc_tcp_out_room(&t->out, t->budget) > 0) {
        t->write_full = false;
        t->events |= ZC_TCP_EVENT_WRITABLE;
    }
    if (!zc_tcp_out_finished(&t->out))
        return true;
    if (t->state == ZC_TCP_FIN_WAIT_1)
        zc_tcp_fin_wait(t, now);
    else if (t->state == ZC_TCP_CLOSING)
        zc_tcp_time_wait(t, now);
    else if (t->state == ZC_TCP_LAST_ACK)
        zc_tcp_close(t, ZC_TCP_DONE);
    return t->state != ZC_TCP_CLOSED;
}

/* Eighth: the peer's FIN, once all before it is there. */
static void take_fin(struct zc_tcp *t, struct zc_mono now)
{
    t->events |= ZC_TCP_EVENT_PEER_FIN;
    if (t->state == ZC_TCP_ESTABLISHED)
        t->state = ZC_TCP_CLOSE_WAIT;
    else if (t->state == ZC_TCP_FIN_WAIT_1)
        t->state = ZC_TCP_CLOSING;
    else if (t->state == ZC_TCP_FIN_WAIT_2)
        zc_tcp_time_wait(t, now);
}

/* Seventh: data. True: a reset, because nobody will read it. */
static bool take_data(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s,
                      struct zc_tcp_segment *ret_reset)
{
    bool before = t->in.fin_read;
    uint32_t grown = zc_tcp_in_take(&t->in, t->budget, now, s);
    if (grown > 0 && t->released)
        return zc_tcp_abort(t, ZC_TCP_ABORTED, ret_reset);
    if (grown > 0) {
        t->events |= ZC_TCP_EVENT_READABLE;
        zc_tcp_active(t, now);
    }
    if (t->in.fin_read && !before)
        take_fin(t, now);
    return false;
}

bool zc_tcp_input(struct zc_tcp *t, struct zc_mono now, const struct zc_tcp_segment *s,
                  struct zc_tcp_segment *ret_reset)
{
    if (t->state == ZC_TCP_CLOSED)
        return false;
    if (t->state == ZC_TCP_SYN_SENT)
        return input_syn_sent(t, now, s, ret_reset);
    if (!in_place(t, now, s))
        return false;
    if ((s->flags & ZC_TCP_RST) != 0) {
        take_reset(t, now, s);
        return false;
    }
    if ((s->flags & ZC_TCP_SYN) != 0) {
        challenge(t, now, s);
        return false;
    }
    if ((s->flags & ZC_TCP_ACK) == 0)
        return false;
    t->heard_at = now;
    t->keepalives = 0;
    if (t->state == ZC_TCP_SYN_RECEIVED) {
        if (s->ack != t->out.iss + 1 || t->out.max == t->out.iss)
            return reset_for(s, ret_reset);
        /* From here on windows are scaled. */
        t->out.wl1 = s->seq - 1;
        open_connection(t);
    }
    if (t->state == ZC_TCP_TIME_WAIT)
        return false;
    if (!take_ack(t, now, s))
        return false;
    return take_data(t, now, s, ret_reset);
}
