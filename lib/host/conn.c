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
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/check.h"
#include "host/host.h"
#include "host/peer.h"

#define SLICES 64
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

void zc_conn_drop(struct zc_conn *c)
{
    struct zc_host *h = c->host;
    struct zc_session *s = c->session;
    c->session = NULL;
    shut(c);
    if (s != NULL)
        zc_hub_detach(h->config.hub, s, zc_host_now(h));
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
    if (!c->eof && zc_hub_wants_input(c->host->config.hub, c->session))
        want |= UV_READABLE;
    if (c->blocked)
        want |= UV_WRITABLE;
    set_interest(c, want);
}

/* One read. False when nothing more is there for now, or the connection has ended. */
static bool read_once(struct zc_conn *c)
{
    struct zc_host *h = c->host;
    ssize_t n;
    do {
        n = read(c->fd, h->read_buf, ZC_HOST_READ_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            zc_conn_drop(c);
        return false;
    }
    if (c->session == NULL) { /* lingering: thrown away */
        if (n == 0)
            zc_conn_drop(c);
        return n > 0;
    }
    if (n == 0) {
        c->eof = true;
        zc_hub_eof(h->config.hub, c->session, zc_host_now(h));
    } else {
        zc_hub_input(h->config.hub, c->session, zc_host_now(h), h->read_buf, (size_t)n);
    }
    update_interest(c);
    return n > 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct zc_conn *c = ZC_CONTAINER(poll, struct zc_conn, poll);
    c->host->active = true;
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
    if ((events & UV_WRITABLE) && c->session != NULL) {
        c->blocked = false;
        zc_conn_wake(c);
    }
    if (events & UV_READABLE)
        read_once(c);
}

/* Writes one batch. 1: all was taken, more may be there; 0: nothing to write, or the socket is
 * full; negative: the connection has failed. */
static int write_once(struct zc_conn *c)
{
    struct zc_hub *hub = c->host->config.hub;
    struct zc_slice slices[SLICES];
    struct iovec iov[SLICES];
    size_t n = 0, total = 0;
    zc_hub_output(hub, c->session, slices, SLICES, &n);
    if (n == 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        iov[i] = (struct iovec){(void *)(uintptr_t)slices[i].data, slices[i].len};
        total += slices[i].len;
    }
    ssize_t sent;
    do {
        sent = writev(c->fd, iov, (int)n);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        return ZC_ECLOSED;
    size_t took = sent < 0 ? 0 : (size_t)sent;
    if (took > 0)
        zc_hub_sent(hub, c->session, zc_host_now(c->host), took);
    c->blocked = took < total;
    return c->blocked ? 0 : 1;
}

bool zc_conn_flush(struct zc_conn *c)
{
    if (c->session == NULL)
        return true;
    for (int i = 0; !c->blocked; i++) {
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

void zc_conn_end(struct zc_conn *c)
{
    struct zc_host *h = c->host;
    struct zc_session *s = c->session;
    if (c->eof || h->stopping || shutdown(c->fd, SHUT_WR) < 0) {
        zc_conn_drop(c);
        return;
    }
    c->session = NULL;
    c->blocked = false;
    zc_list_remove(&c->ready);
    zc_hub_detach(h->config.hub, s, zc_host_now(h));
    set_interest(c, UV_READABLE);
    zc_host_linger(h);
}

void zc_conn_linger(struct zc_conn *c)
{
    if (c->session == NULL && ++c->age > 2)
        zc_conn_drop(c);
}

/* Small frames go out at once; a peer that vanished is found even without heartbeats. */
static void set_tcp_options(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

void zc_conn_start(struct zc_host *h, int fd, bool tcp, bool control)
{
    struct zc_peer_text text;
    struct zc_conn *c = calloc(1, sizeof(*c));
    if (c == NULL || zc_peer_identify(fd, &text) < 0 || uv_poll_init(&h->loop, &c->poll, fd) < 0) {
        free(c);
        close(fd);
        return;
    }
    c->host = h;
    c->fd = fd;
    zc_list_push(&h->conns, &c->all);
    if (tcp)
        set_tcp_options(fd);
    struct zc_peer peer = {.identity = text.identity, .name = text.name, .control = control};
    c->session = zc_hub_attach(h->config.hub, zc_host_now(h), &peer, c);
    if (c->session == NULL) {
        zc_conn_drop(c);
        return;
    }
    update_interest(c);
}
