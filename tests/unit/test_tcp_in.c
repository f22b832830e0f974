/* The receiving half: reassembly against a plain model, SACKs, windows, timestamps, delays. */
#include "base/rng.h"
#include "tcp_peer.h"

static unsigned rnd(struct zc_rng *r, unsigned n)
{
    return n == 0 ? 0 : (unsigned)(zc_rng_u64(r) % n);
}

/* Random pieces of one stream in any order, overlapping, too far, with a FIN somewhere; the bytes
 * come out in order and once, and every SACK tells the truth. */
static void reassemble(uint8_t seed_byte)
{
    enum { LEN = 30000 };
    static uint8_t stream[LEN];
    static bool have[LEN + 1];
    uint8_t seed[32] = {seed_byte};
    struct zc_rng r;
    struct zc_tcp_in in;
    struct zc_tcp_budget budget = {.max = 1 << 20};
    struct zc_mono now = {1000000000};
    zc_rng_init(&r, seed);
    zc_rng_bytes(&r, stream, LEN);
    memset(have, 0, sizeof(have));
    const uint32_t base = (uint32_t)zc_rng_u64(&r);
    struct zc_tcp_segment syn = {.seq = base - 1, .sack_ok = seed_byte % 4 != 0};
    zc_tcp_in_init(&in, 8000);
    zc_tcp_in_peer(&in, now, &syn, false);
    uint32_t read = 0;
    for (int i = 0; i < 20000 && !in.fin_read && test_faults == 0; i++) {
        struct zc_tcp_segment out = {.flags = ZC_TCP_ACK};
        zc_tcp_in_fill(&in, &budget, &out);
        zc_tcp_in_told(&in, &out);
        uint32_t nxt = in.nxt - base, edge = in.edge - base;
        CHECK(edge - read <= 8000);
        for (unsigned k = 0; k < out.sack_count; k++) {
            CHECK(zc_tcp_seq_lt(in.nxt, out.sacks[k].start));
            for (uint32_t at = out.sacks[k].start - base; at != out.sacks[k].end - base; at++)
                CHECK(at < LEN && have[at]);
        }
        uint32_t from = nxt - (nxt < 300 ? nxt : 300) + rnd(&r, 3000);
        if (rnd(&r, 4) == 0)
            from = nxt;
        if (from > LEN)
            from = LEN;
        uint32_t len = rnd(&r, 1500);
        if (len > LEN - from)
            len = LEN - from;
        struct zc_tcp_segment s = {.seq = base + from, .flags = ZC_TCP_ACK};
        s.data = zc_slice(stream + from, len);
        if (from + len == LEN)
            s.flags |= ZC_TCP_FIN;
        if (!zc_tcp_in_acceptable(&in, &s))
            continue;
        for (uint32_t at = from; at < from + len && at < edge; at++)
            have[at] = true;
        zc_tcp_in_take(&in, &budget, now, &s);
        uint32_t want = nxt;
        while (want < LEN && want < edge && have[want])
            want++;
        CHECK(in.nxt - base == want + in.fin_read);
        struct zc_slice parts[2];
        uint32_t n = rnd(&r, 3) == 0 ? rnd(&r, in.ring.len + 1) : 0, at = read;
        size_t count = zc_tcp_ring_slices(&in.ring, 0, n, parts);
        for (size_t k = 0; k < count; k++) {
            CHECK(memcmp(parts[k].data, stream + at, parts[k].len) == 0);
            at += (uint32_t)parts[k].len;
        }
        read += n;
        zc_tcp_in_consume(&in, &budget, n);
    }
    CHECK(in.fin_read);
    CHECK_INT(read + in.ring.len, LEN);
    zc_tcp_in_done(&in, &budget);
    CHECK_INT(budget.used, 0);
}

TEST(pieces_in_any_order)
{
    for (int i = 0; i < 60 && test_faults == 0; i++)
        reassemble((uint8_t)i);
}

TEST(latest_arrival_leads_the_sacks)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    static const uint32_t at[] = {11, 31, 51, 71, 91};
    for (size_t i = 0; i < 5; i++) {
        peer_say(&p, A, at[i], 1, "0123456789");
        CHECK(peer_hears(&p, A, 1, 1, 0));
        CHECK_INT(p.heard.sack_count, i < 3 ? i + 1 : 3); /* beside timestamps */
        for (unsigned k = 0; k < p.heard.sack_count; k++)
            CHECK(p.heard.sacks[k].start == PEER_ISS + at[i - k] &&
                  p.heard.sacks[k].end == PEER_ISS + at[i - k] + 10);
    }
    peer_say(&p, A, 41, 1, "0123456789"); /* joins two */
    CHECK(peer_hears(&p, A, 1, 1, 0));
    CHECK(p.heard.sacks[0].start == PEER_ISS + 31 && p.heard.sacks[0].end == PEER_ISS + 61);
    peer_say(&p, A, 1, 1, "0123456789");
    CHECK(peer_hears(&p, A, 1, 21, 0)); /* at once, because it fills a gap */
    peer_done(&p);
}

TEST(too_many_gaps_are_dropped_not_stored)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    for (uint32_t i = 0; i < 200; i++)
        peer_say(&p, A, 3 + 2 * i, 1, "x");
    CHECK_INT(p.t.in.ranges.count, ZC_TCP_RANGES_MAX);
    CHECK_INT(p.t.in.nxt, PEER_ISS + 1);
    for (uint32_t i = 0; i < 402; i++)
        peer_say(&p, A, 1 + i, 1, "x");
    CHECK_INT(p.t.in.nxt, PEER_ISS + 403);
    CHECK_INT(p.t.in.ranges.count, 0);
    peer_done(&p);
}

TEST(duplicates_are_counted_for_a_peer_without_sack)
{
    struct peer p;
    peer_init(&p);
    p.sacks = false;
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    for (int i = 0; i < 3; i++)
        peer_say(&p, A, 11 + (uint32_t)i, 1, "x");
    int heard = 0;
    while (peer_hear(&p)) {
        CHECK(peer_heard(&p, A, 1, 1, 0));
        heard++;
    }
    CHECK_INT(heard, 3);
    for (uint32_t i = 0; i < 100; i++)
        peer_say(&p, A, 15, 1, "x");
    for (heard = 0; peer_hear(&p); heard++)
        ;
    CHECK(heard <= 8);
    /* What comes in order is acknowledged once, however much it is. */
    for (uint32_t i = 0; i < 10; i++)
        peer_say(&p, A, 1 + i, 1, "x");
    CHECK(peer_hear(&p));
    CHECK_INT(p.heard.ack, PEER_ISS + 14);
    CHECK(!peer_hear(&p));
    peer_done(&p);
}

/* ---- the window ---- */

TEST(window_never_goes_back_and_never_opens_a_little)
{
    struct peer p;
    static char big[1001];
    memset(big, 'b', 1000);
    peer_init(&p);
    p.config.recv_max = 5000;
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    uint32_t edge = p.t.in.edge, seq = 1;
    CHECK(edge - PEER_ISS - 1 <= 5000);
    while (zc_tcp_seq_lt(p.t.in.nxt, edge)) {
        peer_say(&p, A, seq, 1, big);
        seq = p.t.in.nxt - PEER_ISS;
        peer_pass(&p, 50);
        while (peer_hear(&p))
            CHECK(zc_tcp_seq_le(p.heard.ack + ((uint32_t)p.heard.window << 8), edge));
        CHECK(p.t.in.edge == edge);
    }
    CHECK_INT(p.heard.window, 0);
    /* One byte beyond: not taken, answered. */
    peer_say(&p, A, seq, 1, "x");
    CHECK(peer_hears(&p, A, 1, seq, 0));
    CHECK_INT(p.heard.window, 0);
    /* Reading little tells nothing; reading a segment does. */
    for (int i = 0; i < 1000; i++) {
        zc_tcp_consume(&p.t, p.now, 1);
        CHECK(!peer_hear(&p));
    }
    for (int i = 0; i < 500; i++)
        zc_tcp_consume(&p.t, p.now, 1);
    CHECK(peer_hear(&p));
    CHECK((uint32_t)p.heard.window << 8 > 1000);
    peer_done(&p);
}

TEST(acknowledgement_counts_though_the_window_is_closed)
{
    struct peer p;
    static char big[6001];
    memset(big, 'b', 6000);
    peer_init(&p);
    p.config.recv_max = 4096;
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_say(&p, A, 1, 1, big);
    uint32_t seq = p.t.in.nxt - PEER_ISS;
    CHECK(peer_hear(&p) && p.heard.window == 0);
    peer_write(&p, 10);
    CHECK(peer_hears(&p, A, 1, seq, 10));
    peer_say(&p, A, seq, 11, "more");
    CHECK(p.t.out.una == p.t.out.max);
    CHECK_INT(p.t.in.nxt, PEER_ISS + seq);
    peer_done(&p);
}

/* A peer that has filled the window speaks from the number after it. */
TEST(acknowledgement_from_the_edge)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_write(&p, 10);
    CHECK(peer_hears(&p, A, 1, 1, 10));
    peer_say(&p, A, p.t.in.edge - PEER_ISS, 11, NULL);
    CHECK(p.t.out.una == p.t.out.max);
    peer_done(&p);
}

TEST(window_without_scale)
{
    struct peer p;
    peer_init(&p);
    p.scale = 0;
    peer_reach(&p, ZC_TCP_SYN_RECEIVED);
    CHECK(!p.heard.has_scale);
    CHECK_INT(p.heard.window, 65535);
    peer_say(&p, A, 1, 1, "data");
    peer_pass(&p, 50);
    CHECK(peer_hears(&p, A, 1, 5, 0));
    CHECK_INT(p.heard.window, 65535);
    peer_done(&p);
}

/* The budget shrinks what is told, not what was told. */
TEST(window_under_memory_pressure)
{
    struct peer p;
    peer_init(&p);
    p.budget.max = 100;
    peer_reach(&p, ZC_TCP_SYN_RECEIVED);
    CHECK_INT(p.heard.window, ZC_TCP_RING_FREE);
    peer_done(&p);
}

/* ---- when acknowledgements go ---- */

TEST(acknowledgements_wait_for_a_second_segment_or_40_ms)
{
    struct peer p;
    static char full[1209];
    memset(full, 'f', 1208);
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_say(&p, A, 1, 1, full);
    CHECK(!peer_hear(&p));
    CHECK_INT(zc_mono_diff_ms(p.now, zc_tcp_deadline(&p.t)), 40);
    peer_say(&p, A, 1209, 1, full);
    CHECK(peer_hears(&p, A, 1, 2417, 0));
    peer_say(&p, A, 2417, 1, "tail");
    peer_pass(&p, 39);
    CHECK(!peer_hear(&p));
    peer_pass(&p, 1);
    CHECK(peer_hears(&p, A, 1, 2421, 0));
    /* Data that goes takes it along. */
    peer_say(&p, A, 2421, 1, "x");
    peer_write(&p, 3);
    CHECK(peer_hears(&p, A, 1, 2422, 3));
    peer_pass(&p, 100);
    CHECK(!peer_hear(&p));
    peer_done(&p);
}

/* ---- timestamps ---- */

TEST(old_timestamps_are_refused)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_pass(&p, 1000);
    peer_say(&p, A, 1, 1, "new");
    struct zc_tcp_segment s = peer_segment(&p, A, 4, 1, "old");
    s.stamp -= 500;
    peer_input(&p, &s);
    CHECK(peer_hears(&p, A, 1, 4, 0)); /* answered, not taken */
    CHECK_INT(p.t.in.ring.len, 3);
    s.flags = R; /* a reset needs none that is right */
    s.data.len = 0;
    peer_input(&p, &s);
    CHECK_INT(p.t.state, ZC_TCP_CLOSED);
    peer_done(&p);
}

TEST(missing_timestamps_are_refused)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    p.stamps = false;
    peer_say(&p, A, 1, 1, "bare");
    CHECK_INT(p.t.in.ring.len, 0);
    CHECK(!peer_hear(&p));
    peer_say(&p, R, 1, 1, NULL);
    CHECK_INT(p.t.state, ZC_TCP_CLOSED);
    peer_done(&p);
}

TEST(old_timestamps_after_a_month_count)
{
    struct peer p;
    peer_init(&p);
    p.config.keepalive_ms = 0;
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_pass(&p, INT64_C(25) * 24 * 3600 * 1000);
    struct zc_tcp_segment s = peer_segment(&p, A, 1, 1, "x");
    s.stamp = p.t.in.stamp_recent - 1;
    peer_input(&p, &s);
    CHECK_INT(p.t.in.ring.len, 1);
    peer_done(&p);
}

/* RFC 7323 4.3: the earliest segment that an acknowledgement covers is echoed, and none beyond a
 * gap. */
TEST(echoed_timestamp)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_pass(&p, 10);
    uint32_t first = peer_stamp(&p);
    peer_say(&p, A, 1, 1, "a");
    peer_pass(&p, 10);
    peer_say(&p, A, 2, 1, "b");
    peer_pass(&p, 30);
    CHECK(peer_hears(&p, A, 1, 3, 0));
    CHECK_INT(p.heard.echo, first);
    peer_pass(&p, 10);
    peer_say(&p, A, 4, 1, "d");
    CHECK(peer_hears(&p, A, 1, 3, 0));
    CHECK_INT(p.heard.echo, first);
    peer_pass(&p, 10);
    peer_say(&p, A, 3, 1, "c");
    CHECK(peer_hears(&p, A, 1, 5, 0));
    CHECK_INT(p.heard.echo, peer_stamp(&p));
    peer_done(&p);
}

TEST(fin_out_of_order_and_data_beyond_it)
{
    struct peer p;
    peer_init(&p);
    peer_reach(&p, ZC_TCP_ESTABLISHED);
    peer_say(&p, F | A, 4, 1, "def"); /* FIN at 7 */
    CHECK(peer_hears(&p, A, 1, 1, 0));
    peer_say(&p, A, 7, 1, "beyond");
    peer_say(&p, F | A, 5, 1, "another end");
    CHECK_INT(p.t.state, ZC_TCP_ESTABLISHED);
    peer_say(&p, A, 1, 1, "abcdefghi");
    CHECK_INT(p.t.state, ZC_TCP_CLOSE_WAIT);
    CHECK_INT(p.t.in.ring.len, 6);
    CHECK_INT(p.t.in.nxt, PEER_ISS + 8);
    peer_done(&p);
}
