/*
 * Connections.
 *
 *   open --CLOSE event--> lingering --peer's EOF, error or 1 s--> closing --> freed
 *     |                                                              ^
 *     +--read or write error, CLOSE after the peer's EOF or a stop---+
 *
 * The last frame (the `err` that says why) must reach a peer that is still sending: a TCP close
 * with unread input destroys what is on its way, and on a unix socket the peer's next write would
 * fail before it reads. So the write side is shut first and input is thrown away for a moment.
 */
#include "host/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/check.h"
#include "host/conn_core.h"
#include "host/host.h"
#include "host/listen.h"
#include "host/peer.h"
#include "node/splice.h"
#include "node/spoke.h"

/* Writes for one connection before the others have their turn. */
#define WRITES_PER_FLUSH 16

static void on_closed(uv_handle_t *handle)
{
    free(ZC_CONTAINER(handle, struct zc_conn, poll));
}

static void shut(struct zc_conn *c)
{
    struct zc_host *h = c->host;
    if (uv_is_closing((uv_handle_t *)&c->poll))
        return;
    zc_list_remove(&c->ready);
    zc_list_remove(&c->all);
    uv_close((uv_handle_t *)&c->poll, on_closed);
    close(c->fd);
    zc_host_fd_freed(h);
}

/* ---- the socket ---- */

void zc_conn_drop(struct zc_conn *c)
{
    shut(c);
    zc_conn_core_detach(c, true);
}

void zc_conn_wake(struct zc_conn *c)
{
    if (!zc_list_linked(&c->ready))
        zc_list_push(&c->host->ready, &c->ready);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void set_interest(struct zc_conn *c, uint8_t interest)
{
    if (interest == c->interest)
        return;
    c->interest = interest;
    if (interest == 0)
        uv_poll_stop(&c->poll);
    else
        uv_poll_start(&c->poll, interest, on_poll);
}

/* Asks for what the connection can use now. */
static void update_interest(struct zc_conn *c)
{
    uint8_t want = 0;
    if (!c->eof && !c->dialling && zc_conn_core_wants_input(c))
        want |= UV_READABLE;
    if (c->blocked || c->dialling)
        want |= UV_WRITABLE;
    set_interest(c, want);
}

/* One read. False when nothing more is there for now, or the connection has ended. */
static bool read_once(struct zc_conn *c)
{
    struct zc_host *h = c->host;
    ssize_t n;
    do {
        n = recv(c->fd, h->read_buf, ZC_HOST_READ_BYTES, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            zc_conn_drop(c);
        return false;
    }
    h->heard = true;
    if (!zc_conn_core_attached(c)) { /* lingering: thrown away */
        if (n == 0)
            zc_conn_drop(c);
        return n > 0;
    }
    if (n == 0) {
        c->eof = true;
        zc_conn_core_input_eof(c);
    } else {
        zc_conn_core_input(c, h->read_buf, (size_t)n);
    }
    update_interest(c);
    return n > 0;
}

/* A forwarded port that could not be reached here. */
static void say_unserved(struct zc_host *h, uint16_t port, int error)
{
    char text[160];
    snprintf(text, sizeof(text), "forwarded port %u: %s%s", (unsigned)port, strerror(error),
             error == ECONNREFUSED ? ": nothing listens there on 127.0.0.1" : "");
    zc_hub_say_warning(h->config.hub, zc_host_now(h), text);
}

/* The end of connect(); false: it failed. */
static bool dialled(struct zc_conn *c)
{
    int error = 0;
    socklen_t len = sizeof(error);
    c->dialling = false;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0) {
        if (c->shut_due)
            zc_conn_shut(c);
        return !uv_is_closing((uv_handle_t *)&c->poll);
    }
    say_unserved(c->host, c->port, error);
    shut(c);
    zc_conn_core_detach(c, false);
    return false;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct zc_conn *c = ZC_CONTAINER(poll, struct zc_conn, poll);
    c->host->active = true;
    if (c->dialling && !dialled(c))
        return;
    if (status < 0) {
        /* An error is pending and libuv has stopped the handle. What arrived before it still
         * counts: read until the error or the end shows. */
        c->interest = 0;
        while (read_once(c))
            continue;
        if (!uv_is_closing((uv_handle_t *)&c->poll))
            zc_conn_drop(c);
        return;
    }
    if ((events & UV_WRITABLE) && zc_conn_core_attached(c)) {
        c->blocked = false;
        zc_conn_wake(c);
    }
    if ((events & UV_READABLE) == 0)
        return;
    /* What others did in this turn may have changed that. */
    if (zc_conn_core_attached(c) && !zc_conn_core_wants_input(c))
        update_interest(c);
    else
        read_once(c);
}

/* Writes one batch. 1: all was taken, more may be there; 0: nothing to write, or the socket is
 * full; negative: the connection has failed. */
static int write_once(struct zc_conn *c)
{
    struct zc_slice slices[ZC_CONN_CORE_SLICES];
    struct iovec iov[ZC_CONN_CORE_SLICES];
    size_t n = zc_conn_core_output(c, slices), total = 0;
    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        iov[i] = (struct iovec){(void *)(uintptr_t)slices[i].data, slices[i].len};
        total += slices[i].len;
    }
    struct msghdr all = {.msg_iov = iov, .msg_iovlen = n};
    ssize_t w;
    do {
        w = n == 1 ? send(c->fd, iov[0].iov_base, iov[0].iov_len, 0) : sendmsg(c->fd, &all, 0);
    } while (w < 0 && errno == EINTR);
    if (w < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        return ZC_ECLOSED;
    size_t took = w < 0 ? 0 : (size_t)w;
    if (took > 0)
        zc_conn_core_sent(c, took);
    c->blocked = took < total;
    return c->blocked ? 0 : 1;
}

bool zc_conn_flush(struct zc_conn *c)
{
    if (!zc_conn_core_attached(c))
        return true;
    for (int i = 0; !c->blocked && !c->dialling; i++) {
        if (i == WRITES_PER_FLUSH)
            return false;
        int r = write_once(c);
        if (r < 0) {
            zc_conn_drop(c);
            return true;
        }
        if (r == 0)
            break;
    }
    update_interest(c);
    return true;
}

/* close() will send a reset; on a unix socket it is a close like any other. */
static void arm_reset(struct zc_conn *c)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void zc_conn_end(struct zc_conn *c, bool reset)
{
    if (reset)
        arm_reset(c);
    if (reset || c->eof || c->dialling || c->host->stopping || shutdown(c->fd, SHUT_WR) < 0) {
        shut(c);
        zc_conn_core_detach(c, reset);
        return;
    }
    c->blocked = false;
    zc_list_remove(&c->ready);
    zc_conn_core_detach(c, false);
    set_interest(c, UV_READABLE);
    zc_host_linger(c->host);
}

void zc_conn_shut(struct zc_conn *c)
{
    /* It would end a connect() that is under way. */
    c->shut_due = c->dialling;
    if (!c->dialling && shutdown(c->fd, SHUT_WR) < 0)
        zc_conn_drop(c);
}

void zc_conn_linger(struct zc_conn *c)
{
    if (!zc_conn_core_attached(c) && ++c->age > 2)
        zc_conn_drop(c);
}

/* ---- start ---- */

/* Small frames go out at once; a peer that vanished is found even without heartbeats. */
static void set_tcp_options(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

static struct zc_conn *conn_new(struct zc_host *h, int fd)
{
    struct zc_conn *c = calloc(1, sizeof(*c));
    if (c == NULL || uv_poll_init(&h->loop, &c->poll, fd) < 0) {
        free(c);
        close(fd);
        return NULL;
    }
    c->host = h;
    c->fd = fd;
    zc_list_push(&h->conns, &c->all);
    return c;
}

static void attach_session(struct zc_conn *c, const struct zc_peer_text *text, bool control)
{
    struct zc_host *h = c->host;
    struct zc_peer peer = {.identity = text->identity, .name = text->name, .control = control};
    c->session = zc_hub_attach(h->config.hub, zc_host_now(h), &peer, c);
}

static void attach_splice(struct zc_conn *c, uint16_t port)
{
    struct zc_host *h = c->host;
    c->splice =
        zc_spoke_attach(h->config.hub, zc_host_now(h), port > 0 ? port : ZC_HUB_BUS_PORT, c);
}

void zc_conn_start(struct zc_host *h, int fd, const struct zc_listen *listen)
{
    struct zc_peer_text text;
    if (zc_peer_identify(fd, &text) < 0) {
        close(fd);
        return;
    }
    struct zc_conn *c = conn_new(h, fd);
    if (c == NULL)
        return;
    if (listen->tcp)
        set_tcp_options(fd);
    if (h->config.spoke && !listen->control)
        attach_splice(c, listen->port);
    else
        attach_session(c, &text, listen->control);
    if (zc_conn_core_attached(c))
        update_interest(c);
    else
        zc_conn_drop(c);
}

/* A non-blocking socket on its way to 127.0.0.1:port, or -1. */
static int dial_loopback(struct zc_host *h, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (!zc_acceptor_allows(&h->acceptors, fd)) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
        say_unserved(h, port, errno);
        close(fd);
        return -1;
    }
    set_tcp_options(fd);
    return fd;
}

void zc_conn_dial(struct zc_host *h, struct zc_splice *splice, uint16_t port)
{
    int fd = dial_loopback(h, port);
    struct zc_conn *c = fd >= 0 ? conn_new(h, fd) : NULL;
    if (c == NULL) {
        zc_splice_detach(splice, zc_host_now(h), false);
        return;
    }
    c->splice = splice;
    c->dialling = true;
    c->port = port;
    zc_splice_set_data(splice, c);
    update_interest(c);
}
