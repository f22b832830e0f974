/*
 * X25519 (RFC 7748) over libsodium.
 */
#ifndef ZC_CRYPTO_X25519_H
#define ZC_CRYPTO_X25519_H

#include "base/rng.h"
#include "crypto/secret.h"

/* A fresh private key, clamped. */
void zc_x25519_generate(struct zc_rng *rng, struct zc_secret *ret_private);
/* Clears and sets the bits that RFC 7748 wants, in place. */
void zc_x25519_clamp(struct zc_secret *s);
/* The public key of private (which need not be clamped). */
void zc_x25519_public(const struct zc_secret *private, struct zc_key *ret_public);
/* The shared secret. ZC_EBADMSG, and nothing written, when it is all zero (a point of small
 * order). About 50 microseconds. */
ZC_MUST_CHECK int zc_x25519_shared(const struct zc_secret *private, const struct zc_key *public,
                                   struct zc_secret *ret_shared);

#endif
