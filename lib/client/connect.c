/*
 * Connected sockets to unix paths and TCP hosts, with a deadline.
 * Deliberately absent: a deadline for the resolver, which getaddrinfo does not offer.
 */
#include "client/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/wire.h"

#define CONNECT_MS 10000

/* A stream socket as every call here expects it: not inherited, never blocking, no SIGPIPE. */
static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
#ifdef SO_NOSIGPIPE
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return fd;
}

/* Waits until a connect in progress is over. Returns 0 or an errno. */
static int finish_connect(const struct zmqcat *bus, int fd, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - zc_wire_now_ms();
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (left <= 0)
            return ETIMEDOUT;
        int n = zc_wire_poll(bus, &p, (int)left);
        if (n == 0 || (n < 0 && errno == EINTR))
            continue;
        if (n < 0)
            return errno;
        int err = 0;
        socklen_t len = sizeof err;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
            return errno;
        return err;
    }
}

/* Returns a connected socket, or -1 with errno. */
static int connect_to(const struct zmqcat *bus, int family, const struct sockaddr *address,
                      socklen_t len)
{
    int64_t deadline_ms = zc_wire_now_ms() + CONNECT_MS;
    int fd = new_socket(family);
    if (fd < 0)
        return -1;
    int err = 0;
    while (connect(fd, address, len) < 0) {
        err = errno;
        if (err == EINPROGRESS || err == EINTR) {
            err = finish_connect(bus, fd, deadline_ms);
            break;
        }
        /* A unix socket whose backlog is full says EAGAIN and cannot be waited for. */
        if (err != EAGAIN || zc_wire_now_ms() >= deadline_ms)
            break;
        struct pollfd none = {.fd = -1};
        if (zc_wire_poll(bus, &none, 10) < 0 && errno == ECANCELED) {
            err = ECANCELED;
            break;
        }
        err = 0;
    }
    if (err == 0)
        return fd;
    close(fd);
    errno = err;
    return -1;
}

int zc_connect_unix(const struct zmqcat *bus, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    ZC_ASSERT(strlen(path) < sizeof un.sun_path);
    memcpy(un.sun_path, path, strlen(path));
    return connect_to(bus, AF_UNIX, (const struct sockaddr *)&un, sizeof un);
}

int zc_connect_tcp(const struct zmqcat *bus, const struct zc_address *a, const char **ret_why)
{
    char port[8];
    snprintf(port, sizeof port, "%u", a->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(a->host, port, &hints, &list);
    if (rc != 0) {
        *ret_why = rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc);
        return -1;
    }
    int fd = -1, err = ECONNREFUSED;
    for (const struct addrinfo *i = list; i != NULL && fd < 0 && err != ECANCELED; i = i->ai_next) {
        fd = connect_to(bus, i->ai_family, i->ai_addr, i->ai_addrlen);
        err = errno;
    }
    freeaddrinfo(list);
    if (fd < 0) {
        *ret_why = strerror(err);
        errno = err;
        return -1;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* A hub host that vanished is noticed also while we only wait. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return fd;
}
