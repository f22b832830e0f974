/*
 * Identities by the kernel's word: peer credentials on unix sockets, the address on TCP. An IPv4
 * peer on a dual-stack listener is shown as the IPv4 address that it is.
 */
#define _GNU_SOURCE /* struct ucred */
#include "host/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

static int unix_uid(int fd, uid_t *ret_uid)
{
#ifdef SO_PEERCRED
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return ZC_ECLOSED;
    *ret_uid = cred.uid;
    return 0;
#else
    gid_t gid;
    return getpeereid(fd, ret_uid, &gid) < 0 ? ZC_ECLOSED : 0;
#endif
}

static int identify_unix(int fd, struct zc_peer_text *ret_peer)
{
    uid_t uid;
    int r = unix_uid(fd, &uid);
    if (r < 0)
        return r;
    snprintf(ret_peer->identity, sizeof(ret_peer->identity), "uid:%lu", (unsigned long)uid);
    strcpy(ret_peer->name, "@");
    return 0;
}

static int identify_tcp(const struct sockaddr_storage *sa, struct zc_peer_text *ret_peer)
{
    char host[INET6_ADDRSTRLEN];
    const void *addr;
    int family = sa->ss_family;
    unsigned port;
    if (family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
        addr = &in->sin_addr;
        port = ntohs(in->sin_port);
    } else if (family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
        addr = &in6->sin6_addr;
        port = ntohs(in6->sin6_port);
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            addr = in6->sin6_addr.s6_addr + 12;
            family = AF_INET;
        }
    } else {
        return ZC_ECLOSED;
    }
    if (inet_ntop(family, addr, host, sizeof(host)) == NULL)
        return ZC_ECLOSED;
    snprintf(ret_peer->name, sizeof(ret_peer->name), family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
             port);
    snprintf(ret_peer->identity, sizeof(ret_peer->identity),
             family == AF_INET6 ? "tcp:[%s]:%u" : "tcp:%s:%u", host, port);
    return 0;
}

int zc_peer_identify(int fd, struct zc_peer_text *ret_peer)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
        return ZC_ECLOSED;
    if (sa.ss_family == AF_UNIX)
        return identify_unix(fd, ret_peer);
    len = sizeof(sa);
    if (getpeername(fd, (struct sockaddr *)&sa, &len) < 0)
        return ZC_ECLOSED;
    return identify_tcp(&sa, ret_peer);
}
