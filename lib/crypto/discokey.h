/*
 * The disco key that a node derives from its node key, so that it is the same after a restart:
 * HMAC-SHA256 under the node private key as stored, clamped.
 */
#ifndef ZC_CRYPTO_DISCOKEY_H
#define ZC_CRYPTO_DISCOKEY_H

#include "crypto/secret.h"

void zc_discokey_derive(const struct zc_secret *node_private, struct zc_secret *ret_private,
                        struct zc_key *ret_public);

#endif
