/* Listening sockets of any kind: made by us on unix or TCP, or inherited from the service manager.
 */
#ifndef ZC_HOST_LISTEN_H
#define ZC_HOST_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/err.h"
#include "host/unixsock.h"

#define ZC_LISTEN_WHY_MAX ZC_UNIXSOCK_WHY_MAX

struct zc_listen {
    int fd;
    bool control;
    bool inherited; /* never unlinked, never shut down */
    bool tcp;
    uint16_t port;           /* of the hub, to which its connections go; 0: the bus */
    struct zc_unixsock sock; /* unix and not inherited */
    struct zc_address address;
};

/* Binds and listens. ZC_EBUSY: a live listener is there. Other errors: unusable. why: one line,
 * without the address. The port that the system chose for port 0 is in ret_listen->address. */
ZC_MUST_CHECK int zc_listen_open(const struct zc_address *address,
                                 const struct zc_unixsock_options *options,
                                 struct zc_listen *ret_listen, char ret_why[ZC_LISTEN_WHY_MAX]);
/* Wraps a listening socket that was handed over. */
void zc_listen_adopt(int fd, struct zc_listen *ret_listen);
/* Closes; unlinks what was bound by us and is still ours. Twice is fine. */
void zc_listen_close(struct zc_listen *l);

#endif
