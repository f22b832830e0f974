/* Two stacks over a bad link: whole streams, whatever the link and the users do. */
#include "tcp_flow.h"

static void listen_at_7(struct link *l)
{
    if (zc_tcpmux_listen(l->mux[1], 7, 7) != 0)
        abort();
}

TEST(clean_link)
{
    struct link l;
    struct user users[2] = {{.to_write = 300000}, {.to_write = 200000}};
    link_init(&l, 1, NULL);
    listen_at_7(&l);
    users_start(&l, users);
    users_run(&l, users, 60000);
    users_check_done(users);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).retransmitted, 0);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).retransmitted, 0);
    CHECK(users[0].closed_ms < 2000);
    link_run(&l, 60000);
    link_check_empty(&l);
    link_done(&l);
}

/* Small queues, so that windows close and memory is short. */
static void tune_small(struct zc_tcpmux_config *c, int end)
{
    c->tcp.recv_max = end == 0 ? 20000 : 9000;
    c->tcp.send_max = 30000;
    c->bytes_max = 100000;
}

/* One random link and random users. What ends in order has brought all; what does not has a
 * reason; nothing is left over. */
static bool random_case(uint8_t seed, bool small)
{
    struct link l;
    struct user users[2] = {{0}};
    link_init(&l, seed, small ? tune_small : NULL);
    listen_at_7(&l);
    l.loss = link_rnd(&l, 4) == 0 ? 0 : link_rnd(&l, 300);
    l.twice = link_rnd(&l, 2) * link_rnd(&l, 200);
    l.late = link_rnd(&l, 2) * link_rnd(&l, 500);
    l.delay_ms = link_rnd(&l, 150);
    l.late_ms = 1 + link_rnd(&l, 200);
    for (int i = 0; i < 2; i++) {
        users[i].to_write = link_rnd(&l, 4) == 0 ? link_rnd(&l, 5) : link_rnd(&l, 400000);
        users[i].write_max = link_rnd(&l, 2) * (1 + link_rnd(&l, 5000));
        users[i].read_max = link_rnd(&l, 2) * (1 + link_rnd(&l, 5000));
    }
    users_start(&l, users);
    users_run(&l, users, 3600 * 1000);
    bool done = true;
    for (int i = 0; i < 2; i++) {
        CHECK(!users[i].wrong);
        bool part = users[i].closed && users[i].reason == ZC_TCP_DONE;
        enum zc_tcp_reason other = users[!i].reason;
        if (part)
            CHECK(users[i].read == users[!i].to_write && users[i].peer_fin);
        else if (users[i].closed && users[i].reason == ZC_TCP_RESET) /* the other is gone */
            CHECK(other == ZC_TCP_TIMEOUT || (other == ZC_TCP_DONE && users[i].peer_fin));
        else if (users[i].closed)
            CHECK_INT(users[i].reason, ZC_TCP_TIMEOUT);
        else /* it never knew, or waits for one that gave up and cannot tell */
            CHECK(!users[i].opened || other == ZC_TCP_TIMEOUT);
        done = done && part;
    }
    link_run(&l, 300 * 1000);
    link_check_empty(&l);
    if (test_faults > 0)
        printf("seed %d small %d loss %u ends %s, %s\n", seed, small, l.loss,
               zc_tcp_reason_text(users[0].reason), zc_tcp_reason_text(users[1].reason));
    link_done(&l);
    return done;
}

TEST(random_links)
{
    int done = 0;
    for (int seed = 0; seed < 120 && test_faults == 0; seed++)
        done += random_case((uint8_t)seed, seed % 3 == 0);
    printf("# %d of 120 done, the others timed out\n", done);
    CHECK(done > 100);
}

TEST(heavy_link_both_ways)
{
    struct link l;
    struct user users[2] = {{.to_write = 64 << 20}, {.to_write = 64 << 20}};
    link_init(&l, 9, NULL);
    listen_at_7(&l);
    l.delay_ms = 25;
    l.loss = 10;
    users_start(&l, users);
    users_run(&l, users, 2000 * 1000);
    users_check_done(users);
    printf("# 64 MiB each way, 1 %% loss, 50 ms: %lld s, %llu packets, %llu and %llu again\n",
           (long long)users[0].closed_ms / 1000, (unsigned long long)l.sent,
           (unsigned long long)zc_tcpmux_stats(l.mux[0]).retransmitted,
           (unsigned long long)zc_tcpmux_stats(l.mux[1]).retransmitted);
    link_run(&l, 60000);
    link_check_empty(&l);
    link_done(&l);
}

TEST(bad_link_20_mib)
{
    struct link l;
    struct user users[2] = {{.to_write = 20 << 20}, {.to_write = 20 << 20}};
    link_init(&l, 10, NULL);
    listen_at_7(&l);
    l.delay_ms = 100;
    l.loss = 20;
    l.late = 100;
    l.late_ms = 40;
    l.twice = 10;
    users_start(&l, users);
    users_run(&l, users, 3600 * 1000);
    users_check_done(users);
    printf("# 20 MiB each way, 2 %% loss, reorder: %lld s\n", (long long)users[0].closed_ms / 1000);
    link_done(&l);
}

/* The reader sleeps for a minute before a full window. */
static void sleeping_reader(unsigned loss)
{
    struct link l;
    struct user users[2] = {{.to_write = 6 << 20}, {0}};
    link_init(&l, (uint8_t)(20 + loss), NULL);
    listen_at_7(&l);
    l.loss = loss;
    users[1].read_from_ms = 61000;
    users_start(&l, users);
    users_run(&l, users, 600 * 1000);
    users_check_done(users);
    CHECK(users[0].closed_ms < 120 * 1000);
    link_done(&l);
}

TEST(zero_window_for_a_minute)
{
    sleeping_reader(0);
    sleeping_reader(100);
}

/* Neither reads, so that both probe: what one says with a number beyond the other's window is not
 * heard. */
TEST(both_windows_closed)
{
    struct link l;
    struct user users[2] = {{.to_write = 6 << 20, .read_from_ms = 30000},
                            {.to_write = 6 << 20, .read_from_ms = 30000}};
    link_init(&l, 32, NULL);
    listen_at_7(&l);
    users_start(&l, users);
    users_run(&l, users, 600 * 1000);
    users_check_done(users);
    CHECK(users[0].closed_ms < 60 * 1000);
    link_done(&l);
}

/* Far longer than the time after which a silent peer is given up: it answers, so it lives. */
TEST(zero_window_for_an_hour)
{
    struct link l;
    struct user users[2] = {{.to_write = 6 << 20}, {0}};
    link_init(&l, 30, NULL);
    listen_at_7(&l);
    users[1].read_from_ms = 3600 * 1000;
    users_start(&l, users);
    users_run(&l, users, 4000 * 1000);
    users_check_done(users);
    CHECK(l.sent < 20000); /* probes, not a flood */
    link_done(&l);
}

static void tune_one_mss(struct zc_tcpmux_config *c, int end)
{
    (void)end;
    c->tcp.recv_max = 4096;
}

TEST(reads_of_one_byte)
{
    struct link l;
    struct user users[2] = {{.to_write = 30000}, {0}};
    link_init(&l, 31, tune_one_mss);
    listen_at_7(&l);
    users[1].read_max = 1;
    users_start(&l, users);
    users_run(&l, users, 3600 * 1000);
    users_check_done(users);
    CHECK(l.sent < 30000); /* no window of one byte is told */
    link_done(&l);
}

/* ---- exactly one kind of segment is lost ---- */

static bool drop_fins(struct link *l, int from, const struct zc_tcp_segment *s)
{
    (void)from;
    return (s->flags & ZC_TCP_FIN) != 0 && l->drop_count-- > 0;
}

static bool drop_fin_acks(struct link *l, int from, const struct zc_tcp_segment *s)
{
    /* End 1 has nothing to say but acknowledgements, until its own FIN. */
    return from == 1 && s->data.len == 0 && link_ms(l) > 1500 && l->drop_count-- > 0;
}

static bool drop_syn_acks(struct link *l, int from, const struct zc_tcp_segment *s)
{
    (void)from;
    return (s->flags & ZC_TCP_SYN) != 0 && (s->flags & ZC_TCP_ACK) != 0 && l->drop_count-- > 0;
}

static bool drop_third(struct link *l, int from, const struct zc_tcp_segment *s)
{
    return from == 0 && s->flags == ZC_TCP_ACK && s->data.len == 0 && l->drop_count-- > 0;
}

static bool drop_update(struct link *l, int from, const struct zc_tcp_segment *s)
{
    /* What the reader says when it wakes up. */
    return from == 1 && s->window > 0 && link_ms(l) >= 10000 && l->drop_count-- > 0;
}

static int64_t scripted(bool (*drop)(struct link *, int, const struct zc_tcp_segment *), int count,
                        uint64_t bytes, int64_t read_from_ms)
{
    struct link l;
    struct user users[2] = {{.to_write = bytes}, {0}};
    link_init(&l, 40, NULL);
    listen_at_7(&l);
    l.drop = drop;
    l.drop_count = count;
    users[1].read_from_ms = read_from_ms;
    users_start(&l, users);
    users_run(&l, users, 300 * 1000);
    users_check_done(users);
    CHECK(l.drop_count <= 0); /* the script has run */
    int64_t ms = users[0].closed_ms > users[1].closed_ms ? users[0].closed_ms : users[1].closed_ms;
    link_run(&l, 100 * 1000);
    link_check_empty(&l);
    link_done(&l);
    return ms;
}

TEST(lost_fin)
{
    CHECK(scripted(drop_fins, 1, 1000, 0) < 5000);
    CHECK(scripted(drop_fins, 2, 0, 0) < 10000);
    CHECK(scripted(drop_fins, 5, 1000, 0) < 60000);
}

TEST(lost_ack_of_fin)
{
    CHECK(scripted(drop_fin_acks, 1, 20 << 20, 0) < 60000);
    CHECK(scripted(drop_fin_acks, 4, 20 << 20, 0) < 60000);
}

TEST(lost_handshake)
{
    CHECK(scripted(drop_syn_acks, 1, 1000, 0) < 5000);
    CHECK(scripted(drop_syn_acks, 3, 1000, 0) < 15000);
    CHECK(scripted(drop_third, 1, 0, 0) < 5000);
    CHECK(scripted(drop_third, 1, 5000, 0) < 5000);
}

TEST(lost_window_update)
{
    CHECK(scripted(drop_update, 1, 6 << 20, 10000) < 60000);
    CHECK(scripted(drop_update, 3, 6 << 20, 10000) < 60000);
}
