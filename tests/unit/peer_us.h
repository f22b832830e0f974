/* The identity of a unix peer that is this very process. */
#ifndef ZC_TEST_PEER_US_H
#define ZC_TEST_PEER_US_H

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/peer.h"
#include "test.h"

static inline void check_peer_is_us(void)
{
    int fds[2];
    char want[40];
    struct zc_peer_text p;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    CHECK_INT(zc_peer_identify(fds[0], &p), 0);
    snprintf(want, sizeof(want), "uid:%lu", (unsigned long)getuid());
    CHECK(strcmp(p.identity, want) == 0);
    CHECK(strcmp(p.name, "@") == 0);
    close(fds[0]);
    close(fds[1]);
}

#endif
