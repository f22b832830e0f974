/* The body of an HTTP/1.1 response, in any pieces: chunked, of a known length, or up to the end. */
#ifndef ZC_HOST_FETCH_BODY_H
#define ZC_HOST_FETCH_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tunnel/http1.h"

struct zc_fetch_body {
    struct zc_buf *out;
    size_t bytes_max;
    bool chunked;
    bool has_length;
    uint64_t left; /* of the body, or of the chunk */
    bool complete;
    const char *bad; /* the head cannot be understood */
    int state;
    char line[64]; /* a chunk's size */
    size_t line_len;
};

/* head is complete. out grows by the body. */
void zc_fetch_body_init(struct zc_fetch_body *b, const struct zc_http1 *head, struct zc_buf *out,
                        size_t bytes_max);
/* NULL, or what is wrong (static text). Bytes behind the end are ignored. */
const char *zc_fetch_body_input(struct zc_fetch_body *b, const uint8_t *data, size_t len);
/* The connection ended: true when the body is whole. */
bool zc_fetch_body_end(const struct zc_fetch_body *b);

#endif
