/* X25519 over libsodium: see x25519.h. */
#include "crypto/x25519.h"

#include <sodium.h>

#include "base/check.h"

_Static_assert(crypto_scalarmult_curve25519_BYTES == ZC_SECRET_BYTES, "point size");

void zc_x25519_generate(struct zc_rng *rng, struct zc_secret *ret_private)
{
    zc_rng_bytes(rng, ret_private->b, sizeof(ret_private->b));
    zc_x25519_clamp(ret_private);
}

void zc_x25519_clamp(struct zc_secret *s)
{
    s->b[0] &= 0xf8;
    s->b[31] = (uint8_t)((s->b[31] & 0x7f) | 0x40);
}

void zc_x25519_public(const struct zc_secret *private, struct zc_key *ret_public)
{
    int err = crypto_scalarmult_curve25519_base(ret_public->b, private->b);
    ZC_ASSERT(err == 0);
}

int zc_x25519_shared(const struct zc_secret *private, const struct zc_key *public,
                     struct zc_secret *ret_shared)
{
    struct zc_secret shared;
    int err = crypto_scalarmult_curve25519(shared.b, private->b, public->b);
    if (err == 0 && !zc_secret_is_zero(shared.b, sizeof(shared.b)))
        *ret_shared = shared;
    else
        err = ZC_EBADMSG;
    zc_secret_done(&shared);
    return err;
}
