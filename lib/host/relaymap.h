/*
 * Which relays there are: gets a DERP map from a file or by HTTP, keeps a copy on disk, and picks
 * the nodes of one region. Works on another thread and tries again until it has a map.
 *
 * The copy is used without traffic while it is younger than an hour, revalidated after that, and at
 * any age when nothing better comes (tunnel/derpmap.h). Beside it, in PATH.etag, are the URL it
 * came from and its ETag.
 */
#ifndef ZC_HOST_RELAYMAP_H
#define ZC_HOST_RELAYMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "tunnel/derpmap.h"
#include "tunnel/tunnel.h"

#define ZC_RELAYMAP_URL "https://tailcat.dev/derpmap.json"
#define ZC_RELAYMAP_WHY_MAX 768

struct zc_host;
struct zc_relaymap;

struct zc_relaymap_config {
    const char *source; /* http:// or https:// URL, else a file */
    const char *store;  /* file for the copy of a URL's map, NULL: none */
    bool server;        /* told to whom gives the map */
    int64_t region;     /* 0: the first that may be used */
};

struct zc_relaymap_result {
    int err;                       /* 0: relays are there */
    char why[ZC_RELAYMAP_WHY_MAX]; /* one line: what failed; with err 0 a warning, or "" */
    int64_t region_id;
    uint32_t count;
    struct zc_derpmap_node relays[ZC_TUNNEL_RELAYS_MAX];
};

/* Called on the loop after each attempt; the last time with err 0. */
typedef void (*zc_relaymap_done_fn)(void *arg, const struct zc_relaymap_result *result);

/* All of config is copied. A host has one at a time: another one that is under way is given up.
 * ZC_ENOMEM. */
ZC_MUST_CHECK int zc_relaymap_start(struct zc_host *h, const struct zc_relaymap_config *config,
                                    zc_relaymap_done_fn done, void *arg);
/* The network changed: a pause between two attempts is over. NULL is fine. */
void zc_relaymap_hurry(struct zc_relaymap *m);
/* Gives it up: done is not called again. It frees itself. NULL is fine. */
void zc_relaymap_free(struct zc_relaymap *m);

#endif
