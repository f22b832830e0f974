/* Both ends of the tunnel over a relay in memory: rendezvous, TCP, loss, restarts. */
#define _GNU_SOURCE
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

static void net_start(void)
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

static void net_end(void)
{
    for (uint32_t i = 0; i < ends_count; i++)
        zc_tunnel_free(ends[i].t);
    relay_done(&relay);
}

static struct end *end_new(uint8_t seed)
{
    struct end *e = &ends[ends_count++];
    uint8_t bytes[32] = {seed, 0x11};
    zc_rng_init(&e->rng, bytes);
    zc_x25519_generate(&e->rng, &e->key);
    zc_x25519_public(&e->key, &e->public);
    e->conn = -1;
    return e;
}

static void serve(struct end *e, const struct zc_tunnel_config *more)
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

static struct end *server(uint8_t seed)
{
    struct end *e = end_new(seed);
    serve(e, &(struct zc_tunnel_config){.psk = &psk});
    return e;
}

static struct end *client(uint8_t seed, const struct end *to, const struct zc_secret *secret)
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

static void read_all(struct end *e, struct zc_tcpmux_conn *c)
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

static void conn_event(struct end *e, const struct zc_tcpmux_event *ev)
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

static void end_events(struct end *e)
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

static void end_hangup(struct end *e)
{
    if (e->conn >= 0)
        relay_close(&relay, e->conn);
    e->conn = -1;
}

/* The host of one end; a thousand bytes a millisecond and kilobyte of `rate`. */
static void end_turn(struct end *e, size_t rate)
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
        if (e->conn >= 0)
            zc_tunnel_relay_started(e->t, now, false);
        else
            zc_tunnel_relay_lost(e->t, now, "connection refused");
    }
    end_events(e);
    size_t n = e->conn < 0 ? 0 : zc_tunnel_relay_output(e->t, now, buf, rate);
    if (n > 0)
        relay_input(&relay, e->conn, buf, n);
}

static void end_receive(struct end *e, size_t rate)
{
    size_t len, total = 0;
    uint8_t *data;
    while (total < rate && e->conn >= 0 && (data = relay_output(&relay, e->conn, &len)) != NULL) {
        zc_tunnel_relay_input(e->t, now, data, len);
        free(data);
        total += len;
    }
    end_events(e);
}

static void step(void)
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

static void run(int64_t ms)
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

static enum zc_tunnel_state state(const struct end *e)
{
    struct zc_tunnel_status st;
    zc_tunnel_status(e->t, &st);
    return st.state;
}

static void pattern(uint8_t *data, size_t len, uint32_t seed)
{
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        data[i] = (uint8_t)(seed >> 24);
    }
}

static uint64_t sum_of(const uint8_t *data, size_t len)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + data[i];
    return sum;
}

TEST(meet_and_talk)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    CHECK_INT(s->ups, 1);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn, zc_slice_str("hello"));
    CHECK(RUN_UNTIL(s->got == 5, 1000) >= 0);
    CHECK_INT(s->accepted, 1);
    CHECK_INT(s->peer_ups, 1);
    CHECK_INT(c->connected, 1);
    struct zc_key key = zc_tunnel_conn_key(s->t, s->last);
    CHECK(memcmp(key.b, c->public.b, 32) == 0);
    /* half-close: the other way goes on */
    zc_tcpmux_shutdown(zc_tunnel_mux(c->t), now, conn);
    CHECK(RUN_UNTIL(s->fin, 1000) >= 0);
    zc_tcpmux_write(zc_tunnel_mux(s->t), now, s->last, zc_slice_str("goodbye"));
    zc_tcpmux_shutdown(zc_tunnel_mux(s->t), now, s->last);
    CHECK(RUN_UNTIL(c->got == 7 && c->fin, 1000) >= 0);
    CHECK(RUN_UNTIL(c->closed == 1 && s->closed == 1, 20000) >= 0);
    CHECK_INT(c->reason, ZC_TCP_DONE);
    struct zc_tunnel_peer_status p;
    CHECK(zc_tunnel_peer(s->t, now, 0, &p));
    CHECK(p.up && p.rx_bytes > 300 && p.tx_bytes > 200 && p.rtt_us >= 0 && p.handshake_age_ms >= 0);
    CHECK(!zc_tunnel_peer(s->t, now, 1, &p));
    net_end();
}

TEST(filtered_port_is_silent)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 8, NULL, &conn), 0);
    run(5000);
    CHECK_INT(c->closed, 0);
    CHECK_INT(c->connected, 0);
    net_end();
}

TEST(wrong_psk_is_told)
{
    net_start();
    struct zc_secret other = {{9}};
    struct end *s = server(1), *c = client(2, s, &other);
    run(12000);
    CHECK(c->psk_wrong >= 1);
    CHECK(c->psk_wrong <= 4);
    CHECK(state(c) != ZC_TUNNEL_UP);
    CHECK_INT(s->peer_ups, 0);
    net_end();
}

TEST(unlisted_key_meets_silence)
{
    net_start();
    struct end *s = end_new(1);
    uint8_t seed[32] = {2, 0x11};
    struct zc_rng rng;
    struct zc_secret private;
    struct zc_key allowed;
    zc_rng_init(&rng, seed);
    zc_x25519_generate(&rng, &private);
    zc_x25519_public(&private, &allowed);
    serve(s, &(struct zc_tunnel_config){
                 .psk = &psk, .allow_on = true, .allow = &allowed, .allow_count = 1});
    struct end *good = client(2, s, &psk), *bad = client(3, s, &psk);
    run(6000);
    CHECK_INT(state(good), ZC_TUNNEL_UP);
    CHECK_INT(state(bad), ZC_TUNNEL_MEOW);
    struct zc_tunnel_status st;
    zc_tunnel_status(s->t, &st);
    CHECK_INT(st.peers, 1);
    CHECK(st.refused >= 5 && st.refused <= 8);
    /* the list changes while it runs */
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(good->t, now, 7, NULL, &conn), 0);
    run(100);
    CHECK_INT(s->accepted, 1);
    CHECK_INT(zc_tunnel_set_allow(s->t, now, true, &bad->public, 1), 0);
    run(7000);
    CHECK_INT(s->closed, 1);
    CHECK_INT(state(bad), ZC_TUNNEL_UP);
    zc_tunnel_status(s->t, &st);
    CHECK_INT(st.peers, 1);
    net_end();
}

/* Sends len bytes from a to b over conn of a, and reads the echo, while the relay loses packets. */
static void transfer(struct end *s, struct end *c, size_t len, int64_t limit_ms)
{
    struct zc_tcpmux_conn *conn;
    struct zc_tcpmux *m = zc_tunnel_mux(c->t);
    uint8_t *data = malloc(len);
    size_t sent = 0;
    pattern(data, len, 5);
    s->echo = true;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    int64_t left = limit_ms;
    bool shut = false;
    while (!c->fin && left-- > 0) {
        if (sent < len)
            sent += zc_tcpmux_write(m, now, conn, zc_slice(data + sent, len - sent));
        if (sent == len && !shut) {
            shut = true;
            zc_tcpmux_shutdown(m, now, conn);
        }
        step();
    }
    CHECK_INT(c->got, len);
    CHECK(c->sum == sum_of(data, len));
    CHECK(c->fin);
    free(data);
}

TEST(eight_mib_each_way)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    transfer(s, c, 8 << 20, 60000);
    net_end();
}

TEST(eight_mib_each_way_with_loss)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    relay.loss_permille = 10;
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 20000) >= 0);
    transfer(s, c, 8 << 20, 600000);
    CHECK(relay.lost > 10);
    net_end();
}

TEST(relay_restarts_mid_transfer)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    size_t len = 4 << 20, sent = 0;
    uint8_t *data = malloc(len);
    pattern(data, len, 3);
    int64_t back = -1;
    for (int ms = 0; ms < 60000 && s->got < len; ms++) {
        if (ms == 200)
            relay_kill(&relay);
        if (ms == 8200)
            relay.up = true;
        sent += zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn, zc_slice(data + sent, len - sent));
        uint64_t before = s->got;
        step();
        if (ms > 8200 && back < 0 && s->got > before)
            back = ms - 8200;
    }
    CHECK_INT(s->got, len);
    CHECK(s->sum == sum_of(data, len));
    CHECK(back >= 0 && back < 8000);
    CHECK(c->ups == 2 && s->ups == 2);
    CHECK(c->downs >= 2);
    free(data);
    net_end();
}

static void restart(struct end *s)
{
    end_hangup(s);
    zc_tunnel_free(s->t);
    s->t = NULL;
}

TEST(server_restarts_with_the_same_key)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *idle, *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &idle), 0);
    run(100);
    CHECK_INT(s->accepted, 1);
    restart(s);
    run(3000);
    CHECK_INT(c->peer_downs, 1);
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    run(500);
    serve(s, &(struct zc_tunnel_config){.psk = &psk});
    int64_t took = RUN_UNTIL(c->connected == 2, 10000);
    CHECK(took >= 0 && took <= 5000);
    /* the old connection, which was idle, is reset */
    CHECK(RUN_UNTIL(c->closed == 1, 1000) >= 0);
    CHECK_INT(c->reason, ZC_TCP_RESET);
    net_end();
}

/* The relay does not say that the server has gone: its key was taken over at once. */
TEST(server_restarts_unseen)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    run(100);
    zc_tunnel_free(s->t);
    s->conn = -1; /* the old connection stands, silent */
    serve(s, &(struct zc_tunnel_config){.psk = &psk});
    run(1000);
    zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn, zc_slice_str("x"));
    int64_t took = RUN_UNTIL(c->closed == 1, 40000);
    CHECK(took >= 0 && took <= 25000);
    CHECK_INT(c->reason, ZC_TCP_RESET);
    CHECK_INT(state(c), ZC_TUNNEL_UP);
    net_end();
}

TEST(fifty_clients)
{
    net_start();
    struct end *s = server(1);
    struct zc_tcpmux_conn *conn;
    for (uint8_t i = 0; i < 50; i++)
        client((uint8_t)(10 + i), s, &psk);
    run(3000);
    for (uint32_t i = 1; i <= 50; i++) {
        CHECK_INT(state(&ends[i]), ZC_TUNNEL_UP);
        CHECK_INT(zc_tunnel_connect(ends[i].t, now, 7, NULL, &conn), 0);
        zc_tcpmux_write(zc_tunnel_mux(ends[i].t), now, conn, zc_slice_str("0123456789"));
    }
    CHECK(RUN_UNTIL(s->got == 500, 5000) >= 0);
    CHECK_INT(s->accepted, 50);
    CHECK_INT(s->peer_ups, 50);
    struct zc_tunnel_peer_status p;
    uint32_t n = 0;
    while (zc_tunnel_peer(s->t, now, n, &p))
        n++;
    CHECK_INT(n, 50);
    net_end();
}

TEST(clients_are_capped_and_expire)
{
    net_start();
    struct end *s = end_new(1);
    serve(s, &(struct zc_tunnel_config){.psk = &psk, .clients_max = 2});
    struct zc_secret wrong = {{1}};
    struct end *a = client(2, s, &wrong), *b = client(3, s, &psk);
    run(1500);
    struct end *c = client(4, s, &psk);
    run(2000);
    CHECK_INT(state(b), ZC_TUNNEL_UP);
    CHECK_INT(state(c), ZC_TUNNEL_MEOW); /* full, and a may still prove itself */
    /* a leaves; its place is free after a while without a handshake */
    restart(a);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 15000) >= 0);
    CHECK_INT(state(b), ZC_TUNNEL_UP);
    restart(b);
    restart(c);
    run(11 * 60 * 1000);
    struct zc_tunnel_status st;
    zc_tunnel_status(s->t, &st);
    CHECK_INT(st.peers, 0);
    net_end();
}

TEST(new_psk_ends_all)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    struct zc_tcpmux_conn *conn;
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    run(100);
    struct zc_secret other = {{5}};
    zc_tunnel_set_psk(s->t, now, &other);
    end_events(s);
    CHECK_INT(s->closed, 1);
    zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn, zc_slice_str("x"));
    CHECK(RUN_UNTIL(c->psk_wrong > 0, 30000) >= 0);
    net_end();
}

/* Back-pressure: while the stream takes nothing, no packet is made and none is lost. */
TEST(slow_stream_loses_nothing)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    run(50);
    static uint8_t data[200000];
    size_t sent = 0;
    for (int ms = 0; ms < 20000 && s->got < sizeof(data); ms++) {
        sent += zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn,
                                zc_slice(data + sent, sizeof(data) - sent));
        now.mono.ns += ZC_NS_PER_MS;
        end_turn(s, 20000);
        end_turn(c, ms % 50 == 0 ? 5000 : 0);
        end_receive(s, 20000);
        end_receive(c, 20000);
    }
    CHECK_INT(s->got, sizeof(data));
    CHECK_INT(relay.dropped, 0);
    struct zc_tcpmux_stats st = zc_tcpmux_stats(zc_tunnel_mux(c->t));
    CHECK_INT(st.stray, 0);
    net_end();
}

/* An idle pair does not keep the host awake. */
TEST(idle_is_quiet)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    run(20000);
    uint32_t ticks = 0;
    for (int ms = 0; ms < 600000; ms++) {
        ticks += zc_tunnel_deadline(c->t).ns <= now.mono.ns;
        step();
    }
    CHECK(ticks < 200);
    CHECK_INT(c->closed, 0);
    CHECK_INT(state(c), ZC_TUNNEL_UP);
    /* and still works */
    zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn, zc_slice_str("x"));
    CHECK(RUN_UNTIL(s->got == 1, 1000) >= 0);
    net_end();
}
