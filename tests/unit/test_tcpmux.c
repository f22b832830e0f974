/* The demultiplexer: filter, listeners, limits, TIME-WAIT, echo, many sessions, vanished peers. */
#include "tcp_flow.h"

static const struct zc_slice NOTHING;

/* A segment from addr:port to end 1 of the link; returns how many packets end 1 answers and the
 * last of them. */
static int poke(struct link *l, const struct zc_ip6_addr *from, struct zc_tcp_segment s,
                struct zc_tcp_segment *ret_answer)
{
    static uint8_t buf[ZC_IP6_MTU];
    size_t n = zc_tcp_segment_write(&s, NOTHING, from, &l->addr[1], buf, sizeof(buf));
    struct zc_ip6_addr dst;
    int answers = 0;
    zc_tcpmux_input(l->mux[1], l->now, buf, n);
    for (;;) {
        struct zc_ip6 ip;
        zc_tcpmux_output(l->mux[1], l->now, from, buf, sizeof(buf), &n, &dst);
        if (n == 0)
            return answers;
        CHECK(zc_ip6_addr_eq(&dst, from));
        answers++;
        if (zc_ip6_parse(buf, n, &ip) != 0 || zc_tcp_segment_parse(&ip, ret_answer) != 0)
            abort();
    }
}

static struct zc_tcp_segment segment(unsigned flags, uint16_t src, uint16_t dst)
{
    return (struct zc_tcp_segment){.src_port = src,
                                   .dst_port = dst,
                                   .seq = 1000,
                                   .ack = (flags & ZC_TCP_ACK) != 0 ? 5000 : 0,
                                   .flags = (uint8_t)flags,
                                   .window = 1000,
                                   .mss = (flags & ZC_TCP_SYN) != 0 ? 1220 : 0};
}

enum { S = ZC_TCP_SYN, A = ZC_TCP_ACK, F = ZC_TCP_FIN, R = ZC_TCP_RST };

TEST(filter)
{
    struct link l;
    struct zc_tcp_segment a;
    struct zc_ip6_addr from = link_addr(9);
    link_init(&l, 1, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    CHECK_INT(zc_tcpmux_pass(l.mux[1], 80, 90), 0);
    static const struct {
        unsigned flags;
        uint16_t port;
        int answers;
        unsigned answer;
    } cases[] = {
        {S, 7, 1, S | A},     {S, 79, 0, 0},     {S, 80, 1, R | A}, {S, 90, 1, R | A},
        {S, 91, 0, 0},        {S, 0, 0, 0},      {S | A, 79, 1, R}, {A, 79, 1, R},
        {F | A, 7, 1, R},     {R, 7, 0, 0},      {R | A, 80, 0, 0}, {S | R, 7, 0, 0},
        {S | F, 7, 0, 0},     {S | F, 79, 0, 0}, {F, 79, 1, R | A}, {0, 7, 1, R | A},
        {S | F | A, 9, 1, R}, {S, 65535, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int before = test_faults;
        struct zc_tcp_segment s = segment(cases[i].flags, (uint16_t)(100 + i), cases[i].port);
        CHECK_INT(poke(&l, &from, s, &a), cases[i].answers);
        if (cases[i].answers > 0) {
            CHECK_INT(a.flags, cases[i].answer);
            CHECK(a.src_port == cases[i].port && a.dst_port == 100 + i);
        }
        if (cases[i].answers > 0 && cases[i].answer == R)
            CHECK_INT(a.seq, 5000);
        if (test_faults > before)
            printf("in case %zu\n", i);
    }
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).conns, 1);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).filtered, 4);
    link_done(&l);
}

TEST(ports_are_bounded)
{
    struct link l;
    link_init(&l, 1, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[0], 9, 8), ZC_EINVAL);
    for (uint16_t i = 0; i < 64; i++)
        CHECK_INT(zc_tcpmux_listen(l.mux[0], i, i), 0);
    CHECK_INT(zc_tcpmux_listen(l.mux[0], 100, 100), ZC_ELIMIT);
    link_done(&l);
}

TEST(refused_and_filtered_connects)
{
    struct link l;
    struct zc_tcpmux_conn *refused, *filtered;
    link_init(&l, 2, NULL);
    CHECK_INT(zc_tcpmux_pass(l.mux[1], 8, 8), 0);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 8, &l, &refused), 0);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 9, NULL, &filtered), 0);
    CHECK(zc_tcpmux_owner(refused) == &l && zc_tcpmux_remote_port(filtered) == 9);
    link_run(&l, 1000);
    struct zc_tcpmux_event ev = link_event(&l, 0);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.conn == refused && ev.reason == ZC_TCP_REFUSED);
    zc_tcpmux_release(l.mux[0], l.now, refused);
    CHECK(link_event(&l, 0).kind == (enum zc_tcpmux_event_kind) - 1);
    link_run(&l, 130 * 1000);
    ev = link_event(&l, 0);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.conn == filtered && ev.reason == ZC_TCP_TIMEOUT);
    zc_tcpmux_release(l.mux[0], l.now, filtered);
    link_check_empty(&l);
    struct zc_tcpmux_conn *none = NULL;
    struct zc_ip6_addr bad = {{0xff, 2}};
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &bad, 7, NULL, &none), ZC_EINVAL);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[0], 7, NULL, &none), ZC_EINVAL);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 0, NULL, &none), ZC_EINVAL);
    CHECK(none == NULL);
    link_done(&l);
}

static void tune_tight(struct zc_tcpmux_config *c, int end)
{
    (void)end;
    c->conns_max = 30;
    c->half_open_max = 9;
}

TEST(half_open_limits)
{
    struct link l;
    struct zc_tcp_segment a;
    link_init(&l, 3, tune_tight);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 0, 65535), 0);
    struct zc_ip6_addr first = link_addr(9), second = link_addr(10);
    for (uint16_t i = 1; i < 20; i++)
        CHECK_INT(poke(&l, &first, segment(S, i, 7), &a), i <= 6); /* two thirds */
    for (uint16_t i = 1; i < 20; i++)
        CHECK_INT(poke(&l, &second, segment(S, i, 7), &a), i <= 3); /* the rest */
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).half_open, 9);
    /* One that completes makes room. */
    struct zc_tcp_segment s = segment(S, 1, 7);
    CHECK_INT(poke(&l, &second, s, &a), 1);
    s = segment(A, 1, 7);
    s.seq = 1001;
    s.ack = a.seq + 1;
    CHECK_INT(poke(&l, &second, s, &a), 0);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).half_open, 8);
    CHECK(link_event(&l, 1).kind == ZC_TCPMUX_ACCEPTED);
    CHECK_INT(poke(&l, &second, segment(S, 99, 7), &a), 1);
    /* They are given up by themselves, without an event. */
    l.cut = true;
    link_run(&l, 130 * 1000);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).half_open, 0);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).conns, 1);
    CHECK(link_event(&l, 1).kind == (enum zc_tcpmux_event_kind) - 1);
    link_done(&l);
}

TEST(connection_limit_and_oldest_time_wait)
{
    struct link l;
    struct zc_tcpmux_conn *conns[2], *more;
    link_init(&l, 4, tune_tight);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    /* Ten that have closed fill the wait of end 0; forty more come nevertheless. */
    for (int i = 0; i < 50; i++) {
        link_connect(&l, conns);
        zc_tcpmux_release(l.mux[0], l.now, conns[0]);
        link_run(&l, 100);
        zc_tcpmux_release(l.mux[1], l.now, conns[1]);
        link_run(&l, 100);
    }
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).conns, 30);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).time_wait, 30);
    for (int i = 0; i < 30; i++)
        CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 7, NULL, &more), 0);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 7, NULL, &more), ZC_ELIMIT);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).time_wait, 0);
    link_done(&l);
}

/* A connection with the same ends may follow at once, with a newer SYN; an old one may not. */
TEST(time_wait_is_reused)
{
    struct link l;
    struct zc_tcp_segment a, s;
    struct zc_ip6_addr from = link_addr(9);
    link_init(&l, 5, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    CHECK_INT(poke(&l, &from, segment(S, 1, 7), &a), 1);
    uint32_t iss = a.seq;
    s = segment(A, 1, 7);
    s.seq = 1001;
    s.ack = iss + 1;
    CHECK_INT(poke(&l, &from, s, &a), 0);
    struct zc_tcpmux_event ev = link_event(&l, 1);
    CHECK(ev.kind == ZC_TCPMUX_ACCEPTED);
    zc_tcpmux_release(l.mux[1], l.now, ev.conn);
    s.flags = F | A;
    s.ack = iss + 2;
    CHECK_INT(poke(&l, &from, segment(A, 200, 7), &a), 2); /* its reset, and our FIN */
    struct zc_tcp_segment seen;
    CHECK_INT(poke(&l, &from, s, &seen), 1);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).time_wait, 1);
    s = segment(S, 1, 7);
    s.seq = 500; /* older than what the connection had */
    CHECK_INT(poke(&l, &from, s, &a), 1);
    CHECK_INT(a.flags, A);
    s.seq = 5000;
    CHECK_INT(poke(&l, &from, s, &a), 1);
    CHECK_INT(a.flags, S | A);
    CHECK(zc_tcp_seq_lt(iss + 2, a.seq));
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).time_wait, 0);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).conns, 1);
    link_done(&l);
}

TEST(two_thousand_short_sessions)
{
    struct link l;
    link_init(&l, 6, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    l.loss = 10;
    l.delay_ms = 5;
    int done = 0;
    for (int i = 0; i < 2000 && test_faults == 0; i++) {
        struct user users[2] = {{.to_write = link_rnd(&l, 3000)}, {.to_write = link_rnd(&l, 3000)}};
        users_start(&l, users);
        users_run(&l, users, 100 * 1000);
        users_check_done(users);
        done++;
    }
    CHECK_INT(done, 2000);
    link_run(&l, 200 * 1000);
    link_check_empty(&l);
    link_done(&l);
}

/* All at once, in both directions, over a bad link. */
TEST(many_sessions_at_once)
{
    enum { COUNT = 200, BYTES = 20000 };
    static uint8_t zeros[BYTES];
    struct link l;
    struct zc_tcpmux_conn *c;
    struct zc_tcpmux_event ev;
    int closed[2] = {0};
    uint64_t got[2] = {0};
    link_init(&l, 7, NULL);
    for (int i = 0; i < 2; i++)
        CHECK_INT(zc_tcpmux_listen(l.mux[i], 7, 7), 0);
    l.loss = 30;
    l.late = 100;
    for (int i = 0; i < COUNT; i++) {
        int end = i % 2;
        CHECK_INT(zc_tcpmux_connect(l.mux[end], l.now, &l.addr[!end], 7, NULL, &c), 0);
        CHECK_INT(zc_tcpmux_write(l.mux[end], l.now, c, zc_slice(zeros, BYTES)), BYTES);
        zc_tcpmux_shutdown(l.mux[end], l.now, c);
    }
    while (closed[0] + closed[1] < 2 * COUNT && link_ms(&l) < 300 * 1000) {
        link_step(&l, INT64_MAX);
        for (int end = 0; end < 2; end++) {
            while (zc_tcpmux_event(l.mux[end], &ev)) {
                struct zc_slice parts[2];
                size_t n = zc_tcpmux_readable(ev.conn, parts), all = 0;
                for (size_t k = 0; k < n; k++)
                    all += parts[k].len;
                got[end] += all;
                zc_tcpmux_consume(l.mux[end], l.now, ev.conn, all);
                if (ev.kind == ZC_TCPMUX_PEER_FIN)
                    zc_tcpmux_shutdown(l.mux[end], l.now, ev.conn);
                if (ev.kind != ZC_TCPMUX_CLOSED)
                    continue;
                CHECK_INT(ev.reason, ZC_TCP_DONE);
                closed[end]++;
                zc_tcpmux_release(l.mux[end], l.now, ev.conn);
            }
        }
    }
    CHECK_INT(closed[0], COUNT);
    CHECK_INT(closed[1], COUNT);
    CHECK_INT(got[0], (uint64_t)COUNT / 2 * BYTES);
    CHECK_INT(got[1], (uint64_t)COUNT / 2 * BYTES);
    link_run(&l, 100 * 1000);
    link_check_empty(&l);
    link_done(&l);
}

TEST(peer_vanishes)
{
    struct link l;
    struct zc_tcpmux_conn *conns[2];
    link_init(&l, 8, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    link_connect(&l, conns);
    l.cut = true;
    CHECK_INT(zc_tcpmux_write(l.mux[0], l.now, conns[0], zc_slice("anyone?", 7)), 7);
    CHECK_INT(zc_tcpmux_unacked(conns[0]), 7);
    link_run(&l, 59 * 1000);
    CHECK(link_event(&l, 0).kind == (enum zc_tcpmux_event_kind) - 1);
    link_run(&l, 2 * 1000);
    struct zc_tcpmux_event ev = link_event(&l, 0);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.reason == ZC_TCP_TIMEOUT);
    zc_tcpmux_release(l.mux[0], l.now, conns[0]);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).conns, 0);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).bytes, 0);
    /* The other one has nothing to say and learns it when it has: from a reset. */
    l.cut = false;
    CHECK_INT(zc_tcpmux_write(l.mux[1], l.now, conns[1], zc_slice("hello", 5)), 5);
    link_run(&l, 1000);
    link_event(&l, 1);
    ev = link_event(&l, 1);
    zc_tcpmux_release(l.mux[1], l.now, conns[1]);
    link_check_empty(&l);
    link_done(&l);
}

TEST(outage_and_nudge)
{
    struct link l;
    struct user users[2] = {{.to_write = 2 << 20}, {0}};
    link_init(&l, 9, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    users_start(&l, users);
    while (users[1].read < 100000)
        users_step(&l, users, 100 * 1000);
    l.cut = true;
    int64_t from = link_ms(&l);
    while (users_step(&l, users, from + 20 * 1000))
        ;
    l.cut = false;
    uint64_t before = users[1].read;
    zc_tcpmux_nudge(l.mux[0], l.now, &l.addr[1]);
    from = link_ms(&l);
    while (users_step(&l, users, from + 100))
        ;
    CHECK(users[1].read > before); /* not after the backed-off timer */
    users_run(&l, users, 100 * 1000);
    users_check_done(users);
    CHECK(users[0].closed_ms - from < 5000);
    link_done(&l);
}

TEST(forget)
{
    struct link l;
    struct zc_tcpmux_conn *conns[2], *other;
    struct zc_ip6_addr third = link_addr(9);
    link_init(&l, 10, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    link_connect(&l, conns);
    link_connect(&l, conns);
    CHECK_INT(zc_tcpmux_connect(l.mux[1], l.now, &third, 7, NULL, &other), 0);
    uint64_t out = zc_tcpmux_stats(l.mux[1]).out;
    zc_tcpmux_forget(l.mux[1], l.now, &l.addr[0]);
    for (int i = 0; i < 2; i++) {
        struct zc_tcpmux_event ev = link_event(&l, 1);
        CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.reason == ZC_TCP_TIMEOUT);
        zc_tcpmux_release(l.mux[1], l.now, ev.conn);
    }
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).conns, 1);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).out, out);
    zc_tcpmux_forget(l.mux[1], l.now, &l.addr[0]);
    link_done(&l);
}

TEST(output_for_one_remote)
{
    struct link l;
    struct zc_tcpmux_conn *c;
    struct zc_ip6_addr a = link_addr(20), b = link_addr(21), dst;
    uint8_t buf[ZC_IP6_MTU];
    size_t n;
    link_init(&l, 11, NULL);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &a, 7, NULL, &c), 0);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &b, 7, NULL, &c), 0);
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &a, 7, NULL, &c), 0);
    zc_tcpmux_output(l.mux[0], l.now, &l.addr[1], buf, sizeof(buf), &n, &dst);
    CHECK_INT(n, 0);
    zc_tcpmux_output(l.mux[0], l.now, &b, buf, sizeof(buf), &n, &dst);
    CHECK(n == 80 && zc_ip6_addr_eq(&dst, &b));
    zc_tcpmux_output(l.mux[0], l.now, &b, buf, sizeof(buf), &n, &dst);
    CHECK_INT(n, 0);
    for (int i = 0; i < 2; i++) {
        zc_tcpmux_output(l.mux[0], l.now, NULL, buf, sizeof(buf), &n, &dst);
        CHECK(n == 80 && zc_ip6_addr_eq(&dst, &a));
    }
    zc_tcpmux_output(l.mux[0], l.now, NULL, buf, sizeof(buf), &n, &dst);
    CHECK_INT(n, 0);
    link_done(&l);
}
