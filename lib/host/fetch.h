/*
 * One HTTP/1.1 GET, for the DERP map: http and https, redirects, a body with or without
 * Content-Length or in chunks. Blocks until it is done or its time is over: for another thread than
 * the loop's. (Only the resolver may take longer.)
 * Deliberately absent: proxies, compression, keeping the connection.
 */
#ifndef ZC_HOST_FETCH_H
#define ZC_HOST_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_FETCH_WHY_MAX 384
#define ZC_FETCH_ETAG_MAX 256
#define ZC_FETCH_REDIRECTS_MAX 5

struct zc_fetch {
    const char *url;
    const char *etag; /* If-None-Match, or NULL */
    const char *mode; /* Tailcat-Mode */
    size_t bytes_max; /* of the body */
    int64_t timeout_ms;
};

struct zc_fetch_result {
    int status; /* 0: no answer */
    struct zc_buf body;
    char etag[ZC_FETCH_ETAG_MAX]; /* "": none */
};

/* 0: an answer came, whatever its status (redirects are followed). Else why is one line. */
ZC_MUST_CHECK int zc_fetch_get(const struct zc_fetch *request, struct zc_fetch_result *ret_result,
                               char ret_why[ZC_FETCH_WHY_MAX]);
void zc_fetch_done(struct zc_fetch_result *result);

#endif
