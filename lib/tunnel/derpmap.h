/*
 * Relays: regions of nodes, as a DERP map (JSON), a token or a key file names them. Here are their
 * form in memory, the parser of the JSON, and when a stored map is still good. Fetching and storing
 * is the host's.
 */
#ifndef ZC_TUNNEL_DERPMAP_H
#define ZC_TUNNEL_DERPMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cJSON;

#define ZC_DERPMAP_BYTES_MAX (8u << 20)
#define ZC_DERPMAP_REGIONS_MAX 1024
#define ZC_DERPMAP_NODES_MAX 4096 /* in the whole map */
#define ZC_DERPMAP_STRING_MAX 255
#define ZC_DERPMAP_WHY_MAX 192

struct zc_derpmap_node {
    char name[ZC_DERPMAP_STRING_MAX + 1];
    char host[ZC_DERPMAP_STRING_MAX + 1]; /* DNS name or IP literal without brackets */
    char cert[ZC_DERPMAP_STRING_MAX + 1]; /* see host/tls.h */
    char ipv4[ZC_DERPMAP_STRING_MAX + 1]; /* "": resolve host; a literal; else: never */
    char ipv6[ZC_DERPMAP_STRING_MAX + 1];
    int32_t stun_port; /* 0: 3478; negative: none */
    int32_t derp_port; /* 0: 443 */
    bool stun_only;
    bool insecure; /* any certificate will do: tests only */
};

struct zc_derpmap_region {
    int64_t id;
    char code[ZC_DERPMAP_STRING_MAX + 1];
    char name[ZC_DERPMAP_STRING_MAX + 1];
    bool avoid;
    bool no_home; /* NoMeasureNoHome */
    uint32_t nodes_first;
    uint32_t nodes_count; /* may be 0 */
};

struct zc_derpmap {
    struct zc_derpmap_region *regions; /* sorted by id */
    uint32_t regions_count;
    struct zc_derpmap_node *nodes;
    uint32_t nodes_count;
};

/* Parses a whole map. ZC_EBADMSG, ZC_ELIMIT, ZC_ENOMEM: why is one line. A map without a region
 * that has a relay is refused. */
ZC_MUST_CHECK int zc_derpmap_parse(struct zc_slice json, struct zc_derpmap *ret_map,
                                   char ret_why[ZC_DERPMAP_WHY_MAX]);
void zc_derpmap_done(struct zc_derpmap *map);
/* The region of this id, or NULL. */
const struct zc_derpmap_region *zc_derpmap_find(const struct zc_derpmap *map, int64_t id);
/* The first node of the region that is a relay, or NULL. */
const struct zc_derpmap_node *zc_derpmap_relay(const struct zc_derpmap *map,
                                               const struct zc_derpmap_region *region);

/* One region object as maps and key files hold it. At most nodes_cap nodes are written. id is the
 * key it was found under, 0: RegionID counts. Errors as zc_derpmap_parse. */
ZC_MUST_CHECK int zc_derpmap_region_parse(const struct cJSON *object, int64_t id,
                                          struct zc_derpmap_region *ret_region,
                                          struct zc_derpmap_node *ret_nodes, uint32_t nodes_cap,
                                          char ret_why[ZC_DERPMAP_WHY_MAX]);
/* Empty, or only characters of host names and IP literals, so that it can stand in a request. */
bool zc_derpmap_host_valid(const char *host);
static inline uint16_t zc_derpmap_port(const struct zc_derpmap_node *node)
{
    return node->derp_port == 0 ? 443 : (uint16_t)node->derp_port;
}

/* ---- how old a map may be ---- */
#define ZC_DERPMAP_FRESH_S 3600
#define ZC_DERPMAP_FETCH_MS 10000

enum zc_derpmap_plan {
    ZC_DERPMAP_USE,        /* the stored one, without traffic */
    ZC_DERPMAP_REVALIDATE, /* GET with If-None-Match when an ETag is stored */
    ZC_DERPMAP_FETCH,      /* GET */
};

enum zc_derpmap_result {
    ZC_DERPMAP_STORE,     /* the fetched one is used and stored with its ETag */
    ZC_DERPMAP_UNCHANGED, /* the stored one is used, its age starts again */
    ZC_DERPMAP_FALL_BACK, /* the stored one is used, whatever its age; say why */
    ZC_DERPMAP_FAIL,      /* there is none */
};

/* stored: a usable map is there, age_s seconds old (negative: the clock went back). */
enum zc_derpmap_plan zc_derpmap_plan(bool stored, int64_t age_s);
/* After the answer: HTTP status (0: none came), body_good: its body parsed. */
enum zc_derpmap_result zc_derpmap_result(int status, bool body_good, bool stored);

#endif
