/* Connections: bytes out, bytes in, and which of many have some. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "load.h"

#define RECEIVE_BYTES 65536

static int epoll_fd = -1;
static unsigned numbers;

static void bytes_reserve(struct bytes *b, size_t more)
{
    if (b->len + more <= b->cap)
        return;
    b->cap = (b->len + more) * 2;
    b->data = realloc(b->data, b->cap);
    if (b->data == NULL)
        fail("out of memory");
}

static int dial(void)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in net = {.sin_family = AF_INET};
    bool tcp = options.address[0] >= '0' && options.address[0] <= '9';
    struct sockaddr *to = tcp ? (struct sockaddr *)&net : (struct sockaddr *)&local;
    int one = 1;
    net.sin_port = htons((uint16_t)atoi(options.address));
    net.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(local.sun_path, sizeof(local.sun_path), "%s", options.address);
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail("socket: %s", strerror(errno));
    if (tcp)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, to, tcp ? sizeof(net) : sizeof(local)) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

bool conn_try(struct conn *c)
{
    *c = (struct conn){.fd = dial(), .number = ++numbers};
    return c->fd >= 0;
}

void conn_open(struct conn *c)
{
    if (!conn_try(c))
        fail("%s: %s", options.address, strerror(errno));
    if (options.peer->greet != NULL)
        options.peer->greet(c);
}

void conn_close(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->held);
    free(c->in.data);
    free(c->out.data);
    *c = (struct conn){.fd = -1};
}

void conn_add(struct conn *c, const void *data, size_t len)
{
    bytes_reserve(&c->out, len);
    memcpy(c->out.data + c->out.len, data, len);
    c->out.len += len;
}

void conn_print(struct conn *c, const char *format, ...)
{
    va_list args;
    bytes_reserve(&c->out, PAYLOAD_MAX + 1024);
    va_start(args, format);
    int n = vsnprintf((char *)c->out.data + c->out.len, c->out.cap - c->out.len, format, args);
    va_end(args);
    c->out.len += (size_t)n;
}

void conn_request(struct conn *c, enum operation op)
{
    if (options.peer->request[op] == NULL)
        fail("%s has no such operation", options.peer->name);
    c->id++;
    payload_next();
    options.peer->request[op](c);
}

void conn_send(struct conn *c)
{
    for (size_t at = 0; at < c->out.len;) {
        ssize_t n = send(c->fd, c->out.data + at, c->out.len - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            fail("send: %s", strerror(errno));
        at += n > 0 ? (size_t)n : 0;
    }
    c->out.len = 0;
}

bool conn_receive(struct conn *c)
{
    if (c->at == c->in.len) {
        c->at = c->in.len = 0;
    } else if (c->at > 0) {
        memmove(c->in.data, c->in.data + c->at, c->in.len - c->at);
        c->in.len -= c->at;
        c->at = 0;
    }
    bytes_reserve(&c->in, RECEIVE_BYTES);
    ssize_t n;
    do
        n = read(c->fd, c->in.data + c->in.len, RECEIVE_BYTES);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        c->in.len += (size_t)n;
    return n > 0;
}

__attribute__((noreturn)) static void refused(uint8_t *said, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (said[i] < ' ' || said[i] > '~')
            said[i] = '.';
    fail("%s answers: %.*s", options.peer->name, (int)len, said);
}

enum answer conn_next(struct conn *c)
{
    enum answer a = NOTHING;
    while (a == NOTHING && c->at < c->in.len) {
        size_t used = 0;
        a = options.peer->answer(c, c->in.data + c->at, c->in.len - c->at, &used);
        if (a == MORE)
            return MORE;
        if (a == REFUSED)
            refused(c->in.data + c->at, used);
        c->at += used;
        if (a == NOTHING && c->out.len > 0)
            conn_send(c);
    }
    return a == NOTHING ? MORE : a;
}

enum answer conn_wait(struct conn *c)
{
    enum answer a;
    conn_send(c);
    while ((a = conn_next(c)) == MORE)
        if (!conn_receive(c))
            fail("%s has closed the connection", options.peer->name);
    return a;
}

enum answer conn_call(struct conn *c, enum operation op)
{
    conn_request(c, op);
    return conn_wait(c);
}

struct conn *conns_open(long count)
{
    struct conn *conns = calloc((size_t)count, sizeof(*conns));
    if (conns == NULL)
        fail("out of memory");
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (long i = 0; i < count; i++) {
        struct epoll_event watch = {.events = EPOLLIN, .data.ptr = &conns[i]};
        conn_open(&conns[i]);
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conns[i].fd, &watch) < 0)
            fail("epoll: %s", strerror(errno));
    }
    return conns;
}

void conns_close(struct conn *conns, long count)
{
    for (long i = 0; i < count; i++)
        conn_close(&conns[i]);
    close(epoll_fd);
    free(conns);
}

void conns_idle(void)
{
    struct epoll_event events[CONNS_READY], input = {.events = EPOLLIN, .data.ptr = NULL};
    char byte;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &input) < 0)
        fail("standard input has to be a pipe: %s", strerror(errno));
    for (;;) {
        int n = epoll_wait(epoll_fd, events, CONNS_READY, -1);
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (c == NULL && read(STDIN_FILENO, &byte, 1) <= 0)
                return;
            if (c == NULL)
                continue;
            if (!conn_receive(c))
                fail("%s has closed an idle connection", options.peer->name);
            while (conn_next(c) != MORE)
                continue;
        }
    }
}

size_t conns_wait(struct conn **ret_ready, size_t cap)
{
    struct epoll_event events[CONNS_READY];
    int n;
    do
        n = epoll_wait(epoll_fd, events, (int)(cap < CONNS_READY ? cap : CONNS_READY), 20000);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        fail("%s says nothing for 20 s", options.peer->name);
    for (int i = 0; i < n; i++)
        ret_ready[i] = events[i].data.ptr;
    return (size_t)n;
}
