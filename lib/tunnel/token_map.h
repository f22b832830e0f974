/* The CBOR map inside a token; see token.h for its fields. */
#ifndef ZC_TUNNEL_TOKEN_MAP_H
#define ZC_TUNNEL_TOKEN_MAP_H

#include "tunnel/token.h"

/* ret_token may hold secrets after a failure: wipe it. ZC_EINVAL with why. */
ZC_MUST_CHECK int zc_token_map_decode(struct zc_slice cbor, struct zc_token *ret_token,
                                      char ret_why[ZC_TOKEN_WHY_MAX]);
/* ZC_ELIMIT: more than cap bytes. */
ZC_MUST_CHECK int zc_token_map_encode(const struct zc_token *token, uint8_t *ret_cbor, size_t cap,
                                      size_t *ret_len);

#endif
