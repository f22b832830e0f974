/* Both ends of the tunnel over a relay in memory: rendezvous, TCP, loss, restarts. */
#define _GNU_SOURCE
#include "ends.h"

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
    /* its place is free after a while without a handshake, however often it asks */
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 15000) >= 0);
    CHECK_INT(state(b), ZC_TUNNEL_UP);
    restart(a);
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
    run(5);
    CHECK_INT(s->closed, 1);
    CHECK_INT(c->closed, 1); /* the client hears it inside the old session */
    CHECK_INT(c->reason, ZC_TCP_RESET);
    struct zc_tunnel_status st;
    zc_tunnel_status(s->t, &st);
    CHECK_INT(st.peers, 0);
    zc_tunnel_ask(c->t, now);
    CHECK(RUN_UNTIL(c->psk_wrong > 0, 100) >= 0);
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

/* The receiver's stream is slower than the sender's: the relay drops, TCP must find the rate. */
TEST(narrow_receiver)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    size_t len = 8 << 20, sent = 0;
    uint8_t *data = malloc(len);
    pattern(data, len, 9);
    int ms = 0;
    for (; ms < 60000 && s->got < len; ms++) {
        sent += zc_tcpmux_write(zc_tunnel_mux(c->t), now, conn, zc_slice(data + sent, len - sent));
        now.mono.ns += ZC_NS_PER_MS;
        end_turn(s, 20000);
        end_turn(c, 20000);
        end_receive(s, 2000);
        end_receive(c, 20000);
    }
    CHECK_INT(s->got, len);
    CHECK(s->sum == sum_of(data, len));
    CHECK(relay.dropped > 0);
    /* 2 MB/s is what there is: half of it is to be used at least. */
    CHECK(ms < 9000);
    free(data);
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

/* A client without traffic stays known: data needs no second introduction. */
TEST(idle_client_is_not_forgotten)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    run(50 * 60 * 1000);
    struct zc_tcpmux_conn *conn;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    CHECK(RUN_UNTIL(c->connected == 1, 1000) >= 0);
    CHECK_INT(c->peer_downs, 0);
    CHECK_INT(c->peer_ups, 1);
    /* and one whose server has left meanwhile notices, without traffic of its own */
    restart(s);
    CHECK(RUN_UNTIL(c->peer_downs == 1, 11 * 60 * 1000) >= 0);
    net_end();
}
