/* The derived disco key: see discokey.h. */
#include "crypto/discokey.h"

#include <sodium.h>

#include "crypto/x25519.h"

_Static_assert(crypto_auth_hmacsha256_BYTES == ZC_SECRET_BYTES, "MAC size");

void zc_discokey_derive(const struct zc_secret *node_private, struct zc_secret *ret_private,
                        struct zc_key *ret_public)
{
    static const unsigned char purpose[] = "github.com/tailscale/tailcat disco key v1";
    struct zc_secret mac;
    crypto_auth_hmacsha256(mac.b, purpose, sizeof(purpose) - 1, node_private->b);
    zc_x25519_clamp(&mac);
    *ret_private = mac;
    zc_x25519_public(ret_private, ret_public);
    zc_secret_done(&mac);
}
