/*
 * Deterministic random stream: ChaCha20 (the original form: 64-bit block counter, 64-bit nonce,
 * here zero) under the seed. The same seed gives the same bytes on every machine, however the
 * stream is cut into calls.
 */
#include <sodium.h>
#include <string.h>

#include "base/rng.h"

_Static_assert(crypto_stream_chacha20_KEYBYTES == 32, "ChaCha20 key size");

#define RNG_BLOCK 64 /* bytes of one ChaCha20 block */

void zc_rng_init(struct zc_rng *r, const uint8_t seed[32])
{
    memcpy(r->key, seed, sizeof(r->key));
    r->block = 0;
    r->used = sizeof(r->pool);
}

static void rng_refill(struct zc_rng *r)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    memset(r->pool, 0, sizeof(r->pool));
    crypto_stream_chacha20_xor_ic(r->pool, r->pool, sizeof(r->pool), nonce, r->block, r->key);
    r->block += sizeof(r->pool) / RNG_BLOCK;
    r->used = 0;
}

void zc_rng_bytes(struct zc_rng *r, void *ret_data, size_t len)
{
    uint8_t *out = ret_data;
    while (len > 0) {
        if (r->used == sizeof(r->pool))
            rng_refill(r);
        size_t n = sizeof(r->pool) - r->used;
        if (n > len)
            n = len;
        memcpy(out, r->pool + r->used, n);
        r->used += (uint32_t)n;
        out += n;
        len -= n;
    }
}

uint64_t zc_rng_u64(struct zc_rng *r)
{
    uint8_t b[8];
    uint64_t v = 0;
    zc_rng_bytes(r, b, sizeof(b));
    for (int i = 7; i >= 0; i--)
        v = v << 8 | b[i];
    return v;
}

void zc_rng_hex(struct zc_rng *r, char *ret_hex, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i += 2) {
        uint8_t b;
        zc_rng_bytes(r, &b, 1);
        ret_hex[i] = digits[b >> 4];
        if (i + 1 < len)
            ret_hex[i + 1] = digits[b & 15];
    }
}
