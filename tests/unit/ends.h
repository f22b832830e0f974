/*
 * Ends of the tunnel over a relay in memory, moved a millisecond at a time.
 */
#ifndef ZC_TESTS_UNIT_ENDS_H
#define ZC_TESTS_UNIT_ENDS_H

#include "test.h"

#include "relay.h"
#include "tunnel/tunnel.h"

#define ENDS 80

struct end {
    struct zc_tunnel *t;
    struct zc_rng rng;
    struct zc_secret key;
    struct zc_key public;
    int conn; /* at the relay; -1: none */
    bool cut; /* it carries nothing any more, as when the network has changed */
    uint32_t ups, downs, peer_ups, peer_downs, psk_wrong, accepted, connected, closed, refused;
    enum zc_tcp_reason reason;
    struct zc_tcpmux_conn *last; /* of the last ACCEPTED or CONNECTED */
    /* a copy of what was read */
    uint64_t got, sum;
    bool fin, echo, hold;
};

static struct relay relay;
static struct end ends[ENDS];
static uint32_t ends_count;
static struct zc_now now;
static struct zc_secret psk;
static struct zc_derpmap_node node;

static inline void net_start(void)
{
    now = (struct zc_now){{1000 * ZC_NS_PER_S}, {1700000000000}};
    relay_init(&relay, 1);
    memset(ends, 0, sizeof(ends));
    ends_count = 0;
    memset(psk.b, 0x77, sizeof(psk.b));
    memset(&node, 0, sizeof(node));
    strcpy(node.name, "1a");
    strcpy(node.host, "relay.example");
}

static inline void net_end(void)
{
    for (uint32_t i = 0; i < ends_count; i++)
        zc_tunnel_free(ends[i].t);
    relay_done(&relay);
}

static inline struct end *end_new(uint8_t seed)
{
    struct end *e = &ends[ends_count++];
    uint8_t bytes[32] = {seed, 0x11};
    zc_rng_init(&e->rng, bytes);
    zc_x25519_generate(&e->rng, &e->key);
    zc_x25519_public(&e->key, &e->public);
    e->conn = -1;
    return e;
}

static inline void serve(struct end *e, const struct zc_tunnel_config *more)
{
    struct zc_tunnel_config c = *more;
    c.role = ZC_TUNNEL_SERVER;
    c.private_key = &e->key;
    c.relays = &node;
    c.relays_count = 1;
    c.region_id = 1;
    c.clients_max = c.clients_max > 0 ? c.clients_max : 100;
    CHECK_INT(zc_tunnel_new(&c, &e->rng, now, &e->t), 0);
    CHECK_INT(zc_tcpmux_listen(zc_tunnel_mux(e->t), 7, 7), 0);
}

static inline struct end *server(uint8_t seed)
{
    struct end *e = end_new(seed);
    serve(e, &(struct zc_tunnel_config){.psk = &psk});
    return e;
}

static inline struct end *client(uint8_t seed, const struct end *to, const struct zc_secret *secret)
{
    struct end *e = end_new(seed);
    struct zc_tunnel_status st;
    zc_tunnel_status(to->t, &st);
    struct zc_tunnel_config c = {
        .role = ZC_TUNNEL_CLIENT,
        .private_key = &e->key,
        .psk = secret,
        .relays = &node,
        .relays_count = 1,
        .region_id = 1,
        .server_key = st.node_key,
        .server_disco_key = st.disco_key,
    };
    CHECK_INT(zc_tunnel_new(&c, &e->rng, now, &e->t), 0);
    return e;
}

static inline void read_all(struct end *e, struct zc_tcpmux_conn *c)
{
    struct zc_slice s[2];
    struct zc_tcpmux *m = zc_tunnel_mux(e->t);
    size_t n = zc_tcpmux_readable(c, s), used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t take = s[i].len;
        if (e->echo) { /* what is sent back is read only as far as that went */
            uint8_t *copy = malloc(take);
            memcpy(copy, s[i].data, take);
            size_t want = take;
            take = zc_tcpmux_write(m, now, c, zc_slice(copy, want));
            zc_tcpmux_consume(m, now, c, take);
            e->got += take;
            free(copy);
            if (take < want)
                return;
            n = zc_tcpmux_readable(c, s);
            i = (size_t)-1;
            continue;
        }
        for (size_t k = 0; k < take; k++)
            e->sum = e->sum * 31 + s[i].data[k];
        used += take;
    }
    if (used > 0)
        zc_tcpmux_consume(m, now, c, used);
    e->got += used;
}

static inline void conn_event(struct end *e, const struct zc_tcpmux_event *ev)
{
    struct zc_tcpmux *m = zc_tunnel_mux(e->t);
    switch (ev->kind) {
    case ZC_TCPMUX_ACCEPTED:
        e->accepted++;
        e->last = ev->conn;
        break;
    case ZC_TCPMUX_CONNECTED:
        e->connected++;
        e->last = ev->conn;
        break;
    case ZC_TCPMUX_READABLE:
    case ZC_TCPMUX_WRITABLE:
        if (!e->hold)
            read_all(e, ev->conn);
        break;
    case ZC_TCPMUX_PEER_FIN:
        read_all(e, ev->conn);
        e->fin = true;
        if (e->echo)
            zc_tcpmux_shutdown(m, now, ev->conn);
        break;
    case ZC_TCPMUX_CLOSED:
        e->closed++;
        e->reason = ev->reason;
        if (e->last == ev->conn)
            e->last = NULL;
        zc_tcpmux_release(m, now, ev->conn);
        break;
    }
}

static inline void end_events(struct end *e)
{
    struct zc_tunnel_event ev;
    while (zc_tunnel_event(e->t, now, &ev)) {
        e->ups += ev.kind == ZC_TUNNEL_RELAY_UP;
        e->downs += ev.kind == ZC_TUNNEL_RELAY_DOWN;
        e->peer_ups += ev.kind == ZC_TUNNEL_PEER_UP;
        e->peer_downs += ev.kind == ZC_TUNNEL_PEER_DOWN;
        e->psk_wrong += ev.kind == ZC_TUNNEL_PSK_WRONG;
        if (ev.kind == ZC_TUNNEL_CONN)
            conn_event(e, &ev.tcp);
    }
}

static inline void end_hangup(struct end *e)
{
    if (e->conn >= 0)
        relay_close(&relay, e->conn);
    e->conn = -1;
}

/* The host of one end; a thousand bytes a millisecond and kilobyte of `rate`. */
static inline void end_turn(struct end *e, size_t rate)
{
    static uint8_t buf[65536];
    struct zc_derp_dial_try dial;
    if (zc_tunnel_deadline(e->t).ns <= now.mono.ns)
        zc_tunnel_tick(e->t, now);
    if (e->conn >= 0 && !relay.conns[e->conn].open) {
        e->conn = -1;
        zc_tunnel_relay_lost(e->t, now, "the relay closed the connection");
    }
    if (zc_tunnel_relay_hangup(e->t))
        end_hangup(e);
    if (zc_tunnel_relay_dial(e->t, now, &dial)) {
        CHECK(strcmp(dial.node->host, "relay.example") == 0);
        e->conn = relay_open(&relay);
        e->cut = false;
        if (e->conn >= 0)
            zc_tunnel_relay_started(e->t, now, false);
        else
            zc_tunnel_relay_lost(e->t, now, "connection refused");
    }
    end_events(e);
    size_t n = e->conn < 0 ? 0 : zc_tunnel_relay_output(e->t, now, buf, rate);
    if (n > 0 && !e->cut)
        relay_input(&relay, e->conn, buf, n);
}

static inline void end_receive(struct end *e, size_t rate)
{
    size_t len, total = 0;
    uint8_t *data;
    while (total < rate && e->conn >= 0 && !e->cut &&
           (data = relay_output(&relay, e->conn, &len)) != NULL) {
        zc_tunnel_relay_input(e->t, now, data, len);
        free(data);
        total += len;
    }
    end_events(e);
}

static inline void step(void)
{
    now.mono.ns += ZC_NS_PER_MS;
    now.wall.ms++;
    for (uint32_t i = 0; i < ends_count; i++) {
        if (ends[i].t != NULL)
            end_turn(&ends[i], 20000);
    }
    for (uint32_t i = 0; i < ends_count; i++) {
        if (ends[i].t != NULL)
            end_receive(&ends[i], 20000);
    }
}

static inline void run(int64_t ms)
{
    while (ms-- > 0)
        step();
}

/* Runs until cond holds, at most limit ms; how long it took, or -1. */
#define RUN_UNTIL(cond, limit)                                                                     \
    __extension__({                                                                                \
        int64_t took_ = 0;                                                                         \
        while (!(cond) && took_ < (limit)) {                                                       \
            step();                                                                                \
            took_++;                                                                               \
        }                                                                                          \
        (cond) ? took_ : -1;                                                                       \
    })

static inline enum zc_tunnel_state state(const struct end *e)
{
    struct zc_tunnel_status st;
    zc_tunnel_status(e->t, &st);
    return st.state;
}

static inline void pattern(uint8_t *data, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (uint8_t)(seed >> 24);
    }
}

static inline uint64_t sum_of(const uint8_t *data, size_t len)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + data[i];
    return sum;
}

#endif
