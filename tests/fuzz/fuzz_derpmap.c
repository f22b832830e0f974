/* Any bytes as a DERP map: refused with a reason, or sound and within its bounds. */
#include <string.h>

#include "base/check.h"
#include "tunnel/derpmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zc_derpmap map = {0};
    char why[ZC_DERPMAP_WHY_MAX] = "";
    uint32_t nodes = 0;
    bool relay = false;
    if (zc_derpmap_parse(zc_slice(data, size), &map, why) != 0) {
        ZC_ASSERT(why[0] != '\0' && strlen(why) < sizeof(why));
        ZC_ASSERT(map.regions == NULL && map.nodes == NULL);
        return 0;
    }
    ZC_ASSERT(map.regions_count > 0 && map.regions_count <= ZC_DERPMAP_REGIONS_MAX);
    for (uint32_t i = 0; i < map.regions_count; i++) {
        const struct zc_derpmap_region *r = &map.regions[i];
        ZC_ASSERT(zc_derpmap_find(&map, r->id) == r);
        ZC_ASSERT(r->nodes_first + r->nodes_count <= map.nodes_count);
        relay = relay || zc_derpmap_relay(&map, r) != NULL;
        nodes += r->nodes_count;
    }
    ZC_ASSERT(relay && nodes == map.nodes_count && nodes <= ZC_DERPMAP_NODES_MAX);
    for (uint32_t i = 0; i < nodes; i++)
        ZC_ASSERT(zc_derpmap_host_valid(map.nodes[i].host) && map.nodes[i].derp_port >= 0 &&
                  map.nodes[i].derp_port <= 65535);
    zc_derpmap_done(&map);
    return 0;
}
