/* Peers, timers and events of a WireGuard device: see wg.h. */
#include "tunnel/wg.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/wgpeer.h"

void zc_wg_init(struct zc_wg *wg, const struct zc_secret *private, struct zc_rng *rng,
                uint32_t peers_max)
{
    memset(wg, 0, sizeof(*wg));
    zc_noise_self_init(&wg->self, private);
    wg->rng = rng;
    wg->peers_max = peers_max;
    zc_rng_bytes(rng, wg->hash_key, sizeof(wg->hash_key));
    zc_list_init(&wg->all);
    zc_list_init(&wg->dirty);
    zc_list_init(&wg->told);
}

void zc_wg_done(struct zc_wg *wg)
{
    while (zc_list_linked(&wg->all))
        zc_wg_remove(wg, ZC_CONTAINER(wg->all.next, struct zc_wgpeer, link));
    zc_map_done(&wg->peers);
    zc_map_done(&wg->indices);
    zc_heap_done(&wg->timers);
    zc_secret_wipe(wg, sizeof(*wg));
}

static uint64_t key_hash(const struct zc_wg *wg, const struct zc_key *public)
{
    return zc_map_hash(wg->hash_key, zc_slice(public->b, sizeof(public->b)));
}

struct zc_wgpeer *zc_wg_find(const struct zc_wg *wg, const struct zc_key *public)
{
    if (wg->peers.len == 0)
        return NULL;
    struct zc_map_node *n = zc_map_first(&wg->peers, key_hash(wg, public));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_wgpeer *p = ZC_CONTAINER(n, struct zc_wgpeer, node);
        if (zc_secret_key_equal(&p->noise.public, public))
            return p;
    }
    return NULL;
}

static void peer_fill(struct zc_wg *wg, struct zc_wgpeer *p, const struct zc_wg_peer_config *config)
{
    memcpy(p->address, config->address, sizeof(p->address));
    p->any_source = config->any_source;
    p->data = config->data;
    memcpy(p->stamp_sent, wg->stamps.floor, sizeof(p->stamp_sent));
    p->index.peer = p;
    p->retry_at = p->start_at = p->keepalive_at = p->renew_at = p->erase_at = ZC_NEVER;
    zc_list_init(&p->link);
    zc_list_init(&p->dirty);
    zc_list_init(&p->told);
    zc_list_init(&p->staged);
}

static void peer_free(struct zc_wgpeer *p)
{
    zc_secret_wipe(p, sizeof(*p));
    free(p);
}

int zc_wg_add(struct zc_wg *wg, const struct zc_wg_peer_config *config, struct zc_wgpeer **ret_peer)
{
    if (zc_secret_key_equal(&config->public, &wg->self.public))
        return ZC_EINVAL;
    if (zc_wg_find(wg, &config->public) != NULL)
        return ZC_EEXIST;
    if (wg->peers.len >= wg->peers_max)
        return ZC_ELIMIT;
    struct zc_wgpeer *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return ZC_ENOMEM;
    int err = ZC_EINVAL;
    if (zc_noise_peer_init(&p->noise, &wg->self, &config->public, config->psk) != 0)
        goto fail_peer;
    peer_fill(wg, p, config);
    err = zc_heap_set(&wg->timers, &p->timer, ZC_NEVER);
    if (err != 0)
        goto fail_peer;
    err = zc_map_insert(&wg->peers, &p->node, key_hash(wg, &config->public));
    if (err != 0)
        goto fail_timer;
    zc_list_push(&wg->all, &p->link);
    *ret_peer = p;
    return 0;
fail_timer:
    zc_heap_remove(&wg->timers, &p->timer);
fail_peer:
    peer_free(p);
    return err;
}

void zc_wg_remove(struct zc_wg *wg, struct zc_wgpeer *p)
{
    zc_stamps_keep(&wg->stamps, p->stamp_sent);
    if (wg->data_peer == p)
        wg->data_peer = NULL;
    zc_wgpeer_abandon(wg, p);
    zc_wgpeer_session_free(wg, p->previous);
    zc_wgpeer_session_free(wg, p->current);
    zc_wgpeer_session_free(wg, p->next);
    zc_wgpeer_flush(wg, p);
    zc_list_remove(&p->link);
    zc_list_remove(&p->dirty);
    zc_list_remove(&p->told);
    zc_heap_remove(&wg->timers, &p->timer);
    zc_map_remove(&wg->peers, &p->node);
    peer_free(p);
}

void *zc_wg_peer_data(const struct zc_wgpeer *peer)
{
    return peer->data;
}

const struct zc_key *zc_wg_peer_public(const struct zc_wgpeer *peer)
{
    return &peer->noise.public;
}

void zc_wg_peer_stats(const struct zc_wgpeer *peer, struct zc_now now,
                      struct zc_wg_stats *ret_stats)
{
    *ret_stats = (struct zc_wg_stats){
        .rx_bytes = peer->rx_bytes,
        .tx_bytes = peer->tx_bytes,
        .have_handshake = peer->have_handshake,
        .last_handshake = peer->last_handshake,
        .have_session = zc_wgpeer_alive(peer->current, now),
    };
}

void zc_wg_handshake(struct zc_wg *wg, struct zc_now now, struct zc_wgpeer *p)
{
    struct zc_mono start = zc_mono_add_ms(p->sent_at, ZC_WG_INITIATION_GAP_MS);
    p->tries = 0;
    if (p->initiation_due)
        return;
    p->retry_at = ZC_NEVER;
    p->start_at = p->sent ? start : now.mono;
    p->start_asked = true;
    zc_wgpeer_tick(wg, p, now);
}

void zc_wg_tick(struct zc_wg *wg, struct zc_now now)
{
    struct zc_timer *t;
    /* Whatever a peer does about its instants puts them after now, so this ends. */
    while ((t = zc_heap_min(&wg->timers)) != NULL && zc_wgpeer_due(t->deadline, now))
        zc_wgpeer_tick(wg, ZC_CONTAINER(t, struct zc_wgpeer, timer), now);
}

struct zc_mono zc_wg_deadline(const struct zc_wg *wg)
{
    struct zc_timer *t = zc_heap_min(&wg->timers);
    return t != NULL ? t->deadline : ZC_NEVER;
}

/* Takes one event of a peer. */
static bool take(struct zc_wgpeer *p, struct zc_wg_event *ev)
{
    const struct {
        bool *flag;
        enum zc_wg_event_kind kind;
    } events[] = {
        {&p->done, ZC_WG_HANDSHAKE_DONE},
        {&p->bad_response, ZC_WG_BAD_RESPONSE},
        {&p->unanswered, ZC_WG_UNANSWERED},
        {&p->gave_up, ZC_WG_GAVE_UP},
        {&p->erased, ZC_WG_ERASED},
        {&p->twin_of_peer, ZC_WG_TWIN_OF_PEER},
        {&p->twin_of_ours, ZC_WG_TWIN_OF_OURS},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(events); i++) {
        if (*events[i].flag) {
            *events[i].flag = false;
            *ev = (struct zc_wg_event){.kind = events[i].kind, .peer = p, .tries = p->tries};
            return true;
        }
    }
    return false;
}

bool zc_wg_event(struct zc_wg *wg, struct zc_wg_event *ret_event)
{
    struct zc_list *first;
    while ((first = zc_list_first(&wg->told)) != NULL) {
        struct zc_wgpeer *p = ZC_CONTAINER(first, struct zc_wgpeer, told);
        if (take(p, ret_event))
            return true;
        zc_list_remove(first);
    }
    if (wg->data_peer == NULL)
        return false;
    *ret_event =
        (struct zc_wg_event){.kind = ZC_WG_DATA, .peer = wg->data_peer, .packet = wg->data};
    wg->data_peer = NULL;
    return true;
}
