/*
 * The ceiling of stamps (tunnel/stamps.h) in a file beside the key file, so that a clock that was
 * set back keeps nobody out. Whatever is wrong with the file is told and survived: the daemon works
 * as without one.
 */
#ifndef ZC_DAEMONS_STAMPFILE_H
#define ZC_DAEMONS_STAMPFILE_H

#include <limits.h>
#include <stdbool.h>

#include "host/logsink.h"
#include "tunnel/tunnel.h"

struct zc_stampfile {
    struct zc_logsink *log;
    char path[PATH_MAX]; /* "": none */
    struct zc_wall stored;
    bool failed; /* it was not written the last time, and that was told */
};

/* Reads the file and stores the first ceiling. key_path: the key file's, "": there is none, and so
 * no bounds; name: the key file's usual name; fresh: nobody has met the key yet. */
void zc_stampfile_open(struct zc_stampfile *f, struct zc_logsink *log, const char *key_path,
                       const char *name, bool fresh, struct zc_stamps_bounds *ret_bounds);
/* ZC_HUB_STAMPS. */
void zc_stampfile_save(struct zc_stampfile *f, struct zc_tunnel *t, struct zc_wall most);
/* The end of the process: the ceiling goes down to the last stamp, so that the next process need
 * not begin ahead of its clock. t NULL: there was no tunnel. */
void zc_stampfile_close(struct zc_stampfile *f, const struct zc_tunnel *t);

#endif
