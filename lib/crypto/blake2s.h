/*
 * BLAKE2s (RFC 7693) with HMAC and the HKDF that WireGuard builds on it. libsodium has BLAKE2b
 * only.
 */
#ifndef ZC_CRYPTO_BLAKE2S_H
#define ZC_CRYPTO_BLAKE2S_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "crypto/secret.h"

#define ZC_BLAKE2S_BLOCK 64
#define ZC_BLAKE2S_BYTES 32

struct zc_blake2s {
    uint32_t h[8];
    uint64_t count; /* bytes compressed so far */
    uint8_t block[ZC_BLAKE2S_BLOCK];
    uint32_t filled;
    uint32_t out_len;
};

/* Starts a hash of out_len (1..32) bytes; key_len 0..32, 0 for the plain hash. */
void zc_blake2s_init(struct zc_blake2s *s, size_t out_len, const void *key, size_t key_len);
void zc_blake2s_update(struct zc_blake2s *s, const void *data, size_t len);
/* Writes out_len bytes and wipes s. */
void zc_blake2s_final(struct zc_blake2s *s, uint8_t *ret_out);

/* BLAKE2s-256 of a followed by b (either may be empty). ret_hash may overlap a or b. */
void zc_blake2s_hash2(struct zc_slice a, struct zc_slice b, uint8_t ret_hash[ZC_BLAKE2S_BYTES]);
/* Keyed BLAKE2s-128, WireGuard's MAC. */
void zc_blake2s_mac16(const uint8_t *key, size_t key_len, struct zc_slice data,
                      uint8_t ret_mac[16]);
/* HMAC-BLAKE2s of a followed by b. ret_mac may overlap key, a or b. */
void zc_blake2s_hmac(const uint8_t key[32], struct zc_slice a, struct zc_slice b,
                     uint8_t ret_mac[ZC_BLAKE2S_BYTES]);
/* HKDF: the first n (1..3) outputs for chaining key ck and input. Every ret_ may be ck itself;
 * those beyond n may be NULL. */
void zc_blake2s_kdf(const struct zc_secret *ck, struct zc_slice input, int n,
                    struct zc_secret *ret_1, struct zc_secret *ret_2, struct zc_secret *ret_3);

#endif
