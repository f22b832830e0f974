/* Identities on systems without SO_PEERCRED, such as macOS: peer.c is compiled into this program as
 * there, with a stand-in for getpeereid(3) that keeps its contract. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef SO_PEERCRED
static int getpeereid(int fd, uid_t *uid, gid_t *gid)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return -1;
    if (cred.pid == 0) { /* of a socket that was never connected */
        errno = ENOTCONN;
        return -1;
    }
    *uid = cred.uid;
    *gid = cred.gid;
    return 0;
}

#undef SO_PEERCRED
#endif
#include "../../lib/host/peer.c"

#include "peer_us.h"
#include "test.h"

TEST(unix_peer_is_a_uid)
{
    check_peer_is_us();
}

TEST(who_is_gone_has_no_identity)
{
    struct zc_peer_text p;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(zc_peer_identify(fd, &p), ZC_ECLOSED);
    close(fd);
    CHECK_INT(zc_peer_identify(fd, &p), ZC_ECLOSED);
}
