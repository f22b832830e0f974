/*
 * A spoke: a node whose bus is a hub's at the other end of the tunnel. It is driven exactly as a
 * hub is (hub.h: sessions of the control socket, time, events); only its bus connections are
 * splices (splice.h), each one TCP connection to the hub.
 *
 *   attach --hub up--> connecting --accepted--> open --> events of splice.h
 *      |  held: bytes are kept                 |
 *      |                                       +-- hub away for wait_hub_ms: a reset, CLOSE
 *      +-- not open within wait_hub_ms: one err frame (a forwarded port: a reset), CLOSE
 */
#ifndef ZC_NODE_SPOKE_H
#define ZC_NODE_SPOKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"
#include "crypto/secret.h"
#include "node/hub.h"
#include "node/splice.h"
#include "tunnel/derpmap.h"

struct zc_spoke_config {
    const char *version;                 /* static */
    const struct zc_secret *private_key; /* the spoke's node key; copied */
    int64_t wait_hub_ms;                 /* 30000 */
    uint32_t conns_max;                  /* splices at a time */
    bool trace;                          /* a line for each connection */
    struct zc_stamps_bounds stamps;
};

void zc_spoke_config_default(struct zc_spoke_config *ret_config);

/* The hub to join, from a token; all is copied. */
struct zc_spoke_target {
    struct zc_key node_key;
    struct zc_key disco_key;
    const struct zc_secret *psk; /* NULL: none */
    const struct zc_derpmap_node *relays;
    uint32_t relays_count;
    uint16_t region_id;
};

/* seed as in zc_hub_new. Freed by zc_hub_free. It is ready at once; attach is possible before a
 * token is there. NULL when memory is refused. */
struct zc_hub *zc_spoke_new(const struct zc_spoke_config *config, const uint8_t seed[32],
                            struct zc_now now);
/* Joins, or leaves the hub it has for another (or the same with another key): connections that are
 * open end, those that are held wait for the new one. ZC_ENOMEM, ZC_EINVAL: nothing changed. */
ZC_MUST_CHECK int zc_spoke_join(struct zc_hub *spoke, struct zc_now now,
                                const struct zc_spoke_target *target);
/* A local connection to the bus (port ZC_HUB_BUS_PORT) or a forwarded port. NULL: no memory or
 * conns_max reached; close it. */
struct zc_splice *zc_spoke_attach(struct zc_hub *spoke, struct zc_now now, uint16_t port,
                                  void *data);

#endif
