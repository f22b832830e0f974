/* The listening sockets of a daemon: inherited, named on the command line, or the default ones. */
#ifndef ZC_DAEMONS_SOCKETS_H
#define ZC_DAEMONS_SOCKETS_H

#include "host/host.h"
#include "options.h"

struct zc_sockets {
    struct zc_listen listens[ZC_HOST_LISTEN_MAX];
    size_t count;
};

/* Opens all; options->listen gets the default address when nothing else is there. With forwards,
 * their local ports too. 0 or the exit code after it said why. */
int zc_sockets_open(struct zc_sockets *s, struct zc_options *options, bool forwards);
void zc_sockets_close(struct zc_sockets *s);

#endif
