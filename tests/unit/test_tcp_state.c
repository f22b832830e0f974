/* The state machine: every state and what each kind of segment, call and timeout makes of it. */
#include "tcp_peer.h"

enum {
    CLOSED = ZC_TCP_CLOSED,
    SYN_SENT = ZC_TCP_SYN_SENT,
    SYN_RECEIVED = ZC_TCP_SYN_RECEIVED,
    ESTABLISHED = ZC_TCP_ESTABLISHED,
    FIN_WAIT_1 = ZC_TCP_FIN_WAIT_1,
    FIN_WAIT_2 = ZC_TCP_FIN_WAIT_2,
    CLOSING = ZC_TCP_CLOSING,
    TIME_WAIT = ZC_TCP_TIME_WAIT,
    CLOSE_WAIT = ZC_TCP_CLOSE_WAIT,
    LAST_ACK = ZC_TCP_LAST_ACK,
};

enum {
    OPENED = ZC_TCP_EVENT_OPENED,
    READABLE = ZC_TCP_EVENT_READABLE,
    PEER_FIN = ZC_TCP_EVENT_PEER_FIN,
    ENDED = ZC_TCP_EVENT_CLOSED,
};

/* What is heard after the segment. */
enum answer { QUIET, ACKS, RESETS, SYN_ACKS };

struct step {
    int from;
    unsigned flags;
    uint32_t seq, ack;
    const char *data;
    int to;
    unsigned events;
    enum answer answer;
    enum zc_tcp_reason reason;
};

/* seq and ack count from the initial numbers: 1 is the first byte, and the place of FIN. */
static const struct step steps[] = {
    /* the handshake */
    {SYN_SENT, S | A, 0, 1, NULL, ESTABLISHED, OPENED, ACKS, 0},
    {SYN_SENT, S, 0, 0, NULL, SYN_RECEIVED, 0, SYN_ACKS, 0},
    {SYN_SENT, S | A, 0, 2, NULL, SYN_SENT, 0, RESETS, 0},
    {SYN_SENT, S | A, 0, 0, NULL, SYN_SENT, 0, RESETS, 0},
    {SYN_SENT, A, 0, 1, NULL, SYN_SENT, 0, QUIET, 0},
    {SYN_SENT, A, 0, 9, NULL, SYN_SENT, 0, RESETS, 0},
    {SYN_SENT, F | A, 0, 1, NULL, SYN_SENT, 0, QUIET, 0},
    {SYN_SENT, 0, 0, 0, "x", SYN_SENT, 0, QUIET, 0},
    {SYN_SENT, R | A, 0, 1, NULL, CLOSED, ENDED, QUIET, ZC_TCP_REFUSED},
    {SYN_SENT, R | A, 0, 2, NULL, SYN_SENT, 0, QUIET, 0},
    {SYN_SENT, R, 0, 0, NULL, SYN_SENT, 0, QUIET, 0},
    {SYN_RECEIVED, A, 1, 1, NULL, ESTABLISHED, OPENED, QUIET, 0},
    {SYN_RECEIVED, A, 1, 1, "data", ESTABLISHED, OPENED | READABLE, QUIET, 0},
    {SYN_RECEIVED, F | A, 1, 1, NULL, CLOSE_WAIT, OPENED | PEER_FIN, ACKS, 0},
    {SYN_RECEIVED, F | A, 1, 1, "data", CLOSE_WAIT, OPENED | READABLE | PEER_FIN, ACKS, 0},
    {SYN_RECEIVED, S, 0, 0, NULL, SYN_RECEIVED, 0, SYN_ACKS, 0},
    {SYN_RECEIVED, A, 1, 2, NULL, SYN_RECEIVED, 0, RESETS, 0},
    {SYN_RECEIVED, A, 1, 0, NULL, SYN_RECEIVED, 0, RESETS, 0},
    {SYN_RECEIVED, R, 1, 0, NULL, CLOSED, ENDED, QUIET, ZC_TCP_REFUSED},
    {SYN_RECEIVED, R, 0, 0, NULL, SYN_RECEIVED, 0, QUIET, 0},
    {SYN_RECEIVED, 0, 1, 0, "x", SYN_RECEIVED, 0, QUIET, 0},
    /* data */
    {ESTABLISHED, A, 1, 1, "abc", ESTABLISHED, READABLE, QUIET, 0},
    {ESTABLISHED, 0, 1, 0, "abc", ESTABLISHED, 0, QUIET, 0},
    {ESTABLISHED, A, 2, 1, "bc", ESTABLISHED, 0, ACKS, 0},
    {ESTABLISHED, A, 0, 1, NULL, ESTABLISHED, 0, ACKS, 0}, /* as a keep-alive */
    {ESTABLISHED, A, 0, 1, "a", ESTABLISHED, 0, ACKS, 0},
    {ESTABLISHED, A, 0, 1, "ab", ESTABLISHED, READABLE, ACKS, 0},
    {ESTABLISHED, A, 1, 2, "abc", ESTABLISHED, 0, ACKS, 0}, /* of what was never sent */
    {ESTABLISHED, A, 1, 0, "abc", ESTABLISHED, READABLE, QUIET, 0},
    {ESTABLISHED, A, 1, 0x80000000, "abc", ESTABLISHED, 0, ACKS, 0},
    {ESTABLISHED, A, 50000000, 1, "abc", ESTABLISHED, 0, ACKS, 0},
    {ESTABLISHED, S | A, 0, 1, NULL, ESTABLISHED, 0, ACKS, 0}, /* our third segment was lost */
    {ESTABLISHED, S, 1, 0, NULL, ESTABLISHED, 0, ACKS, 0},
    {ESTABLISHED, S, 70, 0, NULL, ESTABLISHED, 0, ACKS, 0},
    {FIN_WAIT_1, A, 1, 1, "abc", FIN_WAIT_1, READABLE, QUIET, 0},
    {FIN_WAIT_2, A, 1, 2, "abc", FIN_WAIT_2, READABLE, QUIET, 0},
    {CLOSE_WAIT, A, 2, 1, "abc", CLOSE_WAIT, 0, QUIET, 0},
    /* closing */
    {ESTABLISHED, F | A, 1, 1, NULL, CLOSE_WAIT, PEER_FIN, ACKS, 0},
    {ESTABLISHED, F | A, 1, 1, "abc", CLOSE_WAIT, READABLE | PEER_FIN, ACKS, 0},
    {ESTABLISHED, F | A, 2, 1, NULL, ESTABLISHED, 0, ACKS, 0}, /* one byte is missing */
    {FIN_WAIT_1, A, 1, 2, NULL, FIN_WAIT_2, 0, QUIET, 0},
    {FIN_WAIT_1, F | A, 1, 1, NULL, CLOSING, PEER_FIN, ACKS, 0},
    {FIN_WAIT_1, F | A, 1, 2, NULL, TIME_WAIT, PEER_FIN | ENDED, ACKS, ZC_TCP_DONE},
    {FIN_WAIT_2, F | A, 1, 2, NULL, TIME_WAIT, PEER_FIN | ENDED, ACKS, ZC_TCP_DONE},
    {FIN_WAIT_2, F | A, 1, 2, "abc", TIME_WAIT, READABLE | PEER_FIN | ENDED, ACKS, ZC_TCP_DONE},
    {CLOSING, A, 2, 2, NULL, TIME_WAIT, ENDED, QUIET, ZC_TCP_DONE},
    {CLOSING, A, 2, 1, NULL, CLOSING, 0, QUIET, 0},
    {CLOSING, F | A, 1, 1, NULL, CLOSING, 0, ACKS, 0},
    {LAST_ACK, A, 2, 2, NULL, CLOSED, ENDED, QUIET, ZC_TCP_DONE},
    {LAST_ACK, A, 2, 1, NULL, LAST_ACK, 0, QUIET, 0},
    {LAST_ACK, F | A, 1, 1, NULL, LAST_ACK, 0, ACKS, 0},
    {CLOSE_WAIT, F | A, 1, 1, NULL, CLOSE_WAIT, 0, ACKS, 0},
    {TIME_WAIT, F | A, 1, 2, NULL, TIME_WAIT, 0, ACKS, ZC_TCP_DONE},
    {TIME_WAIT, A, 2, 2, NULL, TIME_WAIT, 0, QUIET, ZC_TCP_DONE},
    {TIME_WAIT, A, 2, 2, "late", TIME_WAIT, 0, QUIET, ZC_TCP_DONE},
    {TIME_WAIT, S, 700, 0, NULL, TIME_WAIT, 0, ACKS, ZC_TCP_DONE},
};

static void check_answer(struct peer *p, enum answer want, enum answer got_reset)
{
    bool any = peer_hear(p);
    unsigned flags = any ? p->heard.flags : 0;
    CHECK_INT(p->reset_made, got_reset == RESETS);
    CHECK_INT(any, want == ACKS || want == SYN_ACKS);
    if (want == ACKS)
        CHECK(flags == A && p->heard.ack == p->t.in.nxt);
    if (want == SYN_ACKS)
        CHECK(flags == (S | A) && p->heard.seq == OUR_ISS && p->heard.ack == p->t.in.nxt);
    CHECK(!peer_hear(p));
}

TEST(segments_in_each_state)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct step *s = &steps[i];
        int before = test_faults;
        struct peer p;
        peer_init(&p);
        peer_reach(&p, (enum zc_tcp_state)s->from);
        p.now.ns += ZC_NS_PER_MS;
        peer_say(&p, s->flags, s->seq, s->ack, s->data);
        CHECK_INT(p.t.state, s->to);
        CHECK_INT(p.t.events, s->events);
        CHECK_INT(p.t.reason, s->reason);
        check_answer(&p, s->answer, s->answer);
        peer_done(&p);
        if (test_faults > before)
            printf("in step %zu\n", i);
    }
}

/* RFC 5961: the exact number resets; another one in the window is only challenged. */
TEST(reset_in_each_state)
{
    for (int state = SYN_RECEIVED; state <= LAST_ACK; state++) {
        bool fin =
            state == CLOSING || state == TIME_WAIT || state == CLOSE_WAIT || state == LAST_ACK;
        uint32_t exact = fin ? 2 : 1;
        struct peer p;
        for (int kind = 0; kind < 4; kind++) {
            peer_init(&p);
            peer_reach(&p, (enum zc_tcp_state)state);
            enum zc_tcp_reason was = p.t.reason;
            static const uint32_t off[] = {0, 10, UINT32_C(50000000), UINT32_C(0xfffffff0)};
            peer_say(&p, R, exact + off[kind], 0, NULL);
            CHECK(!p.reset_made);
            CHECK_INT(peer_hear(&p), kind == 1);
            if (kind != 0) {
                CHECK_INT(p.t.state, state);
                CHECK_INT(p.t.reason, was);
                CHECK(kind != 1 || p.heard.ack == PEER_ISS + exact);
            } else {
                CHECK_INT(p.t.state, CLOSED);
                bool quiet = state == CLOSING || state == TIME_WAIT || state == LAST_ACK;
                CHECK_INT(p.t.reason, state == SYN_RECEIVED ? ZC_TCP_REFUSED
                                      : quiet               ? ZC_TCP_DONE
                                                            : ZC_TCP_RESET);
                CHECK_INT(p.t.events, state == TIME_WAIT ? 0 : ENDED);
            }
            peer_done(&p);
        }
    }
}

TEST(challenges_are_rationed)
{
    struct peer p;
    int answers = 0;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    for (int i = 0; i < 1000; i++) {
        peer_say(&p, R, 10, 0, NULL);
        answers += peer_hear(&p);
    }
    CHECK(answers >= 5 && answers <= 20);
    peer_pass(&p, 1000);
    peer_say(&p, R, 10, 0, NULL);
    CHECK(peer_hear(&p));
    peer_done(&p);
}

/* ---- calls ---- */

TEST(shutdown_in_each_state)
{
    static const int to[] = {
        [CLOSED] = CLOSED,          [SYN_SENT] = SYN_SENT,     [SYN_RECEIVED] = SYN_RECEIVED,
        [ESTABLISHED] = FIN_WAIT_1, [FIN_WAIT_1] = FIN_WAIT_1, [FIN_WAIT_2] = FIN_WAIT_2,
        [CLOSING] = CLOSING,        [TIME_WAIT] = TIME_WAIT,   [CLOSE_WAIT] = LAST_ACK,
        [LAST_ACK] = LAST_ACK};
    for (int state = SYN_SENT; state <= LAST_ACK; state++) {
        struct peer p;
        peer_init(&p);
        peer_reach(&p, (enum zc_tcp_state)state);
        zc_tcp_shutdown(&p.t, p.now);
        CHECK_INT(p.t.state, to[state]);
        CHECK(!zc_tcp_writable(&p.t));
        CHECK_INT(zc_tcp_write(&p.t, p.now, zc_slice("x", 1)), 0);
        zc_tcp_shutdown(&p.t, p.now);
        CHECK_INT(p.t.state, to[state]);
        if (state == ESTABLISHED)
            CHECK(peer_hears(&p, F | A, 1, 1, 0));
        else if (state == CLOSE_WAIT)
            CHECK(peer_hears(&p, F | A, 1, 2, 0));
        else
            CHECK(!peer_hear(&p));
        peer_done(&p);
    }
}

TEST(shutdown_before_the_handshake_is_over)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_SYN_SENT);
    peer_write(&p, 100);
    zc_tcp_shutdown(&p.t, p.now);
    CHECK(!peer_hear(&p));
    peer_say(&p, S | A, 0, 1, NULL);
    CHECK_INT(p.t.state, FIN_WAIT_1);
    CHECK(peer_hears(&p, F | A, 1, 1, 100));
    peer_done(&p);
}

TEST(abort_in_each_state)
{
    for (int state = SYN_SENT; state <= LAST_ACK; state++) {
        bool tells = state == SYN_RECEIVED || state == ESTABLISHED || state == FIN_WAIT_1 ||
                     state == FIN_WAIT_2 || state == CLOSE_WAIT;
        struct peer p;
        peer_init(&p);
        peer_reach(&p, (enum zc_tcp_state)state);
        struct zc_tcp_segment r;
        CHECK_INT(zc_tcp_abort(&p.t, ZC_TCP_ABORTED, &r), tells);
        if (tells)
            CHECK(r.flags == (R | A) && r.src_port == 4000 && r.dst_port == 7 &&
                  r.seq == p.t.out.max && r.ack == p.t.in.nxt);
        CHECK_INT(p.t.state, CLOSED);
        CHECK_INT(p.t.reason, state == TIME_WAIT ? ZC_TCP_DONE : ZC_TCP_ABORTED);
        CHECK_INT(p.t.events, state == TIME_WAIT ? 0 : ENDED);
        CHECK(!peer_hear(&p));
        CHECK_INT(zc_tcp_deadline(&p.t).ns, ZC_NEVER.ns);
        peer_done(&p);
    }
}

TEST(release_in_each_state)
{
    for (int state = SYN_SENT; state <= LAST_ACK; state++) {
        struct peer p;
        peer_init(&p);
        peer_reach(&p, (enum zc_tcp_state)state);
        struct zc_tcp_segment r;
        CHECK(!zc_tcp_release(&p.t, p.now, &r));
        CHECK_INT(p.t.state, state == SYN_SENT      ? CLOSED
                             : state == ESTABLISHED ? FIN_WAIT_1
                             : state == CLOSE_WAIT  ? LAST_ACK
                                                    : state);
        /* Whatever the state, a released connection ends, without any help. */
        for (int i = 0; i < 300; i++) {
            peer_pass(&p, 1000);
            while (peer_hear(&p))
                ;
        }
        CHECK_INT(p.t.state, CLOSED);
        peer_done(&p);
    }
}

TEST(release_with_unread_bytes_resets)
{
    struct peer p;
    struct zc_tcp_segment r;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_say(&p, A, 1, 1, "unread");
    CHECK(zc_tcp_release(&p.t, p.now, &r));
    CHECK(r.flags == (R | A) && r.seq == OUR_ISS + 1 && r.ack == PEER_ISS + 7);
    CHECK_INT(p.t.state, CLOSED);
    peer_done(&p);
    /* And bytes that come later. */
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    CHECK(!zc_tcp_release(&p.t, p.now, &r));
    CHECK(peer_hears(&p, F | A, 1, 1, 0));
    peer_say(&p, A, 1, 2, "too late");
    CHECK(p.reset_made && p.reset.flags == (R | A));
    CHECK_INT(p.t.state, CLOSED);
    peer_done(&p);
}

/* ---- crossing ---- */

TEST(crossing_syns)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_SYN_SENT);
    peer_say(&p, S, 0, 0, NULL);
    CHECK(peer_hears(&p, S | A, 0, 1, 0));
    CHECK(p.heard.sack_ok && p.heard.has_scale && p.heard.has_stamp);
    peer_say(&p, S | A, 0, 1, NULL); /* the peer's answer, a duplicate SYN here */
    CHECK(peer_hears(&p, A, 1, 1, 0));
    peer_say(&p, A, 1, 1, NULL);
    CHECK_INT(p.t.state, ESTABLISHED);
    CHECK_INT(p.t.events, OPENED);
    peer_done(&p);
}

/* ---- timeouts ---- */

/* Lets time pass second by second and counts what is heard. */
static int hear_for(struct peer *p, int64_t seconds)
{
    int heard = 0;
    for (int64_t i = 0; i < seconds * 10; i++) {
        peer_pass(p, 100);
        while (peer_hear(p))
            heard++;
    }
    return heard;
}

TEST(syn_is_repeated_and_given_up)
{
    static const int64_t at[] = {1, 3, 7, 15, 31, 63};
    for (int state = SYN_SENT; state <= SYN_RECEIVED; state++) {
        struct peer p;
        peer_init(&p);
        peer_reach(&p, (enum zc_tcp_state)state);
        for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
            CHECK_INT(hear_for(&p, at[i] - (i == 0 ? 0 : at[i - 1])), 1);
            CHECK(peer_heard(&p, state == SYN_SENT ? S : S | A, 0, 1, 0));
        }
        CHECK_INT(hear_for(&p, 59), 0);
        CHECK_INT(p.t.state, state);
        CHECK_INT(hear_for(&p, 10), 0);
        CHECK_INT(p.t.state, CLOSED);
        CHECK_INT(p.t.reason, ZC_TCP_TIMEOUT);
        peer_done(&p);
    }
}

TEST(silent_peer_is_given_up)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_write(&p, 100);
    CHECK(peer_hears(&p, A, 1, 1, 100));
    int heard = hear_for(&p, 59);
    CHECK(heard >= 4 && heard <= 9);
    CHECK_INT(p.t.state, ESTABLISHED);
    hear_for(&p, 2);
    CHECK_INT(p.t.state, CLOSED);
    CHECK_INT(p.t.reason, ZC_TCP_TIMEOUT);
    CHECK_INT(p.t.events, ENDED);
    peer_done(&p);
}

TEST(fin_is_repeated)
{
    static const int states[] = {FIN_WAIT_1, CLOSING, LAST_ACK};
    for (size_t i = 0; i < 3; i++) {
        struct peer p;
        peer_init(&p);
        peer_reach(&p, (enum zc_tcp_state)states[i]);
        CHECK_INT(hear_for(&p, 1), 2); /* after 200 and 400 ms */
        CHECK(peer_heard(&p, F | A, 1, states[i] == FIN_WAIT_1 ? 1 : 2, 0));
        CHECK(hear_for(&p, 100) > 3);
        CHECK_INT(p.t.state, CLOSED);
        CHECK_INT(p.t.reason, ZC_TCP_TIMEOUT);
        peer_done(&p);
    }
}

TEST(time_wait_ends_and_a_late_fin_prolongs_it)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_TIME_WAIT);
    CHECK_INT(hear_for(&p, 29), 0);
    CHECK_INT(p.t.state, TIME_WAIT);
    peer_say(&p, F | A, 1, 2, NULL);
    CHECK(peer_hears(&p, A, 2, 2, 0));
    CHECK_INT(hear_for(&p, 29), 0);
    CHECK_INT(p.t.state, TIME_WAIT);
    hear_for(&p, 2);
    CHECK_INT(p.t.state, CLOSED);
    CHECK_INT(p.t.reason, ZC_TCP_DONE);
    peer_done(&p);
}

TEST(keepalive)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    CHECK_INT(hear_for(&p, 7190), 0);
    CHECK_INT(hear_for(&p, 20), 1);
    CHECK(peer_heard(&p, A, 0, 1, 0)); /* an old number, no data */
    peer_say(&p, A, 1, 1, NULL);
    CHECK_INT(hear_for(&p, 7190), 0); /* answered: starts over */
    CHECK_INT(hear_for(&p, 10 + 75 * 9 - 20), 9);
    CHECK_INT(p.t.state, ESTABLISHED);
    hear_for(&p, 30);
    CHECK_INT(p.t.state, CLOSED);
    CHECK_INT(p.t.reason, ZC_TCP_TIMEOUT);
    peer_done(&p);
}

TEST(idle_queues_give_their_memory_back)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_write(&p, 100);
    CHECK(peer_hears(&p, A, 1, 1, 100));
    peer_say(&p, A, 1, 101, "answer");
    zc_tcp_consume(&p.t, p.now, 6);
    CHECK(p.budget.used > 0);
    hear_for(&p, 11);
    CHECK_INT(p.budget.used, 0);
    CHECK_INT(p.t.state, ESTABLISHED);
    peer_done(&p);
}
