/*
 * Standard output: whole pieces at once, byte-exact in a pipe or file, escaped on a terminal. While
 * the reader is slow, the connection to the hub is kept alive.
 */
#ifndef ZC_CLI_OUT_H
#define ZC_CLI_OUT_H

#include <stdbool.h>

#include "base/buf.h"
#include "client/zmqcat.h"

struct zc_out {
    struct zmqcat *bus; /* NULL: none to keep alive */
    /* Called before each wait: does what is due, returns the ms until it wants to be called again,
     * or -1. NULL: nothing. */
    int (*tick)(void *data);
    void *data;
    bool terminal;
    bool gone; /* the reader closed its end: nothing more can be written, and nothing is said */
    bool short_of_memory;
    struct zc_buf buf; /* added, not yet written */
};

/* Standard output can be written to, as far as is known before: 0, or 1 after saying why not. */
int zc_out_usable(void);
void zc_out_init(struct zc_out *out, struct zmqcat *bus);
void zc_out_done(struct zc_out *out);
/* Adds bytes as they are. Failed allocations are told by the next flush. */
void zc_out_raw(struct zc_out *out, const void *data, size_t len);
void zc_out_str(struct zc_out *out, const char *text);
/* Adds a name: always escaped, since a newline in it would forge a line. */
void zc_out_name(struct zc_out *out, const char *data, size_t len);
/* Adds a payload: as it is, on a terminal with control characters but tab and newline escaped. */
void zc_out_payload(struct zc_out *out, const void *data, size_t len);
/* The reader has closed its end, seen without writing. */
bool zc_out_gone(struct zc_out *out);
/* Writes what was added. Returns 0 or exit status 1: out->gone, or it was said why. */
int zc_out_flush(struct zc_out *out);

#endif
