/* tunnel/tunnel.h: how a client asks for a server that is away, and what it notices by itself. */
#define _GNU_SOURCE
#include "ends.h"

static void leave(struct end *e)
{
    end_hangup(e);
    zc_tunnel_free(e->t);
    e->t = NULL;
}

static void serve_again(struct end *e)
{
    serve(e, &(struct zc_tunnel_config){.psk = &psk});
}

/* It starts anew in the moment in which it went: the relay has nothing to say. */
static void restart_unseen(struct end *e)
{
    zc_tunnel_free(e->t);
    e->conn = -1; /* the old connection stands, silent */
    serve_again(e);
}

/* A connection to port 7 that the server has accepted. */
static struct zc_tcpmux_conn *open_conn(struct end *c)
{
    struct zc_tcpmux_conn *conn;
    uint32_t before = c->connected;
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    CHECK(RUN_UNTIL(c->connected == before + 1, 1000) >= 0);
    return conn;
}

/* Meows to a server that is not there. */
static uint64_t meows_in(int64_t ms)
{
    uint64_t before = relay.lost;
    run(ms);
    return relay.lost - before;
}

/* Every second for 30 s, then every 5 s, whether the relay says that nobody is there or not. */
TEST(meow_by_the_second)
{
    for (int tells = 0; tells < 2; tells++) {
        net_start();
        relay.tells_absent = tells != 0;
        struct end *s = server(1), *c = client(2, s, &psk);
        leave(s);
        CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_MEOW, 3000) >= 0);
        run(20);
        CHECK_INT(relay.lost, 1);
        CHECK_INT(meows_in(29500), 29);
        run(2000);
        CHECK_INT(meows_in(60000), 12);
        CHECK_INT(meows_in(600000), 120);
        serve_again(s);
        CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 6000) >= 0);
        net_end();
    }
}

/* When their server leaves, its clients dial the relay again: not all in the same moment. */
TEST(clients_do_not_dial_all_at_once)
{
    enum { CLIENTS = 40, SLOTS = 5 };
    uint32_t back[SLOTS] = {0}, all = 0;
    net_start();
    struct end *s = server(1);
    for (uint8_t i = 0; i < CLIENTS; i++)
        client((uint8_t)(2 + i), s, &psk);
    for (uint32_t i = 1; i < ends_count; i++)
        CHECK(RUN_UNTIL(state(&ends[i]) == ZC_TUNNEL_UP, 5000) >= 0);
    leave(s);
    serve_again(s);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        run(200);
        for (uint32_t i = 1; i < ends_count; i++)
            back[slot] += ends[i].ups == 2;
        back[slot] -= all;
        all += back[slot];
        CHECK(back[slot] >= 1 && back[slot] <= CLIENTS / 2);
    }
    run(50);
    for (uint32_t i = 1; i < ends_count; i++)
        CHECK(ends[i].ups == 2 && ends[i].downs == 0); /* the relay is well */
    for (uint32_t i = 1; i < ends_count; i++)
        CHECK(RUN_UNTIL(state(&ends[i]) == ZC_TUNNEL_UP, 3000) >= 0);
    net_end();
}

/* A connection on which nobody says anything, as that of a program that waits for a job. */
TEST(silent_connection_finds_out_by_itself)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    open_conn(c);
    run(20000);
    restart_unseen(s);
    CHECK(RUN_UNTIL(c->closed == 1, 100000) >= 0);
    CHECK_INT(c->reason, ZC_TCP_RESET);
    CHECK_INT(state(c), ZC_TUNNEL_UP);
    net_end();
}

/* The machine has another network and the stream to the relay stands, dead: a client that waits for
 * an answer has a new one soon. One whose server is away keeps the stream, which answers. */
TEST(who_gets_no_answer_looks_after_the_relay)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    c->cut = true;
    zc_tunnel_ask(c->t, now);
    CHECK(RUN_UNTIL(c->ups == 2, 7000) > 3000);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    CHECK_INT(c->peer_ups, 2);
    zc_tunnel_free(s->t);
    s->t = NULL;
    zc_tunnel_ask(c->t, now);
    CHECK(RUN_UNTIL(c->peer_downs == 2, 7000) >= 0);
    run(30000);
    CHECK_INT(c->ups, 2);
    net_end();
}

/* And a server that is not there any more is noticed, also when the relay does not say so. */
TEST(silent_connection_to_a_server_that_is_gone)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    open_conn(c);
    run(20000);
    zc_tunnel_free(s->t);
    s->t = NULL;
    CHECK(RUN_UNTIL(c->peer_downs == 1, 100000) >= 0);
    net_end();
}

/* One connection meets the new server; the silent one beside it ends with that. */
TEST(what_one_connection_meets_the_others_learn)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    struct zc_tcpmux_conn *conn;
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    open_conn(c);
    run(20000);
    restart_unseen(s);
    run(1000);
    CHECK_INT(zc_tunnel_connect(c->t, now, 7, NULL, &conn), 0);
    run(1000);
    zc_tunnel_ask(c->t, now);
    CHECK(RUN_UNTIL(c->connected == 2, 3000) >= 0);
    CHECK(RUN_UNTIL(c->closed == 1, 3000) >= 0);
    CHECK_INT(c->reason, ZC_TCP_RESET);
    CHECK_INT(c->peer_downs, 0);
    net_end();
}

/* Probes of many connections fill the relay's queue, which drops the oldest packets: the answer to
 * a meow must not be among them. */
TEST(many_silent_connections_do_not_drown_the_meow)
{
    enum { CONNS = 200 };
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    for (int i = 0; i < CONNS; i++)
        open_conn(c);
    run(20000);
    relay_kill(&relay);
    run(2000);
    relay.up = true;
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 4000) >= 0);
    /* One that leaves and comes back alone, which the server does not notice. */
    relay_close(&relay, c->conn);
    CHECK(RUN_UNTIL(c->ups == 3 && state(c) == ZC_TUNNEL_UP, 4000) >= 0);
    run(200000);
    CHECK_INT(c->closed, 0);
    CHECK_INT(s->closed, 0);
    net_end();
}

/* Meows get lost between many packets; what comes inside the session is proof enough. */
TEST(a_server_that_is_heard_is_not_away)
{
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    open_conn(c);
    run(10);
    relay.drops_meows = true;
    zc_tunnel_ask(c->t, now);
    CHECK_INT(state(c), ZC_TUNNEL_MEOW);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(zc_tcpmux_write(zc_tunnel_mux(s->t), now, s->last, zc_slice_str("x")), 1);
        run(500);
    }
    CHECK_INT(state(c), ZC_TUNNEL_UP);
    CHECK_INT(c->peer_downs, 0);
    run(2000);
    zc_tunnel_ask(c->t, now); /* and one that is silent is */
    CHECK(RUN_UNTIL(c->peer_downs == 1, 4000) >= 0);
    net_end();
}

/* Segments sent again while 8 MiB go to the server, which is asked in their midst. */
static uint64_t resent(bool asked)
{
    static uint8_t data[65536];
    size_t left = 8 << 20;
    net_start();
    struct end *s = server(1), *c = client(2, s, &psk);
    CHECK(RUN_UNTIL(state(c) == ZC_TUNNEL_UP, 3000) >= 0);
    struct zc_tcpmux *m = zc_tunnel_mux(c->t);
    struct zc_tcpmux_conn *conn = open_conn(c);
    while (left > 0 || s->got < 8 << 20) {
        size_t part = left < sizeof(data) ? left : sizeof(data);
        left -= zc_tcpmux_write(m, now, conn, zc_slice(data, part));
        if (asked && s->got > 4 << 20) {
            zc_tunnel_ask(c->t, now);
            asked = state(c) != ZC_TUNNEL_MEOW;
        }
        step();
    }
    CHECK_INT(state(c), ZC_TUNNEL_UP);
    uint64_t count = zc_tcpmux_stats(m).retransmitted;
    net_end();
    return count;
}

TEST(a_question_costs_a_transfer_nothing)
{
    CHECK_INT(resent(false), 0);
    CHECK_INT(resent(true), 0);
}
