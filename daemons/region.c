/* Regions on the command line; see region.h. */
#include "region.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/units.h"

uint16_t zc_region_short_id(int64_t id)
{
    return id > 0 && id <= UINT16_MAX ? (uint16_t)id : 1;
}

bool zc_region_parse(const char *text, struct zc_region *ret_region)
{
    char whole[ZC_ADDRESS_HOST_MAX + 16], why[ZC_ADDRESS_WHY_MAX];
    struct zc_derpmap_node *node = &ret_region->relays[0];
    struct zc_address a;
    uint64_t id;
    *ret_region = (struct zc_region){0};
    if (zc_units_count(text, &id) == 0) {
        ret_region->id = (int64_t)id;
        return id > 0 && id <= INT32_MAX;
    }
    const char *last = strrchr(text, ':');
    bool v6 = text[0] == '[';
    bool has_port = last != NULL && (!v6 || last[-1] == ']');
    int n = snprintf(whole, sizeof(whole), "tcp://%s%s", text, has_port ? "" : ":443");
    if (n < 0 || (size_t)n >= sizeof(whole) || zc_address_parse(whole, &a, why) != 0 ||
        a.kind != ZC_ADDRESS_TCP || a.port == 0 || !zc_derpmap_host_valid(a.host))
        return false;
    snprintf(node->host, sizeof(node->host), "%s", a.host);
    snprintf(node->name, sizeof(node->name), "%s", a.host);
    node->derp_port = a.port == 443 ? 0 : a.port;
    ret_region->count = 1;
    return true;
}
