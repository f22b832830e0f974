/*
 * Two TCP stacks and a bad link between them, in simulated time: loss, duplicates, reordering and
 * delay from a seed, and a script that drops chosen segments. Nothing here takes real time.
 */
#ifndef ZC_TESTS_UNIT_TCP_LINK_H
#define ZC_TESTS_UNIT_TCP_LINK_H

#include "base/rng.h"
#include "test.h"
#include "tunnel/tcpmux.h"

struct packet {
    int64_t at_ns;
    uint64_t serial;
    int to;
    size_t len;
    uint8_t data[ZC_IP6_MTU];
};

struct link {
    struct zc_tcpmux *mux[2];
    struct zc_ip6_addr addr[2];
    struct zc_now now;
    struct zc_rng rng;
    /* of 1000 packets */
    unsigned loss, twice, late;
    int64_t delay_ms, late_ms;
    bool cut; /* nothing arrives any more */
    /* True: this segment is lost. */
    bool (*drop)(struct link *l, int from, const struct zc_tcp_segment *s);
    int drop_count;       /* for drop */
    struct packet **wire; /* heap by at_ns, serial */
    size_t wire_len, wire_cap;
    uint64_t serial, sent, spins;
};

static inline unsigned link_rnd(struct link *l, unsigned n)
{
    return n == 0 ? 0 : (unsigned)(zc_rng_u64(&l->rng) % n);
}

static inline struct zc_ip6_addr link_addr(uint8_t last)
{
    struct zc_ip6_addr a = {{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0}};
    a.b[15] = last;
    return a;
}

/* The config of both ends is the default one, changed by `tune` if that is not NULL. */
static inline void link_init(struct link *l, uint8_t seed,
                             void (*tune)(struct zc_tcpmux_config *c, int end))
{
    uint8_t bytes[32] = {seed};
    memset(l, 0, sizeof(*l));
    zc_rng_init(&l->rng, bytes);
    l->now.mono.ns = ZC_NS_PER_S;
    l->delay_ms = 10;
    l->late_ms = 30;
    for (int i = 0; i < 2; i++) {
        struct zc_tcpmux_config c;
        l->addr[i] = link_addr((uint8_t)(i + 2));
        zc_tcpmux_config_init(&c, &l->addr[i]);
        if (tune != NULL)
            tune(&c, i);
        if (zc_tcpmux_new(&c, &l->rng, &l->mux[i]) != 0)
            abort();
    }
}

static inline bool link_before(const struct packet *a, const struct packet *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->serial < b->serial;
}

static inline void link_push(struct link *l, struct packet *p)
{
    if (l->wire_len == l->wire_cap) {
        l->wire_cap = l->wire_cap * 2 + 16;
        l->wire = realloc(l->wire, l->wire_cap * sizeof(struct packet *));
    }
    size_t i = l->wire_len++;
    while (i > 0 && link_before(p, l->wire[(i - 1) / 2])) {
        l->wire[i] = l->wire[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    l->wire[i] = p;
}

static inline struct packet *link_pop(struct link *l)
{
    struct packet *first = l->wire[0], *last = l->wire[--l->wire_len];
    size_t i = 0;
    while (2 * i + 1 < l->wire_len) {
        size_t k = 2 * i + 1;
        if (k + 1 < l->wire_len && link_before(l->wire[k + 1], l->wire[k]))
            k++;
        if (!link_before(l->wire[k], last))
            break;
        l->wire[i] = l->wire[k];
        i = k;
    }
    l->wire[i] = last;
    return first;
}

static inline void link_send(struct link *l, int from, const uint8_t *data, size_t len)
{
    struct packet *p = malloc(sizeof(*p));
    p->at_ns = l->now.mono.ns + l->delay_ms * ZC_NS_PER_MS;
    if (link_rnd(l, 1000) < l->late)
        p->at_ns += 1 + link_rnd(l, (unsigned)l->late_ms) * ZC_NS_PER_MS;
    p->serial = l->serial++;
    p->to = !from;
    p->len = len;
    memcpy(p->data, data, len);
    link_push(l, p);
}

static inline bool link_lost(struct link *l, int from, const uint8_t *data, size_t len)
{
    struct zc_ip6 ip;
    struct zc_tcp_segment s;
    if (l->cut || link_rnd(l, 1000) < l->loss)
        return true;
    return l->drop != NULL && zc_ip6_parse(data, len, &ip) == 0 &&
           zc_tcp_segment_parse(&ip, &s) == 0 && l->drop(l, from, &s);
}

/* Everything that both want to send goes onto the wire. */
static inline void link_drain(struct link *l)
{
    uint8_t buf[ZC_IP6_MTU];
    for (int i = 0; i < 2; i++) {
        size_t n;
        struct zc_ip6_addr dst;
        for (;;) {
            zc_tcpmux_output(l->mux[i], l->now, NULL, buf, sizeof(buf), &n, &dst);
            if (n == 0)
                break;
            l->sent++;
            CHECK(n <= ZC_IP6_MTU);
            if (!zc_ip6_addr_eq(&dst, &l->addr[!i]) || link_lost(l, i, buf, n))
                continue;
            link_send(l, i, buf, n);
            if (link_rnd(l, 1000) < l->twice)
                link_send(l, i, buf, n);
        }
    }
}

/* One instant: everything due now arrives and ticks. Then time goes to the next one, at most to
 * until. False: nothing will ever happen again. */
static inline bool link_step(struct link *l, int64_t until_ns)
{
    link_drain(l);
    int64_t next = l->wire_len > 0 ? l->wire[0]->at_ns : INT64_MAX;
    for (int i = 0; i < 2; i++) {
        int64_t d = zc_tcpmux_deadline(l->mux[i]).ns;
        next = d < next ? d : next;
    }
    bool some = next != INT64_MAX;
    if (!some && until_ns == INT64_MAX)
        return false;
    if (next > until_ns)
        next = until_ns;
    l->spins = next <= l->now.mono.ns ? l->spins + 1 : 0;
    if (l->spins > 100000) {
        printf("the clock stands still\n");
        abort();
    }
    if (next > l->now.mono.ns)
        l->now.mono.ns = next;
    while (l->wire_len > 0 && l->wire[0]->at_ns <= l->now.mono.ns) {
        struct packet *p = link_pop(l);
        /* From memory that ends with the packet, for AddressSanitizer. */
        uint8_t *copy = malloc(p->len);
        memcpy(copy, p->data, p->len);
        zc_tcpmux_input(l->mux[p->to], l->now, copy, p->len);
        free(copy);
        free(p);
    }
    for (int i = 0; i < 2; i++) {
        zc_tcpmux_tick(l->mux[i], l->now);
        CHECK(zc_tcpmux_deadline(l->mux[i]).ns > l->now.mono.ns);
    }
    return some;
}

/* Lets ms pass. */
static inline void link_run(struct link *l, int64_t ms)
{
    int64_t end = l->now.mono.ns + ms * ZC_NS_PER_MS;
    while (l->now.mono.ns < end && link_step(l, end))
        ;
    l->now.mono.ns = end;
    link_drain(l);
}

static inline int64_t link_ms(const struct link *l)
{
    return l->now.mono.ns / ZC_NS_PER_MS;
}

/* The next event of one end; kind -1 when there is none. */
static inline struct zc_tcpmux_event link_event(struct link *l, int end)
{
    struct zc_tcpmux_event ev;
    if (!zc_tcpmux_event(l->mux[end], &ev))
        ev = (struct zc_tcpmux_event){.kind = (enum zc_tcpmux_event_kind) - 1};
    return ev;
}

static inline void link_drop_events(struct link *l)
{
    struct zc_tcpmux_event ev;
    for (int i = 0; i < 2; i++) {
        while (zc_tcpmux_event(l->mux[i], &ev))
            ;
    }
}

/* End 0 connects to port 7 of end 1, which listens; both connections. */
static inline void link_connect(struct link *l, struct zc_tcpmux_conn *ret_conns[2])
{
    ret_conns[0] = ret_conns[1] = NULL;
    if (zc_tcpmux_connect(l->mux[0], l->now, &l->addr[1], 7, NULL, &ret_conns[0]) != 0)
        abort();
    for (int i = 0; i < 1000 && ret_conns[1] == NULL; i++) {
        link_step(l, INT64_MAX);
        struct zc_tcpmux_event ev = link_event(l, 1);
        if (ev.kind == ZC_TCPMUX_ACCEPTED)
            ret_conns[1] = ev.conn;
    }
    if (ret_conns[1] == NULL || link_event(l, 0).kind != ZC_TCPMUX_CONNECTED)
        abort();
}

static inline void link_done(struct link *l)
{
    while (l->wire_len > 0)
        free(link_pop(l));
    free(l->wire);
    zc_tcpmux_free(l->mux[0]);
    zc_tcpmux_free(l->mux[1]);
}

/* Nothing is left at either end. */
static inline void link_check_empty(const struct link *l)
{
    for (int i = 0; i < 2; i++) {
        struct zc_tcpmux_stats s = zc_tcpmux_stats(l->mux[i]);
        CHECK_INT(s.conns, 0);
        CHECK_INT(s.half_open, 0);
        CHECK_INT(s.time_wait, 0);
        CHECK_INT(s.bytes, 0);
    }
}

#endif
