/* The next segment of a connection. */
#include "tunnel/tcp_priv.h"

#include "base/check.h"

/* Everything but sequence number and data. */
static struct zc_tcp_segment prepare(const struct zc_tcp *t, struct zc_mono now)
{
    struct zc_tcp_segment s = {
        .src_port = t->ends.local_port,
        .dst_port = t->ends.remote_port,
        .flags = ZC_TCP_ACK,
        .has_stamp = t->in.stamp,
        .stamp = zc_tcp_stamp(t, now),
    };
    zc_tcp_in_fill(&t->in, t->budget, &s);
    return s;
}

/* The first segment of a connection offers everything, an answer what the peer offered too. */
static struct zc_tcp_segment prepare_syn(const struct zc_tcp *t, struct zc_mono now)
{
    bool first = t->state == ZC_TCP_SYN_SENT;
    struct zc_tcp_segment s = {
        .src_port = t->ends.local_port,
        .dst_port = t->ends.remote_port,
        .flags = first ? ZC_TCP_SYN : ZC_TCP_SYN | ZC_TCP_ACK,
        .mss = ZC_TCP_MSS,
        .sack_ok = first || t->in.sack,
        .has_stamp = first || t->in.stamp,
        .stamp = zc_tcp_stamp(t, now),
        .has_scale = first || t->in.scale != 0,
        .scale = ZC_TCP_SCALE,
    };
    zc_tcp_in_fill(&t->in, t->budget, &s);
    if (first)
        s.ack = 0;
    return s;
}

/* Data bytes that fit beside the options, for the peer and for the tunnel. */
static uint32_t room_for(const struct zc_tcp *t, const struct zc_tcp_segment *s)
{
    uint32_t options = (uint32_t)zc_tcp_segment_header(s) - ZC_TCP_HEADER;
    uint32_t mtu = ZC_IP6_MTU - ZC_IP6_HEADER - ZC_TCP_HEADER;
    return (t->out.mss < mtu ? t->out.mss : mtu) - options;
}

static size_t emit(struct zc_tcp *t, struct zc_tcp_segment *s, struct zc_slice more, uint8_t *buf,
                   size_t cap)
{
    size_t n = zc_tcp_segment_write(s, more, &t->ends.local, &t->ends.remote, buf, cap);
    if ((s->flags & ZC_TCP_ACK) != 0)
        zc_tcp_in_told(&t->in, s);
    t->keepalive = false;
    return n;
}

static size_t emit_chunk(struct zc_tcp *t, struct zc_mono now, struct zc_tcp_segment *s,
                         const struct zc_tcp_chunk *c, uint8_t *buf, size_t cap)
{
    struct zc_slice parts[2] = {{0}, {0}};
    if (c->syn)
        *s = prepare_syn(t, now);
    (void)zc_tcp_out_slices(&t->out, c, parts);
    s->seq = c->seq;
    s->data = parts[0];
    if (c->fin)
        s->flags |= ZC_TCP_FIN;
    if (c->len > 0 && c->seq + c->len + t->out.fin == zc_tcp_out_end(&t->out))
        s->flags |= ZC_TCP_PSH;
    size_t n = emit(t, s, parts[1], buf, cap);
    zc_tcp_out_sent(&t->out, now, c);
    return n;
}

size_t zc_tcp_output(struct zc_tcp *t, struct zc_mono now, uint8_t *buf, size_t cap)
{
    ZC_ASSERT(cap >= ZC_IP6_MTU);
    if (t->state == ZC_TCP_CLOSED)
        return 0;
    struct zc_tcp_segment s = prepare(t, now);
    struct zc_tcp_chunk c;
    if (t->reason == ZC_TCP_OPEN && zc_tcp_out_next(&t->out, room_for(t, &s), &c))
        return emit_chunk(t, now, &s, &c, buf, cap);
    if (t->state == ZC_TCP_SYN_SENT || (t->in.owed == 0 && !t->keepalive))
        return 0;
    s.seq = zc_tcp_out_seq(&t->out);
    if (t->in.owed == 0)
        s.seq = t->out.una - 1; /* the probe is an old number, which must be answered */
    return emit(t, &s, zc_slice(NULL, 0), buf, cap);
}
