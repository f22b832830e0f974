/* One end of the tunnel: life, time, events and figures; see tunnel.h. */
#include "tunnel/tunnel.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crypto/discokey.h"
#include "crypto/x25519.h"
#include "tunnel/tunnel_priv.h"

/* New clients at once, and then a second. */
#define NEWCOMERS_BURST 512
#define NEWCOMERS_INTERVAL_MS 10

static void take_config(struct zc_tunnel *t, const struct zc_tunnel_config *c)
{
    t->role = c->role;
    t->private_key = *c->private_key;
    zc_x25519_public(&t->private_key, &t->node_key);
    zc_discokey_derive(&t->private_key, &t->disco_private, &t->disco_key);
    t->has_psk = c->psk != NULL;
    if (t->has_psk)
        t->psk = *c->psk;
    t->clients_max = c->clients_max;
    t->dial_till = t->sweep_at = t->meow_at = t->probe_at = ZC_NEVER;
    zc_list_init(&t->peers);
    zc_list_init(&t->owed);
    zc_list_init(&t->told);
    zc_list_init(&t->probing);
    zc_list_init(&t->leaving);
    zc_list_init(&t->parting);
    zc_rng_bytes(t->rng, t->hash_key, sizeof(t->hash_key));
    zc_rate_init(&t->newcomers, NEWCOMERS_INTERVAL_MS, NEWCOMERS_BURST);
    zc_refused_init(&t->strangers);
    zc_wg_init(&t->wg, &t->private_key, t->rng, t->role == ZC_TUNNEL_CLIENT ? 1 : t->clients_max);
    zc_stamps_init(&t->wg.stamps, &c->stamps);
}

static int make_parts(struct zc_tunnel *t)
{
    struct zc_derp_config derp = {
        .private_key = t->private_key,
        .app_name = t->role == ZC_TUNNEL_CLIENT ? "tailcat-client" : "tailcat-server",
        .home = true,
    };
    struct zc_tcpmux_config mux;
    struct zc_ip6_addr addr;
    zc_tunnel_peer_address(&t->node_key, &addr);
    zc_tcpmux_config_init(&mux, &addr);
    if (t->role == ZC_TUNNEL_CLIENT)
        mux.tcp.keepalive_ms = ZC_TUNNEL_KEEPALIVE_MS;
    t->derp = zc_derp_new(&derp);
    zc_secret_done(&derp.private_key);
    return t->derp == NULL ? ZC_ENOMEM : zc_tcpmux_new(&mux, t->rng, &t->mux);
}

int zc_tunnel_new(const struct zc_tunnel_config *config, struct zc_rng *rng, struct zc_now now,
                  struct zc_tunnel **ret_tunnel)
{
    struct zc_tunnel *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return ZC_ENOMEM;
    t->rng = rng;
    take_config(t, config);
    int err = make_parts(t);
    if (err == 0)
        err = zc_tunnel_set_relays(t, now, config->relays, config->relays_count, config->region_id);
    if (err == 0 && t->role == ZC_TUNNEL_SERVER)
        err = zc_tunnel_set_allow(t, now, config->allow_on, config->allow, config->allow_count);
    if (err == 0 && t->role == ZC_TUNNEL_CLIENT)
        err =
            zc_tunnel_peer_add(t, now, &config->server_key, &config->server_disco_key, &t->server);
    if (err != 0) {
        zc_tunnel_free(t);
        return err;
    }
    t->relay_down_due = false;
    *ret_tunnel = t;
    return 0;
}

static void free_peers(struct zc_list *peers)
{
    struct zc_list *l;
    while ((l = zc_list_first(peers)) != NULL) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(l, struct zc_tunnel_peer, all);
        zc_list_remove(l);
        zc_disco_peer_done(&p->disco);
        free(p);
    }
}

void zc_tunnel_free(struct zc_tunnel *t)
{
    if (t == NULL)
        return;
    free_peers(&t->peers);
    free_peers(&t->leaving);
    zc_map_done(&t->by_addr);
    zc_tcpmux_free(t->mux);
    zc_wg_done(&t->wg);
    zc_derp_free(t->derp);
    free(t->allow);
    zc_secret_wipe(t, sizeof(*t));
    free(t);
}

void zc_tunnel_tick(struct zc_tunnel *t, struct zc_now now)
{
    zc_tunnel_relay_tick(t, now);
    zc_wg_tick(&t->wg, now);
    zc_tunnel_input_events(t, now);
    zc_tunnel_peer_probe(t, now);
    zc_tunnel_peer_left(t, now);
    zc_tcpmux_tick(t->mux, now);
    zc_tunnel_server_sweep(t, now);
}

struct zc_mono zc_tunnel_deadline(const struct zc_tunnel *t)
{
    struct zc_mono at = zc_tunnel_relay_deadline(t);
    at = zc_mono_min(at, zc_wg_deadline(&t->wg));
    at = zc_mono_min(at, zc_tcpmux_deadline(t->mux));
    at = zc_mono_min(at, zc_mono_min(t->probe_at, zc_tunnel_peer_leave_at(t)));
    return zc_mono_min(at, zc_mono_min(t->sweep_at, t->meow_at));
}

static bool relay_event(struct zc_tunnel *t, struct zc_tunnel_event *ev)
{
    if (t->relay_down_due) {
        t->relay_down_due = false;
        ev->kind = ZC_TUNNEL_RELAY_DOWN;
        ev->text = t->relay_text;
    } else if (t->relay_up_due) {
        t->relay_up_due = false;
        ev->kind = ZC_TUNNEL_RELAY_UP;
    } else if (t->relay_says_due) {
        t->relay_says_due = false;
        ev->kind = ZC_TUNNEL_RELAY_SAYS;
        ev->text = t->says_text;
    } else {
        return false;
    }
    return true;
}

static bool peer_event(struct zc_tunnel *t, struct zc_tunnel_event *ev)
{
    struct zc_list *first;
    if (t->twin_due) {
        t->twin_due = false;
        ev->kind = ZC_TUNNEL_TWIN;
        return true;
    }
    while ((first = zc_list_first(&t->told)) != NULL) {
        struct zc_tunnel_peer *p = ZC_CONTAINER(first, struct zc_tunnel_peer, told);
        ev->key = p->key;
        if (p->down_due) {
            p->down_due = false;
            ev->kind = ZC_TUNNEL_PEER_DOWN;
            ev->text = p->why;
            return true;
        }
        if (p->up_due) {
            p->up_due = false;
            ev->kind = ZC_TUNNEL_PEER_UP;
            return true;
        }
        if (p->psk_due) {
            p->psk_due = false;
            ev->kind = ZC_TUNNEL_PSK_WRONG;
            return true;
        }
        if (p->twin_due) {
            p->twin_due = false;
            ev->kind = ZC_TUNNEL_PEER_TWIN;
            return true;
        }
        zc_list_remove(first);
    }
    return false;
}

bool zc_tunnel_event(struct zc_tunnel *t, struct zc_now now, struct zc_tunnel_event *ret_event)
{
    struct zc_tunnel_event ev = {.text = ""};
    (void)now;
    if (!relay_event(t, &ev) && !peer_event(t, &ev)) {
        if (!zc_tcpmux_event(t->mux, &ev.tcp))
            return false;
        ev.kind = ZC_TUNNEL_CONN;
        ev.key = zc_tunnel_conn_key(t, ev.tcp.conn);
    }
    *ret_event = ev;
    return true;
}

struct zc_tcpmux *zc_tunnel_mux(struct zc_tunnel *t)
{
    return t->mux;
}

int zc_tunnel_connect(struct zc_tunnel *t, struct zc_now now, uint16_t port, void *owner,
                      struct zc_tcpmux_conn **ret_conn)
{
    return zc_tcpmux_connect(t->mux, now, &t->server->addr, port, owner, ret_conn);
}

struct zc_key zc_tunnel_conn_key(const struct zc_tunnel *t, const struct zc_tcpmux_conn *conn)
{
    const struct zc_tunnel_peer *p = zc_tunnel_peer_at(t, zc_tcpmux_remote(conn));
    return p != NULL ? p->key : (struct zc_key){{0}};
}

bool zc_tunnel_stamps_wanted(struct zc_tunnel *t, struct zc_wall *ret_most)
{
    return zc_stamps_wanted(&t->wg.stamps, ret_most);
}

void zc_tunnel_stamps_raise(struct zc_tunnel *t, struct zc_wall most)
{
    zc_stamps_raise(&t->wg.stamps, most);
}

struct zc_stamps_bounds zc_tunnel_stamps(const struct zc_tunnel *t)
{
    return zc_stamps_bounds(&t->wg.stamps);
}

void zc_tunnel_status(const struct zc_tunnel *t, struct zc_tunnel_status *ret_status)
{
    struct zc_derp_status derp;
    zc_derp_status(t->derp, &derp);
    *ret_status = (struct zc_tunnel_status){
        .state = t->state,
        .relay = t->relay,
        .relay_rtt_us = derp.rtt_us,
        .node_key = t->node_key,
        .disco_key = t->disco_key,
        .peers = t->peers_count,
        .refused = t->refused,
    };
    if (t->role == ZC_TUNNEL_SERVER)
        ret_status->state = t->online ? ZC_TUNNEL_ONLINE : ZC_TUNNEL_DOWN;
}

bool zc_tunnel_peer(struct zc_tunnel *t, struct zc_now now, uint32_t index,
                    struct zc_tunnel_peer_status *ret_status)
{
    struct zc_wg_stats wg;
    if (index >= t->peers_count)
        return false;
    if (t->cursor == NULL || index < t->cursor_index) {
        t->cursor = ZC_CONTAINER(t->peers.next, struct zc_tunnel_peer, all);
        t->cursor_index = 0;
    }
    for (; t->cursor_index < index; t->cursor_index++)
        t->cursor = ZC_CONTAINER(t->cursor->all.next, struct zc_tunnel_peer, all);
    const struct zc_tunnel_peer *p = t->cursor;
    zc_wg_peer_stats(p->wg, now, &wg);
    *ret_status = (struct zc_tunnel_peer_status){
        .key = p->key,
        .up = p->up,
        .handshake_age_ms = wg.have_handshake ? zc_mono_diff_ms(wg.last_handshake, now.mono) : -1,
        .rtt_us = p->rtt_us,
        .rx_bytes = wg.rx_bytes,
        .tx_bytes = wg.tx_bytes,
    };
    return true;
}
