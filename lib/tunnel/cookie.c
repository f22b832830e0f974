/* MACs of handshake messages and cookies received: see cookie.h. */
#include "tunnel/cookie.h"

#include <string.h>

#include "base/check.h"
#include "crypto/aead.h"
#include "crypto/blake2s.h"

#define REPLY_NONCE 8
#define REPLY_COOKIE 32

void zc_cookie_keys(const struct zc_key *receiver, struct zc_cookie_keys *ret_keys)
{
    struct zc_slice key = zc_slice(receiver->b, sizeof(receiver->b));
    zc_blake2s_hash2(zc_slice_str("mac1----"), key, ret_keys->mac1);
    zc_blake2s_hash2(zc_slice_str("cookie--"), key, ret_keys->reply.b);
}

void zc_cookie_sign(struct zc_cookie *c, const struct zc_cookie_keys *keys, struct zc_now now,
                    uint8_t *msg, size_t len)
{
    ZC_ASSERT(len >= ZC_COOKIE_MACS_BYTES);
    size_t mac1 = len - ZC_COOKIE_MACS_BYTES, mac2 = len - ZC_COOKIE_BYTES;
    zc_blake2s_mac16(keys->mac1, sizeof(keys->mac1), zc_slice(msg, mac1), msg + mac1);
    memcpy(c->last_mac1, msg + mac1, sizeof(c->last_mac1));
    c->have_mac1 = true;
    if (c->have_cookie && now.mono.ns >= c->until.ns) {
        zc_secret_wipe(c->cookie, sizeof(c->cookie));
        c->have_cookie = false;
    }
    if (c->have_cookie)
        zc_blake2s_mac16(c->cookie, sizeof(c->cookie), zc_slice(msg, mac2), msg + mac2);
    else
        memset(msg + mac2, 0, ZC_COOKIE_BYTES);
}

bool zc_cookie_check(const struct zc_cookie_keys *keys, const uint8_t *msg, size_t len)
{
    uint8_t mac[ZC_COOKIE_BYTES];
    ZC_ASSERT(len >= ZC_COOKIE_MACS_BYTES);
    size_t mac1 = len - ZC_COOKIE_MACS_BYTES;
    zc_blake2s_mac16(keys->mac1, sizeof(keys->mac1), zc_slice(msg, mac1), mac);
    return zc_secret_equal(mac, msg + mac1, sizeof(mac));
}

bool zc_cookie_consume(struct zc_cookie *c, const struct zc_cookie_keys *keys, struct zc_now now,
                       const uint8_t msg[ZC_COOKIE_REPLY_BYTES])
{
    uint8_t sealed[ZC_COOKIE_BYTES + ZC_AEAD_TAG];
    if (!c->have_mac1)
        return false;
    memcpy(sealed, msg + REPLY_COOKIE, sizeof(sealed));
    if (zc_aead_xopen(&keys->reply, msg + REPLY_NONCE, zc_slice(c->last_mac1, ZC_COOKIE_BYTES),
                      sealed, sizeof(sealed)) != 0)
        return false;
    memcpy(c->cookie, sealed, sizeof(c->cookie));
    c->have_cookie = true;
    c->have_mac1 = false;
    c->until = zc_mono_add_ms(now.mono, ZC_COOKIE_LIFE_MS);
    zc_secret_wipe(sealed, sizeof(sealed));
    return true;
}

void zc_cookie_done(struct zc_cookie *c)
{
    zc_secret_wipe(c, sizeof(*c));
}
