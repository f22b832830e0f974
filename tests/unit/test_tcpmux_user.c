/* What users of the demultiplexer see: events in order, half-close, abort, release, limits of
 * memory, echo, and packets that are none. */
#include "tcp_flow.h"
#include "tunnel/icmp6.h"

static void connected(struct link *l, uint8_t seed, struct zc_tcpmux_conn *conns[2])
{
    link_init(l, seed, NULL);
    if (zc_tcpmux_listen(l->mux[1], 7, 7) != 0)
        abort();
    link_connect(l, conns);
}

static void write_text(struct link *l, int end, struct zc_tcpmux_conn *c, const char *text)
{
    CHECK_INT(zc_tcpmux_write(l->mux[end], l->now, c, zc_slice_str(text)), strlen(text));
}

/* Reads all there is and compares. */
static void read_text(struct link *l, int end, struct zc_tcpmux_conn *c, const char *want)
{
    struct zc_slice parts[2];
    size_t n = zc_tcpmux_readable(c, parts);
    CHECK_INT(n, want[0] != '\0');
    if (n == 1) {
        CHECK(zc_slice_is(parts[0], want));
        zc_tcpmux_consume(l->mux[end], l->now, c, parts[0].len);
    }
}

static const enum zc_tcpmux_event_kind NONE = (enum zc_tcpmux_event_kind) - 1;

TEST(half_close)
{
    struct link l;
    struct zc_tcpmux_conn *c[2];
    connected(&l, 1, c);
    write_text(&l, 0, c[0], "question");
    zc_tcpmux_shutdown(l.mux[0], l.now, c[0]);
    link_run(&l, 100);
    CHECK(link_event(&l, 1).kind == ZC_TCPMUX_READABLE);
    CHECK(link_event(&l, 1).kind == ZC_TCPMUX_PEER_FIN);
    CHECK(link_event(&l, 1).kind == NONE);
    read_text(&l, 1, c[1], "question");
    link_run(&l, 500 * 1000); /* as long as it likes */
    write_text(&l, 1, c[1], "answer");
    link_run(&l, 100);
    CHECK(link_event(&l, 0).kind == ZC_TCPMUX_READABLE);
    read_text(&l, 0, c[0], "answer");
    CHECK_INT(zc_tcpmux_unacked(c[1]), 0);
    zc_tcpmux_shutdown(l.mux[1], l.now, c[1]);
    link_run(&l, 100);
    CHECK(link_event(&l, 0).kind == ZC_TCPMUX_PEER_FIN);
    struct zc_tcpmux_event ev = link_event(&l, 0);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.reason == ZC_TCP_DONE && ev.conn == c[0]);
    ev = link_event(&l, 1);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.reason == ZC_TCP_DONE && ev.conn == c[1]);
    zc_tcpmux_release(l.mux[0], l.now, c[0]);
    zc_tcpmux_release(l.mux[1], l.now, c[1]);
    link_run(&l, 31 * 1000);
    link_check_empty(&l);
    link_done(&l);
}

TEST(both_close_at_once)
{
    struct link l;
    struct zc_tcpmux_conn *c[2];
    connected(&l, 2, c);
    for (int i = 0; i < 2; i++)
        zc_tcpmux_shutdown(l.mux[i], l.now, c[i]);
    link_run(&l, 15);
    CHECK_INT(zc_tcpmux_state(c[0]), ZC_TCP_CLOSING);
    CHECK_INT(zc_tcpmux_state(c[1]), ZC_TCP_CLOSING);
    link_run(&l, 100);
    for (int i = 0; i < 2; i++) {
        CHECK(link_event(&l, i).kind == ZC_TCPMUX_PEER_FIN);
        CHECK(link_event(&l, i).kind == ZC_TCPMUX_CLOSED);
        CHECK_INT(zc_tcpmux_state(c[i]), ZC_TCP_TIME_WAIT);
        zc_tcpmux_release(l.mux[i], l.now, c[i]);
    }
    link_run(&l, 31 * 1000);
    link_check_empty(&l);
    link_done(&l);
}

/* Both dial the same pair of ports at the same time (RFC 9293 3.5, figure 8). */
TEST(both_connect_at_once)
{
    struct link l;
    struct zc_tcpmux_conn *c[2];
    link_init(&l, 3, NULL);
    /* Ports are free to choose for the mux; find a pair that fits. */
    CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 40000, NULL, &c[0]), 0);
    uint16_t port = zc_tcpmux_local_port(c[0]);
    c[1] = NULL;
    for (int i = 0; i < 40000 && c[1] == NULL; i++) {
        struct zc_tcpmux_conn *t;
        CHECK_INT(zc_tcpmux_connect(l.mux[1], l.now, &l.addr[0], port, NULL, &t), 0);
        if (zc_tcpmux_local_port(t) == 40000)
            c[1] = t;
        else
            zc_tcpmux_release(l.mux[1], l.now, t);
    }
    CHECK(c[1] != NULL);
    link_run(&l, 1000);
    for (int i = 0; i < 2; i++) {
        CHECK(link_event(&l, i).kind == ZC_TCPMUX_CONNECTED);
        CHECK_INT(zc_tcpmux_state(c[i]), ZC_TCP_ESTABLISHED);
    }
    write_text(&l, 0, c[0], "hello");
    link_run(&l, 100);
    read_text(&l, 1, c[1], "hello");
    link_done(&l);
}

TEST(abort_reaches_the_peer)
{
    struct link l;
    struct zc_tcpmux_conn *c[2];
    connected(&l, 4, c);
    write_text(&l, 1, c[1], "unread");
    link_run(&l, 100);
    link_drop_events(&l);
    zc_tcpmux_abort(l.mux[0], l.now, c[0]);
    struct zc_tcpmux_event ev = link_event(&l, 0);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.reason == ZC_TCP_ABORTED);
    /* Closed, not gone: calls are harmless until it is released. */
    read_text(&l, 0, c[0], "unread");
    CHECK_INT(zc_tcpmux_room(c[0]), 0);
    CHECK_INT(zc_tcpmux_write(l.mux[0], l.now, c[0], zc_slice("x", 1)), 0);
    zc_tcpmux_shutdown(l.mux[0], l.now, c[0]);
    zc_tcpmux_abort(l.mux[0], l.now, c[0]);
    CHECK(link_event(&l, 0).kind == NONE);
    zc_tcpmux_release(l.mux[0], l.now, c[0]);
    link_run(&l, 100);
    ev = link_event(&l, 1);
    CHECK(ev.kind == ZC_TCPMUX_CLOSED && ev.reason == ZC_TCP_RESET);
    zc_tcpmux_release(l.mux[1], l.now, c[1]);
    link_check_empty(&l);
    link_done(&l);
}

TEST(bytes_before_a_reset_can_be_read)
{
    struct link l;
    struct zc_tcpmux_conn *c[2];
    connected(&l, 5, c);
    write_text(&l, 0, c[0], "last words");
    link_run(&l, 100);
    zc_tcpmux_abort(l.mux[0], l.now, c[0]);
    link_run(&l, 100);
    CHECK(link_event(&l, 1).kind == ZC_TCPMUX_READABLE);
    CHECK(link_event(&l, 1).kind == ZC_TCPMUX_CLOSED);
    read_text(&l, 1, c[1], "last words");
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).bytes, 0);
    zc_tcpmux_release(l.mux[1], l.now, c[1]);
    link_done(&l);
}

/* What was written before a release still arrives. */
TEST(release_sends_what_is_queued)
{
    struct link l;
    struct zc_tcpmux_conn *c[2];
    connected(&l, 6, c);
    l.loss = 100;
    write_text(&l, 0, c[0], "fire and forget");
    zc_tcpmux_release(l.mux[0], l.now, c[0]);
    link_run(&l, 20 * 1000);
    CHECK(link_event(&l, 1).kind == ZC_TCPMUX_READABLE);
    read_text(&l, 1, c[1], "fire and forget");
    zc_tcpmux_release(l.mux[1], l.now, c[1]);
    link_run(&l, 200 * 1000);
    link_check_empty(&l);
    link_done(&l);
}

/* A released connection that nobody answers, or whose window stays closed, does not stay. */
TEST(release_ends_in_bounded_time)
{
    static uint8_t zeros[5 << 20];
    struct link l;
    struct zc_tcpmux_conn *c[2];
    connected(&l, 7, c);
    CHECK_INT(zc_tcpmux_write(l.mux[0], l.now, c[0], zc_slice(zeros, sizeof(zeros))), 4 << 20);
    link_run(&l, 10 * 1000);
    CHECK_INT(zc_tcpmux_write(l.mux[0], l.now, c[0], zc_slice(zeros, 100000)), 100000);
    zc_tcpmux_release(l.mux[0], l.now, c[0]); /* end 1 never reads */
    link_run(&l, 70 * 1000);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).conns, 0);
    link_done(&l);
}

static void tune_poor(struct zc_tcpmux_config *c, int end)
{
    (void)end;
    c->bytes_max = 1 << 20;
}

TEST(memory_is_bounded_and_shared)
{
    enum { COUNT = 100 };
    static uint8_t data[100000];
    static struct zc_tcpmux_conn *conns[COUNT][2];
    struct link l;
    link_init(&l, 8, tune_poor);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 7, 7), 0);
    for (int i = 0; i < COUNT; i++)
        link_connect(&l, conns[i]);
    size_t most = (1 << 20) + 2 * (size_t)COUNT * ZC_TCP_RING_FREE;
    size_t written[COUNT] = {0}, read[COUNT] = {0};
    bool full = false;
    for (int round = 0; round < 20000; round++) {
        for (int i = 0; i < COUNT; i++) {
            written[i] += zc_tcpmux_write(l.mux[0], l.now, conns[i][0],
                                          zc_slice(data, sizeof(data) - written[i]));
            struct zc_slice parts[2];
            if (link_ms(&l) < 600 * 1000) /* nobody reads */
                continue;
            size_t all = 0;
            for (size_t n = zc_tcpmux_readable(conns[i][1], parts); n > 0; n--)
                all += parts[n - 1].len;
            read[i] += all;
            zc_tcpmux_consume(l.mux[1], l.now, conns[i][1], all);
        }
        link_step(&l, INT64_MAX);
        for (int end = 0; end < 2; end++) {
            CHECK(zc_tcpmux_stats(l.mux[end]).bytes <= most);
            full = full || zc_tcpmux_stats(l.mux[end]).bytes > 1 << 20;
        }
        link_drop_events(&l);
    }
    CHECK(full);
    for (int i = 0; i < COUNT; i++)
        CHECK(written[i] == sizeof(data) && read[i] == sizeof(data));
    link_done(&l);
}

TEST(echo_is_answered_where_a_port_is_open)
{
    struct link l;
    uint8_t buf[ZC_IP6_MTU], data[1232] = {5};
    struct zc_ip6_addr dst;
    size_t n, out;
    link_init(&l, 9, NULL);
    n = zc_icmp6_echo(buf, sizeof(buf), &l.addr[0], &l.addr[1], false, 3, 4, zc_slice(data, 1232));
    zc_tcpmux_input(l.mux[1], l.now, buf, n);
    zc_tcpmux_output(l.mux[1], l.now, NULL, buf, sizeof(buf), &out, &dst);
    CHECK_INT(out, 0); /* a mere client */
    CHECK_INT(zc_tcpmux_pass(l.mux[1], 7, 7), 0);
    for (int i = 0; i < 100; i++) {
        n = zc_icmp6_echo(buf, sizeof(buf), &l.addr[0], &l.addr[1], false, 3, (uint16_t)i,
                          zc_slice(data, 1232));
        zc_tcpmux_input(l.mux[1], l.now, buf, n);
    }
    int answers = 0;
    for (;; answers++) {
        struct zc_ip6 ip;
        zc_tcpmux_output(l.mux[1], l.now, &l.addr[0], buf, sizeof(buf), &out, &dst);
        if (out == 0)
            break;
        CHECK_INT(zc_ip6_parse(buf, out, &ip), 0);
        struct zc_icmp6 m = zc_icmp6_parse(&ip);
        CHECK(m.kind == ZC_ICMP6_ECHO_REPLY && m.id == 3 && m.seq == answers);
        CHECK(zc_slice_eq(m.rest, zc_slice(data, 1232)));
        CHECK(zc_ip6_addr_eq(&ip.src, &l.addr[1]) && zc_ip6_addr_eq(&ip.dst, &l.addr[0]));
    }
    CHECK(answers > 0 && answers < 100); /* bounded */
    link_done(&l);
}

/* An answer would be longer than the tunnel takes: that is told, with the start of the packet. */
TEST(echo_that_is_too_big)
{
    static uint8_t data[4000], buf[4000 + 48];
    struct link l;
    struct zc_ip6_addr dst;
    struct zc_ip6 ip;
    size_t out;
    link_init(&l, 9, NULL);
    CHECK_INT(zc_tcpmux_pass(l.mux[1], 7, 7), 0);
    for (size_t len = 1232; len <= sizeof(data); len += 1 + len / 5) {
        size_t n = zc_icmp6_echo(buf, sizeof(buf), &l.addr[0], &l.addr[1], false, 3, 4,
                                 zc_slice(data, len));
        zc_tcpmux_input(l.mux[1], l.now, buf, n);
        uint8_t answer[ZC_IP6_MTU];
        zc_tcpmux_output(l.mux[1], l.now, NULL, answer, sizeof(answer), &out, &dst);
        CHECK_INT(out, ZC_IP6_MTU);
        CHECK_INT(zc_ip6_parse(answer, out, &ip), 0);
        CHECK(zc_ip6_addr_eq(&ip.src, &l.addr[1]) && zc_ip6_addr_eq(&ip.dst, &l.addr[0]));
        struct zc_icmp6 m = zc_icmp6_parse(&ip);
        CHECK_INT(m.kind, len == 1232 ? ZC_ICMP6_ECHO_REPLY : ZC_ICMP6_TOO_BIG);
        if (m.kind == ZC_ICMP6_TOO_BIG) {
            CHECK_INT(m.mtu, ZC_IP6_MTU);
            CHECK(zc_slice_eq(m.rest, zc_slice(buf, ZC_IP6_MTU - 48)));
        }
        /* The sender takes it and says nothing: here no path is narrower. */
        zc_tcpmux_input(l.mux[0], l.now, answer, out);
        zc_tcpmux_output(l.mux[0], l.now, NULL, answer, sizeof(answer), &out, &dst);
        CHECK_INT(out, 0);
        CHECK_INT(zc_tcpmux_stats(l.mux[0]).bad, 0);
    }
    link_done(&l);
}

TEST(packets_that_are_none)
{
    struct link l;
    struct zc_tcp_segment s = {.src_port = 9, .dst_port = 7, .flags = ZC_TCP_SYN, .mss = 1220};
    uint8_t good[ZC_IP6_MTU], buf[ZC_IP6_MTU];
    struct zc_ip6_addr dst;
    size_t out, n;
    link_init(&l, 10, NULL);
    CHECK_INT(zc_tcpmux_listen(l.mux[1], 0, 65535), 0);
    n = zc_tcp_segment_write(&s, zc_slice(NULL, 0), &l.addr[0], &l.addr[1], good, sizeof(good));
    for (size_t len = 0; len < n; len++) {
        uint8_t *cut = malloc(len > 0 ? len : 1);
        memcpy(cut, good, len);
        zc_tcpmux_input(l.mux[1], l.now, cut, len);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        if (bit / 8 == 7 || bit < 4 || (bit >= 8 && bit < 32))
            continue; /* hop limit, class and label are free */
        memcpy(buf, good, n);
        buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        zc_tcpmux_input(l.mux[1], l.now, buf, n);
    }
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).conns, 0);
    /* To somebody else, from ourselves, from everybody. */
    struct zc_ip6_addr other = link_addr(77), all = {{0xff, 2}};
    const struct zc_ip6_addr *pairs[][2] = {
        {&l.addr[0], &other}, {&l.addr[1], &l.addr[1]}, {&all, &l.addr[1]}, {&l.addr[0], &all}};
    for (int i = 0; i < 4; i++) {
        size_t len =
            zc_tcp_segment_write(&s, zc_slice(NULL, 0), pairs[i][0], pairs[i][1], buf, sizeof(buf));
        zc_tcpmux_input(l.mux[1], l.now, buf, len);
    }
    zc_tcpmux_output(l.mux[1], l.now, NULL, buf, sizeof(buf), &out, &dst);
    CHECK_INT(out, 0);
    CHECK(zc_tcpmux_stats(l.mux[1]).bad > 100);
    zc_tcpmux_input(l.mux[1], l.now, good, n);
    zc_tcpmux_output(l.mux[1], l.now, NULL, buf, sizeof(buf), &out, &dst);
    CHECK(out > 0);
    link_done(&l);
}

/* Sequence numbers and timestamps start anew for each pair of ends, and later ones above. */
TEST(initial_numbers)
{
    struct link l;
    uint8_t buf[ZC_IP6_MTU];
    uint32_t seq[50], stamp[50];
    link_init(&l, 11, NULL);
    for (int i = 0; i < 50; i++) {
        struct zc_tcpmux_conn *c;
        struct zc_ip6_addr dst;
        struct zc_ip6 ip;
        struct zc_tcp_segment s;
        size_t n;
        CHECK_INT(zc_tcpmux_connect(l.mux[0], l.now, &l.addr[1], 7, NULL, &c), 0);
        zc_tcpmux_output(l.mux[0], l.now, NULL, buf, sizeof(buf), &n, &dst);
        CHECK(zc_ip6_parse(buf, n, &ip) == 0 && zc_tcp_segment_parse(&ip, &s) == 0);
        seq[i] = s.seq;
        stamp[i] = s.stamp;
        for (int k = 0; k < i; k++)
            CHECK(seq[k] != seq[i] && stamp[k] != stamp[i]);
    }
    link_done(&l);
}
