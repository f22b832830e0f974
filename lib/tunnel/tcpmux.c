/* All TCP of one address: packets in and out, timers, limits; see tcpmux.h. */
#include "tunnel/tcpmux.h"

#include <stdlib.h>

#include "base/check.h"
#include "tunnel/icmp6.h"
#include "tunnel/tcp_priv.h"
#include "tunnel/tcpmux_priv.h"

void zc_tcpmux_config_init(struct zc_tcpmux_config *c, const struct zc_ip6_addr *local)
{
    *c = (struct zc_tcpmux_config){
        .local = *local,
        .conns_max = 8192,
        .half_open_max = 1024,
        .bytes_max = (size_t)256 << 20,
    };
    zc_tcp_config_init(&c->tcp);
}

int zc_tcpmux_new(const struct zc_tcpmux_config *c, struct zc_rng *rng, struct zc_tcpmux **ret_mux)
{
    if (c->conns_max == 0 || c->half_open_max == 0 || c->bytes_max == 0)
        return ZC_EINVAL;
    struct zc_tcpmux *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return ZC_ENOMEM;
    m->config = *c;
    m->budget.max = c->bytes_max;
    zc_rng_bytes(rng, m->key, sizeof(m->key));
    zc_rng_bytes(rng, m->secret, sizeof(m->secret));
    m->next_port = (uint16_t)(m->secret[0] << 8 | m->secret[1]);
    zc_list_init(&m->ready);
    zc_list_init(&m->events);
    zc_list_init(&m->time_wait);
    zc_list_init(&m->closed);
    *ret_mux = m;
    return 0;
}

void zc_tcpmux_free(struct zc_tcpmux *m)
{
    if (m == NULL)
        return;
    struct zc_timer *t;
    while ((t = zc_heap_min(&m->timers)) != NULL)
        zc_tcpmux_drop(m, ZC_CONTAINER(t, struct zc_tcpmux_conn, timer));
    struct zc_list *l;
    while ((l = zc_list_first(&m->closed)) != NULL)
        zc_tcpmux_drop(m, ZC_CONTAINER(l, struct zc_tcpmux_conn, in_remote));
    ZC_ASSERT(m->budget.used == 0);
    zc_heap_done(&m->timers);
    zc_map_done(&m->conns_by_ends);
    zc_map_done(&m->remotes);
    free(m);
}

/* ---- ports ---- */

static int add_ports(struct zc_tcpmux_ports *p, uint16_t first, uint16_t last)
{
    if (first > last)
        return ZC_EINVAL;
    if (p->count == ZC_TCPMUX_RANGES)
        return ZC_ELIMIT;
    p->at[p->count].first = first;
    p->at[p->count].last = last;
    p->count++;
    return 0;
}

static bool has_port(const struct zc_tcpmux_ports *p, uint16_t port)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (port >= p->at[i].first && port <= p->at[i].last)
            return true;
    }
    return false;
}

int zc_tcpmux_pass(struct zc_tcpmux *m, uint16_t first, uint16_t last)
{
    return add_ports(&m->pass, first, last);
}

int zc_tcpmux_listen(struct zc_tcpmux *m, uint16_t first, uint16_t last)
{
    return add_ports(&m->listen, first, last);
}

/* ---- numbers ---- */

void zc_tcpmux_numbers(const struct zc_tcpmux *m, struct zc_now now, const struct zc_tcp_ends *ends,
                       uint32_t *ret_iss, uint32_t *ret_offset)
{
    uint8_t key[36];
    memcpy(key, ends->local.b, 16);
    memcpy(key + 16, ends->remote.b, 16);
    memcpy(key + 32, &ends->local_port, 2);
    memcpy(key + 34, &ends->remote_port, 2);
    uint64_t hash = zc_map_hash(m->secret, zc_slice(key, sizeof(key)));
    /* A clock of 4 microseconds. */
    *ret_iss = (uint32_t)hash + (uint32_t)((uint64_t)now.mono.ns / 4000);
    *ret_offset = (uint32_t)(hash >> 32);
}

/* ---- in ---- */

void zc_tcpmux_queue_reset(struct zc_tcpmux *m, const struct zc_ip6_addr *remote,
                           const struct zc_tcp_segment *reset)
{
    if (m->reset_count < ZC_TCPMUX_RESETS)
        m->resets[m->reset_count++] = (struct zc_tcpmux_reset){*remote, *reset};
}

/* packet: that of ip, without what may lie behind it. */
static void input_icmp(struct zc_tcpmux *m, const struct zc_ip6 *ip, struct zc_slice packet)
{
    struct zc_icmp6 msg = zc_icmp6_parse(ip);
    if (msg.kind == ZC_ICMP6_BAD)
        m->stats.bad++;
    bool open = m->pass.count > 0 || m->listen.count > 0;
    if (msg.kind != ZC_ICMP6_ECHO_REQUEST || !open || m->echo_count == ZC_TCPMUX_ECHOES)
        return;
    struct zc_tcpmux_echo *e = &m->echoes[m->echo_count++];
    *e = (struct zc_tcpmux_echo){.remote = ip->src, .id = msg.id, .seq = msg.seq};
    e->too_big = packet.len > ZC_IP6_MTU;
    if (e->too_big) {
        e->len = (uint16_t)zc_icmp6_too_big(e->data, sizeof(e->data), &m->config.local, packet,
                                            ZC_IP6_MTU);
        return;
    }
    e->len = (uint16_t)msg.rest.len;
    memcpy(e->data, msg.rest.data, msg.rest.len);
}

/* One remote may use two thirds of a limit, so that it cannot shut the others out. */
static bool may_accept(const struct zc_tcpmux *m, const struct zc_ip6_addr *remote)
{
    if (m->stats.half_open >= m->config.half_open_max)
        return false;
    const struct zc_tcpmux_remote *r = zc_tcpmux_find_remote(m, remote);
    return r == NULL || ((uint64_t)r->half_open * 3 < (uint64_t)m->config.half_open_max * 2 &&
                         (uint64_t)r->conn_count * 3 < (uint64_t)m->config.conns_max * 2);
}

/* least: the initial sequence number comes after this one, for a connection that had these ends
 * before; NULL: there was none. */
static void accept_syn(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6 *ip,
                       const struct zc_tcp_segment *s, const uint32_t *least)
{
    struct zc_tcp_ends ends = {m->config.local, ip->src, s->dst_port, s->src_port};
    struct zc_tcpmux_conn *c;
    uint32_t iss, offset;
    if (!may_accept(m, &ip->src) || zc_tcpmux_add(m, &ends, &c) != 0) {
        m->stats.refused++;
        return;
    }
    zc_tcpmux_numbers(m, now, &ends, &iss, &offset);
    if (least != NULL)
        iss = zc_tcp_seq_max(iss, *least + 1);
    zc_tcp_accept(&c->tcp, &m->config.tcp, &m->budget, &ends, iss, offset, now.mono, s);
    zc_tcpmux_settle(m, c);
}

static void input_syn(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6 *ip,
                      const struct zc_tcp_segment *s, const uint32_t *least)
{
    if (has_port(&m->listen, s->dst_port)) {
        accept_syn(m, now, ip, s, least);
    } else if (has_port(&m->pass, s->dst_port)) {
        m->stats.refused++;
        struct zc_tcp_segment reset = zc_tcp_segment_reset(s);
        zc_tcpmux_queue_reset(m, &ip->src, &reset);
    } else {
        m->stats.filtered++;
    }
}

static bool is_syn(const struct zc_tcp_segment *s)
{
    return (s->flags & (ZC_TCP_SYN | ZC_TCP_ACK | ZC_TCP_RST | ZC_TCP_FIN)) == ZC_TCP_SYN;
}

static void input_stray(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6 *ip,
                        const struct zc_tcp_segment *s)
{
    if (is_syn(s)) {
        input_syn(m, now, ip, s, NULL);
        return;
    }
    m->stats.stray++;
    /* A SYN that is not quite one meets the filter too: silence. */
    bool odd_syn = (s->flags & ZC_TCP_SYN) != 0 && (s->flags & ZC_TCP_ACK) == 0;
    if ((s->flags & ZC_TCP_RST) != 0 || odd_syn)
        return;
    struct zc_tcp_segment reset = zc_tcp_segment_reset(s);
    zc_tcpmux_queue_reset(m, &ip->src, &reset);
}

/* A SYN that can be no old duplicate may take the place of a connection in TIME-WAIT (RFC 6191). */
static bool reuses(const struct zc_tcp *t, const struct zc_tcp_segment *s)
{
    if (t->state != ZC_TCP_TIME_WAIT || !is_syn(s))
        return false;
    if (t->in.stamp && s->has_stamp && s->stamp != t->in.stamp_recent)
        return zc_tcp_seq_lt(t->in.stamp_recent, s->stamp);
    return zc_tcp_seq_lt(t->in.nxt, s->seq);
}

static void input_tcp(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6 *ip)
{
    struct zc_tcp_segment s, reset;
    if (zc_tcp_segment_parse(ip, &s) != 0 || s.src_port == 0) {
        m->stats.bad++;
        return;
    }
    struct zc_tcpmux_conn *c = zc_tcpmux_find(m, &ip->src, s.src_port, s.dst_port);
    if (c == NULL) {
        input_stray(m, now, ip, &s);
        return;
    }
    if (reuses(&c->tcp, &s)) {
        uint32_t least = c->tcp.out.max;
        zc_tcp_close(&c->tcp, ZC_TCP_DONE);
        zc_tcpmux_settle(m, c);
        input_syn(m, now, ip, &s, &least);
        return;
    }
    if (zc_tcp_input(&c->tcp, now.mono, &s, &reset))
        zc_tcpmux_queue_reset(m, &ip->src, &reset);
    zc_tcpmux_settle(m, c);
}

void zc_tcpmux_input(struct zc_tcpmux *m, struct zc_now now, const uint8_t *packet, size_t len)
{
    struct zc_ip6 ip;
    m->stats.in++;
    if (zc_ip6_parse(packet, len, &ip) != 0 || !zc_ip6_addr_eq(&ip.dst, &m->config.local) ||
        !zc_ip6_addr_unicast(&ip.src) || zc_ip6_addr_eq(&ip.src, &m->config.local)) {
        m->stats.bad++;
        return;
    }
    if (ip.next == ZC_IP6_TCP)
        input_tcp(m, now, &ip);
    else if (ip.next == ZC_IP6_ICMP)
        input_icmp(m, &ip, zc_slice(packet, ZC_IP6_HEADER + ip.payload.len));
}

/* ---- time ---- */

void zc_tcpmux_tick(struct zc_tcpmux *m, struct zc_now now)
{
    /* Each at most once. */
    for (uint32_t left = m->timers.len; left > 0; left--) {
        struct zc_timer *t = zc_heap_min(&m->timers);
        if (t == NULL || t->deadline.ns > now.mono.ns)
            break;
        struct zc_tcpmux_conn *c = ZC_CONTAINER(t, struct zc_tcpmux_conn, timer);
        zc_tcp_tick(&c->tcp, now.mono);
        int err = zc_heap_set(&m->timers, t, ZC_NEVER);
        ZC_ASSERT(err == 0);
        zc_tcpmux_settle(m, c);
    }
}

struct zc_mono zc_tcpmux_deadline(const struct zc_tcpmux *m)
{
    const struct zc_timer *t = zc_heap_min(&m->timers);
    return t == NULL ? ZC_NEVER : t->deadline;
}

/* ---- out ---- */

static bool wanted(const struct zc_ip6_addr *remote, const struct zc_ip6_addr *addr)
{
    return remote == NULL || zc_ip6_addr_eq(remote, addr);
}

static size_t output_reset(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, uint8_t *buf,
                           size_t cap, struct zc_ip6_addr *ret_dst)
{
    for (uint32_t i = 0; i < m->reset_count; i++) {
        struct zc_tcpmux_reset r = m->resets[i];
        if (!wanted(remote, &r.remote))
            continue;
        m->reset_count--;
        memmove(&m->resets[i], &m->resets[i + 1], (m->reset_count - i) * sizeof(r));
        *ret_dst = r.remote;
        return zc_tcp_segment_write(&r.segment, zc_slice(NULL, 0), &m->config.local, &r.remote, buf,
                                    cap);
    }
    return 0;
}

static size_t output_echo(struct zc_tcpmux *m, const struct zc_ip6_addr *remote, uint8_t *buf,
                          size_t cap, struct zc_ip6_addr *ret_dst)
{
    for (uint32_t i = 0; i < m->echo_count; i++) {
        const struct zc_tcpmux_echo *e = &m->echoes[i];
        if (!wanted(remote, &e->remote))
            continue;
        *ret_dst = e->remote;
        size_t n = e->len;
        if (e->too_big)
            memcpy(buf, e->data, n);
        else
            n = zc_icmp6_echo(buf, cap, &m->config.local, &e->remote, true, e->id, e->seq,
                              zc_slice(e->data, e->len));
        m->echo_count--;
        memmove(&m->echoes[i], &m->echoes[i + 1], (m->echo_count - i) * sizeof(*e));
        return n;
    }
    return 0;
}

/* The next packet of r's connections, which take turns. */
static size_t output_remote(struct zc_tcpmux *m, struct zc_tcpmux_remote *r, struct zc_now now,
                            uint8_t *buf, size_t cap)
{
    struct zc_list *l;
    while ((l = zc_list_first(&r->ready_conns)) != NULL) {
        struct zc_tcpmux_conn *c = ZC_CONTAINER(l, struct zc_tcpmux_conn, ready);
        zc_list_remove(l);
        uint64_t before = c->tcp.out.retransmitted;
        size_t n = zc_tcp_output(&c->tcp, now.mono, buf, cap);
        m->stats.retransmitted += c->tcp.out.retransmitted - before;
        if (n > 0) {
            zc_tcpmux_settle(m, c);
            return n;
        }
    }
    zc_list_remove(&r->ready);
    return 0;
}

void zc_tcpmux_output(struct zc_tcpmux *m, struct zc_now now, const struct zc_ip6_addr *remote,
                      uint8_t *buf, size_t cap, size_t *ret_n, struct zc_ip6_addr *ret_dst)
{
    ZC_ASSERT(cap >= ZC_IP6_MTU);
    size_t n = output_reset(m, remote, buf, cap, ret_dst);
    if (n == 0)
        n = output_echo(m, remote, buf, cap, ret_dst);
    struct zc_tcpmux_remote *only = remote == NULL ? NULL : zc_tcpmux_find_remote(m, remote);
    struct zc_list *l;
    while (n == 0 && (l = zc_list_first(&m->ready)) != NULL) {
        struct zc_tcpmux_remote *r = ZC_CONTAINER(l, struct zc_tcpmux_remote, ready);
        if (remote != NULL && only == NULL)
            break;
        if (only != NULL)
            r = only;
        *ret_dst = r->addr;
        n = output_remote(m, r, now, buf, cap);
        if (n > 0 && zc_list_linked(&r->ready)) {
            zc_list_remove(&r->ready);
            zc_list_push(&m->ready, &r->ready);
        }
        if (only != NULL)
            break;
    }
    m->stats.out += n > 0;
    *ret_n = n;
}

struct zc_tcpmux_stats zc_tcpmux_stats(const struct zc_tcpmux *m)
{
    struct zc_tcpmux_stats s = m->stats;
    s.bytes = m->budget.used;
    return s;
}
