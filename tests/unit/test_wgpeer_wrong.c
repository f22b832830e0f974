/* tunnel/{wg,wgpeer}.h: what must not get in, and two that begin at once. */
#include "wg_pair.h"

#include "crypto/aead.h"

static struct pair p;
static uint8_t buf[ZC_WG_PACKET_MAX], buf2[ZC_WG_PACKET_MAX];

TEST(wg_padding_and_lengths)
{
    pair_init(&p);
    pair_connect(&p);
    for (size_t len = 40; len <= ZC_WG_MTU; len++) {
        size_t want = (len + 15) / 16 * 16 + 32;
        size_t n = pair_send(&p, &p.a, buf, len, (uint32_t)len);
        CHECK_INT(n, want > ZC_WG_PACKET_MAX ? ZC_WG_PACKET_MAX : want);
        pair_input(&p, &p.b, buf, n);
        pair_packet(&p.a, buf2, len, (uint32_t)len);
        CHECK(p.b.last_len == len && memcmp(p.b.last, buf2, len) == 0);
    }
    CHECK_INT(p.b.got, ZC_WG_MTU - 39);
    pair_done(&p);
}

/* Changes the inner packet, sends it, and says whether it came out. */
static bool passes(size_t len, size_t at, uint8_t value)
{
    int before = p.b.got;
    pair_packet(&p.a, buf + ZC_WG_HEADER, len, 1);
    buf[ZC_WG_HEADER + at] = value;
    size_t n = zc_wg_send(&p.a.wg, pair_now(&p), p.a.peer, buf, len);
    pair_input(&p, &p.b, buf, n);
    return p.b.got == before + 1;
}

TEST(wg_inner_packets_are_checked)
{
    pair_init(&p);
    pair_connect(&p);
    CHECK(passes(100, 0, 0x60) && passes(100, 0, 0x6f));
    CHECK(!passes(100, 0, 0x40) && !passes(100, 0, 0x00) && !passes(100, 0, 0x70));
    CHECK(passes(100, 5, 59) && p.b.last_len == 99);
    CHECK(passes(100, 5, 0) && p.b.last_len == 40);
    CHECK(passes(100, 5, 72) && p.b.last_len == 112); /* reaches into the padding */
    CHECK(!passes(100, 5, 73));
    CHECK(!passes(100, 4, 0xff));
    for (size_t i = 8; i < 24; i++)
        CHECK(!passes(100, i, 0x99));
    for (size_t len = 1; len < 40; len++) {
        memset(buf + 16, 0x60, len);
        int before = p.b.got;
        size_t n = zc_wg_send(&p.a.wg, pair_now(&p), p.a.peer, buf, len);
        pair_input(&p, &p.b, buf, n);
        /* 33..39 bytes are padded to 48, but say more than that. */
        CHECK_INT(p.b.got, before);
    }
    p.b.peer->any_source = true;
    CHECK(passes(100, 20, 0x99));
    pair_done(&p);
}

TEST(wg_replayed_packets)
{
    pair_init(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf2), 92);
    p.ms += 100;
    pair_input(&p, &p.b, buf, 148); /* the initiation again */
    uint8_t none[ZC_WG_PACKET_MAX];
    CHECK_INT(pair_output(&p, &p.b, none), 0);
    pair_input(&p, &p.a, buf2, 92);
    CHECK_INT(p.a.done, 1);
    pair_input(&p, &p.a, buf2, 92); /* the response again */
    CHECK_INT(p.a.done, 1);
    pair_run(&p);
    size_t len = pair_send(&p, &p.a, buf, 100, 1);
    for (int i = 0; i < 3; i++)
        pair_input(&p, &p.b, buf, len);
    CHECK_INT(p.b.got, 1);
    pair_done(&p);
}

TEST(wg_initiations_closer_than_20_ms)
{
    pair_init(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    p.ms += 20;
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf2), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    p.ms += 19;
    pair_input(&p, &p.b, buf2, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 0);
    p.ms += 1;
    pair_input(&p, &p.b, buf2, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    pair_done(&p);
}

TEST(wg_wrong_pre_shared_key)
{
    static const struct zc_secret other = {{9}};
    for (int i = 0; i < 2; i++) {
        pair_init(&p);
        zc_wg_remove(&p.a.wg, p.a.peer);
        side_meet(&p.a, &p.b, i == 0 ? &other : NULL);
        int64_t start = p.ms;
        pair_send(&p, &p.a, buf, 100, 1);
        do {
            zc_wg_tick(&p.b.wg, pair_now(&p));
            pair_run(&p);
        } while (pair_next(&p, &p.a, start + 12000));
        CHECK_INT(p.a.bad_response, 3); /* once per initiation */
        CHECK_INT(p.a.unanswered, 2);
        CHECK(p.a.done == 0 && p.b.done == 0 && p.b.got == 0);
        pair_done(&p);
    }
}

TEST(wg_wrong_static_key)
{
    static struct side c;
    pair_init(&p);
    side_init(&c, 3, 2); /* knows B, and B does not know it */
    side_meet(&c, &p.b, NULL);
    zc_wg_handshake(&c.wg, pair_now(&p), c.peer);
    CHECK_INT(zc_wg_output(&c.wg, pair_now(&p), buf, &c.peer), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf2), 0);
    /* It is for B, not for A. */
    pair_input(&p, &p.a, buf, 148);
    CHECK_INT(pair_output(&p, &p.a, buf2), 0);
    zc_wg_done(&c.wg);
    pair_done(&p);
}

/* Every byte of every kind of packet, changed: nothing comes of it, and the real one still works.
 * Those that no key covers, a response's sender index and mac2, may pass. */
TEST(wg_tampered_bytes)
{
    pair_init(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    for (size_t i = 0; i < 132; i++) {
        buf[i] ^= 0x20;
        pair_input(&p, &p.b, buf, 148);
        CHECK_INT(pair_output(&p, &p.b, buf2), 0);
        buf[i] ^= 0x20;
    }
    pair_input(&p, &p.b, buf, 147);
    CHECK_INT(pair_output(&p, &p.b, buf2), 0);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    for (size_t i = 0; i < 76; i++) {
        buf[i] ^= 0x04;
        pair_input(&p, &p.a, buf, 92);
        CHECK_INT(p.a.done, 0);
        buf[i] ^= 0x04;
    }
    pair_input(&p, &p.a, buf, 93);
    CHECK_INT(p.a.bad_response, 0); /* mac1 keeps all that away from the handshake */
    pair_input(&p, &p.a, buf, 92);
    CHECK_INT(p.a.done, 1);
    pair_run(&p);
    size_t len = pair_send(&p, &p.a, buf, 100, 1);
    for (size_t i = 0; i < len; i++) {
        buf[i] ^= 0x01;
        pair_input(&p, &p.b, buf, len);
        buf[i] ^= 0x01;
        pair_input(&p, &p.b, buf, i); /* and cut */
    }
    CHECK_INT(p.b.got, 0);
    pair_input(&p, &p.b, buf, len);
    CHECK_INT(p.b.got, 1);
    pair_done(&p);
}

TEST(wg_both_begin_at_once)
{
    for (int order = 0; order < 4; order++) {
        pair_init(&p);
        uint8_t from_a[ZC_WG_PACKET_MAX], from_b[ZC_WG_PACKET_MAX];
        pair_send(&p, &p.a, buf, 100, 1);
        pair_send(&p, &p.b, buf, 100, 2);
        CHECK_INT(pair_output(&p, &p.a, from_a), 148);
        CHECK_INT(pair_output(&p, &p.b, from_b), 148);
        pair_input(&p, &p.a, from_b, 148);
        pair_input(&p, &p.b, from_a, 148);
        CHECK_INT(pair_output(&p, &p.a, from_a), 92);
        CHECK_INT(pair_output(&p, &p.b, from_b), 92);
        if (order & 1) { /* one response is lost */
            pair_input(&p, &p.a, from_b, 92);
        } else if (order & 2) {
            pair_input(&p, &p.b, from_a, 92);
        } else {
            pair_input(&p, &p.a, from_b, 92);
            pair_input(&p, &p.b, from_a, 92);
        }
        pair_run(&p);
        CHECK(p.a.got == 1 && p.b.got == 1 && p.a.done > 0 && p.b.done > 0);
        for (uint32_t i = 10; i < 20; i++) {
            pair_deliver(&p, &p.a, i);
            pair_deliver(&p, &p.b, i);
        }
        pair_done(&p);
    }
}

/* The responder has data, but the initiator's first packet is lost: it does not wait for ever. */
TEST(wg_unconfirmed_responder_begins_itself)
{
    pair_init(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    pair_send(&p, &p.b, buf2, 100, 1);
    int64_t start = p.ms;
    CHECK(pair_next(&p, &p.b, start + 5000));
    CHECK_INT(p.ms, start + 5000);
    pair_run(&p);
    CHECK_INT(p.a.got, 1);
    pair_done(&p);
}

TEST(wg_clock_set_back)
{
    pair_init(&p);
    pair_connect(&p);
    p.wall_ms -= 3600000;
    p.ms += 200000;
    pair_send(&p, &p.a, buf, 100, 1);
    pair_run(&p);
    CHECK_INT(p.b.got, 1);
    /* A forgotten and known again at B's: its stamps still rise. */
    p.ms += 6000;
    zc_wg_remove(&p.a.wg, p.a.peer);
    static const struct zc_secret psk = {{1, 2, 3}};
    side_meet(&p.a, &p.b, &psk);
    pair_send(&p, &p.a, buf, 100, 2);
    pair_run(&p);
    CHECK_INT(p.b.got, 2);
    pair_done(&p);
}

/* A process that began with an earlier clock than its last one is heard after the erasure. */
TEST(wg_restart_with_an_early_clock)
{
    pair_init(&p);
    pair_connect(&p);
    static const struct zc_secret psk = {{1, 2, 3}};
    zc_wg_done(&p.a.wg);
    side_init(&p.a, 1, 4);
    side_meet(&p.a, &p.b, &psk);
    p.wall_ms -= 86400000;
    pair_send(&p, &p.a, buf, 100, 1);
    pair_run(&p);
    CHECK_INT(p.b.got, 0);
    int64_t end = p.ms + 560000;
    while (p.ms < end) {
        p.ms += 5000;
        pair_send(&p, &p.a, buf, 100, 2);
        pair_run(&p);
    }
    CHECK(p.b.got > 0 && p.b.erased == 1);
    pair_done(&p);
}

/* Unless the process knows the ceiling of its last one. */
TEST(wg_restart_with_an_early_clock_and_a_ceiling)
{
    struct zc_stamps_bounds bounds = {true, {0}, {1700000000000 + 3600000}};
    struct zc_wall want;
    pair_init(&p);
    zc_stamps_init(&p.a.wg.stamps, &bounds);
    pair_connect(&p);
    static const struct zc_secret psk = {{1, 2, 3}};
    zc_wg_done(&p.a.wg);
    side_init(&p.a, 1, 4);
    p.ms += 1000;
    p.wall_ms -= 86400000;
    CHECK_INT(zc_stamps_begin(bounds.most, pair_now(&p).wall, &bounds), ZC_STAMPS_CLOCK_BEHIND);
    zc_stamps_init(&p.a.wg.stamps, &bounds);
    side_meet(&p.a, &p.b, &psk);
    pair_send(&p, &p.a, buf, 100, 1);
    pair_run(&p);
    CHECK_INT(p.b.got, 1);
    /* At the ceiling none is sent until it is raised; then the retry goes through. */
    p.ms += 200000;
    p.a.wg.stamps.bounds.most = bounds.after;
    pair_send(&p, &p.a, buf, 100, 2);
    CHECK_INT(pair_run(&p), 0);
    CHECK(zc_stamps_wanted(&p.a.wg.stamps, &want) && want.ms > bounds.after.ms);
    zc_stamps_raise(&p.a.wg.stamps, want);
    p.ms += 6000;
    pair_run(&p);
    CHECK_INT(p.b.got, 2);
    pair_done(&p);
}

TEST(wg_cookie_is_used)
{
    pair_init(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    CHECK(zc_secret_is_zero(buf + 132, 16));
    /* B's answer under load, made by hand. */
    uint8_t reply[64] = {3}, cookie[16] = {42, 43};
    memcpy(reply + 4, buf + 4, 4);
    memset(reply + 8, 5, 24);
    memcpy(reply + 32, cookie, 16);
    zc_aead_xseal(&p.b.wg.self.cookie_keys.reply, reply + 8, zc_slice(buf + 116, 16), reply + 32,
                  16);
    reply[63] ^= 1;
    pair_input(&p, &p.a, reply, 64);
    CHECK_INT(p.a.wg.dropped_packets, 1);
    reply[63] ^= 1;
    pair_input(&p, &p.a, reply, 64);
    CHECK_INT(p.a.wg.dropped_packets, 1);
    CHECK(pair_next(&p, &p.a, p.ms + 6000));
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    CHECK(!zc_secret_is_zero(buf + 132, 16));
    pair_input(&p, &p.b, buf, 148);
    pair_run(&p);
    CHECK_INT(p.a.done, 1);
    pair_done(&p);
}
