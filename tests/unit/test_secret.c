/* crypto/{secret,x25519,aead,box,discokey}.h: vectors, text forms, and every byte tampered with. */
#include "crypto/secret.h"

#include "base/check.h"
#include "base/rng.h"
#include "crypto/aead.h"
#include "crypto/box.h"
#include "crypto/discokey.h"
#include "crypto/x25519.h"
#include "test.h"
#include "vector.h"

/* The text of bytes is the member's, and reads back to them. */
static void check_text(const struct vec *v, const char *name, enum zc_secret_kind kind,
                       const uint8_t bytes[32])
{
    char text[ZC_SECRET_TEXT_MAX];
    uint8_t back[32];
    zc_secret_encode(kind, bytes, text);
    CHECK(zc_slice_is(vec_text(v, name), text));
    CHECK_INT(zc_secret_parse(kind, vec_text(v, name), back), 0);
    CHECK(memcmp(back, bytes, 32) == 0);
}

TEST(secret_key_vectors)
{
    struct vec_each it = vec_each(vec_section("keys"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        struct zc_secret private, disco_private;
        struct zc_key public, disco_public;
        CHECK_INT(vec_hex(&v, "node_private", private.b, 32), 32);
        zc_x25519_public(&private, &public);
        CHECK(vec_is(&v, "node_public", public.b, 32));
        zc_discokey_derive(&private, &disco_private, &disco_public);
        CHECK(vec_is(&v, "disco_private", disco_private.b, 32));
        CHECK(vec_is(&v, "disco_public", disco_public.b, 32));
        CHECK_INT(vec_hex(&v, "disco_hmac_unclamped", disco_private.b, 32), 32);
        zc_x25519_clamp(&disco_private);
        CHECK(vec_is(&v, "disco_private", disco_private.b, 32));
        check_text(&v, "node_private_text", ZC_SECRET_PRIVATE, private.b);
        check_text(&v, "node_public_text", ZC_SECRET_NODE_KEY, public.b);
        check_text(&v, "disco_public_text", ZC_SECRET_DISCO_KEY, disco_public.b);
        seen++;
    }
    CHECK_INT(seen, 5);
}

TEST(secret_text_is_strict)
{
    static const char *const prefixes[] = {"privkey:", "nodekey:", "discokey:", "psk:"};
    uint8_t bytes[32], back[32], untouched[32];
    char text[ZC_SECRET_TEXT_MAX + 1];
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(i * 37 + 9);
    memset(untouched, 0xaa, 32);
    memset(back, 0xaa, 32);
    for (int kind = 0; kind < 4; kind++) {
        zc_secret_encode((enum zc_secret_kind)kind, bytes, text);
        size_t len = strlen(text);
        CHECK_INT(len, strlen(prefixes[kind]) + 64);
        for (int other = 0; other < 4; other++) {
            int err = zc_secret_parse((enum zc_secret_kind)other, zc_slice_str(text), back);
            CHECK_INT(err, other == kind ? 0 : ZC_EINVAL);
        }
        CHECK(memcmp(back, bytes, 32) == 0);
        memset(back, 0xaa, 32);
        for (size_t cut = 0; cut < len; cut++)
            CHECK_INT(zc_secret_parse((enum zc_secret_kind)kind, zc_slice(text, cut), back),
                      ZC_EINVAL);
        text[len] = '0';
        CHECK_INT(zc_secret_parse((enum zc_secret_kind)kind, zc_slice(text, len + 1), back),
                  ZC_EINVAL);
        text[len] = '\0';
        CHECK_INT(zc_secret_parse((enum zc_secret_kind)kind, zc_slice(text, len + 1), back),
                  ZC_EINVAL);
        CHECK(memcmp(back, untouched, 32) == 0);
    }
}

/* Every byte value at a place of the digits against isxdigit by hand. */
TEST(secret_text_digits)
{
    char text[ZC_SECRET_TEXT_MAX];
    uint8_t bytes[32] = {0}, back[32];
    zc_secret_encode(ZC_SECRET_PRESHARED, bytes, text);
    for (int place = 4; place < 68; place += 21) {
        for (int c = 0; c < 256; c++) {
            text[place] = (char)c;
            int want = c >= '0' && c <= '9'   ? c - '0'
                       : c >= 'a' && c <= 'f' ? c - 'a' + 10
                       : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                              : -1;
            int err = zc_secret_parse(ZC_SECRET_PRESHARED, zc_slice(text, 68), back);
            CHECK_INT(err, want >= 0 ? 0 : ZC_EINVAL);
            if (want >= 0)
                CHECK_INT(back[(place - 4) / 2], place % 2 == 0 ? want << 4 : want);
        }
        text[place] = '0';
    }
}

TEST(secret_compare_and_wipe)
{
    uint8_t a[32] = {0}, b[32] = {0};
    CHECK(zc_secret_equal(a, b, 32) && zc_secret_is_zero(a, 32) && zc_secret_equal(a, b, 0));
    for (int i = 0; i < 32; i++) {
        a[i] = 0x80;
        CHECK(!zc_secret_equal(a, b, 32) && !zc_secret_is_zero(a, 32));
        CHECK(zc_secret_equal(a, b, (size_t)i));
        a[i] = 0;
    }
    struct zc_secret s;
    memset(&s, 7, sizeof(s));
    zc_secret_done(&s);
    CHECK(zc_secret_is_zero(s.b, 32));
    zc_secret_wipe(NULL, 0);
}

/* RFC 7748 section 6.1, and the points that give zero. */
TEST(x25519_agreement_and_small_points)
{
    uint8_t want[32];
    struct zc_secret a, b, ab, ba;
    struct zc_key pa, pb;
    vec_unhex(zc_slice_str("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"), b.b,
              32);
    vec_unhex(zc_slice_str("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"), a.b,
              32);
    zc_x25519_public(&a, &pa);
    zc_x25519_public(&b, &pb);
    CHECK_INT(zc_x25519_shared(&a, &pb, &ab), 0);
    CHECK_INT(zc_x25519_shared(&b, &pa, &ba), 0);
    vec_unhex(zc_slice_str("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"),
              want, 32);
    CHECK(memcmp(ab.b, want, 32) == 0 && memcmp(ba.b, want, 32) == 0);

    static const char *const small[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(small); i++) {
        for (int high = 0; high < 2; high++) { /* the top bit is ignored by the curve */
            vec_unhex(zc_slice_str(small[i]), pb.b, 32);
            pb.b[31] |= (uint8_t)(high << 7);
            struct zc_secret kept = ab;
            CHECK_INT(zc_x25519_shared(&a, &pb, &ab), ZC_EBADMSG);
            CHECK(memcmp(&kept, &ab, 32) == 0);
            CHECK_INT(zc_box_shared(&a, &pb, &ab), ZC_EBADMSG);
            CHECK(memcmp(&kept, &ab, 32) == 0);
        }
    }
}

TEST(x25519_generated_keys_are_clamped)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){3});
    struct zc_secret last = {0};
    for (int i = 0; i < 100; i++) {
        struct zc_secret s, clamped;
        zc_x25519_generate(&rng, &s);
        clamped = s;
        zc_x25519_clamp(&clamped);
        CHECK(memcmp(&s, &clamped, 32) == 0 && memcmp(&s, &last, 32) != 0);
        CHECK((s.b[0] & 7) == 0 && (s.b[31] & 0xc0) == 0x40);
        last = s;
    }
}

/* RFC 8439 section 2.8.2 has a nonce that is no counter; the vectors of the handshake test the
 * values. Here: what is sealed opens, and nothing else does. */
TEST(aead_round_trip_and_tampering)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){4});
    for (size_t len = 0; len < 100; len += 11) {
        struct zc_secret key;
        uint8_t text[128], sealed[128], work[128], ad[7], nonce[24];
        zc_rng_bytes(&rng, key.b, 32);
        zc_rng_bytes(&rng, text, sizeof(text));
        zc_rng_bytes(&rng, ad, sizeof(ad));
        zc_rng_bytes(&rng, nonce, sizeof(nonce));
        uint64_t counter = zc_rng_u64(&rng);
        struct zc_slice bound = zc_slice(ad, sizeof(ad));
        for (int x = 0; x < 2; x++) {
#define OPEN()                                                                                     \
    (x ? zc_aead_xopen(&key, nonce, bound, work, len + 16)                                         \
       : zc_aead_open(&key, counter, bound, work, len + 16))
            memcpy(sealed, text, len);
            if (x)
                zc_aead_xseal(&key, nonce, bound, sealed, len);
            else
                zc_aead_seal(&key, counter, bound, sealed, len);
            for (size_t i = 0; i <= len + 16; i++) { /* the last round tampers with nothing */
                memcpy(work, sealed, len + 16);
                work[i] ^= i < len + 16 ? 1 << i % 8 : 0;
                CHECK_INT(OPEN(), i < len + 16 ? ZC_EBADMSG : 0);
            }
            CHECK(memcmp(work, text, len) == 0);
            memcpy(work, sealed, len + 16);
            ad[3] ^= 1;
            CHECK_INT(OPEN(), ZC_EBADMSG);
            ad[3] ^= 1;
            memcpy(work, sealed, len + 16);
            counter ^= UINT64_C(1) << 63;
            nonce[23] ^= 1;
            CHECK_INT(OPEN(), ZC_EBADMSG);
            counter ^= UINT64_C(1) << 63;
            nonce[23] ^= 1;
        }
        CHECK_INT(zc_aead_open(&key, counter, bound, work, 15), ZC_EBADMSG);
        CHECK_INT(zc_aead_xopen(&key, nonce, bound, work, 15), ZC_EBADMSG);
    }
}

/* The disco vectors are boxes at offset 62. */
TEST(box_vectors)
{
    struct vec_each it = vec_each(vec_section("disco"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        struct zc_secret sender, receiver, shared, same;
        struct zc_key sender_public, receiver_public;
        uint8_t packet[2048], text[2048], out[2048], nonce[24];
        CHECK_INT(vec_hex(&v, "sender_disco_private", sender.b, 32), 32);
        CHECK_INT(vec_hex(&v, "receiver_disco_private", receiver.b, 32), 32);
        zc_x25519_public(&sender, &sender_public);
        zc_x25519_public(&receiver, &receiver_public);
        CHECK(vec_is(&v, "sender_disco_public", sender_public.b, 32));
        CHECK_INT(zc_box_shared(&sender, &receiver_public, &shared), 0);
        CHECK_INT(zc_box_shared(&receiver, &sender_public, &same), 0);
        CHECK(vec_is(&v, "box_shared_key", shared.b, 32) && memcmp(&shared, &same, 32) == 0);
        size_t packet_len = vec_hex(&v, "packet", packet, sizeof(packet));
        size_t len = vec_hex(&v, "plaintext", text, sizeof(text));
        CHECK_INT(vec_hex(&v, "nonce", nonce, 24), 24);
        CHECK_INT(packet_len, 62 + 16 + len);
        memcpy(out, text, len);
        zc_box_seal(&shared, nonce, zc_slice(out, len), out);
        CHECK(memcmp(out, packet + 62, len + 16) == 0);
        for (size_t i = 0; i <= len + 16; i++) {
            memcpy(out, packet + 62, len + 16);
            out[i] ^= i < len + 16 ? 0x40 : 0;
            CHECK_INT(zc_box_open(&shared, nonce, zc_slice(out, len + 16), out),
                      i < len + 16 ? ZC_EBADMSG : 0);
        }
        CHECK(memcmp(out, text, len) == 0);
        CHECK_INT(zc_box_open(&shared, nonce, zc_slice(packet + 62, 15), out), ZC_EBADMSG);
        seen++;
    }
    CHECK_INT(seen, 8);
}
