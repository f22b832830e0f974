/* The server's side of meow: who may become a client, and who is forgotten; see tunnel.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/tunnel_priv.h"

#define SWEEP_MS 30000
/* A full house: somebody who never finished a handshake in this time makes room. */
#define STRANGER_MS 5000

static int key_cmp(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct zc_key));
}

static bool allowed(const struct zc_tunnel *t, const struct zc_key *key)
{
    uint32_t first = 0, end = t->allow_count;
    if (!t->allow_on)
        return true;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        int order = key_cmp(key, &t->allow[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            end = middle;
        else
            first = middle + 1;
    }
    return false;
}

static struct zc_wg_stats wg_stats(const struct zc_tunnel_peer *p, struct zc_now now)
{
    struct zc_wg_stats stats;
    zc_wg_peer_stats(p->wg, now, &stats);
    return stats;
}

/* The client that is missed least: one that never proved itself, else one without a session. */
static struct zc_tunnel_peer *least_wanted(struct zc_tunnel *t, struct zc_now now)
{
    struct zc_tunnel_peer *idle = NULL;
    for (struct zc_list *l = t->peers.next; l != &t->peers; l = l->next) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(l, struct zc_tunnel_peer, all);
        struct zc_wg_stats stats = wg_stats(p, now);
        if (!stats.have_handshake && zc_mono_diff_ms(p->heard_at, now.mono) >= STRANGER_MS)
            return p;
        if (stats.have_handshake && !stats.have_session &&
            (idle == NULL || p->heard_at.ns < idle->heard_at.ns))
            idle = p;
    }
    return idle;
}

static struct zc_tunnel_peer *newcomer(struct zc_tunnel *t, struct zc_now now,
                                       const struct zc_key *key, const struct zc_key *disco_key)
{
    struct zc_tunnel_peer *p = NULL;
    if (!zc_rate_allow(&t->newcomers, now.mono))
        return NULL;
    if (t->peers_count >= t->clients_max) {
        p = least_wanted(t, now);
        if (p == NULL)
            return NULL;
        zc_tunnel_peer_forget(t, now, p);
    }
    if (zc_tunnel_peer_add(t, now, key, disco_key, &p) != 0)
        return NULL;
    t->sweep_at = zc_mono_min(t->sweep_at, zc_mono_add_ms(now.mono, SWEEP_MS));
    return p;
}

void zc_tunnel_server_meow(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from,
                           const struct zc_meow *meow)
{
    struct zc_tunnel_peer *p = NULL;
    bool is_allowed = allowed(t, from), same = zc_secret_key_equal(from, &meow->node_key);
    if (!is_allowed && same)
        zc_refused_note(&t->strangers, now.mono, from);
    if (is_allowed && same) {
        p = zc_tunnel_peer_find(t, from);
        if (p != NULL && p->leaving) {
            zc_tunnel_peer_forget(t, now, p); /* it knows, and comes again */
            p = NULL;
        }
        if (p == NULL)
            p = newcomer(t, now, from, &meow->disco_key);
        if (p == NULL && t->peers_count >= t->clients_max)
            zc_refused_note(&t->strangers, now.mono, from);
    }
    if (p == NULL) {
        t->refused++;
        return;
    }
    /* A meow proves nothing: it keeps no peer from being forgotten. */
    if (!zc_list_linked(&p->owed))
        zc_list_push(&t->owed, &p->owed);
    p->came_back = true;
}

void zc_tunnel_server_sweep(struct zc_tunnel *t, struct zc_now now)
{
    if (now.mono.ns < t->sweep_at.ns)
        return;
    t->sweep_at = t->peers_count > 0 ? zc_mono_add_ms(now.mono, SWEEP_MS) : ZC_NEVER;
    for (struct zc_list *l = t->peers.next, *next; l != &t->peers; l = next) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(l, struct zc_tunnel_peer, all);
        next = l->next;
        if (zc_mono_diff_ms(p->heard_at, now.mono) >= ZC_TUNNEL_IDLE_MS &&
            !wg_stats(p, now).have_session)
            zc_tunnel_peer_forget(t, now, p);
    }
}

int zc_tunnel_set_allow(struct zc_tunnel *t, struct zc_now now, bool on, const struct zc_key *allow,
                        uint32_t count)
{
    struct zc_key *copy = NULL;
    if (count > 0) {
        copy = malloc(count * sizeof(*copy));
        if (copy == NULL)
            return ZC_ENOMEM;
        memcpy(copy, allow, count * sizeof(*copy));
        qsort(copy, count, sizeof(*copy), key_cmp);
    }
    free(t->allow);
    t->allow = copy;
    t->allow_count = count;
    t->allow_on = on;
    for (struct zc_list *l = t->peers.next, *next; l != &t->peers; l = next) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(l, struct zc_tunnel_peer, all);
        next = l->next;
        if (!allowed(t, &p->key))
            zc_tunnel_peer_leave(t, now, p);
    }
    return 0;
}

bool zc_tunnel_refused(struct zc_tunnel *t, struct zc_key *ret_key)
{
    return zc_refused_next(&t->strangers, ret_key);
}

void zc_tunnel_set_psk(struct zc_tunnel *t, struct zc_now now, const struct zc_secret *psk)
{
    ZC_ASSERT(t->role == ZC_TUNNEL_SERVER);
    while (!zc_list_empty(&t->peers))
        zc_tunnel_peer_leave(t, now, ZC_CONTAINER(t->peers.next, struct zc_tunnel_peer, all));
    t->has_psk = psk != NULL;
    if (psk != NULL)
        t->psk = *psk;
}
