/*
 * tunnel/{noise,cookie}.h: the fixed handshakes with every value of their trace that the state
 * shows, transport keys, tampering at each byte, and stamps.
 */
#include "tunnel/noise.h"

#include "base/check.h"
#include "base/rng.h"
#include "crypto/aead.h"
#include "crypto/x25519.h"
#include "test.h"
#include "vector.h"

struct fixed {
    struct vec v, trace;
    struct zc_noise_self i_self, r_self;
    struct zc_noise_peer i_peer, r_peer; /* the responder as the initiator sees it, and back */
    struct zc_secret psk, i_ephemeral, r_ephemeral;
    uint32_t i_index, r_index;
    uint8_t initiation[148], response[92], stamp[12];
};

static struct zc_secret secret(const struct vec *v, const char *name)
{
    struct zc_secret s;
    CHECK_INT(vec_hex(v, name, s.b, sizeof(s.b)), 32);
    return s;
}

static void fixed_open(struct fixed *f, struct zc_json_value value)
{
    f->v = vec_object(value);
    f->trace = vec_object(vec_get(&f->v, "trace"));
    struct zc_secret i = secret(&f->v, "initiator_static_private");
    struct zc_secret r = secret(&f->v, "responder_static_private");
    zc_noise_self_init(&f->i_self, &i);
    zc_noise_self_init(&f->r_self, &r);
    CHECK(vec_is(&f->v, "initiator_static_public", f->i_self.public.b, 32));
    CHECK(vec_is(&f->v, "responder_static_public", f->r_self.public.b, 32));
    f->psk = secret(&f->v, "psk");
    bool none = zc_secret_is_zero(f->psk.b, 32);
    CHECK_INT(zc_noise_peer_init(&f->i_peer, &f->i_self, &f->r_self.public, none ? NULL : &f->psk),
              0);
    CHECK_INT(zc_noise_peer_init(&f->r_peer, &f->r_self, &f->i_self.public, &f->psk), 0);
    f->i_ephemeral = secret(&f->v, "initiator_ephemeral_private");
    f->r_ephemeral = secret(&f->v, "responder_ephemeral_private");
    f->i_index = (uint32_t)vec_int(&f->v, "initiator_index");
    f->r_index = (uint32_t)vec_int(&f->v, "responder_index");
    CHECK_INT(vec_hex(&f->v, "initiation", f->initiation, 148), 148);
    CHECK_INT(vec_hex(&f->v, "response", f->response, 92), 92);
    CHECK_INT(vec_hex(&f->v, "tai64n", f->stamp, 12), 12);
}

/* Each test runs over the handshakes without and with a pre-shared key. */
static bool fixed_next(struct vec_each *it, struct fixed *f)
{
    struct zc_json_value value;
    memset(f, 0, sizeof(*f));
    if (!vec_next(it, &value))
        return false;
    fixed_open(f, value);
    return true;
}

static const struct zc_now start = {{5 * ZC_NS_PER_S}, {1700000000000}};

TEST(noise_initiator_vectors)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    int seen = 0;
    while (fixed_next(&it, &f)) {
        struct zc_noise n;
        struct zc_cookie cookie = {0};
        struct zc_secret send, receive;
        uint8_t msg[148];
        CHECK_INT(zc_noise_create_initiation(&n, &f.i_self, &f.i_peer, &f.i_ephemeral, f.i_index,
                                             f.stamp, msg),
                  0);
        zc_cookie_sign(&cookie, &f.i_peer.cookie_keys, start, msg, sizeof(msg));
        CHECK(memcmp(msg, f.initiation, sizeof(msg)) == 0);
        CHECK(vec_is(&f.trace, "i_hash_final", n.hash, 32));
        CHECK(vec_is(&f.trace, "i_ck_after_ss", n.chain.b, 32));

        CHECK(zc_cookie_check(&f.i_self.cookie_keys, f.response, 92));
        CHECK_INT(zc_noise_consume_response(&n, &f.i_self, &f.i_peer, f.response), 0);
        CHECK_INT(n.remote_index, f.r_index);
        CHECK(vec_is(&f.trace, "r_hash_final", n.hash, 32));
        CHECK(vec_is(&f.trace, "r_ck_after_psk", n.chain.b, 32));
        zc_noise_keys(&n, true, &send, &receive);
        CHECK(vec_is(&f.v, "initiator_send_key", send.b, 32));
        CHECK(vec_is(&f.v, "initiator_recv_key", receive.b, 32));
        CHECK(zc_secret_is_zero(&n, sizeof(n)));
        seen++;
    }
    CHECK_INT(seen, 2);
}

TEST(noise_responder_vectors)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    while (fixed_next(&it, &f)) {
        struct zc_noise n;
        struct zc_cookie cookie = {0};
        struct zc_key who;
        struct zc_secret send, receive;
        uint8_t stamp[12], msg[92];
        CHECK(zc_cookie_check(&f.r_self.cookie_keys, f.initiation, 148));
        CHECK_INT(zc_noise_read_static(&n, &f.r_self, f.initiation, &who), 0);
        CHECK(zc_secret_key_equal(&who, &f.i_self.public));
        CHECK(vec_is(&f.trace, "i_ck_after_es", n.chain.b, 32));
        CHECK_INT(zc_noise_read_stamp(&n, &f.r_peer, f.initiation, stamp), 0);
        CHECK(memcmp(stamp, f.stamp, 12) == 0);
        CHECK_INT(n.remote_index, f.i_index);
        CHECK(vec_is(&f.trace, "i_ck_after_ss", n.chain.b, 32));
        CHECK(vec_is(&f.trace, "i_hash_final", n.hash, 32));
        CHECK_INT(zc_noise_create_response(&n, &f.r_peer, &f.r_ephemeral, f.r_index, msg), 0);
        zc_cookie_sign(&cookie, &f.r_peer.cookie_keys, start, msg, sizeof(msg));
        CHECK(memcmp(msg, f.response, sizeof(msg)) == 0);
        CHECK(vec_is(&f.trace, "r_hash_final", n.hash, 32));
        zc_noise_keys(&n, false, &send, &receive);
        CHECK(vec_is(&f.v, "initiator_recv_key", send.b, 32));
        CHECK(vec_is(&f.v, "initiator_send_key", receive.b, 32));
    }
}

TEST(noise_transport_vectors)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    int seen = 0;
    while (fixed_next(&it, &f)) {
        struct vec_each packets = vec_each(vec_get(&f.v, "transport"));
        struct zc_json_value value;
        while (vec_next(&packets, &value)) {
            struct vec v = vec_object(value);
            struct zc_secret key = secret(&v, "key");
            uint8_t packet[256], text[256] = {0}, padded[256] = {0};
            size_t len = vec_hex(&v, "packet", packet, sizeof(packet));
            size_t text_len = vec_hex(&v, "plaintext_unpadded", text, sizeof(text));
            size_t padded_len = (text_len + 15) / 16 * 16;
            CHECK_INT(len, 16 + padded_len + 16);
            memcpy(padded, text, text_len);
            zc_aead_seal(&key, vec_int(&v, "counter"), zc_slice(NULL, 0), padded, padded_len);
            CHECK(memcmp(padded, packet + 16, padded_len + 16) == 0);
            CHECK_INT(zc_aead_open(&key, vec_int(&v, "counter"), zc_slice(NULL, 0), packet + 16,
                                   padded_len + 16),
                      0);
            CHECK(memcmp(packet + 16, text, padded_len) == 0);
            seen++;
        }
    }
    CHECK_INT(seen, 6);
}

/* Every bit of the sealed parts matters, and a failure leaves no state behind. */
TEST(noise_tampered_initiation)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    while (fixed_next(&it, &f)) {
        for (size_t i = 0; i < 148; i++) {
            uint8_t msg[148], stamp[12];
            struct zc_noise n;
            struct zc_key who;
            memcpy(msg, f.initiation, sizeof(msg));
            msg[i] ^= (uint8_t)(1 << i % 8);
            CHECK_INT(zc_cookie_check(&f.r_self.cookie_keys, msg, 148), i >= 132);
            int err = zc_noise_read_static(&n, &f.r_self, msg, &who);
            bool covered = i >= 8 && i < 88; /* ephemeral, static and its tag */
            CHECK_INT(err, covered ? ZC_EBADMSG : 0);
            if (err == 0) {
                err = zc_noise_read_stamp(&n, &f.r_peer, msg, stamp);
                CHECK_INT(err, i >= 88 && i < 116 ? ZC_EBADMSG : 0);
            }
            if (err != 0)
                CHECK(zc_secret_is_zero(&n, sizeof(n)));
        }
    }
}

TEST(noise_tampered_response)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    while (fixed_next(&it, &f)) {
        struct zc_noise n, before;
        uint8_t msg[148];
        CHECK_INT(zc_noise_create_initiation(&n, &f.i_self, &f.i_peer, &f.i_ephemeral, f.i_index,
                                             f.stamp, msg),
                  0);
        before = n;
        for (size_t i = 0; i < 92; i++) {
            uint8_t bad[92];
            memcpy(bad, f.response, sizeof(bad));
            bad[i] ^= (uint8_t)(0x80 >> i % 8);
            bool covered = i >= 12 && i < 60;
            /* The top bit of a point says nothing to the curve, but the hash covers it. */
            CHECK_INT(zc_noise_consume_response(&n, &f.i_self, &f.i_peer, bad),
                      covered ? ZC_EBADMSG : 0);
            if (covered)
                CHECK(memcmp(&n, &before, sizeof(n)) == 0);
            n = before;
        }
        /* Another pre-shared key shows here, and only here. */
        struct zc_noise_peer other = f.i_peer;
        other.psk.b[31] ^= 1;
        CHECK_INT(zc_noise_consume_response(&n, &f.i_self, &other, f.response), ZC_EBADMSG);
        CHECK_INT(zc_noise_consume_response(&n, &f.i_self, &f.i_peer, f.response), 0);
        zc_noise_done(&n);
        CHECK(zc_secret_is_zero(&n, sizeof(n)));
    }
}

TEST(noise_points_of_small_order)
{
    struct zc_noise_self self;
    struct zc_noise_peer peer;
    struct zc_noise n;
    struct zc_key zero = {{0}}, who;
    struct zc_secret private = {{8, 1}};
    uint8_t msg[148] = {1};
    zc_noise_self_init(&self, &private);
    CHECK_INT(zc_noise_peer_init(&peer, &self, &zero, NULL), ZC_EBADMSG);
    CHECK_INT(zc_noise_read_static(&n, &self, msg, &who), ZC_EBADMSG);
    zc_noise_self_done(&self);
    CHECK(zc_secret_is_zero(&self, sizeof(self)));
}

static void stamp_at(int64_t ms, const uint8_t last[12], uint8_t ret[12])
{
    zc_noise_stamp((struct zc_wall){ms}, last, ret);
}

TEST(noise_stamps)
{
    uint8_t a[12], b[12], want[12];
    /* The vectors' stamp is 0x12000000 ns, 302 ms, after a second. */
    vec_unhex(zc_slice_str("400000006a00000a12000000"), want, 12);
    stamp_at(INT64_C(0x6a000000) * 1000 + 302, NULL, a);
    CHECK(memcmp(a, want, 12) == 0);
    vec_unhex(zc_slice_str("400000000000000a00000000"), want, 12);
    stamp_at(0, NULL, a);
    CHECK(memcmp(a, want, 12) == 0);
    stamp_at(INT64_MIN, NULL, a);
    CHECK(memcmp(a, want, 12) == 0);
    stamp_at(16, NULL, a); /* within the first step */
    CHECK(memcmp(a, want, 12) == 0);
    stamp_at(17, NULL, a);
    vec_unhex(zc_slice_str("400000000000000a01000000"), want, 12);
    CHECK(memcmp(a, want, 12) == 0);
    /* 999 ms is the last step of a second; one more is the next second. */
    stamp_at(1999, NULL, a);
    stamp_at(1999, a, b);
    vec_unhex(zc_slice_str("400000000000000c00000000"), want, 12);
    CHECK(memcmp(b, want, 12) == 0);
    stamp_at(1999, NULL, a);
    stamp_at(1999, a, a); /* in place */
    CHECK(memcmp(a, want, 12) == 0);
}

TEST(noise_stamps_rise_while_the_clock_steps)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){9});
    uint8_t last[12] = {0}, next[12];
    int64_t ms = 1700000000000;
    for (int i = 0; i < 5000; i++) {
        uint64_t pick = zc_rng_u64(&rng);
        if (pick % 50 == 0)
            ms += (int64_t)(pick >> 8 & 0xffffff) - 0x800000;
        else
            ms += (int64_t)(pick >> 8 & 31);
        stamp_at(ms, last, next);
        CHECK(memcmp(next, last, 12) > 0);
        CHECK((next[9] | next[10] | next[11]) == 0 && next[8] < 0x3c);
        memcpy(last, next, 12);
    }
}
