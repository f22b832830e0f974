/* The peers of a tunnel's end: who they are, whether they are there; see tunnel.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/tunnel_priv.h"

/* The round trip time is measured after a handshake, at most so often. */
#define PING_EVERY_MS 30000
/* The first probe may be lost: again after 1, 3, 7, 15 and 31 s. */
#define PROBE_FIRST_MS 1000
#define PROBES_MAX 5
/* For resets to a peer that is shut out. */
#define LEAVE_MS 1000

static const uint8_t peer_prefix[6] = {0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0};

static uint64_t addr_hash(const struct zc_tunnel *t, const struct zc_ip6_addr *addr)
{
    return zc_map_hash(t->hash_key, zc_slice(addr->b, sizeof(addr->b)));
}

void zc_tunnel_peer_address(const struct zc_key *key, struct zc_ip6_addr *ret_addr)
{
    memcpy(ret_addr->b, peer_prefix, sizeof(peer_prefix));
    memcpy(ret_addr->b + sizeof(peer_prefix), key->b, sizeof(ret_addr->b) - sizeof(peer_prefix));
}

struct zc_tunnel_peer *zc_tunnel_peer_at(const struct zc_tunnel *t, const struct zc_ip6_addr *addr)
{
    if (t->by_addr.len == 0)
        return NULL;
    struct zc_map_node *n = zc_map_first(&t->by_addr, addr_hash(t, addr));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(n, struct zc_tunnel_peer, by_addr);
        if (zc_ip6_addr_eq(&p->addr, addr))
            return p;
    }
    return NULL;
}

struct zc_tunnel_peer *zc_tunnel_peer_find(const struct zc_tunnel *t, const struct zc_key *key)
{
    struct zc_wgpeer *wg = zc_wg_find(&t->wg, key);
    return wg != NULL ? zc_wg_peer_data(wg) : NULL;
}

static void peer_free(struct zc_tunnel_peer *p)
{
    zc_disco_peer_done(&p->disco);
    free(p);
}

int zc_tunnel_peer_add(struct zc_tunnel *t, struct zc_now now, const struct zc_key *key,
                       const struct zc_key *disco_key, struct zc_tunnel_peer **ret_peer)
{
    struct zc_ip6_addr addr;
    zc_tunnel_peer_address(key, &addr);
    if (zc_tunnel_peer_at(t, &addr) != NULL)
        return ZC_EEXIST;
    struct zc_tunnel_peer *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return ZC_ENOMEM;
    p->key = *key;
    p->disco_key = *disco_key;
    p->addr = addr;
    p->rtt_us = -1;
    p->heard_at = now.mono;
    p->pinged_at = (struct zc_mono){now.mono.ns - PING_EVERY_MS * ZC_NS_PER_MS};
    struct zc_wg_peer_config config = {
        .public = *key, .psk = t->has_psk ? &t->psk : NULL, .data = p};
    memcpy(config.address, addr.b, sizeof(addr.b));
    int err = zc_wg_add(&t->wg, &config, &p->wg);
    if (err != 0)
        goto fail;
    err = zc_map_insert(&t->by_addr, &p->by_addr, addr_hash(t, &addr));
    if (err != 0) {
        zc_wg_remove(&t->wg, p->wg);
        goto fail;
    }
    zc_list_push(&t->peers, &p->all);
    t->peers_count++;
    *ret_peer = p;
    return 0;
fail:
    peer_free(p);
    return err;
}

void zc_tunnel_peer_forget(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p)
{
    zc_tcpmux_forget(t->mux, now, &p->addr);
    zc_wg_remove(&t->wg, p->wg);
    zc_map_remove(&t->by_addr, &p->by_addr);
    zc_list_remove(&p->all);
    zc_list_remove(&p->owed);
    zc_list_remove(&p->told);
    zc_list_remove(&p->probing);
    t->peers_count -= p->leaving ? 0 : 1;
    t->cursor = NULL;
    peer_free(p);
}

/* ---- leaving ---- */

void zc_tunnel_peer_leave(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p)
{
    struct zc_wg_stats wg;
    zc_wg_peer_stats(p->wg, now, &wg);
    if (!t->online || !wg.have_session) {
        zc_tunnel_peer_forget(t, now, p);
        return;
    }
    p->leaving = true;
    p->up = false;
    p->leave_till = zc_mono_add_ms(now.mono, LEAVE_MS);
    t->peers_count--;
    t->cursor = NULL;
    zc_list_remove(&p->owed);
    zc_list_remove(&p->probing);
    zc_list_remove(&p->all);
    zc_list_push(&t->leaving, &p->all);
    zc_list_remove(&p->told);
    zc_list_push(&t->parting, &p->told);
}

bool zc_tunnel_peer_part(struct zc_tunnel *t, struct zc_now now)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    struct zc_list *first;
    while ((first = zc_list_first(&t->parting)) != NULL) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(first, struct zc_tunnel_peer, told);
        size_t len = zc_tcpmux_expel(t->mux, &p->addr, buf + ZC_WG_HEADER, ZC_IP6_MTU);
        if (len == 0) {
            zc_list_remove(first);
            continue;
        }
        len = zc_wg_send(&t->wg, now, p->wg, buf, len);
        if (len > 0)
            zc_tunnel_relay_send(t, now, &p->key, buf, len);
        return true;
    }
    return false;
}

struct zc_mono zc_tunnel_peer_leave_at(const struct zc_tunnel *t)
{
    const struct zc_list *l = zc_list_first(&t->leaving);
    return l != NULL ? ZC_CONTAINER(l, struct zc_tunnel_peer, all)->leave_till : ZC_NEVER;
}

void zc_tunnel_peer_left(struct zc_tunnel *t, struct zc_now now)
{
    while (zc_tunnel_peer_leave_at(t).ns <= now.mono.ns)
        zc_tunnel_peer_forget(t, now, ZC_CONTAINER(t->leaving.next, struct zc_tunnel_peer, all));
}

/* ---- up and down ---- */

static void tell(struct zc_tunnel *t, struct zc_tunnel_peer *p)
{
    if (!zc_list_linked(&p->told))
        zc_list_push(&t->told, &p->told);
}

static bool disco_ready(struct zc_tunnel *t, struct zc_tunnel_peer *p)
{
    if (!p->has_disco)
        p->has_disco =
            zc_disco_peer_init(&p->disco, &t->disco_private, &t->disco_key, &p->disco_key) == 0;
    return p->has_disco;
}

/* Asks for a pong, to know the round trip time. */
static void ping(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p)
{
    uint8_t payload[ZC_DISCO_PACKET_MAX], packet[ZC_DISCO_PING_LEN + ZC_DISCO_OVERHEAD];
    struct zc_disco_msg msg = {
        .type = ZC_DISCO_PING, .has_node_key = true, .node_key = t->node_key};
    if (zc_mono_diff_ms(p->pinged_at, now.mono) < PING_EVERY_MS || !disco_ready(t, p) ||
        zc_derp_room(t->derp) == 0)
        return;
    zc_rng_bytes(t->rng, p->txid, sizeof(p->txid));
    memcpy(msg.txid, p->txid, sizeof(msg.txid));
    size_t len = zc_disco_encode(&msg, payload);
    len = zc_disco_seal(&p->disco, t->rng, zc_slice(payload, len), packet, sizeof(packet));
    p->pinging = len > 0 && zc_derp_send(t->derp, now, &p->key, zc_slice(packet, len));
    p->pinged_at = now.mono;
}

/* Connections that the peer has forgotten are to learn it; those that are idle need to be asked. */
static void start_probes(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p)
{
    p->up_at = now.mono;
    p->probes = 0;
    p->probe_at = zc_mono_add_ms(now.mono, PROBE_FIRST_MS);
    zc_list_remove(&p->probing);
    zc_list_push(&t->probing, &p->probing);
    t->probe_at = zc_mono_min(t->probe_at, p->probe_at);
}

void zc_tunnel_peer_is_up(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p,
                          bool doubt)
{
    p->heard_at = now.mono;
    ping(t, now, p);
    if (!p->up || doubt)
        start_probes(t, now, p);
    if (p->up)
        return;
    /* What was under way before is lost: nothing waits for its time. */
    zc_tcpmux_nudge(t->mux, now, &p->addr);
    p->up = true;
    p->up_due = true;
    tell(t, p);
}

void zc_tunnel_peer_probe(struct zc_tunnel *t, struct zc_now now)
{
    if (now.mono.ns < t->probe_at.ns)
        return;
    t->probe_at = ZC_NEVER;
    for (struct zc_list *l = t->probing.next, *next; l != &t->probing; l = next) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(l, struct zc_tunnel_peer, probing);
        next = l->next;
        if (p->probe_at.ns <= now.mono.ns) {
            zc_tcpmux_probe(t->mux, &p->addr, p->up_at);
            p->probe_at = zc_mono_add_ms(now.mono, PROBE_FIRST_MS << ++p->probes);
        }
        if (p->probes == PROBES_MAX)
            zc_list_remove(l);
        else
            t->probe_at = zc_mono_min(t->probe_at, p->probe_at);
    }
}

void zc_tunnel_peer_is_down(struct zc_tunnel *t, struct zc_tunnel_peer *p, const char *why)
{
    if (!p->up)
        return;
    p->up = false;
    if (p->up_due) {
        p->up_due = false; /* it was never told */
        return;
    }
    p->down_due = true;
    p->why = why;
    tell(t, p);
}

void zc_tunnel_peer_psk_wrong(struct zc_tunnel *t, struct zc_tunnel_peer *p)
{
    p->psk_due = true;
    tell(t, p);
}

void zc_tunnel_peer_twin(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p,
                         bool ours)
{
    if (!ours) {
        p->twin_due = true;
        tell(t, p);
        return;
    }
    /* All peers may meet it; it is one episode. */
    if (!t->twin_told || zc_mono_diff_ms(t->twin_at, now.mono) >= ZC_TWIN_OVER_MS)
        t->twin_due = t->twin_told = true;
    t->twin_at = now.mono;
}

void zc_tunnel_peer_disco(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_peer *p,
                          struct zc_slice packet)
{
    uint8_t answer[ZC_DISCO_PONG_LEN + ZC_DISCO_OVERHEAD];
    struct zc_disco_msg msg;
    if (!disco_ready(t, p))
        return;
    size_t len = zc_disco_answer(&p->disco, t->rng, t->region_id, packet, answer, sizeof(answer));
    if (len > 0) {
        if (zc_derp_room(t->derp) > 0)
            zc_derp_send(t->derp, now, &p->key, zc_slice(answer, len));
        return;
    }
    if (!p->pinging || !zc_disco_open(&p->disco, packet, &msg) || msg.type != ZC_DISCO_PONG ||
        memcmp(msg.txid, p->txid, sizeof(p->txid)) != 0)
        return;
    p->pinging = false;
    p->rtt_us = (now.mono.ns - p->pinged_at.ns) / 1000;
}
