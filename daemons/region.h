/* The relays of one region, by its number in the map or as a host. */
#ifndef ZC_DAEMONS_REGION_H
#define ZC_DAEMONS_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "tunnel/derpmap.h"
#include "tunnel/tunnel.h"

struct zc_region {
    int64_t id; /* 0: none, or any */
    uint32_t count;
    struct zc_derpmap_node relays[ZC_TUNNEL_RELAYS_MAX];
};

/* "ID" or "HOST[:PORT]". False: neither. */
bool zc_region_parse(const char *text, struct zc_region *ret_region);
/* As pings tell it. */
uint16_t zc_region_short_id(int64_t id);

#endif
