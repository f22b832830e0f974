/* tunnel/{disco,meow}.h: every vector both ways, every byte changed, every length. */
#include "tunnel/disco.h"

#include "base/check.h"
#include "crypto/box.h"
#include "test.h"
#include "tunnel/meow.h"
#include "vector.h"

static struct zc_rng rng;

static void seed(void)
{
    static const uint8_t zero[32];
    zc_rng_init(&rng, zero);
}

/* The two ends of a vector. */
static void ends(const struct vec *v, struct zc_disco_peer *ret_sender,
                 struct zc_disco_peer *ret_receiver)
{
    struct zc_secret a, b;
    struct zc_key pa, pb;
    CHECK_INT(vec_hex(v, "sender_disco_private", a.b, 32), 32);
    CHECK_INT(vec_hex(v, "receiver_disco_private", b.b, 32), 32);
    CHECK_INT(vec_hex(v, "sender_disco_public", pa.b, 32), 32);
    CHECK_INT(vec_hex(v, "receiver_disco_public", pb.b, 32), 32);
    CHECK_INT(zc_disco_peer_init(ret_sender, &a, &pa, &pb), 0);
    CHECK_INT(zc_disco_peer_init(ret_receiver, &b, &pb, &pa), 0);
    CHECK(vec_is(v, "box_shared_key", ret_sender->shared.b, 32));
    CHECK(vec_is(v, "box_shared_key", ret_receiver->shared.b, 32));
}

static void check_damage(const struct zc_disco_peer *receiver, const uint8_t *packet, size_t len)
{
    uint8_t copy[ZC_DISCO_PACKET_MAX];
    struct zc_disco_msg msg;
    for (size_t i = 0; i < len; i++) {
        memcpy(copy, packet, len);
        copy[i] ^= 0x10;
        CHECK(!zc_disco_open(receiver, zc_slice(copy, len), &msg));
        CHECK(!zc_disco_open(receiver, zc_slice(packet, i), &msg));
    }
}

static void check_message(const struct vec *v, const struct zc_disco_msg *msg)
{
    uint8_t plain[ZC_DISCO_PACKET_MAX], again[ZC_DISCO_PACKET_MAX];
    size_t len = vec_hex(v, "plaintext", plain, sizeof(plain));
    CHECK_INT(msg->type, plain[0]);
    CHECK_INT(zc_disco_encode(msg, again), len);
    CHECK(memcmp(plain, again, len) == 0);
    if (msg->type != ZC_DISCO_CALL)
        CHECK(memcmp(msg->txid, plain + 2, ZC_DISCO_TXID) == 0);
    if (msg->type == ZC_DISCO_PING && len > 14) {
        CHECK(msg->has_node_key && memcmp(msg->node_key.b, plain + 14, 32) == 0);
        CHECK_INT(msg->padding, len - 46);
    }
    if (msg->type == ZC_DISCO_PONG) {
        CHECK(memcmp(msg->seen.address, plain + 14, 16) == 0);
        CHECK_INT(msg->seen.port, plain[30] << 8 | plain[31]);
    }
    if (msg->type == ZC_DISCO_CALL) {
        CHECK_INT(msg->endpoints_count, (len - 2) / 18);
        for (uint32_t i = 0; i < msg->endpoints_count; i++)
            CHECK_INT(msg->endpoints[i].port, plain[18 + 18 * i] << 8 | plain[19 + 18 * i]);
    }
}

TEST(disco_vectors)
{
    struct vec_each it = vec_each(vec_section("disco"));
    struct zc_json_value value;
    int seen = 0;
    seed();
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        uint8_t packet[ZC_DISCO_PACKET_MAX], plain[ZC_DISCO_PACKET_MAX];
        uint8_t sealed[ZC_DISCO_PACKET_MAX];
        struct zc_disco_peer sender, receiver;
        struct zc_disco_msg msg;
        struct zc_key key;
        ends(&v, &sender, &receiver);
        size_t len = vec_hex(&v, "packet", packet, sizeof(packet));
        CHECK_INT(len, vec_int(&v, "packet_len"));
        CHECK(zc_disco_sender(zc_slice(packet, len), &key));
        CHECK(vec_is(&v, "sender_disco_public", key.b, 32));
        CHECK(zc_disco_open(&receiver, zc_slice(packet, len), &msg));
        check_message(&v, &msg);
        check_damage(&receiver, packet, len);
        /* Our packet under the vector's nonce is the vector's. */
        size_t plain_len = vec_hex(&v, "plaintext", plain, sizeof(plain));
        CHECK_INT(zc_disco_seal(&sender, &rng, zc_slice(plain, plain_len), sealed, len), len);
        CHECK(memcmp(sealed, packet, 38) == 0);
        CHECK(zc_disco_open(&receiver, zc_slice(sealed, len), &msg));
        vec_hex(&v, "nonce", sealed + 38, ZC_BOX_NONCE);
        zc_box_seal(&sender.shared, sealed + 38, zc_slice(plain, plain_len), sealed + 62);
        CHECK(memcmp(sealed, packet, len) == 0);
        CHECK_INT(zc_disco_seal(&sender, &rng, zc_slice(plain, plain_len), sealed, len - 1), 0);
        zc_disco_peer_done(&sender);
        zc_disco_peer_done(&receiver);
        seen++;
    }
    CHECK_INT(seen, 8);
}

/* A ping over the relay is answered with the relay's stand-in address; nothing else is. */
TEST(disco_answer_over_relay)
{
    struct vec_each it = vec_each(vec_section("disco"));
    struct zc_json_value value;
    int pings = 0;
    seed();
    while (vec_next(&it, &value)) {
        static const uint8_t relay[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 3, 3, 40};
        struct vec v = vec_object(value);
        uint8_t packet[ZC_DISCO_PACKET_MAX], answer[ZC_DISCO_PACKET_MAX];
        struct zc_disco_peer sender, receiver;
        struct zc_disco_msg ping, pong;
        ends(&v, &sender, &receiver);
        size_t len = vec_hex(&v, "packet", packet, sizeof(packet));
        size_t n =
            zc_disco_answer(&receiver, &rng, 900, zc_slice(packet, len), answer, sizeof(answer));
        CHECK(zc_disco_open(&receiver, zc_slice(packet, len), &ping));
        CHECK_INT(n, ping.type == ZC_DISCO_PING ? 110 : 0);
        if (n > 0) {
            pings++;
            CHECK(zc_disco_open(&sender, zc_slice(answer, n), &pong));
            CHECK_INT(pong.type, ZC_DISCO_PONG);
            CHECK(memcmp(pong.txid, ping.txid, sizeof(pong.txid)) == 0);
            CHECK(memcmp(pong.seen.address, relay, sizeof(relay)) == 0);
            CHECK_INT(pong.seen.port, 900);
            CHECK_INT(zc_disco_answer(&receiver, &rng, 900, zc_slice(packet, len), answer, 109), 0);
            packet[len - 1] ^= 1;
            CHECK_INT(zc_disco_answer(&receiver, &rng, 900, zc_slice(packet, len), answer,
                                      sizeof(answer)),
                      0);
        }
    }
    CHECK_INT(pings, 3);
}

TEST(disco_payload_rules)
{
    uint8_t p[ZC_DISCO_PACKET_MAX] = {0};
    struct zc_disco_msg msg;
    for (int type = 0; type < 256; type++) {
        p[0] = (uint8_t)type;
        CHECK_INT(zc_disco_decode(zc_slice(p, 100), &msg), type >= 1 && type <= 3);
    }
    p[0] = ZC_DISCO_PING;
    CHECK(!zc_disco_decode(zc_slice(p, 1), &msg));
    CHECK(!zc_disco_decode(zc_slice(p, 13), &msg));
    CHECK(zc_disco_decode(zc_slice(p, 14), &msg) && !msg.has_node_key);
    CHECK(zc_disco_decode(zc_slice(p, 45), &msg) && !msg.has_node_key);
    p[0] = ZC_DISCO_PONG;
    CHECK(!zc_disco_decode(zc_slice(p, 31), &msg));
    CHECK(zc_disco_decode(zc_slice(p, 40), &msg));
    p[0] = ZC_DISCO_CALL;
    CHECK(zc_disco_decode(zc_slice(p, 2 + 19), &msg) && msg.endpoints_count == 0);
    CHECK(zc_disco_decode(zc_slice(p, 2 + 18 * 65), &msg));
    CHECK_INT(msg.endpoints_count, ZC_DISCO_ENDPOINTS_MAX);
    p[1] = 1;
    CHECK(zc_disco_decode(zc_slice(p, 2 + 18), &msg) && msg.endpoints_count == 0);
}

TEST(meow_vectors)
{
    struct vec_each it = vec_each(vec_section("meow"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        uint8_t packet[128], again[ZC_MEOW_PING_LEN];
        size_t len = vec_hex(&v, "packet", packet, sizeof(packet));
        struct zc_meow m = zc_meow_decode(zc_slice(packet, len));
        enum zc_meow_kind want = ZC_MEOW_BAD;
        if (zc_slice_is(vec_text(&v, "name"), "meow ping")) {
            want = ZC_MEOW_PING;
            CHECK(vec_is(&v, "node_public", m.node_key.b, 32));
            CHECK(vec_is(&v, "disco_public", m.disco_key.b, 32));
            zc_meow_encode_ping(again, &m.node_key, &m.disco_key);
            CHECK(vec_is(&v, "packet", again, ZC_MEOW_PING_LEN));
        } else if (zc_slice_is(vec_text(&v, "name"), "meowed")) {
            want = ZC_MEOW_MEOWED;
            zc_meow_encode_meowed(again);
            CHECK(vec_is(&v, "packet", again, ZC_MEOW_MEOWED_LEN));
        } else if (vec_get(&v, "is_meowed").boolean) {
            want = ZC_MEOW_MEOWED;
        } else if (vec_get(&v, "parses_as_ping_v030").boolean) {
            want = ZC_MEOW_PING;
        }
        CHECK_INT(m.kind, want);
        seen++;
    }
    CHECK_INT(seen, 7);
}

TEST(meow_rules)
{
    uint8_t p[ZC_MEOW_PING_LEN] = "meow\1";
    CHECK_INT(zc_meow_decode(zc_slice(p, sizeof(p))).kind, ZC_MEOW_BAD); /* zero disco key */
    p[68] = 1;
    CHECK_INT(zc_meow_decode(zc_slice(p, sizeof(p))).kind, ZC_MEOW_PING);
    CHECK_INT(zc_meow_decode(zc_slice(p, 4)).kind, ZC_MEOW_BAD);
    CHECK_INT(zc_meow_decode(zc_slice(p, 3)).kind, ZC_MEOW_NONE);
    CHECK_INT(zc_meow_decode(zc_slice(NULL, 0)).kind, ZC_MEOW_NONE);
    p[0] = 'M';
    CHECK_INT(zc_meow_decode(zc_slice(p, sizeof(p))).kind, ZC_MEOW_NONE);
}
