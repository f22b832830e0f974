/* What a segment of the peer does to the sending half: acknowledgement, window, SACKs. */
#include "tunnel/tcp_out.h"

static void take_window(struct zc_tcp_out *o, const struct zc_tcp_segment *s)
{
    bool newer =
        zc_tcp_seq_lt(o->wl1, s->seq) || (o->wl1 == s->seq && zc_tcp_seq_le(o->wl2, s->ack));
    if (!newer)
        return;
    bool closed = o->wnd == 0;
    o->wnd = (uint32_t)s->window << o->scale;
    if (o->wnd > o->wnd_max)
        o->wnd_max = o->wnd;
    o->wl1 = s->seq;
    o->wl2 = s->ack;
    if (closed && o->wnd > 0 && o->una != o->max) {
        /* What went into the closed window, probes too, has been dropped there. */
        o->rtt.backoff = 0;
        zc_tcp_loss_all(o);
    }
}

/* Takes a round trip that is certain. One that began before what is acknowledged was sent again is
 * not: the peer may have answered the first time and the answer was lost. Until there is a certain
 * one, the timeout stays doubled (Karn). */
static void measure(struct zc_tcp_out *o, struct zc_mono now, uint32_t ack, int64_t rtt_us)
{
    bool timed = o->timed && zc_tcp_seq_lt(o->timed_seq, ack);
    bool again = zc_tcp_seq_lt(o->una, o->rxt);
    if (rtt_us >= 0 && again && rtt_us > (now.ns - o->resent_at.ns) / 1000 + 1000)
        rtt_us = -1;
    else if (rtt_us < 0 && timed)
        rtt_us = (now.ns - o->timed_at.ns) / 1000;
    if (rtt_us >= 0)
        zc_tcp_rtt_sample(&o->rtt, rtt_us);
    if (timed)
        o->timed = false;
}

static void advance(struct zc_tcp_out *o, struct zc_tcp_budget *b, struct zc_mono now, uint32_t ack,
                    int64_t rtt_us)
{
    uint32_t n = ack - o->una;
    if (o->syn) {
        o->syn = false;
        n--;
    }
    if (n > o->ring.len) {
        o->fin_acked = true;
        n = o->ring.len;
    }
    zc_tcp_ring_drop(&o->ring, n);
    zc_tcp_ring_trim(&o->ring, b, ZC_TCP_RING_KEEP);
    uint32_t was = o->una;
    measure(o, now, ack, rtt_us);
    o->una = ack;
    zc_tcp_loss_acked(o, was);
    o->progress_at = now;
    o->resend_at = ZC_NEVER;
    o->probing = o->probing && o->una != o->max;
}

enum zc_tcp_out_ack zc_tcp_out_input(struct zc_tcp_out *o, struct zc_tcp_budget *b,
                                     struct zc_mono now, const struct zc_tcp_segment *s,
                                     int64_t rtt_us, bool stale)
{
    /* RFC 5961 section 5: neither of the future nor from long ago. */
    if (zc_tcp_seq_lt(o->max, s->ack) ||
        zc_tcp_seq_diff(o->una, s->ack) > (int64_t)(o->wnd_max < 65535 ? 65535 : o->wnd_max))
        return ZC_TCP_OUT_ACK_BAD;
    if (zc_tcp_seq_lt(s->ack, o->una))
        return ZC_TCP_OUT_ACK_OLD;
    bool moved = s->ack != o->una, news = zc_tcp_loss_sacks(o, s);
    uint32_t wnd = o->wnd;
    struct zc_mono progress_at = o->progress_at;
    if (moved)
        advance(o, b, now, s->ack, rtt_us);
    if ((s->flags & ZC_TCP_SYN) == 0) /* its window has been taken, and is not scaled */
        take_window(o, s);
    if (o->probing && o->wnd > 0) {
        o->probing = false;
        zc_tcp_loss_all(o);
    }
    bool dup = !moved && o->una != o->max && zc_tcp_segment_len(s) == 0 && o->wnd == wnd;
    /* Some stacks agree to SACK and send none once they have sent their FIN. */
    bool bare = dup && s->sack_count == 0 && !o->probing;
    if (news || bare) {
        o->bare = bare;
        zc_tcp_loss_dup(o);
    }
    if (o->wnd == 0)
        o->progress_at = stale ? progress_at : now;
    zc_tcp_out_timers(o, now);
    return moved ? ZC_TCP_OUT_ACK_NEW : ZC_TCP_OUT_ACK_OLD;
}
