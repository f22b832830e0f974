/* ChaCha20-Poly1305 and XChaCha20-Poly1305 over libsodium: see aead.h. */
#include "crypto/aead.h"

#include <sodium.h>
#include <string.h>

_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == ZC_AEAD_TAG, "tag size");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == ZC_AEAD_TAG, "tag size");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES == ZC_AEAD_XNONCE, "nonce size");

static void put_nonce(uint64_t counter, uint8_t ret_nonce[12])
{
    memset(ret_nonce, 0, 4);
    for (int i = 0; i < 8; i++)
        ret_nonce[4 + i] = (uint8_t)(counter >> 8 * i);
}

void zc_aead_seal(const struct zc_secret *key, uint64_t counter, struct zc_slice ad, uint8_t *data,
                  size_t len)
{
    uint8_t nonce[12];
    put_nonce(counter, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(data, NULL, data, len, ad.data, ad.len, NULL, nonce,
                                              key->b);
}

int zc_aead_open(const struct zc_secret *key, uint64_t counter, struct zc_slice ad, uint8_t *data,
                 size_t len)
{
    uint8_t nonce[12];
    if (len < ZC_AEAD_TAG)
        return ZC_EBADMSG;
    put_nonce(counter, nonce);
    if (crypto_aead_chacha20poly1305_ietf_decrypt(data, NULL, NULL, data, len, ad.data, ad.len,
                                                  nonce, key->b) != 0)
        return ZC_EBADMSG;
    return 0;
}

void zc_aead_xseal(const struct zc_secret *key, const uint8_t nonce[ZC_AEAD_XNONCE],
                   struct zc_slice ad, uint8_t *data, size_t len)
{
    crypto_aead_xchacha20poly1305_ietf_encrypt(data, NULL, data, len, ad.data, ad.len, NULL, nonce,
                                               key->b);
}

int zc_aead_xopen(const struct zc_secret *key, const uint8_t nonce[ZC_AEAD_XNONCE],
                  struct zc_slice ad, uint8_t *data, size_t len)
{
    if (len < ZC_AEAD_TAG)
        return ZC_EBADMSG;
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(data, NULL, NULL, data, len, ad.data, ad.len,
                                                   nonce, key->b) != 0)
        return ZC_EBADMSG;
    return 0;
}
