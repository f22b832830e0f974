/* The sending half, segment by segment: windows, recovery with and without SACK, timeouts, probes.
 */
#include "tcp_peer.h"

enum { MSS = 1208 }; /* beside timestamps */

/* Hears everything that goes now; returns how many segments and checks that they are in order and
 * without gaps from seq on. */
static int hear_all(struct peer *p, uint32_t seq)
{
    int n = 0;
    while (peer_hear(p)) {
        CHECK_INT(p->heard.seq - OUR_ISS, seq);
        seq += (uint32_t)p->heard.data.len;
        n++;
    }
    return n;
}

static void start(struct peer *p)
{
    peer_init(p);
    p->window = 60000; /* scaled by 128 */
    peer_reach(p, ZC_TCP_ESTABLISHED);
    peer_say(p, A, 1, 1, NULL); /* the window of the SYN|ACK was not scaled */
    CHECK(!peer_hear(p));
}

/* An acknowledgement with SACK blocks, given as pairs of numbers. */
static void say_sack(struct peer *p, uint32_t ack, const uint32_t (*blocks)[2], unsigned count)
{
    struct zc_tcp_segment s = peer_segment(p, A, 1, ack, NULL);
    s.sack_count = (uint8_t)count;
    for (unsigned i = 0; i < count; i++)
        s.sacks[i] = (struct zc_tcp_range){OUR_ISS + blocks[i][0], OUR_ISS + blocks[i][1]};
    peer_input(p, &s);
}

TEST(slow_start)
{
    struct peer p;
    start(&p);
    peer_write(&p, 100000);
    CHECK_INT(hear_all(&p, 1), 10); /* 10 * 1220 bytes hold 10 of 1208 */
    CHECK_INT(p.heard.data.len, MSS);
    peer_pass(&p, 50);
    peer_say(&p, A, 1, 1 + 2 * MSS, NULL);
    CHECK_INT(hear_all(&p, 1 + 10 * MSS), 4); /* two for two, and two more */
    peer_pass(&p, 1);
    peer_say(&p, A, 1, 1 + 4 * MSS, NULL);
    CHECK_INT(hear_all(&p, 1 + 14 * MSS), 4);
    peer_done(&p);
}

TEST(window_is_kept)
{
    struct peer p;
    start(&p);
    p.window = 20; /* 2560 bytes */
    peer_say(&p, A, 1, 1, NULL);
    p.t.out.wl1--;
    peer_say(&p, A, 1, 1, NULL);
    peer_write(&p, 10000);
    CHECK_INT(hear_all(&p, 1), 2); /* the 144 bytes beside it would be silly */
    peer_say(&p, A, 1, 1 + 2 * MSS, NULL);
    CHECK_INT(hear_all(&p, 1 + 2 * MSS), 2);
    peer_done(&p);
}

TEST(small_writes_go_at_once)
{
    struct peer p;
    start(&p);
    for (uint32_t i = 0; i < 5; i++) {
        peer_write(&p, 1);
        CHECK(peer_hears(&p, A, 1 + i, 1, 1));
        CHECK((p.heard.flags & ZC_TCP_PSH) != 0);
    }
    peer_done(&p);
}

TEST(mss_of_the_peer)
{
    static const struct {
        uint16_t said;
        size_t data;
    } cases[] = {{0, 1208}, {1220, 1208}, {9000, 1208}, {536, 524}, {1, 244}};
    for (size_t i = 0; i < 5; i++) {
        struct peer p;
        peer_init(&p);
        p.window = 60000;
        peer_reach(&p, ZC_TCP_SYN_SENT);
        struct zc_tcp_segment s = peer_segment(&p, S | A, 0, 1, NULL);
        s.mss = cases[i].said;
        peer_input(&p, &s);
        peer_write(&p, 5000);
        CHECK(peer_hear(&p));
        CHECK_INT(p.heard.data.len, cases[i].data);
        peer_done(&p);
    }
}

/* ---- recovery ---- */

TEST(fast_retransmit_by_sack)
{
    struct peer p;
    start(&p);
    peer_write(&p, 10 * MSS);
    CHECK_INT(hear_all(&p, 1), 10);
    peer_pass(&p, 50);
    /* The second and the fourth are lost. */
    static const uint32_t one[][2] = {{1 + 2 * MSS, 1 + 3 * MSS}};
    static const uint32_t two[][2] = {{1 + 4 * MSS, 1 + 5 * MSS}, {1 + 2 * MSS, 1 + 3 * MSS}};
    static const uint32_t all[][2] = {{1 + 4 * MSS, 1 + 10 * MSS}, {1 + 2 * MSS, 1 + 3 * MSS}};
    say_sack(&p, 1 + MSS, one, 1);
    CHECK(!peer_hear(&p));
    say_sack(&p, 1 + MSS, two, 2);
    CHECK(!peer_hear(&p));
    say_sack(&p, 1 + MSS, all, 2);
    CHECK(peer_hear(&p));
    CHECK(peer_heard(&p, A, 1 + MSS, 1, MSS));
    CHECK(peer_hear(&p));
    CHECK(peer_heard(&p, A, 1 + 3 * MSS, 1, MSS));
    CHECK(!peer_hear(&p)); /* and nothing that has arrived */
    CHECK(p.t.out.recovering);
    peer_say(&p, A, 1, 1 + 10 * MSS, NULL);
    CHECK(!p.t.out.recovering && p.t.out.una == p.t.out.max);
    CHECK(p.t.out.cwnd < 10 * 1220);
    CHECK_INT(p.t.out.retransmitted, 2);
    peer_done(&p);
}

/* Without SACK, or from a peer that agreed to it and sends none (some do once their FIN is out). */
static void by_duplicates(bool sacks)
{
    struct peer p;
    peer_init(&p);
    p.sacks = sacks;
    p.window = 60000;
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_say(&p, A, 1, 1, NULL);
    peer_write(&p, 20 * MSS);
    CHECK_INT(hear_all(&p, 1), 10);
    peer_pass(&p, 50);
    peer_say(&p, A, 1, 1, NULL);
    CHECK_INT(hear_all(&p, 1 + 10 * MSS), 1); /* limited transmit */
    peer_say(&p, A, 1, 1, NULL);
    CHECK_INT(hear_all(&p, 1 + 11 * MSS), 1);
    peer_say(&p, A, 1, 1, NULL);
    CHECK(peer_hear(&p));
    CHECK(peer_heard(&p, A, 1, 1, MSS));
    CHECK(p.t.out.recovering);
    while (peer_hear(&p))
        CHECK(zc_tcp_seq_lt(OUR_ISS + MSS, p.heard.seq));
    /* Partial: the next hole goes at once. */
    peer_say(&p, A, 1, 1 + 3 * MSS, NULL);
    CHECK(peer_hear(&p));
    CHECK(peer_heard(&p, A, 1 + 3 * MSS, 1, MSS));
    while (peer_hear(&p))
        ;
    peer_say(&p, A, 1, p.t.out.max - OUR_ISS, NULL);
    CHECK(!p.t.out.recovering);
    peer_done(&p);
}

TEST(fast_retransmit_by_duplicates)
{
    by_duplicates(false);
    by_duplicates(true);
}

TEST(reports_that_are_nonsense)
{
    struct peer p;
    start(&p);
    peer_write(&p, 10 * MSS);
    CHECK_INT(hear_all(&p, 1), 10);
    static const uint32_t bad[][2] = {{1 + 10 * MSS, 1 + 20 * MSS}, /* never sent */
                                      {0, 1},                       /* long acknowledged */
                                      {UINT32_C(0x80000000), UINT32_C(0x80001000)},
                                      {1 + 9 * MSS, 1 + 11 * MSS}};
    say_sack(&p, 1, bad, 4);
    CHECK_INT(p.t.out.sacked.count, 0);
    CHECK(!peer_hear(&p));
    /* More ranges than are kept do no harm. */
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t block[1][2] = {{3 + 4 * i, 5 + 4 * i}};
        say_sack(&p, 1, block, 1);
        while (peer_hear(&p))
            ;
    }
    CHECK(p.t.out.sacked.count <= ZC_TCP_RANGES_MAX);
    peer_say(&p, A, 1, 1 + 10 * MSS, NULL);
    CHECK_INT(p.t.out.sacked.count, 0);
    peer_done(&p);
}

/* ---- timeouts ---- */

TEST(timeout_sends_the_first_and_then_what_the_peer_lacks)
{
    struct peer p;
    start(&p);
    peer_write(&p, 10 * MSS);
    CHECK_INT(hear_all(&p, 1), 10);
    static const uint32_t held[][2] = {{1 + 9 * MSS, 1 + 10 * MSS}};
    say_sack(&p, 1, held, 1);
    CHECK(!peer_hear(&p));
    peer_pass(&p, 1000);
    CHECK(peer_hears(&p, A, 1, 1, MSS));
    CHECK_INT(p.t.out.cwnd, p.t.out.mss);
    peer_pass(&p, 50);
    say_sack(&p, 1 + MSS, held, 1);
    int n = hear_all(&p, 1 + MSS);
    CHECK(n >= 1 && n <= 3);
    for (int i = 0; i < 20 && p.t.out.una != p.t.out.max; i++) {
        peer_pass(&p, 50);
        uint32_t got = p.t.out.rxt - OUR_ISS;
        if (got >= 1 + 9 * MSS)
            got = 1 + 10 * MSS;
        say_sack(&p, got, held, got > 1 + 9 * MSS ? 0 : 1);
        while (peer_hear(&p))
            CHECK(zc_tcp_seq_lt(p.heard.seq, OUR_ISS + 1 + 9 * MSS));
    }
    CHECK(p.t.out.una == p.t.out.max);
    peer_done(&p);
}

/* What a peer has reported it may have thrown away: the second timeout trusts nothing. */
TEST(reneging)
{
    struct peer p;
    start(&p);
    peer_write(&p, 3 * MSS);
    CHECK_INT(hear_all(&p, 1), 3);
    static const uint32_t held[][2] = {{1 + MSS, 1 + 3 * MSS}};
    say_sack(&p, 1, held, 1);
    peer_pass(&p, 1000);
    CHECK(peer_hears(&p, A, 1, 1, MSS));
    peer_pass(&p, 2000);
    CHECK(peer_hears(&p, A, 1, 1, MSS));
    CHECK_INT(p.t.out.sacked.count, 0);
    peer_say(&p, A, 1, 1 + MSS, NULL);
    CHECK(peer_hear(&p));
    CHECK(peer_heard(&p, A, 1 + MSS, 1, MSS));
    peer_done(&p);
}

TEST(lost_answer_is_no_round_trip)
{
    struct peer p;
    start(&p);
    for (uint32_t i = 0; i < 20; i++) { /* 20 ms each */
        peer_write(&p, 1);
        CHECK(peer_hear(&p));
        peer_pass(&p, 20);
        peer_say(&p, A, 1, 2 + i, NULL);
    }
    int64_t before = zc_tcp_rtt_timeout_ms(&p.t.out.rtt);
    CHECK_INT(before, 200);
    peer_write(&p, 1);
    CHECK(peer_hear(&p));
    uint32_t echo = p.echo;
    peer_pass(&p, 200);
    CHECK(peer_hear(&p)); /* again */
    peer_pass(&p, 20);
    p.echo = echo; /* the peer had it: its first answer was lost */
    peer_say(&p, A, 1, 22, NULL);
    CHECK(p.t.out.rtt.smooth_us <= 20000);
    CHECK_INT(zc_tcp_rtt_timeout_ms(&p.t.out.rtt), 2 * before);
    peer_write(&p, 1);
    CHECK(peer_hear(&p));
    peer_pass(&p, 20);
    peer_say(&p, A, 1, 23, NULL);
    CHECK_INT(zc_tcp_rtt_timeout_ms(&p.t.out.rtt), before);
    peer_done(&p);
}

TEST(nudge_sends_at_once)
{
    struct peer p;
    start(&p);
    peer_write(&p, 20 * MSS);
    CHECK_INT(hear_all(&p, 1), 10);
    peer_pass(&p, 1000);
    CHECK(peer_hears(&p, A, 1, 1, MSS));
    peer_pass(&p, 2000);
    CHECK(peer_hears(&p, A, 1, 1, MSS));
    peer_pass(&p, 100);
    CHECK(!peer_hear(&p));
    zc_tcp_nudge(&p.t, p.now);
    CHECK_INT(hear_all(&p, 1), 10);
    CHECK_INT(p.t.out.rtt.backoff, 0);
    peer_done(&p);
}

/* An idle connection is probed, which a peer that has forgotten it answers with a reset. */
TEST(nudge_probes_an_idle_connection)
{
    struct peer p;
    start(&p);
    zc_tcp_nudge(&p.t, p.now);
    CHECK(peer_hears(&p, A, 0, 1, 0));
    struct zc_tcp_segment r = zc_tcp_segment_reset(&p.heard);
    r.seq = p.heard.ack;
    peer_input(&p, &r);
    CHECK_INT(p.t.reason, ZC_TCP_RESET);
    peer_done(&p);
}

/* ---- a closed window ---- */

/* Everything is acknowledged, the window is closed and 5000 bytes wait. */
static void close_window(struct peer *p)
{
    start(p);
    peer_write(p, 100);
    CHECK(peer_hears(p, A, 1, 1, 100));
    p->window = 0;
    peer_say(p, A, 1, 101, NULL);
    peer_write(p, 5000);
    CHECK(!peer_hear(p));
}

TEST(probes_carry_data)
{
    struct peer p;
    close_window(&p);
    int64_t waits[8];
    for (int i = 0; i < 8; i++) {
        int64_t from = p.now.ns;
        while (!peer_hear(&p))
            peer_pass(&p, 10);
        CHECK(peer_heard(&p, A, 101, 1, 1));
        waits[i] = (p.now.ns - from) / ZC_NS_PER_MS;
        peer_say(&p, A, 1, 101, NULL);
        CHECK(i == 0 || waits[i] >= waits[i - 1]);
    }
    CHECK(waits[0] <= 1000 && waits[7] > 10 * waits[0]);
    CHECK_INT(p.t.state, ZC_TCP_ESTABLISHED);
    /* It opens: the probe's byte goes with all the others. */
    p.window = 60000;
    peer_say(&p, A, 1, 101, NULL);
    CHECK_INT(hear_all(&p, 101), 5);
    peer_say(&p, A, 1, 5101, NULL);
    CHECK_INT(zc_tcp_out_waiting(&p.t.out), false);
    peer_done(&p);
}

/* The peer drops the probe, and would drop an acknowledgement that has a number behind it. */
TEST(acknowledgements_beside_a_probe)
{
    struct peer p;
    close_window(&p);
    while (!peer_hear(&p))
        peer_pass(&p, 100);
    CHECK(peer_heard(&p, A, 101, 1, 1));
    peer_say(&p, A, 1, 101, "data");
    peer_pass(&p, 50);
    CHECK(peer_hears(&p, A, 101, 5, 0));
    struct zc_tcp_segment r;
    CHECK(zc_tcp_abort(&p.t, ZC_TCP_ABORTED, &r));
    CHECK_INT(r.seq, OUR_ISS + 101);
    peer_done(&p);
}

TEST(probe_that_is_taken)
{
    struct peer p;
    close_window(&p);
    for (uint32_t i = 0; i < 3; i++) {
        while (!peer_hear(&p))
            peer_pass(&p, 100);
        CHECK(peer_heard(&p, A, 101 + i, 1, 1));
        peer_say(&p, A, 1, 102 + i, NULL);
        CHECK(!peer_hear(&p));
    }
    p.window = 60000;
    peer_say(&p, A, 1, 104, NULL);
    CHECK_INT(hear_all(&p, 104), 5);
    peer_done(&p);
}

/* Both probe and both take the other's byte. The peer does not know yet that we took its byte, so
 * its acknowledgement of ours has the number before the one that we wait for. */
TEST(probes_that_are_taken_by_both)
{
    struct peer p;
    close_window(&p);
    while (!peer_hear(&p))
        peer_pass(&p, 100);
    CHECK(peer_heard(&p, A, 101, 1, 1));
    peer_say(&p, A, 1, 101, "x");
    peer_pass(&p, 50);
    CHECK(peer_hears(&p, A, 101, 2, 0));
    p.window = 60000;
    peer_say(&p, A, 1, 102, NULL);
    CHECK(peer_hears(&p, A, 102, 2, 0)); /* now the peer knows, and its next number is heard */
    CHECK_INT(p.t.out.una, OUR_ISS + 102);
    peer_say(&p, A, 2, 102, NULL);
    CHECK_INT(hear_all(&p, 102), 5);
    peer_done(&p);
}

TEST(probes_without_answers_end_it)
{
    struct peer p;
    close_window(&p);
    int probes = 0;
    for (int i = 0; i < 6100 && p.t.state == ZC_TCP_ESTABLISHED; i++) {
        peer_pass(&p, 10);
        probes += peer_hear(&p);
    }
    CHECK(probes >= 5);
    CHECK_INT(p.t.reason, ZC_TCP_TIMEOUT);
    peer_done(&p);
}

TEST(fin_waits_for_the_window_too)
{
    struct peer p;
    start(&p);
    peer_write(&p, 100);
    CHECK(peer_hears(&p, A, 1, 1, 100));
    p.window = 0;
    peer_say(&p, A, 1, 101, NULL);
    zc_tcp_shutdown(&p.t, p.now);
    CHECK(!peer_hear(&p));
    while (!peer_hear(&p))
        peer_pass(&p, 100);
    CHECK(peer_heard(&p, F | A, 101, 1, 0));
    peer_say(&p, A, 1, 102, NULL);
    CHECK_INT(p.t.state, ZC_TCP_FIN_WAIT_2);
    peer_done(&p);
}

/* The peer takes back what it had offered (RFC 9293 3.8.6 advises against, and to survive it). */
TEST(window_that_shrinks)
{
    struct peer p;
    start(&p);
    peer_write(&p, 5 * MSS);
    CHECK_INT(hear_all(&p, 1), 5);
    p.window = 0;
    peer_say(&p, A, 1, 1 + MSS, NULL);
    /* Acknowledgements without data carry a number that the peer can accept. */
    peer_say(&p, A, 1, 1 + MSS, "x");
    peer_pass(&p, 50);
    CHECK(peer_hear(&p));
    CHECK(peer_heard(&p, A, 1 + MSS, 2, 0));
    for (int i = 0; i < 100; i++) {
        peer_pass(&p, 1000);
        while (peer_hear(&p))
            peer_say(&p, A, 2, 1 + MSS, NULL);
    }
    CHECK_INT(p.t.state, ZC_TCP_ESTABLISHED);
    p.window = 60000;
    peer_say(&p, A, 2, 1 + MSS, NULL);
    for (int i = 0; i < 100 && p.t.out.una != p.t.out.max; i++) {
        while (peer_hear(&p))
            ;
        peer_say(&p, A, 2, p.t.out.rxt - OUR_ISS, NULL);
        peer_pass(&p, 100);
    }
    CHECK(p.t.out.una == p.t.out.max);
    CHECK_INT(p.t.out.ring.len, 0);
    peer_done(&p);
}

/* A window that is old news does not close the new one. */
TEST(old_windows)
{
    struct peer p;
    start(&p);
    peer_say(&p, A, 1, 1, "0123456789");
    CHECK_INT(p.t.out.wnd, 60000 << 7);
    p.window = 1;
    peer_say(&p, A, 0, 1, "0"); /* seen before */
    peer_say(&p, A, 1, 1, NULL);
    CHECK_INT(p.t.out.wnd, 60000 << 7);
    peer_say(&p, A, 11, 1, NULL);
    CHECK_INT(p.t.out.wnd, 1 << 7);
    peer_done(&p);
}

TEST(queue_is_bounded_and_tells_when_there_is_room)
{
    struct peer p;
    static uint8_t data[70000];
    peer_init(&p);
    p.config.send_max = 50000;
    p.window = 60000;
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_say(&p, A, 1, 1, NULL);
    CHECK_INT(zc_tcp_write(&p.t, p.now, zc_slice(data, sizeof(data))), 50000);
    CHECK_INT(zc_tcp_write(&p.t, p.now, zc_slice(data, 1)), 0);
    uint32_t acked = 1;
    while (p.t.out.ring.len > 25000) {
        CHECK_INT(p.t.events & ZC_TCP_EVENT_WRITABLE, 0);
        while (peer_hear(&p))
            ;
        peer_pass(&p, 10);
        acked += MSS;
        peer_say(&p, A, 1, acked, NULL);
    }
    CHECK_INT(p.t.events & ZC_TCP_EVENT_WRITABLE, ZC_TCP_EVENT_WRITABLE);
    CHECK_INT(zc_tcp_out_room(&p.t.out, &p.budget), 50000 - p.t.out.ring.len);
    peer_done(&p);
}
