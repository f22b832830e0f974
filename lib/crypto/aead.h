/*
 * ChaCha20-Poly1305 (RFC 8439) with WireGuard's counter nonce, and XChaCha20-Poly1305. Both work in
 * place: the tag stands after the text.
 */
#ifndef ZC_CRYPTO_AEAD_H
#define ZC_CRYPTO_AEAD_H

#include "crypto/secret.h"

#define ZC_AEAD_TAG 16
#define ZC_AEAD_XNONCE 24

/* Seals data[0..len) in place under nonce 00000000 and the little-endian counter; the tag goes to
 * data[len..len+16). A key and counter must never meet twice. */
void zc_aead_seal(const struct zc_secret *key, uint64_t counter, struct zc_slice ad, uint8_t *data,
                  size_t len);
/* Opens data[0..len), of which the last 16 bytes are the tag, in place. ZC_EBADMSG when it is not
 * authentic or shorter than a tag; data is then of no use. */
ZC_MUST_CHECK int zc_aead_open(const struct zc_secret *key, uint64_t counter, struct zc_slice ad,
                               uint8_t *data, size_t len);
/* The same with XChaCha20 and a 24-byte nonce, which may be random. */
void zc_aead_xseal(const struct zc_secret *key, const uint8_t nonce[ZC_AEAD_XNONCE],
                   struct zc_slice ad, uint8_t *data, size_t len);
ZC_MUST_CHECK int zc_aead_xopen(const struct zc_secret *key, const uint8_t nonce[ZC_AEAD_XNONCE],
                                struct zc_slice ad, uint8_t *data, size_t len);

#endif
