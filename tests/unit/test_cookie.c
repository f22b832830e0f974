/* tunnel/cookie.h: the cookie of the vectors, its life, and replies that must not count. */
#include "tunnel/cookie.h"

#include "crypto/aead.h"
#include "crypto/blake2s.h"
#include "test.h"
#include "tunnel/noise.h"
#include "vector.h"

static struct zc_now at_ms(int64_t ms)
{
    return (struct zc_now){{ms * ZC_NS_PER_MS}, {1700000000000 + ms}};
}

struct fixed {
    struct vec v;
    struct zc_cookie_keys keys; /* of the responder */
    struct zc_cookie cookie;
    uint8_t msg[148], reply[64];
};

static bool fixed_next(struct vec_each *it, struct fixed *f)
{
    struct zc_json_value value;
    struct zc_key responder;
    if (!vec_next(it, &value))
        return false;
    memset(f, 0, sizeof(*f));
    f->v = vec_object(value);
    CHECK_INT(vec_hex(&f->v, "responder_static_public", responder.b, 32), 32);
    zc_cookie_keys(&responder, &f->keys);
    CHECK_INT(vec_hex(&f->v, "initiation", f->msg, 148), 148);
    CHECK_INT(vec_hex(&f->v, "cookie_reply", f->reply, 64), 64);
    zc_cookie_sign(&f->cookie, &f->keys, at_ms(0), f->msg, 148);
    CHECK(vec_is(&f->v, "initiation", f->msg, 148));
    return true;
}

TEST(cookie_vectors)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    int seen = 0;
    while (fixed_next(&it, &f)) {
        CHECK(zc_cookie_consume(&f.cookie, &f.keys, at_ms(10), f.reply));
        CHECK(vec_is(&f.v, "cookie", f.cookie.cookie, 16));
        zc_cookie_sign(&f.cookie, &f.keys, at_ms(20), f.msg, 148);
        CHECK(vec_is(&f.v, "initiation_with_mac2", f.msg, 148));
        CHECK(zc_cookie_check(&f.keys, f.msg, 148));
        seen++;
    }
    CHECK_INT(seen, 2);
}

/* The other side of it, made here from the text: the same reply comes out. */
TEST(cookie_reply_as_the_responder_makes_it)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    while (fixed_next(&it, &f)) {
        uint8_t secret[32], source[64], reply[64] = {3};
        CHECK_INT(vec_hex(&f.v, "cookie_secret", secret, 32), 32);
        size_t source_len = vec_hex(&f.v, "cookie_source_bytes", source, sizeof(source));
        memcpy(reply + 4, f.msg + 4, 4);
        CHECK_INT(vec_hex(&f.v, "cookie_reply_nonce", reply + 8, 24), 24);
        zc_blake2s_mac16(secret, 32, zc_slice(source, source_len), reply + 32);
        CHECK(vec_is(&f.v, "cookie", reply + 32, 16));
        zc_aead_xseal(&f.keys.reply, reply + 8, zc_slice(f.msg + 116, 16), reply + 32, 16);
        CHECK(memcmp(reply, f.reply, 64) == 0);
    }
}

static bool has_mac2(struct fixed *f, int64_t ms)
{
    zc_cookie_sign(&f->cookie, &f->keys, at_ms(ms), f->msg, 148);
    return !zc_secret_is_zero(f->msg + 132, 16);
}

TEST(cookie_lives_120_seconds)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    CHECK(fixed_next(&it, &f));
    CHECK(!has_mac2(&f, 0));
    CHECK(zc_cookie_consume(&f.cookie, &f.keys, at_ms(1000), f.reply));
    CHECK(has_mac2(&f, 1000));
    CHECK(has_mac2(&f, 120999));
    CHECK(!has_mac2(&f, 121000));
    CHECK(!has_mac2(&f, 121001));
    CHECK(zc_secret_is_zero(f.cookie.cookie, 16));
}

TEST(cookie_replies_that_do_not_count)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    static struct fixed f;
    struct zc_cookie none = {0};
    CHECK(fixed_next(&it, &f));
    CHECK(!zc_cookie_consume(&none, &f.keys, at_ms(1), f.reply)); /* nothing was asked */
    for (size_t i = 8; i < 64; i++) {
        f.reply[i] ^= 0x10;
        CHECK(!zc_cookie_consume(&f.cookie, &f.keys, at_ms(1), f.reply));
        f.reply[i] ^= 0x10;
    }
    f.cookie.last_mac1[5] ^= 1; /* an answer to another message */
    CHECK(!zc_cookie_consume(&f.cookie, &f.keys, at_ms(1), f.reply));
    f.cookie.last_mac1[5] ^= 1;
    CHECK(zc_cookie_consume(&f.cookie, &f.keys, at_ms(1), f.reply));
    CHECK(!zc_cookie_consume(&f.cookie, &f.keys, at_ms(2), f.reply)); /* a second time */
    zc_cookie_done(&f.cookie);
    CHECK(zc_secret_is_zero(&f.cookie, sizeof(f.cookie)));
}
