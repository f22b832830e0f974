/* Bus sessions of spokes: TCP connections of the tunnel and sessions of the broker, tied together.
 *
 *   ACCEPTED --> open --session over--> lingering --FIN, reset or 5 s--> gone
 *
 * As with a socket, the last frame must reach a peer that still sends: the write side is shut and
 * what comes is thrown away for a moment. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "node/hub_tunnel.h"

#define READ_BYTES 16384
#define READS_PER_TURN 16
#define SLICES 32
#define LINGER_MS 5000

static struct zc_tcpmux *mux(const struct zc_hub_tunnel *net)
{
    return zc_tunnel_mux(net->t);
}

/* "[fd7a:…]:port" as RFC 5952 wants it. */
static void address_text(const struct zc_ip6_addr *a, uint16_t port, char *out, size_t cap)
{
    unsigned groups[8], best = 8, best_len = 1, n = 0;
    for (unsigned i = 0; i < 8; i++)
        groups[i] = (unsigned)a->b[2 * i] << 8 | a->b[2 * i + 1];
    for (unsigned i = 0, len; i < 8; i += len + 1) {
        for (len = 0; i + len < 8 && groups[i + len] == 0;)
            len++;
        if (len > best_len) {
            best = i;
            best_len = len;
        }
    }
    n += (unsigned)snprintf(out, cap, "[");
    for (unsigned i = 0; i < 8; i++) {
        if (i == best) {
            n += (unsigned)snprintf(out + n, cap - n, "::");
            i += best_len - 1;
            continue;
        }
        bool first = i == 0 || i == best + best_len;
        n += (unsigned)snprintf(out + n, cap - n, first ? "%x" : ":%x", groups[i]);
    }
    snprintf(out + n, cap - n, "]:%u", (unsigned)port);
}

static void bus_free(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus)
{
    zc_tcpmux_release(mux(net), now, bus->conn);
    zc_list_remove(&bus->all);
    zc_list_remove(&bus->ready);
    free(bus);
}

void zc_hub_bus_accept(struct zc_hub_tunnel *net, struct zc_now now, struct zc_tcpmux_conn *conn,
                       const struct zc_key *key)
{
    char identity[ZC_SECRET_TEXT_MAX], name[64];
    struct zc_hub_bus *bus = net->hub->stopping ? NULL : calloc(1, sizeof(*bus));
    if (bus != NULL) {
        zc_secret_encode(ZC_SECRET_NODE_KEY, key->b, identity);
        address_text(zc_tcpmux_remote(conn), zc_tcpmux_remote_port(conn), name, sizeof(name));
        struct zc_peer peer = {.identity = identity, .name = name};
        bus->session = zc_hub_attach(net->hub, now, &peer, bus);
    }
    if (bus == NULL || bus->session == NULL) {
        free(bus);
        zc_tcpmux_abort(mux(net), now, conn);
        zc_tcpmux_release(mux(net), now, conn);
        return;
    }
    bus->end = ZC_HUB_END_BUS;
    bus->conn = conn;
    zc_broker_make_inner(net->hub->broker, bus->session);
    bus->linger_till = ZC_NEVER;
    zc_tcpmux_set_owner(conn, bus);
    zc_list_push(&net->buses, &bus->all);
}

/* Moves bytes out of the connection; 0: none are there. */
static size_t take(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus,
                   uint8_t buf[READ_BYTES])
{
    struct zc_slice s[2];
    size_t n = zc_tcpmux_readable(bus->conn, s), len = 0;
    for (size_t i = 0; i < n; i++) {
        size_t part = s[i].len < READ_BYTES - len ? s[i].len : READ_BYTES - len;
        memcpy(buf + len, s[i].data, part);
        len += part;
    }
    if (len > 0)
        zc_tcpmux_consume(mux(net), now, bus->conn, len);
    return len;
}

static bool readable(const struct zc_hub_bus *bus)
{
    struct zc_slice s[2];
    return zc_tcpmux_readable(bus->conn, s) > 0;
}

static bool wants_input(const struct zc_hub_tunnel *net, const struct zc_hub_bus *bus)
{
    return bus->session == NULL || zc_hub_wants_input(net->hub, bus->session);
}

static void feed(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus)
{
    uint8_t buf[READ_BYTES];
    size_t n = 0;
    for (int i = 0; i < READS_PER_TURN && wants_input(net, bus); i++) {
        n = take(net, now, bus, buf);
        if (n == 0)
            break;
        if (bus->session != NULL)
            zc_hub_input(net->hub, bus->session, now, buf, n);
    }
    if (readable(bus)) {
        if (wants_input(net, bus) && !zc_list_linked(&bus->ready))
            zc_list_push(&net->buses_ready, &bus->ready);
    } else if (bus->fin && !bus->eof && bus->session != NULL) {
        bus->eof = true;
        zc_hub_eof(net->hub, bus->session, now);
    }
}

/* Gives the session's output to the connection, as much as that takes. */
static void drain(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus)
{
    struct zc_slice slices[SLICES];
    bool full = false;
    while (!full) {
        size_t n = 0, total = 0;
        zc_hub_output(net->hub, bus->session, slices, SLICES, &n);
        for (size_t i = 0; i < n && !full; i++) {
            size_t took = zc_tcpmux_write(mux(net), now, bus->conn, slices[i]);
            full = took < slices[i].len;
            total += took;
        }
        if (total == 0)
            return;
        zc_hub_sent(net->hub, bus->session, now, total);
    }
}

void zc_hub_bus_session(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus,
                        bool close)
{
    if (!close) {
        drain(net, now, bus);
        feed(net, now, bus);
        return;
    }
    bool killed = bus->session->state == ZC_SESSION_CLOSED;
    zc_hub_detach(net->hub, bus->session, now);
    bus->session = NULL;
    if (killed)
        zc_tcpmux_abort(mux(net), now, bus->conn);
    else
        zc_tcpmux_shutdown(mux(net), now, bus->conn);
    feed(net, now, bus);
    if (killed || bus->fin) {
        bus_free(net, now, bus);
        return;
    }
    bus->linger_till = zc_mono_add_ms(now.mono, LINGER_MS);
    zc_list_remove(&bus->all);
    zc_list_push(&net->buses_over, &bus->all);
}

void zc_hub_bus_event(struct zc_hub_tunnel *net, struct zc_now now, struct zc_hub_bus *bus,
                      const struct zc_tcpmux_event *ev)
{
    switch (ev->kind) {
    case ZC_TCPMUX_READABLE:
        feed(net, now, bus);
        break;
    case ZC_TCPMUX_WRITABLE:
        if (bus->session != NULL)
            drain(net, now, bus);
        break;
    case ZC_TCPMUX_PEER_FIN:
        bus->fin = true;
        feed(net, now, bus);
        if (bus->session == NULL)
            bus_free(net, now, bus);
        break;
    case ZC_TCPMUX_CLOSED:
        if (bus->session != NULL)
            zc_hub_detach(net->hub, bus->session, now);
        bus_free(net, now, bus);
        break;
    default:
        break;
    }
}

void zc_hub_bus_run(struct zc_hub_tunnel *net, struct zc_now now)
{
    struct zc_list *last = net->buses_ready.prev, *l;
    if (zc_list_empty(&net->buses_ready))
        return;
    /* What is not done after its turn comes again in the next call. */
    do {
        l = zc_list_first(&net->buses_ready);
        zc_list_remove(l);
        feed(net, now, ZC_CONTAINER(l, struct zc_hub_bus, ready));
    } while (l != last);
}

/* They all linger equally long: the first is the next. */
struct zc_mono zc_hub_bus_deadline(const struct zc_hub_tunnel *net)
{
    const struct zc_list *l = zc_list_first(&net->buses_over);
    return l != NULL ? ZC_CONTAINER(l, struct zc_hub_bus, all)->linger_till : ZC_NEVER;
}

void zc_hub_bus_tick(struct zc_hub_tunnel *net, struct zc_now now)
{
    while (zc_hub_bus_deadline(net).ns <= now.mono.ns)
        bus_free(net, now, ZC_CONTAINER(net->buses_over.next, struct zc_hub_bus, all));
}

bool zc_hub_bus_quiet(const struct zc_hub_tunnel *net)
{
    if (!zc_list_empty(&net->buses))
        return false;
    for (const struct zc_list *l = net->buses_over.next; l != &net->buses_over; l = l->next) {
        enum zc_tcp_state st = zc_tcpmux_state(ZC_CONTAINER(l, struct zc_hub_bus, all)->conn);
        if (st != ZC_TCP_FIN_WAIT_2 && st != ZC_TCP_TIME_WAIT && st != ZC_TCP_CLOSED)
            return false;
    }
    return true;
}

static void list_free(struct zc_list *buses)
{
    struct zc_list *l;
    while ((l = zc_list_first(buses)) != NULL) {
        zc_list_remove(l);
        free(ZC_CONTAINER(l, struct zc_hub_bus, all));
    }
}

void zc_hub_bus_done(struct zc_hub_tunnel *net)
{
    list_free(&net->buses);
    list_free(&net->buses_over);
}
