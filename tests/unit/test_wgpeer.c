/* tunnel/{wg,wgpeer}.h: two devices, each rule and each timer by a clock of the test's own. */
#include "wg_pair.h"

#include "crypto/aead.h"

static struct pair p;
static uint8_t buf[ZC_WG_PACKET_MAX], buf2[ZC_WG_PACKET_MAX];

TEST(wg_first_packet_makes_a_session)
{
    pair_init(&p);
    CHECK_INT(pair_output(&p, &p.a, buf), 0);
    CHECK_INT(pair_send(&p, &p.a, buf, 100, 7), 0);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    CHECK_INT(pair_output(&p, &p.a, buf2), 0);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(p.b.done, 0); /* only the initiator's first packet confirms it */
    CHECK_INT(pair_send(&p, &p.b, buf2, 60, 8), 0);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    CHECK_INT(pair_output(&p, &p.b, buf2), 0);
    pair_input(&p, &p.a, buf, 92);
    CHECK_INT(p.a.done, 1);
    CHECK_INT(pair_output(&p, &p.a, buf), 144);
    CHECK_INT(pair_output(&p, &p.a, buf2), 0); /* the data confirms, no keepalive */
    pair_input(&p, &p.b, buf, 144);
    CHECK(p.b.done == 1 && p.b.got == 1 && pair_number(p.b.last) == 7);
    CHECK_INT(pair_output(&p, &p.b, buf), 96);
    pair_input(&p, &p.a, buf, 96);
    CHECK(p.a.got == 1 && p.a.last_len == 60 && pair_number(p.a.last) == 8);
    pair_deliver(&p, &p.a, 9);
    pair_deliver(&p, &p.b, 10);
    struct zc_wg_stats st;
    zc_wg_peer_stats(p.a.peer, pair_now(&p), &st);
    CHECK_INT(st.tx_bytes, 148 + 144 + 144);
    CHECK_INT(st.rx_bytes, 92 + 96 + 144);
    CHECK(st.have_handshake && st.have_session && st.last_handshake.ns == p.ms * ZC_NS_PER_MS);
    zc_wg_peer_stats(p.b.peer, pair_now(&p), &st);
    CHECK_INT(st.tx_bytes, 92 + 96 + 144);
    CHECK_INT(st.rx_bytes, 148 + 144 + 144);
    pair_done(&p);
    CHECK(zc_secret_is_zero(&p.a.wg, sizeof(p.a.wg)));
    zc_wg_done(&p.a.wg); /* again, zeroed */
}

TEST(wg_keepalive_confirms_when_there_is_no_data)
{
    pair_init(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    pair_input(&p, &p.a, buf, 92);
    CHECK_INT(pair_output(&p, &p.a, buf), 32);
    pair_input(&p, &p.b, buf, 32);
    CHECK(p.b.done == 1 && p.b.got == 0);
    CHECK_INT(pair_run(&p), 0);
    pair_done(&p);
}

TEST(wg_adding_and_finding_peers)
{
    static struct side extra[5];
    struct zc_wg_peer_config config = {0};
    struct zc_wgpeer *peer = NULL;
    pair_init(&p);
    CHECK_INT(zc_wg_add(&p.a.wg, &config, &peer), ZC_EINVAL); /* the zero point */
    config.public = p.a.wg.self.public;
    CHECK_INT(zc_wg_add(&p.a.wg, &config, &peer), ZC_EINVAL);
    config.public = p.b.wg.self.public;
    CHECK_INT(zc_wg_add(&p.a.wg, &config, &peer), ZC_EEXIST);
    CHECK(peer == NULL);
    for (uint8_t i = 0; i < 4; i++) {
        side_init(&extra[i], (uint8_t)(10 + i), 1);
        config.public = extra[i].wg.self.public;
        CHECK(zc_wg_find(&p.a.wg, &config.public) == NULL);
        CHECK_INT(zc_wg_add(&p.a.wg, &config, &peer), i < 3 ? 0 : ZC_ELIMIT);
        CHECK(zc_wg_find(&p.a.wg, &config.public) == (i < 3 ? peer : NULL));
        zc_wg_done(&extra[i].wg);
    }
    CHECK(zc_secret_key_equal(zc_wg_peer_public(p.a.peer), &p.b.wg.self.public));
    zc_wg_remove(&p.a.wg, p.a.peer);
    CHECK(zc_wg_find(&p.a.wg, &p.b.wg.self.public) == NULL);
    pair_done(&p);
}

TEST(wg_stranger_gets_no_answer)
{
    pair_init(&p);
    zc_wg_remove(&p.b.wg, p.b.peer);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf2), 0);
    CHECK_INT(p.b.wg.dropped_packets, 1);
    /* Known again, with what was sent before: the stamp is new to this memory. */
    side_meet(&p.b, &p.a, NULL);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf2), 92);
    pair_done(&p);
}

TEST(wg_removed_peer_leaves_nothing)
{
    pair_init(&p);
    pair_connect(&p);
    size_t len = pair_send(&p, &p.a, buf, 100, 1);
    memcpy(buf2, buf, len);
    zc_wg_input(&p.b.wg, pair_now(&p), buf2, len); /* a DATA event waits */
    zc_wg_remove(&p.b.wg, p.b.peer);
    struct zc_wg_event ev;
    CHECK(!zc_wg_event(&p.b.wg, &ev));
    CHECK(p.b.wg.indices.len == 0 && p.b.wg.timers.len == 0 && p.b.wg.peers.len == 0);
    pair_send(&p, &p.a, buf, 100, 2);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    zc_wg_remove(&p.a.wg, p.a.peer);
    CHECK_INT(zc_wg_output(&p.a.wg, pair_now(&p), buf, &p.a.peer), 0);
    CHECK(zc_wg_deadline(&p.a.wg).ns == ZC_NEVER.ns);
    pair_done(&p);
}

TEST(wg_retries_are_fresh_then_end)
{
    pair_init(&p);
    int64_t at[32], start = p.ms;
    uint8_t msgs[32][148];
    int sent = 0;
    CHECK_INT(pair_send(&p, &p.a, buf, 100, 1), 0);
    do {
        while (pair_output(&p, &p.a, buf) > 0 && sent < 32) {
            at[sent] = p.ms;
            memcpy(msgs[sent++], buf, 148);
            CHECK_INT(pair_send(&p, &p.a, buf, 100, 2), 0); /* more data changes nothing */
        }
    } while (pair_next(&p, &p.a, start + 200000));
    CHECK_INT(sent, ZC_WG_TRIES);
    CHECK_INT(p.a.unanswered, ZC_WG_TRIES - 1);
    CHECK_INT(p.a.tries, ZC_WG_TRIES - 1);
    CHECK_INT(p.a.gave_up, 1);
    bool jitter = false;
    for (int i = 1; i < sent; i++) {
        int64_t gap = at[i] - at[i - 1];
        CHECK(gap >= 5000 && gap <= 5333);
        jitter |= gap != at[1] - at[0];
        for (int j = 0; j < i; j++) {
            CHECK(memcmp(msgs[i] + 4, msgs[j] + 4, 4) != 0);
            CHECK(memcmp(msgs[i] + 8, msgs[j] + 8, 32) != 0);
        }
    }
    CHECK(jitter);
    CHECK_INT(p.a.wg.staged, 0);
    CHECK_INT(p.a.wg.indices.len, 0);
    /* Each would have been accepted after the one before. */
    for (int i = 0; i < sent; i++) {
        p.ms += 20;
        pair_input(&p, &p.b, msgs[i], 148);
        CHECK_INT(pair_output(&p, &p.b, buf), 92);
        pair_input(&p, &p.b, msgs[i], 148);
        CHECK_INT(pair_output(&p, &p.b, buf), 0);
    }
    /* New data starts again. */
    p.ms += 20;
    CHECK_INT(pair_send(&p, &p.a, buf, 100, 3), 0);
    pair_run(&p);
    CHECK(p.a.done == 1 && p.b.got == 1 && pair_number(p.b.last) == 3);
    pair_done(&p);
}

TEST(wg_initiation_waits_for_the_way)
{
    pair_init(&p);
    pair_send(&p, &p.a, buf, 100, 1);
    /* Nobody takes the output for an hour: no try is used up, nothing to wake for. */
    CHECK(!pair_next(&p, &p.a, p.ms + 3600000));
    CHECK_INT(p.a.unanswered, 0);
    pair_run(&p);
    CHECK(p.b.got == 1 && p.a.done == 1);
    pair_done(&p);
}

TEST(wg_rekeys_after_120_seconds_when_sending)
{
    pair_init(&p);
    pair_connect(&p);
    int64_t start = p.ms;
    p.ms = start + 119999;
    pair_deliver(&p, &p.a, 1);
    CHECK_INT(pair_output(&p, &p.a, buf), 0);
    p.ms = start + 120000;
    pair_deliver(&p, &p.b, 2); /* the responder does not */
    CHECK_INT(pair_output(&p, &p.b, buf), 0);
    pair_deliver(&p, &p.a, 3);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_deliver(&p, &p.a, 4); /* the old session goes on meanwhile */
    CHECK_INT(pair_output(&p, &p.a, buf2), 0);
    size_t late_len = pair_send(&p, &p.b, buf2, 100, 5); /* sent under the old session */
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_run(&p), 2);
    CHECK(p.a.done == 1 && p.b.done == 1);
    pair_input(&p, &p.a, buf2, late_len);
    CHECK_INT(pair_number(p.a.last), 5);
    pair_deliver(&p, &p.a, 6);
    pair_deliver(&p, &p.b, 7);
    CHECK_INT(p.a.wg.indices.len, 2);
    pair_done(&p);
}

TEST(wg_session_ends_after_180_seconds)
{
    for (int who = 0; who < 2; who++) {
        pair_init(&p);
        pair_connect(&p);
        struct side *s = who == 0 ? &p.a : &p.b, *o = pair_other(&p, s);
        int64_t start = p.ms;
        struct zc_wg_stats st;
        p.ms = start + 179999;
        pair_deliver(&p, s, 1);
        size_t len = pair_send(&p, s, buf, 100, 2);
        size_t len2 = pair_send(&p, s, buf2, 100, 3);
        CHECK(len > 0 && len2 > 0);
        pair_input(&p, o, buf, len);
        CHECK_INT(o->got, 2);
        p.ms = start + 180000;
        pair_input(&p, o, buf2, len2);
        CHECK_INT(o->got, 2);
        zc_wg_peer_stats(s->peer, pair_now(&p), &st);
        CHECK(!st.have_session);
        CHECK_INT(pair_send(&p, s, buf, 100, 4), 0);
        pair_run(&p); /* either side begins anew */
        CHECK_INT(pair_number(o->last), 4);
        pair_deliver(&p, o, 5);
        pair_done(&p);
    }
}

TEST(wg_keepalive_after_10_seconds_of_hearing)
{
    pair_init(&p);
    pair_connect(&p);
    int64_t start = p.ms;
    pair_deliver(&p, &p.a, 1);
    CHECK(pair_next(&p, &p.b, start + 10000));
    CHECK_INT(p.ms, start + 10000);
    CHECK_INT(pair_output(&p, &p.b, buf), 32);
    pair_input(&p, &p.a, buf, 32);
    CHECK_INT(pair_output(&p, &p.b, buf), 0);
    CHECK(!pair_next(&p, &p.b, start + 100000)); /* one only */
    /* None when something was sent, and a keepalive asks for none. */
    start = p.ms = start + 100000;
    pair_deliver(&p, &p.a, 2);
    p.ms += 9000;
    pair_deliver(&p, &p.b, 3);
    while (pair_next(&p, &p.b, start + 18999))
        CHECK_INT(pair_output(&p, &p.b, buf), 0);
    /* The first of several counts. */
    pair_deliver(&p, &p.a, 4);
    start = p.ms;
    p.ms += 4000;
    pair_deliver(&p, &p.a, 5);
    int count = 0;
    while (pair_next(&p, &p.b, start + 60000)) {
        while (pair_output(&p, &p.b, buf) > 0) {
            count++;
            CHECK_INT(p.ms, start + 10000);
            pair_input(&p, &p.a, buf, 32);
        }
    }
    CHECK_INT(count, 1);
    pair_done(&p);
}

TEST(wg_new_handshake_when_nothing_comes_back)
{
    pair_init(&p);
    pair_connect(&p);
    int64_t start = p.ms;
    CHECK(pair_send(&p, &p.b, buf, 100, 1) > 0); /* lost; either side may find out */
    p.ms = start + 7000;
    CHECK(pair_send(&p, &p.b, buf, 100, 2) > 0); /* the first one counts */
    while (pair_next(&p, &p.b, start + 14999))
        CHECK_INT(pair_output(&p, &p.b, buf), 0);
    while (pair_next(&p, &p.b, start + 15333) && pair_output(&p, &p.b, buf) == 0)
        continue;
    CHECK(p.ms >= start + 15000 && p.ms <= start + 15333);
    CHECK(buf[0] == 1);
    pair_input(&p, &p.a, buf, 148);
    pair_run(&p);
    CHECK(p.b.done == 1 && p.a.done == 1);
    /* An answer of any kind ends the wait. */
    pair_forget(&p);
    start = p.ms;
    pair_deliver(&p, &p.b, 3);
    do {
        pair_run(&p);
    } while (pair_step(&p, start + 60000));
    CHECK(p.b.done == 0 && p.a.done == 0);
    pair_done(&p);
}

TEST(wg_keys_are_erased_after_540_seconds)
{
    pair_init(&p);
    pair_connect(&p);
    int64_t start = p.ms;
    for (int i = 0; i < 2; i++) {
        struct side *s = i == 0 ? &p.a : &p.b;
        while (pair_next(&p, s, start + 539999))
            CHECK_INT(pair_output(&p, s, buf), 0);
        CHECK(s->erased == 0 && s->peer->current != NULL);
        p.ms = start;
        while (pair_next(&p, s, start + 540000))
            continue;
        CHECK(s->erased == 1 && s->peer->current == NULL && s->wg.indices.len == 0);
        CHECK(zc_wg_deadline(&s->wg).ns == ZC_NEVER.ns);
        p.ms = start;
    }
    p.ms = start + 540000;
    CHECK_INT(pair_send(&p, &p.b, buf, 100, 1), 0);
    pair_run(&p);
    CHECK(p.a.got == 1);
    pair_done(&p);
}

TEST(wg_initiator_refreshes_while_it_only_receives)
{
    pair_init(&p);
    pair_connect(&p);
    int64_t start = p.ms;
    p.ms = start + 164999;
    pair_deliver(&p, &p.b, 1);
    CHECK_INT(pair_output(&p, &p.a, buf), 0);
    p.ms = start + 165000;
    pair_deliver(&p, &p.b, 2);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_deliver(&p, &p.b, 3); /* once */
    CHECK_INT(pair_output(&p, &p.a, buf2), 0);
    pair_input(&p, &p.b, buf, 148);
    pair_run(&p);
    CHECK_INT(p.a.done, 1);
    pair_done(&p);
    /* The responder never does. */
    pair_init(&p);
    pair_connect(&p);
    p.ms += 170000;
    size_t len = pair_send(&p, &p.a, buf, 100, 1);
    pair_input(&p, &p.b, buf, len);
    CHECK_INT(pair_output(&p, &p.b, buf), 0);
    pair_done(&p);
}

TEST(wg_message_counts_end_a_session)
{
    pair_init(&p);
    pair_connect(&p);
    p.ms += 6000;
    p.a.peer->current->counter = ZC_WG_REKEY_AFTER_MESSAGES - 1;
    pair_deliver(&p, &p.a, 1);
    CHECK_INT(pair_output(&p, &p.a, buf), 0);
    pair_deliver(&p, &p.a, 2);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    p.a.peer->current->counter = ZC_WG_REJECT_AFTER_MESSAGES - 1;
    pair_deliver(&p, &p.a, 3);
    CHECK_INT(pair_send(&p, &p.a, buf2, 100, 4), 0);
    pair_input(&p, &p.b, buf, 148);
    pair_run(&p);
    CHECK_INT(pair_number(p.b.last), 4);
    CHECK_INT(p.a.done, 1);
    pair_done(&p);
}

TEST(wg_keeps_the_newest_packets_in_order)
{
    pair_init(&p);
    for (uint32_t i = 0; i < 200; i++)
        CHECK_INT(pair_send(&p, &p.a, buf, 100, i), 0);
    CHECK_INT(p.a.wg.staged, ZC_WG_STAGED_MAX);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    pair_input(&p, &p.b, buf, 148);
    CHECK_INT(pair_output(&p, &p.b, buf), 92);
    pair_input(&p, &p.a, buf, 92);
    CHECK_INT(pair_send(&p, &p.a, buf, 100, 200), 0); /* behind those that wait */
    uint32_t want = 200 - ZC_WG_STAGED_MAX + 1;
    size_t len;
    while ((len = pair_output(&p, &p.a, buf)) > 0) {
        pair_input(&p, &p.b, buf, len);
        CHECK_INT(pair_number(p.b.last), want++);
    }
    CHECK_INT(want, 201);
    CHECK_INT(p.a.wg.staged, 0);
    CHECK(pair_send(&p, &p.a, buf, 100, 201) > 0);
    pair_done(&p);
}

TEST(wg_handshake_at_once_but_not_within_20_ms)
{
    pair_init(&p);
    pair_connect(&p);
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 0);
    CHECK(pair_next(&p, &p.a, p.ms + 20));
    CHECK_INT(p.ms, 1020);
    CHECK_INT(pair_run(&p), 3);
    CHECK(p.a.done == 1 && p.b.done == 1);
    p.ms += 1000;
    /* While one is under way as well, with all its tries before it. */
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf), 148);
    p.ms += 2000;
    zc_wg_handshake(&p.a.wg, pair_now(&p), p.a.peer);
    CHECK_INT(pair_output(&p, &p.a, buf2), 148);
    CHECK(memcmp(buf, buf2, 148) != 0);
    CHECK_INT(p.a.peer->tries, 1);
    pair_input(&p, &p.b, buf2, 148);
    pair_run(&p);
    CHECK(p.a.done == 2 && p.b.done == 2);
    pair_done(&p);
}
