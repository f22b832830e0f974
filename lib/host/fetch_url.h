/*
 * An http or https URL in its parts (RFC 3986), and where a redirect leads.
 * Deliberately absent: user names, paths relative to a folder.
 */
#ifndef ZC_HOST_FETCH_URL_H
#define ZC_HOST_FETCH_URL_H

#include <stdbool.h>

#include "base/buf.h"

#define ZC_FETCH_URL_MAX 2048

struct zc_fetch_url {
    bool tls;
    char host[256]; /* without brackets */
    char port[6];
    char path[ZC_FETCH_URL_MAX];
};

/* False: not such a URL. */
bool zc_fetch_url_parse(const char *text, struct zc_fetch_url *ret_url);
/* Follows a Location: a whole URL, never from https to http, or a path at the same server. */
bool zc_fetch_url_follow(struct zc_slice location, struct zc_fetch_url *at);

#endif
