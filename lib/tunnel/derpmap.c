/* The JSON of a DERP map, and when a stored one is still good; see derpmap.h. */
#include "tunnel/derpmap.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tunnel/jtree.h"

/* A region of 4 nodes has about 60 values. */
#define VALUES_MAX 200000

static int derpmap_refuse(int err, const char *text, char ret_why[ZC_DERPMAP_WHY_MAX])
{
    snprintf(ret_why, ZC_DERPMAP_WHY_MAX, "%s", text);
    return err;
}

bool zc_derpmap_host_valid(const char *host)
{
    static const char extra[] = ".-_:%";
    for (; *host != '\0'; host++) {
        char c = *host;
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(extra, c) != NULL))
            return false;
    }
    return true;
}

static const char *derpmap_node_read(const cJSON *o, struct zc_derpmap_node *n)
{
    int64_t stun = 0, port = 0, region;
    if (!cJSON_IsObject(o))
        return "a node in it is no object";
    if (!zc_jtree_text(o, "Name", n->name, sizeof(n->name)) ||
        !zc_jtree_text(o, "HostName", n->host, sizeof(n->host)) ||
        !zc_jtree_text(o, "CertName", n->cert, sizeof(n->cert)) ||
        !zc_jtree_text(o, "IPv4", n->ipv4, sizeof(n->ipv4)) ||
        !zc_jtree_text(o, "IPv6", n->ipv6, sizeof(n->ipv6)))
        return "a node's name or address is no text, too long, or there twice";
    if (!zc_derpmap_host_valid(n->host))
        return "a node's HostName has characters that no host name has";
    if (!zc_jtree_int(o, "STUNPort", INT32_MIN, 65535, &stun) ||
        !zc_jtree_int(o, "DERPPort", 0, 65535, &port) ||
        !zc_jtree_int(o, "RegionID", INT64_MIN, INT64_MAX, &region))
        return "a node's port or region is not a number in range";
    if (!zc_jtree_bool(o, "STUNOnly", &n->stun_only) ||
        !zc_jtree_bool(o, "InsecureForTests", &n->insecure))
        return "a node's STUNOnly or InsecureForTests is not true or false";
    n->stun_port = (int32_t)stun;
    n->derp_port = (int32_t)port;
    if (n->name[0] == '\0')
        memcpy(n->name, n->host, sizeof(n->name));
    return NULL;
}

int zc_derpmap_region_parse(const struct cJSON *o, int64_t id, struct zc_derpmap_region *ret_region,
                            struct zc_derpmap_node *ret_nodes, uint32_t nodes_cap,
                            char ret_why[ZC_DERPMAP_WHY_MAX])
{
    struct zc_derpmap_region r = {.id = id};
    const cJSON *nodes = NULL;
    int64_t own_id = id;
    if (!cJSON_IsObject(o))
        return derpmap_refuse(ZC_EBADMSG, "a region in it is no object", ret_why);
    if (!zc_jtree_int(o, "RegionID", INT64_MIN, INT64_MAX, &own_id) ||
        !zc_jtree_text(o, "RegionCode", r.code, sizeof(r.code)) ||
        !zc_jtree_text(o, "RegionName", r.name, sizeof(r.name)) ||
        !zc_jtree_bool(o, "Avoid", &r.avoid) || !zc_jtree_bool(o, "NoMeasureNoHome", &r.no_home) ||
        !zc_jtree_member(o, "Nodes", &nodes) || (nodes != NULL && !cJSON_IsArray(nodes)))
        return derpmap_refuse(
            ZC_EBADMSG, "a region's field is of the wrong type, too long, or there twice", ret_why);
    if (id == 0)
        r.id = own_id;
    for (const cJSON *n = nodes != NULL ? nodes->child : NULL; n != NULL; n = n->next) {
        if (r.nodes_count == nodes_cap)
            return derpmap_refuse(ZC_ELIMIT, "it names too many nodes", ret_why);
        ret_nodes[r.nodes_count] = (struct zc_derpmap_node){0};
        const char *wrong = derpmap_node_read(n, &ret_nodes[r.nodes_count]);
        if (wrong != NULL)
            return derpmap_refuse(ZC_EBADMSG, wrong, ret_why);
        r.nodes_count++;
    }
    *ret_region = r;
    return 0;
}

/* A key of Regions: a decimal number in its only form. */
static bool derpmap_id(const char *text, int64_t *ret_id)
{
    char again[24];
    bool minus = *text == '-';
    int64_t v = 0;
    for (const char *p = text + minus; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || v > (INT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (*p - '0');
    }
    v = minus ? -v : v;
    snprintf(again, sizeof(again), "%lld", (long long)v);
    *ret_id = v;
    return strcmp(again, text) == 0;
}

static int derpmap_compare(const void *a, const void *b)
{
    const struct zc_derpmap_region *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Room for all regions and nodes of the map. */
static int derpmap_alloc(const cJSON *regions, struct zc_derpmap *map,
                         char ret_why[ZC_DERPMAP_WHY_MAX])
{
    uint32_t regions_count = 0, nodes_count = 0;
    for (const cJSON *r = regions->child; r != NULL; r = r->next) {
        const cJSON *nodes = NULL;
        regions_count++;
        if (cJSON_IsObject(r) && zc_jtree_member(r, "Nodes", &nodes) && cJSON_IsArray(nodes))
            nodes_count += (uint32_t)cJSON_GetArraySize(nodes);
    }
    if (regions_count > ZC_DERPMAP_REGIONS_MAX || nodes_count > ZC_DERPMAP_NODES_MAX)
        return derpmap_refuse(ZC_ELIMIT, "it names too many regions or nodes", ret_why);
    map->regions = calloc(regions_count + 1, sizeof(*map->regions));
    map->nodes = calloc(nodes_count + 1, sizeof(*map->nodes));
    if (map->regions == NULL || map->nodes == NULL)
        return derpmap_refuse(ZC_ENOMEM, "memory is short", ret_why);
    return 0;
}

static int derpmap_regions(const cJSON *regions, struct zc_derpmap *map,
                           char ret_why[ZC_DERPMAP_WHY_MAX])
{
    bool relay = false;
    for (const cJSON *r = regions->child; r != NULL; r = r->next) {
        struct zc_derpmap_region *region = &map->regions[map->regions_count];
        int64_t id;
        if (cJSON_IsNull(r))
            continue;
        if (!derpmap_id(r->string, &id) || id == 0)
            return derpmap_refuse(ZC_EBADMSG, "a key of Regions is no region number", ret_why);
        int err = zc_derpmap_region_parse(r, id, region, &map->nodes[map->nodes_count],
                                          ZC_DERPMAP_NODES_MAX - map->nodes_count, ret_why);
        if (err != 0)
            return err;
        region->nodes_first = map->nodes_count;
        map->nodes_count += region->nodes_count;
        map->regions_count++;
        relay = relay || zc_derpmap_relay(map, region) != NULL;
    }
    if (!relay)
        return derpmap_refuse(ZC_EBADMSG, "it names no relay", ret_why);
    qsort(map->regions, map->regions_count, sizeof(*map->regions), derpmap_compare);
    for (uint32_t i = 1; i < map->regions_count; i++) {
        if (map->regions[i - 1].id == map->regions[i].id)
            return derpmap_refuse(ZC_EBADMSG, "it names a region twice", ret_why);
    }
    return 0;
}

int zc_derpmap_parse(struct zc_slice json, struct zc_derpmap *ret_map,
                     char ret_why[ZC_DERPMAP_WHY_MAX])
{
    struct zc_derpmap map = {0};
    const cJSON *regions = NULL;
    const char *wrong = NULL;
    cJSON *tree = NULL;
    if (json.len > ZC_DERPMAP_BYTES_MAX)
        return derpmap_refuse(ZC_ELIMIT, "it is longer than 8 MiB", ret_why);
    int err = zc_jtree_parse(json, VALUES_MAX, &tree, &wrong);
    if (err != 0)
        return derpmap_refuse(err, wrong, ret_why);
    if (!zc_jtree_member(tree, "Regions", &regions) || !cJSON_IsObject(regions))
        err = derpmap_refuse(ZC_EBADMSG, "it has no object Regions: it is no DERP map", ret_why);
    if (err == 0)
        err = derpmap_alloc(regions, &map, ret_why);
    if (err == 0)
        err = derpmap_regions(regions, &map, ret_why);
    if (err == 0)
        *ret_map = map;
    else
        zc_derpmap_done(&map);
    zc_jtree_free(tree, false);
    return err;
}

void zc_derpmap_done(struct zc_derpmap *map)
{
    free(map->regions);
    free(map->nodes);
    *map = (struct zc_derpmap){0};
}

const struct zc_derpmap_region *zc_derpmap_find(const struct zc_derpmap *map, int64_t id)
{
    for (uint32_t i = 0; i < map->regions_count; i++) {
        if (map->regions[i].id == id)
            return &map->regions[i];
    }
    return NULL;
}

const struct zc_derpmap_node *zc_derpmap_relay(const struct zc_derpmap *map,
                                               const struct zc_derpmap_region *region)
{
    for (uint32_t i = 0; i < region->nodes_count; i++) {
        const struct zc_derpmap_node *n = &map->nodes[region->nodes_first + i];
        if (!n->stun_only && n->host[0] != '\0')
            return n;
    }
    return NULL;
}

enum zc_derpmap_plan zc_derpmap_plan(bool stored, int64_t age_s)
{
    if (!stored)
        return ZC_DERPMAP_FETCH;
    return age_s >= 0 && age_s < ZC_DERPMAP_FRESH_S ? ZC_DERPMAP_USE : ZC_DERPMAP_REVALIDATE;
}

enum zc_derpmap_result zc_derpmap_result(int status, bool body_good, bool stored)
{
    if (status == 200 && body_good)
        return ZC_DERPMAP_STORE;
    if (status == 304 && stored)
        return ZC_DERPMAP_UNCHANGED;
    return stored ? ZC_DERPMAP_FALL_BACK : ZC_DERPMAP_FAIL;
}
