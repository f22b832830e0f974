/* Two WireGuard devices that know each other, and a clock, for the tests of tunnel/wg.h. */
#ifndef ZC_TESTS_UNIT_WG_PAIR_H
#define ZC_TESTS_UNIT_WG_PAIR_H

#include "base/check.h"
#include "crypto/x25519.h"
#include "test.h"
#include "tunnel/wg.h"
#include "tunnel/wgpeer.h"

struct side {
    struct zc_wg wg;
    struct zc_rng rng;
    struct zc_wgpeer *peer; /* the other one */
    uint8_t address[16];
    /* Since the last pair_forget. */
    int done, unanswered, gave_up, bad_response, erased, got;
    int twins, twins_of_ours; /* never, in the whole test, unless there are any */
    uint32_t tries;
    uint8_t last[ZC_WG_MTU]; /* inner packet */
    size_t last_len;
};

struct pair {
    struct side a, b;
    int64_t ms;      /* monotonic */
    int64_t wall_ms; /* what the wall clock adds to it */
};

static inline struct zc_now pair_now(const struct pair *p)
{
    return (struct zc_now){{p->ms * ZC_NS_PER_MS}, {p->wall_ms + p->ms}};
}

static inline struct zc_secret pair_private(uint8_t n)
{
    struct zc_secret s = {{n, 77, n}};
    zc_x25519_clamp(&s);
    return s;
}

static inline void side_init(struct side *s, uint8_t n, uint32_t peers_max)
{
    struct zc_secret private = pair_private(n);
    memset(s, 0, sizeof(*s));
    zc_rng_init(&s->rng, (const uint8_t[32]){n, 5});
    zc_wg_init(&s->wg, &private, &s->rng, peers_max);
    s->address[0] = 0xfd;
    s->address[15] = n;
}

static inline void side_meet(struct side *s, const struct side *other, const struct zc_secret *psk)
{
    struct zc_wg_peer_config config = {.public = other->wg.self.public, .psk = psk, .data = s};
    memcpy(config.address, other->address, 16);
    CHECK_INT(zc_wg_add(&s->wg, &config, &s->peer), 0);
}

static inline void pair_init(struct pair *p)
{
    static const struct zc_secret psk = {{1, 2, 3}};
    side_init(&p->a, 1, 4);
    side_init(&p->b, 2, 4);
    side_meet(&p->a, &p->b, &psk);
    side_meet(&p->b, &p->a, &psk);
    p->ms = 1000;
    p->wall_ms = 1700000000000;
}

static inline void pair_done(struct pair *p)
{
    CHECK_INT(p->a.twins + p->a.twins_of_ours + p->b.twins + p->b.twins_of_ours, 0);
    zc_wg_done(&p->a.wg);
    zc_wg_done(&p->b.wg);
}

static inline struct side *pair_other(struct pair *p, const struct side *s)
{
    return s == &p->a ? &p->b : &p->a;
}

static inline void pair_forget(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        struct side *s = i == 0 ? &p->a : &p->b;
        s->done = s->unanswered = s->gave_up = s->bad_response = s->erased = s->got = 0;
    }
}

static inline void side_events(struct side *s)
{
    struct zc_wg_event ev;
    while (zc_wg_event(&s->wg, &ev)) {
        CHECK(ev.peer == s->peer && zc_wg_peer_data(ev.peer) == s);
        s->done += ev.kind == ZC_WG_HANDSHAKE_DONE;
        s->unanswered += ev.kind == ZC_WG_UNANSWERED;
        s->gave_up += ev.kind == ZC_WG_GAVE_UP;
        s->bad_response += ev.kind == ZC_WG_BAD_RESPONSE;
        s->erased += ev.kind == ZC_WG_ERASED;
        s->twins += ev.kind == ZC_WG_TWIN_OF_PEER;
        s->twins_of_ours += ev.kind == ZC_WG_TWIN_OF_OURS;
        if (ev.kind == ZC_WG_UNANSWERED)
            s->tries = ev.tries;
        if (ev.kind == ZC_WG_DATA) {
            s->got++;
            s->last_len = ev.packet.len;
            memcpy(s->last, ev.packet.data, ev.packet.len);
        }
    }
}

/* An inner packet of len bytes from s to the other, with a number in it. */
static inline void pair_packet(const struct side *s, uint8_t *ret_data, size_t len, uint32_t number)
{
    memset(ret_data, (int)number, len);
    ret_data[0] = 0x60;
    ret_data[4] = (uint8_t)((len - 40) >> 8);
    ret_data[5] = (uint8_t)(len - 40);
    memcpy(ret_data + 8, s->address, 16);
    memcpy(ret_data + 24, &number, 4);
}

static inline uint32_t pair_number(const uint8_t *data)
{
    uint32_t number;
    memcpy(&number, data + 24, 4);
    return number;
}

/* Length of what is to be sent at once, or 0. */
static inline size_t pair_send(struct pair *p, struct side *s, uint8_t *buf, size_t len,
                               uint32_t number)
{
    pair_packet(s, buf + ZC_WG_HEADER, len, number);
    return zc_wg_send(&s->wg, pair_now(p), s->peer, buf, len);
}

static inline size_t pair_output(struct pair *p, struct side *s, uint8_t *buf)
{
    struct zc_wgpeer *peer = NULL;
    size_t len = zc_wg_output(&s->wg, pair_now(p), buf, &peer);
    if (len > 0)
        CHECK(peer == s->peer);
    return len;
}

/* Gives a copy, so that buf can be given again. */
static inline void pair_input(struct pair *p, struct side *s, const uint8_t *buf, size_t len)
{
    uint8_t *copy = malloc(len + 1);
    memcpy(copy, buf, len);
    zc_wg_stray(&s->wg, pair_now(p), s->peer, copy, len);
    zc_wg_input(&s->wg, pair_now(p), copy, len);
    side_events(s);
    free(copy);
}

/* Everything due reaches the other side at once; the number of packets. */
static inline int pair_run(struct pair *p)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    int count = 0;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < 2; i++) {
            struct side *s = i == 0 ? &p->a : &p->b;
            zc_wg_tick(&s->wg, pair_now(p));
            side_events(s);
            size_t len;
            while ((len = pair_output(p, s, buf)) > 0) {
                pair_input(p, pair_other(p, s), buf, len);
                more = true;
                count++;
            }
        }
    }
    return count;
}

/* A session, A having begun it. */
static inline void pair_connect(struct pair *p)
{
    zc_wg_handshake(&p->a.wg, pair_now(p), p->a.peer);
    CHECK_INT(pair_run(p), 3);
    CHECK(p->a.done == 1 && p->b.done == 1);
    pair_forget(p);
}

/* Sends and delivers a packet under a session. */
static inline void pair_deliver(struct pair *p, struct side *s, uint32_t number)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    struct side *to = pair_other(p, s);
    int before = to->got;
    size_t len = pair_send(p, s, buf, 100, number);
    CHECK_INT(len, 144);
    pair_input(p, to, buf, len);
    CHECK_INT(to->got, before + 1);
    CHECK(to->last_len == 100 && pair_number(to->last) == number);
}

/* Moves the clock to the next instant that s wants, at most to end_ms; false: there is none. */
static inline bool pair_next(struct pair *p, struct side *s, int64_t end_ms)
{
    struct zc_mono at = zc_wg_deadline(&s->wg);
    int64_t ms = at.ns / ZC_NS_PER_MS + (at.ns % ZC_NS_PER_MS > 0);
    if (at.ns == ZC_NEVER.ns || ms > end_ms) {
        p->ms = end_ms;
        return false;
    }
    p->ms = ms > p->ms ? ms : p->ms;
    zc_wg_tick(&s->wg, pair_now(p));
    side_events(s);
    return true;
}

/* The same with the side that is first. */
static inline bool pair_step(struct pair *p, int64_t end_ms)
{
    bool a_first = zc_wg_deadline(&p->a.wg).ns <= zc_wg_deadline(&p->b.wg).ns;
    return pair_next(p, a_first ? &p->a : &p->b, end_ms);
}

#endif
