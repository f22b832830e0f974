/*
 * Finds and reaches the bus: address texts, the default search, and who listens there.
 * Source: docs/man/zmqcat.1, ADDRESSES. Private to lib/client.
 */
#ifndef ZC_CLIENT_DIAL_H
#define ZC_CLIENT_DIAL_H

#include "client/bus.h"

/* Connects bus->fd to address (NULL or "": ZMQCAT_LISTEN, else the first default socket with a
 * listener that may be trusted) and sets bus->address, bus->warning. Returns 0 or an enum
 * zmqcat_error with bus->why set. */
int zc_dial_bus(struct zmqcat *bus, const char *address);
/* The same for the control socket: `control` when given, else the one that belongs to the bus at
 * `listen` (NULL or "": as above). */
int zc_dial_control(struct zmqcat *bus, const char *control, const char *listen);

#endif
