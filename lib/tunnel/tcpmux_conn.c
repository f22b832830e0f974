/* Connections of the demultiplexer: where they are listed, counted and freed. */
#include <stdlib.h>

#include "base/check.h"
#include "tunnel/tcpmux_priv.h"

/* ---- finding ---- */

static uint64_t hash_ends(const struct zc_tcpmux *m, const struct zc_ip6_addr *remote,
                          uint16_t remote_port, uint16_t local_port)
{
    uint8_t key[20];
    memcpy(key, remote->b, 16);
    memcpy(key + 16, &remote_port, 2);
    memcpy(key + 18, &local_port, 2);
    return zc_map_hash(m->key, zc_slice(key, sizeof(key)));
}

struct zc_tcpmux_conn *zc_tcpmux_find(const struct zc_tcpmux *m, const struct zc_ip6_addr *remote,
                                      uint16_t remote_port, uint16_t local_port)
{
    uint64_t hash = hash_ends(m, remote, remote_port, local_port);
    for (struct zc_map_node *n = zc_map_first(&m->conns_by_ends, hash); n; n = zc_map_next(n)) {
        struct zc_tcpmux_conn *c = ZC_CONTAINER(n, struct zc_tcpmux_conn, node);
        const struct zc_tcp_ends *e = &c->tcp.ends;
        if (e->remote_port == remote_port && e->local_port == local_port &&
            zc_ip6_addr_eq(&e->remote, remote))
            return c;
    }
    return NULL;
}

struct zc_tcpmux_remote *zc_tcpmux_find_remote(const struct zc_tcpmux *m,
                                               const struct zc_ip6_addr *addr)
{
    uint64_t hash = zc_map_hash(m->key, zc_slice(addr->b, sizeof(addr->b)));
    for (struct zc_map_node *n = zc_map_first(&m->remotes, hash); n; n = zc_map_next(n)) {
        struct zc_tcpmux_remote *r = ZC_CONTAINER(n, struct zc_tcpmux_remote, node);
        if (zc_ip6_addr_eq(&r->addr, addr))
            return r;
    }
    return NULL;
}

/* ---- coming ---- */

static struct zc_tcpmux_remote *get_remote(struct zc_tcpmux *m, const struct zc_ip6_addr *addr)
{
    struct zc_tcpmux_remote *r = zc_tcpmux_find_remote(m, addr);
    if (r != NULL)
        return r;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->addr = *addr;
    zc_list_init(&r->conns);
    zc_list_init(&r->ready_conns);
    uint64_t hash = zc_map_hash(m->key, zc_slice(addr->b, sizeof(addr->b)));
    if (zc_map_insert(&m->remotes, &r->node, hash) != 0) {
        free(r);
        return NULL;
    }
    return r;
}

static void put_remote(struct zc_tcpmux *m, struct zc_tcpmux_remote *r)
{
    if (r->conn_count > 0)
        return;
    zc_list_remove(&r->ready);
    zc_map_remove(&m->remotes, &r->node);
    free(r);
}

/* Makes room by ending the oldest TIME-WAIT that nobody holds. */
static bool make_room(struct zc_tcpmux *m)
{
    if (m->stats.conns < m->config.conns_max)
        return true;
    for (struct zc_list *l = m->time_wait.next; l != &m->time_wait; l = l->next) {
        struct zc_tcpmux_conn *c = ZC_CONTAINER(l, struct zc_tcpmux_conn, time_wait);
        if (!c->held) {
            zc_tcpmux_drop(m, c);
            return true;
        }
    }
    return false;
}

int zc_tcpmux_add(struct zc_tcpmux *m, const struct zc_tcp_ends *ends,
                  struct zc_tcpmux_conn **ret_conn)
{
    if (!make_room(m))
        return ZC_ELIMIT;
    struct zc_tcpmux_conn *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return ZC_ENOMEM;
    c->remote = get_remote(m, &ends->remote);
    if (c->remote == NULL)
        goto no_remote;
    /* In the heap from now on, so that no later change of the deadline can fail. */
    if (zc_heap_set(&m->timers, &c->timer, ZC_NEVER) != 0)
        goto no_timer;
    uint64_t hash = hash_ends(m, &ends->remote, ends->remote_port, ends->local_port);
    if (zc_map_insert(&m->conns_by_ends, &c->node, hash) != 0)
        goto no_map;
    c->tcp.ends = *ends;
    c->remote->conn_count++;
    zc_list_push(&c->remote->conns, &c->in_remote);
    m->stats.conns++;
    *ret_conn = c;
    return 0;

no_map:
    zc_heap_remove(&m->timers, &c->timer);
no_timer:
    put_remote(m, c->remote);
no_remote:
    free(c);
    return ZC_ENOMEM;
}

/* ---- going ---- */

static void count_half_open(struct zc_tcpmux *m, struct zc_tcpmux_conn *c, bool half_open)
{
    if (half_open == c->half_open)
        return;
    c->half_open = half_open;
    m->stats.half_open += half_open ? 1 : -1U;
    c->remote->half_open += half_open ? 1 : -1U;
}

static void leave_time_wait(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    if (!zc_list_linked(&c->time_wait))
        return;
    zc_list_remove(&c->time_wait);
    m->stats.time_wait--;
}

/* Nothing comes or goes for it any more; only its holder knows it. */
static void detach(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    if (c->remote == NULL)
        return;
    count_half_open(m, c, false);
    leave_time_wait(m, c);
    zc_list_remove(&c->ready);
    zc_heap_remove(&m->timers, &c->timer);
    zc_map_remove(&m->conns_by_ends, &c->node);
    zc_list_remove(&c->in_remote);
    zc_list_push(&m->closed, &c->in_remote);
    if (zc_list_empty(&c->remote->ready_conns))
        zc_list_remove(&c->remote->ready);
    c->remote->conn_count--;
    put_remote(m, c->remote);
    c->remote = NULL;
}

void zc_tcpmux_drop(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    detach(m, c);
    zc_list_remove(&c->in_remote);
    zc_list_remove(&c->events);
    zc_tcp_done(&c->tcp);
    m->stats.conns--;
    free(c);
}

static void make_ready(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    if (!zc_list_linked(&c->ready))
        zc_list_push(&c->remote->ready_conns, &c->ready);
    if (!zc_list_linked(&c->remote->ready))
        zc_list_push(&m->ready, &c->remote->ready);
}

/* Early ticks do no harm, so a deadline that moves away stays until it comes. */
static void set_timer(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    struct zc_mono d = zc_tcp_deadline(&c->tcp);
    if (d.ns < c->timer.deadline.ns) {
        int err = zc_heap_set(&m->timers, &c->timer, d);
        ZC_ASSERT(err == 0);
    }
}

void zc_tcpmux_settle(struct zc_tcpmux *m, struct zc_tcpmux_conn *c)
{
    count_half_open(m, c, c->tcp.state == ZC_TCP_SYN_RECEIVED && c->tcp.passive);
    if (c->tcp.passive && (c->tcp.events & ZC_TCP_EVENT_OPENED) != 0)
        c->held = true;
    if (c->held && c->tcp.events != 0) {
        if (!zc_list_linked(&c->events))
            zc_list_push(&m->events, &c->events);
    }
    if (c->tcp.state == ZC_TCP_CLOSED) {
        if (c->held)
            detach(m, c);
        else
            zc_tcpmux_drop(m, c);
        return;
    }
    if (c->tcp.state == ZC_TCP_TIME_WAIT && !zc_list_linked(&c->time_wait)) {
        zc_list_push(&m->time_wait, &c->time_wait);
        m->stats.time_wait++;
    }
    make_ready(m, c);
    set_timer(m, c);
}
