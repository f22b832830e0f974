/*
 * A connection over a socket that is already there. Private to lib/client and its tests.
 */
#ifndef ZC_CLIENT_CLIENT_H
#define ZC_CLIENT_CLIENT_H

#include "client/zmqcat.h"

/* As zmqcat_open. fd is a connected stream socket, non-blocking; it is the connection's from now
 * on, also on failure (unless *ret_bus is NULL). */
int zc_client_attach(int fd, const char *name, struct zmqcat **ret_bus);

#endif
