/*
 * NaCl's crypto_box (X25519, XSalsa20, Poly1305): the DERP login and disco messages. The nonce
 * travels outside.
 */
#ifndef ZC_CRYPTO_BOX_H
#define ZC_CRYPTO_BOX_H

#include "crypto/secret.h"

#define ZC_BOX_TAG 16
#define ZC_BOX_NONCE 24

/* The key of a pair, to be kept per peer. ZC_EBADMSG when the shared point is zero. About 50
 * microseconds. */
ZC_MUST_CHECK int zc_box_shared(const struct zc_secret *private, const struct zc_key *public,
                                struct zc_secret *ret_shared);
/* Writes tag and ciphertext, text.len + 16 bytes. ret_box may be text.data itself. */
void zc_box_seal(const struct zc_secret *shared, const uint8_t nonce[ZC_BOX_NONCE],
                 struct zc_slice text, uint8_t *ret_box);
/* Writes box.len - 16 bytes. ret_text may be box.data itself. ZC_EBADMSG when it is not authentic
 * or shorter than a tag; ret_text is then untouched. */
ZC_MUST_CHECK int zc_box_open(const struct zc_secret *shared, const uint8_t nonce[ZC_BOX_NONCE],
                              struct zc_slice box, uint8_t *ret_text);

#endif
