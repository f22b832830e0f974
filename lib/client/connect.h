/*
 * Connected sockets: not inherited, non-blocking, without SIGPIPE. Private to lib/client.
 */
#ifndef ZC_CLIENT_CONNECT_H
#define ZC_CLIENT_CONNECT_H

#include "client/bus.h"

/* Both wait as bus wants it; what its poll gives up is ECANCELED.
 *
 * path has at most ZC_ADDRESS_PATH_MAX bytes. Returns a socket, or -1 with errno. */
int zc_connect_unix(const struct zmqcat *bus, const char *path);
/* Tries every address of the host. Returns a socket, or -1 and the reason of the last failure. */
int zc_connect_tcp(const struct zmqcat *bus, const struct zc_address *a, const char **ret_why);

#endif
