/*
 * The join token: "tc" and base64url of a CBOR map that names a hub: its node key, its disco key,
 * the pre-shared key and the relay. It is a secret. Read strictly: what another reader might take
 * differently is refused.
 *
 *   p bytes(32) node key   k bytes(32) disco key   q bytes(32) pre-shared key
 *   r array of regions     i int region id in the DERP map
 *   region: i int, c code, m name, N nodes
 *   node:   n name, i int, h host, t certificate, 4 IPv4, 6 IPv6, s STUN port, d port, x bool
 *
 * The encoder leaves out what the decoder puts back: region ids, codes and names, node names.
 */
#ifndef ZC_TUNNEL_TOKEN_H
#define ZC_TUNNEL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "crypto/secret.h"
#include "tunnel/derpmap.h"

#define ZC_TOKEN_TEXT_MAX 4096 /* characters */
#define ZC_TOKEN_NODES_MAX 16  /* in all regions */
#define ZC_TOKEN_REGIONS_MAX 16
#define ZC_TOKEN_WHY_MAX 192
#define ZC_TOKEN_FINGERPRINT_MAX 20

/* About 24 KiB. Wipe it with zc_token_done. */
struct zc_token {
    struct zc_key node_key;
    bool has_disco_key;
    struct zc_key disco_key;
    bool has_psk;
    struct zc_secret psk;
    int64_t region_id; /* 0: none */
    uint32_t regions_count;
    struct zc_derpmap_region regions[ZC_TOKEN_REGIONS_MAX]; /* nodes_first: index in nodes */
    uint32_t nodes_count;
    struct zc_derpmap_node nodes[ZC_TOKEN_NODES_MAX];
};

/* Decodes text, which is exactly one token. ZC_EINVAL: why is one line that says what is wrong with
 * it (never the text itself); ret_token is untouched. */
ZC_MUST_CHECK int zc_token_decode(struct zc_slice text, struct zc_token *ret_token,
                                  char ret_why[ZC_TOKEN_WHY_MAX]);
/* Encodes into NUL-terminated text. STUN-only nodes are left out. ZC_ELIMIT: longer than a token
 * may be. */
ZC_MUST_CHECK int zc_token_encode(const struct zc_token *token,
                                  char ret_text[ZC_TOKEN_TEXT_MAX + 1]);
/* Can a spoke join with it: a disco key, and a region embedded or by id. ZC_EINVAL with why. */
ZC_MUST_CHECK int zc_token_joinable(const struct zc_token *token, char ret_why[ZC_TOKEN_WHY_MAX]);
/* The one line of a token file: a BOM and surrounding white space are dropped. ZC_EINVAL with why:
 * empty, several lines, too long. ret_text points into file. */
ZC_MUST_CHECK int zc_token_line(struct zc_slice file, struct zc_slice *ret_text,
                                char ret_why[ZC_TOKEN_WHY_MAX]);
/* What a log may show instead of the token: 16 hex digits of a hash of its text. */
void zc_token_fingerprint(struct zc_slice text, char ret_hex[ZC_TOKEN_FINGERPRINT_MAX]);
void zc_token_done(struct zc_token *token);

#endif
