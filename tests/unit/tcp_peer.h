/*
 * One TCP connection and a scripted peer that speaks to it segment by segment, with numbers counted
 * from the initial ones: peer_say(p, flags, seq, ack, data) and peer_hear(p).
 */
#ifndef ZC_TESTS_UNIT_TCP_PEER_H
#define ZC_TESTS_UNIT_TCP_PEER_H

#include "test.h"
#include "tunnel/tcp.h"

#define PEER_ISS UINT32_C(0xfffffff0) /* so that numbers wrap early */
#define OUR_ISS UINT32_C(0xffffff00)

struct peer {
    struct zc_tcp t;
    struct zc_tcp_config config;
    struct zc_tcp_budget budget;
    struct zc_mono now;
    bool stamps, sacks; /* the peer uses them */
    uint8_t scale;
    uint16_t window;
    uint32_t echo; /* what the peer sends back */
    uint8_t buf[ZC_IP6_MTU];
    struct zc_tcp_segment heard, reset;
    bool reset_made;
};

static inline void peer_pass(struct peer *p, int64_t ms)
{
    p->now = zc_mono_add_ms(p->now, ms);
    zc_tcp_tick(&p->t, p->now);
}

static inline uint32_t peer_stamp(const struct peer *p)
{
    return (uint32_t)(p->now.ns / ZC_NS_PER_MS) + 77;
}

/* The peer's segment; data may be NULL. Options of a SYN are added when flags have it. */
static inline struct zc_tcp_segment peer_segment(const struct peer *p, unsigned flags, uint32_t seq,
                                                 uint32_t ack, const char *data)
{
    struct zc_tcp_segment s = {
        .src_port = 7,
        .dst_port = 4000,
        .seq = PEER_ISS + seq,
        .ack = (flags & ZC_TCP_ACK) != 0 ? OUR_ISS + ack : 0,
        .flags = (uint8_t)flags,
        .window = p->window,
        .has_stamp = p->stamps,
        .stamp = peer_stamp(p),
        .echo = p->echo,
        .data = zc_slice(data, data == NULL ? 0 : strlen(data)),
    };
    if ((flags & ZC_TCP_SYN) != 0) {
        s.mss = 1220;
        s.sack_ok = p->sacks;
        s.has_scale = p->scale > 0;
        s.scale = p->scale;
    }
    return s;
}

static inline void peer_input(struct peer *p, const struct zc_tcp_segment *s)
{
    p->reset_made = zc_tcp_input(&p->t, p->now, s, &p->reset);
}

static inline void peer_say(struct peer *p, unsigned flags, uint32_t seq, uint32_t ack,
                            const char *data)
{
    struct zc_tcp_segment s = peer_segment(p, flags, seq, ack, data);
    peer_input(p, &s);
}

/* The next segment of the connection into p->heard, as the wire has it. False: none. */
static inline bool peer_hear(struct peer *p)
{
    struct zc_ip6 ip;
    size_t n = zc_tcp_output(&p->t, p->now, p->buf, sizeof(p->buf));
    if (n == 0)
        return false;
    if (zc_ip6_parse(p->buf, n, &ip) != 0 || zc_tcp_segment_parse(&ip, &p->heard) != 0)
        abort();
    if (p->heard.has_stamp)
        p->echo = p->heard.stamp;
    return true;
}

/* What was heard, by numbers counted from the initial ones. */
static inline bool peer_heard(const struct peer *p, unsigned flags, uint32_t seq, uint32_t ack,
                              size_t len)
{
    const struct zc_tcp_segment *s = &p->heard;
    bool good = (s->flags & ~(unsigned)ZC_TCP_PSH) == flags && s->seq == OUR_ISS + seq &&
                s->data.len == len && ((flags & ZC_TCP_ACK) == 0 || s->ack == PEER_ISS + ack);
    if (!good)
        printf("heard flags %x seq %u ack %u len %zu, not %x %u %u %zu\n", s->flags,
               s->seq - OUR_ISS, s->ack - PEER_ISS, s->data.len, flags, seq, ack, len);
    return good;
}

/* Exactly one segment comes, and it is this one. */
static inline bool peer_hears(struct peer *p, unsigned flags, uint32_t seq, uint32_t ack,
                              size_t len)
{
    if (!peer_hear(p)) {
        printf("heard nothing\n");
        return false;
    }
    return peer_heard(p, flags, seq, ack, len) && zc_tcp_output(&p->t, p->now, p->buf, 1280) == 0;
}

static inline void peer_init(struct peer *p)
{
    memset(p, 0, sizeof(*p));
    zc_tcp_config_init(&p->config);
    p->budget.max = 64 << 20;
    p->now.ns = 5 * ZC_NS_PER_S;
    p->stamps = p->sacks = true;
    p->scale = 7;
    p->window = 1000;
}

static inline struct zc_tcp_ends peer_ends(void)
{
    struct zc_tcp_ends e = {.local_port = 4000, .remote_port = 7};
    e.local.b[0] = e.remote.b[0] = 0xfd;
    e.remote.b[15] = 1;
    return e;
}

static inline void peer_connect(struct peer *p)
{
    struct zc_tcp_ends ends = peer_ends();
    zc_tcp_connect(&p->t, &p->config, &p->budget, &ends, OUR_ISS, 1000, p->now);
}

static inline void peer_accept(struct peer *p)
{
    struct zc_tcp_ends ends = peer_ends();
    struct zc_tcp_segment syn = peer_segment(p, ZC_TCP_SYN, 0, 0, NULL);
    zc_tcp_accept(&p->t, &p->config, &p->budget, &ends, OUR_ISS, 1000, p->now, &syn);
}

static inline void peer_write(struct peer *p, size_t n)
{
    static uint8_t zeros[100000];
    if (zc_tcp_write(&p->t, p->now, zc_slice(zeros, n)) != n)
        abort();
}

enum { S = ZC_TCP_SYN, A = ZC_TCP_ACK, F = ZC_TCP_FIN, R = ZC_TCP_RST };

/* Brings a fresh connection into state, with nothing in flight but a FIN that the state implies,
 * and no event pending. Then our next number is 1, or 2 after our FIN; the peer's 1, or 2. */
static inline void peer_reach(struct peer *p, enum zc_tcp_state state)
{
    if (state == ZC_TCP_SYN_RECEIVED) {
        peer_accept(p);
        CHECK(peer_hears(p, S | A, 0, 1, 0));
    } else {
        peer_connect(p);
        CHECK(peer_hears(p, S, 0, 0, 0));
        if (state == ZC_TCP_SYN_SENT)
            return;
        peer_say(p, S | A, 0, 1, NULL);
        CHECK(peer_hears(p, A, 1, 1, 0));
    }
    bool passive = state == ZC_TCP_CLOSE_WAIT || state == ZC_TCP_LAST_ACK;
    if (passive) {
        peer_say(p, F | A, 1, 1, NULL);
        CHECK(peer_hears(p, A, 1, 2, 0));
    }
    if (state == ZC_TCP_FIN_WAIT_1 || state == ZC_TCP_FIN_WAIT_2 || state == ZC_TCP_CLOSING ||
        state == ZC_TCP_TIME_WAIT || state == ZC_TCP_LAST_ACK) {
        zc_tcp_shutdown(&p->t, p->now);
        CHECK(peer_hears(p, F | A, 1, passive ? 2 : 1, 0));
    }
    if (state == ZC_TCP_FIN_WAIT_2 || state == ZC_TCP_TIME_WAIT)
        peer_say(p, A, 1, 2, NULL);
    if (state == ZC_TCP_CLOSING)
        peer_say(p, F | A, 1, 1, NULL);
    if (state == ZC_TCP_TIME_WAIT)
        peer_say(p, F | A, 1, 2, NULL);
    if (state == ZC_TCP_CLOSING || state == ZC_TCP_TIME_WAIT)
        CHECK(peer_hears(p, A, 2, 2, 0));
    p->t.events = 0;
    CHECK_INT(p->t.state, state);
}

static inline void peer_done(struct peer *p)
{
    zc_tcp_done(&p->t);
    CHECK_INT(p->budget.used, 0);
}

#endif
