/* What the user of the demultiplexer does with connections; see tcpmux.h. */
#include "base/check.h"
#include "tunnel/tcp_priv.h"
#include "tunnel/tcpmux_priv.h"

enum { PORT_FIRST = 32768, PORT_COUNT = 32768 };

/* ---- events ---- */

/* The first of the events that t has to tell. */
static enum zc_tcp_event next_event(struct zc_tcp *t)
{
    for (unsigned bit = ZC_TCP_EVENT_OPENED; bit <= ZC_TCP_EVENT_CLOSED; bit *= 2) {
        if ((t->events & bit) != 0) {
            t->events &= (uint8_t)~bit;
            return (enum zc_tcp_event)bit;
        }
    }
    return 0;
}

bool zc_tcpmux_event(struct zc_tcpmux *m, struct zc_tcpmux_event *ret_event)
{
    struct zc_list *l = zc_list_first(&m->events);
    if (l == NULL)
        return false;
    struct zc_tcpmux_conn *c = ZC_CONTAINER(l, struct zc_tcpmux_conn, events);
    ret_event->conn = c;
    ret_event->reason = ZC_TCP_OPEN;
    switch (next_event(&c->tcp)) {
    case ZC_TCP_EVENT_OPENED:
        ret_event->kind = c->tcp.passive ? ZC_TCPMUX_ACCEPTED : ZC_TCPMUX_CONNECTED;
        break;
    case ZC_TCP_EVENT_READABLE:
        ret_event->kind = ZC_TCPMUX_READABLE;
        break;
    case ZC_TCP_EVENT_WRITABLE:
        ret_event->kind = ZC_TCPMUX_WRITABLE;
        break;
    case ZC_TCP_EVENT_PEER_FIN:
        ret_event->kind = ZC_TCPMUX_PEER_FIN;
        break;
    case ZC_TCP_EVENT_CLOSED:
        ret_event->kind = ZC_TCPMUX_CLOSED;
        ret_event->reason = c->tcp.reason;
        break;
    }
    if (c->tcp.events == 0)
        zc_list_remove(&c->events);
    return true;
}

/* ---- one connection ---- */

/* A port from which nothing goes to remote:port; 0 when all are taken. */
static uint16_t free_port(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, uint16_t port)
{
    for (unsigned tries = 0; tries < PORT_COUNT; tries++) {
        uint16_t local = (uint16_t)(PORT_FIRST + m->next_port++ % PORT_COUNT);
        if (zc_tcpmux_find(m, remote, port, local) == NULL)
            return local;
    }
    return 0;
}

int zc_tcpmux_connect(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote,
                      uint16_t port, void *owner, struct zc_tcpmux_conn **ret_conn)
{
    if (!zc_ip6_addr_unicast(remote) || zc_ip6_addr_eq(remote, &m->config.local) || port == 0)
        return ZC_EINVAL;
    struct zc_tcp_ends ends = {m->config.local, *remote, free_port(m, remote, port), port};
    if (ends.local_port == 0)
        return ZC_ELIMIT;
    struct zc_tcpmux_conn *c;
    int err = zc_tcpmux_add(m, &ends, &c);
    if (err != 0)
        return err;
    uint32_t iss, offset;
    zc_tcpmux_numbers(m, now, &ends, &iss, &offset);
    zc_tcp_connect(&c->tcp, &m->config.tcp, &m->budget, &ends, iss, offset, now.mono);
    c->held = true;
    c->owner = owner;
    zc_tcpmux_settle(m, c);
    *ret_conn = c;
    return 0;
}

size_t zc_tcpmux_readable(const struct zc_tcpmux_conn *c, struct zc_slice ret_slices[2])
{
    return zc_tcp_ring_slices(&c->tcp.in.ring, 0, c->tcp.in.ring.len, ret_slices);
}

/* Once it is closed, nothing follows from what its holder does. */
static void settle_open(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    if (c->remote != NULL)
        zc_tcpmux_settle(m, c);
}

void zc_tcpmux_consume(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c, size_t n)
{
    zc_tcp_consume(&c->tcp, now.mono, n);
    settle_open(m, c);
}

size_t zc_tcpmux_write(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c,
                       struct zc_slice data)
{
    size_t n = zc_tcp_write(&c->tcp, now.mono, data);
    settle_open(m, c);
    return n;
}

size_t zc_tcpmux_room(const struct zc_tcpmux_conn *c)
{
    return zc_tcp_writable(&c->tcp) ? zc_tcp_out_room(&c->tcp.out, c->tcp.budget) : 0;
}

size_t zc_tcpmux_unacked(const struct zc_tcpmux_conn *c)
{
    return c->tcp.out.ring.len;
}

void zc_tcpmux_shutdown(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c)
{
    zc_tcp_shutdown(&c->tcp, now.mono);
    settle_open(m, c);
}

static void end(struct zc_tcpmux *m, struct zc_tcpmux_conn *c, enum zc_tcp_reason reason)
{
    struct zc_tcp_segment reset;
    if (c->remote == NULL)
        return;
    if (zc_tcp_abort(&c->tcp, reason, &reset) && reason == ZC_TCP_ABORTED)
        zc_tcpmux_queue_reset(m, &c->tcp.ends.remote, &reset);
    zc_tcpmux_settle(m, c);
}

void zc_tcpmux_abort(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c)
{
    (void)now;
    end(m, c, ZC_TCP_ABORTED);
}

void zc_tcpmux_release(struct zc_tcpmux *m, struct zc_now now, struct zc_tcpmux_conn *c)
{
    struct zc_tcp_segment reset;
    ZC_ASSERT(c->held);
    if (zc_tcp_release(&c->tcp, now.mono, &reset))
        zc_tcpmux_queue_reset(m, &c->tcp.ends.remote, &reset);
    c->held = false;
    c->owner = NULL;
    c->tcp.events = 0;
    zc_list_remove(&c->events);
    if (c->remote == NULL)
        zc_tcpmux_drop(m, c);
    else
        zc_tcpmux_settle(m, c);
}

void zc_tcpmux_set_owner(struct zc_tcpmux_conn *c, void *owner)
{
    c->owner = owner;
}

void *zc_tcpmux_owner(const struct zc_tcpmux_conn *c)
{
    return c->owner;
}

const struct zc_ip6_addr *zc_tcpmux_remote(const struct zc_tcpmux_conn *c)
{
    return &c->tcp.ends.remote;
}

uint16_t zc_tcpmux_remote_port(const struct zc_tcpmux_conn *c)
{
    return c->tcp.ends.remote_port;
}

uint16_t zc_tcpmux_local_port(const struct zc_tcpmux_conn *c)
{
    return c->tcp.ends.local_port;
}

enum zc_tcp_state zc_tcpmux_state(const struct zc_tcpmux_conn *c)
{
    return c->tcp.state;
}

/* ---- all connections with one remote ---- */

void zc_tcpmux_nudge(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote)
{
    struct zc_tcpmux_remote *r = zc_tcpmux_find_remote(m, remote);
    if (r == NULL)
        return;
    for (struct zc_list *l = r->conns.next; l != &r->conns; l = l->next) {
        struct zc_tcpmux_conn *c = ZC_CONTAINER(l, struct zc_tcpmux_conn, in_remote);
        zc_tcp_nudge(&c->tcp, now.mono);
        zc_tcpmux_settle(m, c); /* a nudge ends none */
    }
}

void zc_tcpmux_probe(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, struct zc_mono since)
{
    struct zc_tcpmux_remote *r = zc_tcpmux_find_remote(m, remote);
    if (r == NULL)
        return;
    for (struct zc_list *l = r->conns.next; l != &r->conns; l = l->next) {
        struct zc_tcpmux_conn *c = ZC_CONTAINER(l, struct zc_tcpmux_conn, in_remote);
        zc_tcp_probe(&c->tcp, since);
        zc_tcpmux_settle(m, c); /* a probe ends none */
    }
}

void zc_tcpmux_forget(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote)
{
    struct zc_tcpmux_remote *r;
    (void)now;
    /* Each turn ends one; the remote goes with the last. */
    while ((r = zc_tcpmux_find_remote(m, remote)) != NULL)
        end(m, ZC_CONTAINER(r->conns.next, struct zc_tcpmux_conn, in_remote), ZC_TCP_TIMEOUT);
}

size_t zc_tcpmux_expel(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, uint8_t *buf,
                       size_t cap)
{
    struct zc_tcpmux_remote *r;
    while ((r = zc_tcpmux_find_remote(m, remote)) != NULL) {
        struct zc_tcpmux_conn *c = ZC_CONTAINER(r->conns.next, struct zc_tcpmux_conn, in_remote);
        struct zc_tcp_segment reset;
        bool owed = zc_tcp_abort(&c->tcp, ZC_TCP_ABORTED, &reset);
        zc_tcpmux_settle(m, c);
        if (owed)
            return zc_tcp_segment_write(&reset, zc_slice(NULL, 0), &m->config.local, remote, buf,
                                        cap);
    }
    return 0;
}
