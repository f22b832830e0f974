/* Who is at the other end of an accepted connection. */
#ifndef ZC_HOST_PEER_H
#define ZC_HOST_PEER_H

#include "base/err.h"

#define ZC_PEER_TEXT_MAX 80

struct zc_peer_text {
    char identity[ZC_PEER_TEXT_MAX]; /* "uid:1000", "tcp:127.0.0.1:5" */
    char name[ZC_PEER_TEXT_MAX];     /* "@", "127.0.0.1:5", "[::1]:5" */
};

/* ZC_ECLOSED: the peer is gone already, or is of no known family. */
ZC_MUST_CHECK int zc_peer_identify(int fd, struct zc_peer_text *ret_peer);

#endif
