/* A listening unix socket that nobody can reach before it has its final mode and group. */
#ifndef ZC_HOST_UNIXSOCK_H
#define ZC_HOST_UNIXSOCK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define ZC_UNIXSOCK_WHY_MAX 256

struct zc_unixsock_options {
    mode_t mode; /* 0600 */
    bool has_group;
    gid_t group; /* when has_group */
};

/* What was bound, so that only this is ever unlinked. */
struct zc_unixsock {
    int fd;
    dev_t dev;
    ino_t ino;
};

/* Binds and listens, non-blocking and close-on-exec. A dead socket of ours at path is replaced.
 * ZC_EBUSY: a live one is there. ZC_EINVAL: the path is unusable, or something else lies there; it
 * is left as it is. why: one line, without the path. */
ZC_MUST_CHECK int zc_unixsock_open(const char *path, const struct zc_unixsock_options *options,
                                   struct zc_unixsock *ret_sock, char ret_why[ZC_UNIXSOCK_WHY_MAX]);
/* Unlinks path when it is still the socket that was bound, and closes the descriptor. */
void zc_unixsock_close(const char *path, struct zc_unixsock *sock);

#endif
