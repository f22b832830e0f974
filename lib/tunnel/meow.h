/*
 * Meow: how a spoke introduces itself to a hub through the relay, in the clear (inside TLS).
 *
 *   ping    "meow" 01, node key (32), disco key (32)     69 bytes
 *   meowed  "meow" 02                                    5 bytes
 *
 * Bytes beyond these are ignored. The node key inside is not proof of anything: the key that the
 * relay names as the source counts.
 */
#ifndef ZC_TUNNEL_MEOW_H
#define ZC_TUNNEL_MEOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "crypto/secret.h"

#define ZC_MEOW_PING_LEN 69
#define ZC_MEOW_MEOWED_LEN 5

enum zc_meow_kind {
    ZC_MEOW_NONE, /* no meow packet at all: perhaps another family */
    ZC_MEOW_BAD,  /* begins as one, but is cut, of an unknown type or has a zero disco key */
    ZC_MEOW_PING,
    ZC_MEOW_MEOWED,
};

struct zc_meow {
    enum zc_meow_kind kind;
    struct zc_key node_key; /* PING */
    struct zc_key disco_key;
};

struct zc_meow zc_meow_decode(struct zc_slice packet);
void zc_meow_encode_ping(uint8_t ret_packet[ZC_MEOW_PING_LEN], const struct zc_key *node_key,
                         const struct zc_key *disco_key);
void zc_meow_encode_meowed(uint8_t ret_packet[ZC_MEOW_MEOWED_LEN]);

#endif
