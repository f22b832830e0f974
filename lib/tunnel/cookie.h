/*
 * The two MACs at the end of WireGuard's handshake messages, and cookie replies received.
 *
 * mac1 proves that the sender knows the receiver's public key. mac2 proves, to a receiver under
 * load, that the sender can read what is sent to its address; its key is the cookie that the
 * receiver answered with. Absent on purpose: sending cookie replies. Only peers that the owner
 * added are answered at all, and at most one handshake in 20 ms each.
 *
 *   cookie reply   03 00 00 00 | receiver index 4 | nonce 24 | sealed cookie 16 + tag 16
 */
#ifndef ZC_TUNNEL_COOKIE_H
#define ZC_TUNNEL_COOKIE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/time.h"
#include "crypto/secret.h"

#define ZC_COOKIE_BYTES 16
#define ZC_COOKIE_REPLY_BYTES 64
#define ZC_COOKIE_LIFE_MS 120000
/* mac1 and mac2. */
#define ZC_COOKIE_MACS_BYTES 32

/* Keys that belong to the receiver of a message; made from its public key. */
struct zc_cookie_keys {
    uint8_t mac1[32];
    struct zc_secret reply;
};

/* What a sender remembers per receiver. All zero is a fresh one. */
struct zc_cookie {
    uint8_t cookie[ZC_COOKIE_BYTES];
    uint8_t last_mac1[ZC_COOKIE_BYTES];
    struct zc_mono until; /* the cookie's end */
    bool have_cookie;
    bool have_mac1; /* of a message that no reply has answered yet */
};

void zc_cookie_keys(const struct zc_key *receiver, struct zc_cookie_keys *ret_keys);
/* Fills the last 32 bytes of msg: mac1, and mac2 (zero without a living cookie). */
void zc_cookie_sign(struct zc_cookie *c, const struct zc_cookie_keys *keys, struct zc_now now,
                    uint8_t *msg, size_t len);
/* mac1 of msg is right; keys are the receiver's, our own. */
bool zc_cookie_check(const struct zc_cookie_keys *keys, const uint8_t *msg, size_t len);
/* A cookie reply for the last message signed: remembers the cookie. False when it is not
 * authentic or nothing was asked. */
bool zc_cookie_consume(struct zc_cookie *c, const struct zc_cookie_keys *keys, struct zc_now now,
                       const uint8_t msg[ZC_COOKIE_REPLY_BYTES]);
void zc_cookie_done(struct zc_cookie *c);

#endif
