/*
 * Listening sockets. TCP binds the first address that the host name has, IPv4 before IPv6.
 */
#include "host/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static int resolve(const struct zc_address *a, struct addrinfo **ret_list,
                   const struct addrinfo **ret_first, char *why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)a->port);
    int e = getaddrinfo(a->host, port, &hints, ret_list);
    if (e != 0) {
        snprintf(why, ZC_LISTEN_WHY_MAX, "%s", gai_strerror(e));
        return ZC_EINVAL;
    }
    *ret_first = *ret_list;
    for (const struct addrinfo *i = *ret_list; i != NULL; i = i->ai_next) {
        if (i->ai_family == AF_INET) {
            *ret_first = i;
            break;
        }
    }
    return 0;
}

static int bind_tcp(const struct addrinfo *i, int *ret_fd, char *why)
{
    int one = 1, r = ZC_EINVAL;
    int fd = socket(i->ai_family, SOCK_STREAM, 0);
    if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(fd, i->ai_addr, i->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (errno == EADDRINUSE) {
        r = ZC_EBUSY;
        snprintf(why, ZC_LISTEN_WHY_MAX,
                 "another program is listening there: stop it, or choose another port");
    } else {
        snprintf(why, ZC_LISTEN_WHY_MAX, "%s", strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return r;
}

/* The port that fd is bound to. */
static uint16_t bound_port(int fd)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    getsockname(fd, (struct sockaddr *)&sa, &len);
    if (sa.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
    return ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

static int open_tcp(const struct zc_address *address, struct zc_listen *ret_listen, char *why)
{
    struct addrinfo *list = NULL;
    const struct addrinfo *first = NULL;
    int fd = -1;
    int r = resolve(address, &list, &first, why);
    if (r < 0)
        return r;
    r = bind_tcp(first, &fd, why);
    freeaddrinfo(list);
    if (r < 0)
        return r;
    *ret_listen = (struct zc_listen){.fd = fd, .tcp = true, .address = *address};
    ret_listen->address.port = bound_port(fd);
    return 0;
}

int zc_listen_open(const struct zc_address *address, const struct zc_unixsock_options *options,
                   struct zc_listen *ret_listen, char ret_why[ZC_LISTEN_WHY_MAX])
{
    struct zc_unixsock sock;
    if (address->kind == ZC_ADDRESS_TCP)
        return open_tcp(address, ret_listen, ret_why);
    int r = zc_unixsock_open(address->path, options, &sock, ret_why);
    if (r < 0)
        return r;
    *ret_listen = (struct zc_listen){.fd = sock.fd, .sock = sock, .address = *address};
    return 0;
}

void zc_listen_adopt(int fd, struct zc_listen *ret_listen)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    *ret_listen = (struct zc_listen){.fd = fd, .inherited = true};
    struct zc_address *a = &ret_listen->address;
    if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
        return;
    if (sa.ss_family == AF_UNIX) {
        a->kind = ZC_ADDRESS_UNIX;
        size_t room = len > offsetof(struct sockaddr_un, sun_path)
                          ? len - offsetof(struct sockaddr_un, sun_path)
                          : 0;
        /* An abstract name begins with NUL and is shown as systemd writes it, with @. */
        const char *path = ((struct sockaddr_un *)&sa)->sun_path;
        if (room > 1 && path[0] == '\0')
            snprintf(a->path, sizeof(a->path), "@%.*s", (int)room - 1, path + 1);
        else
            snprintf(a->path, sizeof(a->path), "%.*s", (int)room, path);
        return;
    }
    ret_listen->tcp = true;
    a->kind = ZC_ADDRESS_TCP;
    a->port = bound_port(fd);
    const void *ip = sa.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&sa)->sin6_addr
                                              : (void *)&((struct sockaddr_in *)&sa)->sin_addr;
    if (inet_ntop(sa.ss_family, ip, a->host, sizeof(a->host)) == NULL)
        strcpy(a->host, "?");
}

void zc_listen_close(struct zc_listen *l)
{
    if (l->fd < 0)
        return;
    if (!l->inherited && !l->tcp)
        zc_unixsock_close(l->address.path, &l->sock);
    else
        close(l->fd);
    l->fd = -1;
}
