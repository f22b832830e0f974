/*
 * 32-byte keys, their text forms, wiping and comparing without a timing trace.
 *
 * Source: the Tailcat transport's key forms, "privkey:", "nodekey:", "discokey:" and "psk:" before
 * 64 hex digits. Curve25519 private keys are kept as stored, never clamped: the curve
 * code clamps a copy, and the disco key is derived from the bytes as they are.
 *
 * Nothing in lib/crypto needs a global initialisation. libsodium's own only picks faster code for
 * the processor (without it the portable code runs, with the same results), so the program calls
 * sodium_init() once at start; the core never does.
 */
#ifndef ZC_CRYPTO_SECRET_H
#define ZC_CRYPTO_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_SECRET_BYTES 32
/* Longest text form ("discokey:" and 64 digits) with its NUL. */
#define ZC_SECRET_TEXT_MAX 74

/* A private key, session key or pre-shared key. Its owner calls zc_secret_done. */
struct zc_secret {
    uint8_t b[ZC_SECRET_BYTES];
};

/* A public key. No secret. */
struct zc_key {
    uint8_t b[ZC_SECRET_BYTES];
};

/* The text forms; the first and the last are secrets. */
enum zc_secret_kind {
    ZC_SECRET_PRIVATE,   /* privkey: */
    ZC_SECRET_NODE_KEY,  /* nodekey: */
    ZC_SECRET_DISCO_KEY, /* discokey: */
    ZC_SECRET_PRESHARED, /* psk: */
};

/* Overwrites memory in a way the compiler keeps. len 0 is fine. */
void zc_secret_wipe(void *data, size_t len);
/* Wipes s; a zeroed one is fine. */
void zc_secret_done(struct zc_secret *s);
/* Equality in a time that depends on len only. */
bool zc_secret_equal(const void *a, const void *b, size_t len);
/* All len bytes are zero, in a time that depends on len only. */
bool zc_secret_is_zero(const void *data, size_t len);
static inline bool zc_secret_key_equal(const struct zc_key *a, const struct zc_key *b)
{
    return zc_secret_equal(a->b, b->b, sizeof(a->b));
}

/* Writes the text form of 32 bytes, in lower case, with its NUL. A secret's text is the caller's to
 * wipe. */
void zc_secret_encode(enum zc_secret_kind kind, const uint8_t bytes[ZC_SECRET_BYTES],
                      char ret_text[ZC_SECRET_TEXT_MAX]);
/* Reads exactly the prefix of kind and 64 hex digits of either case, nothing before or after.
 * ZC_EINVAL otherwise. */
ZC_MUST_CHECK int zc_secret_parse(enum zc_secret_kind kind, struct zc_slice text,
                                  uint8_t ret_bytes[ZC_SECRET_BYTES]);

#endif
