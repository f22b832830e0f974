/* tunnel/wg.h: two devices with one key, whose packets go to the one that sent last. */
#include "wg_pair.h"

static struct pair p;     /* b and the first a */
static struct side other; /* the second a */
static uint8_t buf[ZC_WG_PACKET_MAX];
static struct side *last; /* of the two, who sent last */

/* All that is due goes its way. */
static void run(void)
{
    struct side *sides[] = {&p.a, &other, &p.b};
    for (int moved = 1; moved > 0;) {
        moved = 0;
        for (size_t i = 0; i < 3; i++) {
            struct side *s = sides[i];
            size_t len;
            zc_wg_tick(&s->wg, pair_now(&p));
            side_events(s);
            while ((len = pair_output(&p, s, buf)) > 0) {
                last = s == &p.b ? last : s;
                pair_input(&p, s == &p.b ? last : &p.b, buf, len);
                moved++;
            }
        }
    }
}

static void send(struct side *s, uint32_t number)
{
    size_t len = pair_send(&p, s, buf, 100, number);
    if (len > 0) {
        last = s == &p.b ? last : s;
        pair_input(&p, s == &p.b ? last : &p.b, buf, len);
    }
    run();
}

/* ahead_ms: how much the clock of the first is before that of the second. */
static void begin(int64_t ahead_ms)
{
    static const struct zc_secret psk = {{1, 2, 3}};
    pair_init(&p);
    side_init(&other, 1, 4);
    zc_rng_init(&other.rng, (const uint8_t[32]){99});
    side_meet(&other, &p.b, &psk);
    if (ahead_ms > 0)
        zc_noise_stamp((struct zc_wall){p.wall_ms + ahead_ms}, NULL, p.a.peer->stamp_sent);
    last = &p.a;
    pair_connect(&p);
    p.ms += 3000;
    zc_wg_handshake(&other.wg, pair_now(&p), other.peer);
    run();
}

static void end(void)
{
    p.a.twins = p.a.twins_of_ours = p.b.twins = p.b.twins_of_ours = 0;
    zc_wg_done(&other.wg);
    pair_done(&p);
}

/* Both send, and the other end answers. */
static void busy(int64_t ms)
{
    for (int64_t end_ms = p.ms + ms; p.ms < end_ms; p.ms += 700) {
        send(p.ms % 3 == 0 ? &p.a : &other, 1);
        send(&p.b, 2);
    }
}

TEST(twins_are_seen_at_both_ends_and_told_once)
{
    begin(0);
    busy(60000);
    CHECK_INT(p.b.twins, 1);
    CHECK_INT(p.a.twins_of_ours + other.twins_of_ours > 0, 1);
    busy(1800000);
    CHECK_INT(p.b.twins, 1);
    CHECK(p.a.twins_of_ours <= 1 && other.twins_of_ours <= 1);
    /* Nobody blames the wrong key. */
    CHECK_INT(p.b.twins_of_ours + p.a.twins + other.twins, 0);
    end();
}

/* One that can never join, since the other one's clock is ahead. */
TEST(twins_of_which_one_is_kept_out)
{
    begin(3600000);
    CHECK_INT(other.done, 0);
    for (int i = 0; i < 12; i++) {
        p.ms += 4000;
        zc_wg_handshake(&other.wg, pair_now(&p), other.peer);
        run();
        p.ms += 2000;
        send(&p.a, 1);
    }
    CHECK_INT(p.b.twins, 1);
    CHECK_INT(p.b.twins_of_ours + p.a.twins, 0);
    end();
}

/* The session of one is forgotten when the other makes new ones: that is no foreign session. */
TEST(twins_whose_session_is_gone)
{
    begin(0);
    for (int i = 0; i < 6; i++) {
        p.ms += 2000;
        zc_wg_handshake(&other.wg, pair_now(&p), other.peer);
        run();
        for (int k = 0; k < 3; k++) {
            p.ms += 2000;
            zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
            run();
        }
        p.ms += 2000;
        send(&other, 1);
    }
    CHECK_INT(p.b.twins, 1);
    CHECK_INT(p.b.twins_of_ours, 0);
    end();
}

/* A process that is started again and again is none, whatever was on the way to the one before. */
TEST(twins_are_not_a_process_that_restarts)
{
    static const struct zc_secret psk = {{1, 2, 3}};
    uint8_t kept[20][ZC_WG_PACKET_MAX];
    pair_init(&p);
    pair_connect(&p);
    for (int i = 0; i < 50; i++) {
        size_t len = 0;
        for (int k = 0; k < 20; k++)
            len = pair_send(&p, &p.a, kept[k], 100, 1);
        zc_wg_done(&p.a.wg);
        int twins = p.a.twins + p.a.twins_of_ours;
        side_init(&p.a, 1, 4);
        zc_rng_init(&p.a.rng, (const uint8_t[32]){(uint8_t)i, 3});
        side_meet(&p.a, &p.b, &psk);
        p.a.twins = twins;
        p.ms += 20 + 997 * i;
        size_t back = pair_send(&p, &p.b, buf, 100, 2); /* for the session before */
        if (back > 0)
            pair_input(&p, &p.a, buf, back);
        zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
        pair_run(&p);
        pair_deliver(&p, &p.a, 1);
        pair_deliver(&p, &p.b, 1);
        p.ms += 2000;
        /* What the old one had sent comes out of the network now. */
        for (int k = 0; k < 20 && i % 25 == 0; k++, p.ms += 100)
            pair_input(&p, &p.b, kept[k], len);
        pair_deliver(&p, &p.a, 1);
    }
    pair_done(&p);
}
