/*
 * A deterministic random stream: ChaCha20 keyed by a 32-byte seed that the host (or a test) gives.
 * The core has no other source of randomness.
 */
#ifndef ZC_BASE_RNG_H
#define ZC_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct zc_rng {
    uint8_t key[32];
    uint64_t block; /* next ChaCha20 block number to make */
    uint8_t pool[256];
    uint32_t used; /* bytes of pool handed out */
};

void zc_rng_init(struct zc_rng *r, const uint8_t seed[32]);
void zc_rng_bytes(struct zc_rng *r, void *ret_data, size_t len);
uint64_t zc_rng_u64(struct zc_rng *r);
/* len random lower-case hex digits, no NUL. */
void zc_rng_hex(struct zc_rng *r, char *ret_hex, size_t len);

#endif
