/* The tunnel of a node: who owns which connection, tokens, keys, events; see hub_tunnel.h. */
#include "node/hub_tunnel.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "tunnel/token.h"

int zc_hub_tunnel_new(struct zc_hub *hub)
{
    struct zc_hub_tunnel *net = calloc(1, sizeof(*net));
    if (net == NULL)
        return ZC_ENOMEM;
    net->hub = hub;
    hub->tunnel = net;
    zc_list_init(&net->splices);
    zc_list_init(&net->splices_told);
    zc_list_init(&net->held);
    zc_list_init(&net->waiting);
    zc_list_init(&net->buses);
    zc_list_init(&net->buses_over);
    zc_list_init(&net->buses_ready);
    zc_hub_say_init(&net->lines);
    zc_hub_admin_init(net);
    return 0;
}

static int listen(struct zc_hub_tunnel *net, const struct zc_hub_tunnel_config *c)
{
    struct zc_tcpmux *m = zc_tunnel_mux(net->t);
    int err = zc_tcpmux_listen(m, ZC_HUB_BUS_PORT, ZC_HUB_BUS_PORT);
    for (uint32_t i = 0; err == 0 && i < c->forward_count; i++) {
        net->forward[net->forward_count++] = c->forward[i];
        err = zc_tcpmux_listen(m, c->forward[i], c->forward[i]);
    }
    return err;
}

int zc_hub_tunnel_init(struct zc_hub *hub, struct zc_now now, const struct zc_hub_tunnel_config *c)
{
    if (c->forward_count > ZC_HUB_FORWARDS_MAX)
        return ZC_EINVAL;
    int err = zc_hub_tunnel_new(hub);
    if (err != 0)
        return err;
    struct zc_hub_tunnel *net = hub->tunnel;
    struct zc_tunnel_config config = {
        .role = ZC_TUNNEL_SERVER,
        .private_key = c->private_key,
        .psk = c->psk,
        .relays = c->relays,
        .relays_count = c->relays_count,
        .region_id = c->region_id,
        .allow_on = c->allow_on,
        .allow = c->allow,
        .allow_count = c->allow_count,
        .clients_max = c->clients_max,
        .stamps = c->stamps,
    };
    net->allow_on = c->allow_on;
    net->has_psk = c->psk != NULL;
    if (net->has_psk)
        net->psk = *c->psk;
    err = zc_tunnel_new(&config, &hub->rng, now, &net->t);
    return err != 0 ? err : listen(net, c);
}

void zc_hub_tunnel_done(struct zc_hub *hub)
{
    struct zc_hub_tunnel *net = hub->tunnel;
    if (net == NULL)
        return;
    zc_hub_bus_done(net);
    while (!zc_list_empty(&net->splices))
        zc_splice_free(ZC_CONTAINER(net->splices.next, struct zc_splice, all));
    zc_tunnel_free(net->t);
    zc_secret_wipe(net, sizeof(*net));
    free(net);
    hub->tunnel = NULL;
}

void zc_hub_tunnel_tick(struct zc_hub *hub, struct zc_now now)
{
    struct zc_hub_tunnel *net = hub->tunnel;
    if (net == NULL)
        return;
    if (net->t != NULL)
        zc_tunnel_tick(net->t, now);
    zc_hub_bus_tick(net, now);
    if (net->spoke)
        zc_spoke_tick(net, now);
}

bool zc_hub_tunnel_quiet(const struct zc_hub *hub)
{
    return hub->tunnel == NULL || zc_hub_bus_quiet(hub->tunnel);
}

struct zc_mono zc_hub_tunnel_deadline(const struct zc_hub *hub)
{
    const struct zc_hub_tunnel *net = hub->tunnel;
    if (net == NULL)
        return ZC_NEVER;
    struct zc_mono at = zc_hub_say_deadline(&net->lines);
    if (!zc_list_empty(&net->buses_ready))
        at = (struct zc_mono){0};
    if (net->t != NULL)
        at = zc_mono_min(at, zc_tunnel_deadline(net->t));
    at = zc_mono_min(at, zc_hub_bus_deadline(net));
    return net->spoke ? zc_mono_min(at, zc_spoke_deadline(net)) : at;
}

/* ---- what the tunnel tells ---- */

static void accepted(struct zc_hub_tunnel *net, struct zc_now now, struct zc_tcpmux_conn *conn,
                     const struct zc_key *key)
{
    uint16_t port = zc_tcpmux_local_port(conn);
    if (port == ZC_HUB_BUS_PORT) {
        zc_hub_bus_accept(net, now, conn, key);
        return;
    }
    struct zc_splice *s = net->hub->stopping ? NULL : zc_splice_new(net, port, NULL);
    if (s == NULL) {
        zc_tcpmux_abort(zc_tunnel_mux(net->t), now, conn);
        zc_tcpmux_release(zc_tunnel_mux(net->t), now, conn);
        return;
    }
    s->open_due = s->opened = true;
    zc_splice_take(s, now, conn);
}

static void conn_event(struct zc_hub_tunnel *net, struct zc_now now,
                       const struct zc_tunnel_event *ev)
{
    void *owner = zc_tcpmux_owner(ev->tcp.conn);
    if (ev->tcp.kind == ZC_TCPMUX_ACCEPTED)
        accepted(net, now, ev->tcp.conn, &ev->key);
    else if (owner != NULL && *(enum zc_hub_end *)owner == ZC_HUB_END_BUS)
        zc_hub_bus_event(net, now, owner, &ev->tcp);
    else if (owner != NULL)
        zc_splice_conn_event(owner, now, &ev->tcp);
}

static const char *relay_name(const struct zc_hub_tunnel *net, struct zc_tunnel_status *st)
{
    zc_tunnel_status(net->t, st);
    return st->relay != NULL ? st->relay->host : "?";
}

static void relay_event(struct zc_hub_tunnel *net, struct zc_now now,
                        const struct zc_tunnel_event *ev)
{
    struct zc_tunnel_status st;
    const char *name = relay_name(net, &st);
    char text[256];
    zc_text_escape(text, sizeof(text), zc_slice_str(ev->text));
    switch (ev->kind) {
    case ZC_TUNNEL_RELAY_UP:
        net->online = true;
        net->online_due = !net->spoke;
        net->token_node = *st.relay;
        net->has_token_node = true;
        zc_hub_say(net, now, ZC_HUB_NOTICE, true, "tunnel: connected to the relay %s", name);
        break;
    case ZC_TUNNEL_RELAY_DOWN:
        zc_hub_say(net, now, ZC_HUB_WARNING, true, "tunnel: relay %s: %s: trying again%s", name,
                   text, net->online ? "" : ": see zmqcat status");
        net->online = false;
        break;
    default:
        if (text[0] != '\0')
            zc_hub_say(net, now, ZC_HUB_WARNING, false, "tunnel: the relay %s says: %s", name,
                       text);
        break;
    }
}

static void peer_event(struct zc_hub_tunnel *net, struct zc_now now,
                       const struct zc_tunnel_event *ev)
{
    char key[ZC_SECRET_TEXT_MAX];
    zc_secret_encode(ZC_SECRET_NODE_KEY, ev->key.b, key);
    if (ev->kind == ZC_TUNNEL_PEER_UP)
        zc_hub_say(net, now, ZC_HUB_INFO, false, "tunnel: %s is here", key);
    else if (ev->kind == ZC_TUNNEL_PEER_DOWN)
        zc_hub_say(net, now, ZC_HUB_INFO, false, "tunnel: %s is gone: %s", key, ev->text);
    else if (ev->kind == ZC_TUNNEL_PEER_TWIN)
        zc_hub_say(net, now, ZC_HUB_WARNING, true,
                   "tunnel: two spokes use the key %s and take each other's packets: stop one, or "
                   "give it a key file of its own",
                   key);
    else if (ev->kind == ZC_TUNNEL_TWIN)
        zc_hub_say(net, now, ZC_HUB_WARNING, true,
                   "tunnel: another hub uses the key of this one, and they take each other's "
                   "packets: stop one, or give it a key file of its own");
}

static void tunnel_event(struct zc_hub_tunnel *net, struct zc_now now,
                         const struct zc_tunnel_event *ev)
{
    if (ev->kind == ZC_TUNNEL_CONN)
        conn_event(net, now, ev);
    else if (ev->kind == ZC_TUNNEL_RELAY_UP || ev->kind == ZC_TUNNEL_RELAY_DOWN ||
             ev->kind == ZC_TUNNEL_RELAY_SAYS)
        relay_event(net, now, ev);
    else if (net->spoke)
        zc_spoke_tunnel_event(net, now, ev);
    else
        peer_event(net, now, ev);
}

static void pump(struct zc_hub_tunnel *net, struct zc_now now)
{
    struct zc_tunnel_event ev;
    struct zc_session *s;
    bool close;
    zc_hub_bus_run(net, now);
    zc_spoke_open(net, now);
    /* Nobody is served before the store is. */
    while (net->t != NULL && net->hub->ready && zc_tunnel_event(net->t, now, &ev))
        tunnel_event(net, now, &ev);
    while ((s = zc_broker_inner(net->hub->broker, &close)) != NULL)
        zc_hub_bus_session(net, now, s->data, close);
}

/* ---- what the host is told ---- */

static bool due(bool *flag)
{
    bool is = *flag;
    *flag = false;
    return is;
}

bool zc_hub_tunnel_event(struct zc_hub *hub, struct zc_now now, struct zc_hub_event *ret_event)
{
    struct zc_hub_tunnel *net = hub->tunnel;
    if (net == NULL)
        return false;
    pump(net, now);
    const struct zc_hub_line *line = zc_hub_say_next(&net->lines, now);
    struct zc_hub_event ev = {.kind = ZC_HUB_LOG, .text = ""};
    if (line != NULL) {
        ev.kind = line->trace ? ZC_HUB_TRACE : ZC_HUB_LOG;
        ev.level = line->level;
        ev.text = line->text;
    } else if (due(&net->online_due)) {
        ev.kind = ZC_HUB_ONLINE;
    } else if (due(&net->ask_due)) {
        zc_hub_admin_event(net, &ev);
    } else if (net->t != NULL && zc_tunnel_refused(net->t, &ev.key)) {
        ev.kind = ZC_HUB_REFUSED;
    } else if (net->t != NULL && zc_tunnel_stamps_wanted(net->t, &ev.most)) {
        ev.kind = ZC_HUB_STAMPS;
    } else if (!zc_splice_event(net, &ev)) {
        return false;
    }
    *ret_event = ev;
    return true;
}

struct zc_tunnel *zc_hub_tunnel(struct zc_hub *hub)
{
    return hub->tunnel != NULL ? hub->tunnel->t : NULL;
}

/* ---- token and keys ---- */

static int encode_token(const struct zc_hub_tunnel *net, const struct zc_derpmap_node *node,
                        char ret_text[ZC_HUB_TOKEN_MAX])
{
    struct zc_tunnel_status st;
    struct zc_token *token = calloc(1, sizeof(*token));
    if (token == NULL)
        return ZC_ENOMEM;
    zc_tunnel_status(net->t, &st);
    token->node_key = st.node_key;
    token->has_disco_key = true;
    token->disco_key = st.disco_key;
    token->has_psk = net->has_psk;
    token->psk = net->psk;
    token->regions_count = token->nodes_count = token->regions[0].nodes_count = 1;
    token->nodes[0] = *node;
    int err = zc_token_encode(token, ret_text);
    zc_token_done(token);
    free(token);
    return err;
}

int zc_hub_token(struct zc_hub *hub, char ret_text[ZC_HUB_TOKEN_MAX])
{
    struct zc_hub_tunnel *net = hub->tunnel;
    struct zc_tunnel_status st;
    if (net == NULL || net->spoke)
        return ZC_ENOENT;
    zc_tunnel_status(net->t, &st);
    const struct zc_derpmap_node *node = net->has_token_node ? &net->token_node : st.relay;
    return node != NULL ? encode_token(net, node, ret_text) : ZC_EAGAIN;
}

void zc_hub_psk_saved(struct zc_hub *hub, struct zc_now now, const char *why)
{
    struct zc_hub_tunnel *net = hub->tunnel;
    ZC_ASSERT(net != NULL && net->ask == ZC_HUB_ASK_ROTATE);
    if (why == NULL) {
        net->psk = net->psk_new;
        zc_tunnel_set_psk(net->t, now, &net->psk);
    }
    zc_secret_done(&net->psk_new);
    zc_hub_admin_rotated(net, now, why);
}
