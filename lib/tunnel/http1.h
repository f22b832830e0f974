/*
 * The head of an HTTP/1.1 response (RFC 9112), as much of it as an upgrade needs: status and
 * headers, at most 8 KiB, in any pieces. Bodies are not its business: what follows the head is left
 * to the caller.
 * Deliberately absent: chunks, folded headers (refused), interim responses other than 101.
 */
#ifndef ZC_TUNNEL_HTTP1_H
#define ZC_TUNNEL_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_HTTP1_HEAD_MAX 8192

/* All zero is ready to start. */
struct zc_http1 {
    uint32_t len;
    bool complete;
    int status;             /* 100..599 once complete */
    const char *error;      /* static text: no response that we understand */
    struct zc_slice reason; /* of the status line */
    uint8_t head[ZC_HTTP1_HEAD_MAX];
};

/* Takes bytes up to the end of the head; returns how many. Done when complete or error is set, and
 * then takes none. */
size_t zc_http1_input(struct zc_http1 *h, const uint8_t *data, size_t len);
/* The value of the first header of this name (any case), surrounding blanks dropped. False: there
 * is none. Only once complete. */
bool zc_http1_header(const struct zc_http1 *h, const char *name, struct zc_slice *ret_value);

#endif
