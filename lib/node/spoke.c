/* A spoke: local connections, held until the hub can be reached; see spoke.h. */
#include "node/spoke.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/hub_tunnel.h"
#include "zmqc/msg.h"

/* Within this time the hub accepts a connection, unless something is wrong. */
#define OPEN_MS 1000
/* Connections to the bus that are opened at once. The relay keeps 32 packets for a node and drops
 * the oldest; thousands of SYNs in one moment would be sent again in one moment. */
#define OPENING_MAX 16

void zc_spoke_config_default(struct zc_spoke_config *ret_config)
{
    *ret_config =
        (struct zc_spoke_config){.version = ZC_VERSION, .wait_hub_ms = 30000, .conns_max = 8192};
}

struct zc_hub *zc_spoke_new(const struct zc_spoke_config *config, const uint8_t seed[32],
                            struct zc_now now)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.version = config->version;
    c.trace = config->trace;
    struct zc_hub *hub = zc_hub_new(&c, seed, now);
    if (hub == NULL)
        return NULL;
    if (zc_hub_tunnel_new(hub) != 0) {
        zc_hub_free(hub);
        return NULL;
    }
    struct zc_hub_tunnel *net = hub->tunnel;
    net->spoke = true;
    net->private_key = *config->private_key;
    net->wait_hub_ms = config->wait_hub_ms;
    net->conns_max = config->conns_max;
    net->stamps = config->stamps;
    net->down_at = now.mono;
    net->ask_at = ZC_NEVER;
    return hub;
}

/* ---- local connections ---- */

/* The frame that says why there is no bus. */
static struct zc_block *err_frame(struct zc_hub_tunnel *net, const char *text)
{
    struct zc_msg *m = &net->hub->broker->out;
    int err;
    zc_msg_clear(m);
    m->op = zc_slice_str("err");
    m->error = zc_slice_str(text);
    m->code = zc_slice_str("unavailable");
    return zc_msg_encode(m, &err);
}

/* Over before it began: a client of the bus is told why, that of a forwarded port gets a reset. */
static void refuse(struct zc_splice *s, struct zc_now now, const char *text)
{
    struct zc_block *frame = s->port == ZC_HUB_BUS_PORT ? err_frame(s->net, text) : NULL;
    zc_splice_end(s, now, frame != NULL ? zc_block_slice(frame) : zc_slice(NULL, 0));
    zc_block_unref(frame);
}

static void give_up(struct zc_splice *s, struct zc_now now, const char *why)
{
    char text[ZC_HUB_LINE_MAX];
    if (s->port != ZC_HUB_BUS_PORT)
        zc_hub_say(s->net, now, ZC_HUB_WARNING, false, "forwarded port %u: %s%s", (unsigned)s->port,
                   why, s->net->up ? ": does the hub offer it, with --forward?" : "");
    snprintf(text, sizeof(text), "hub unreachable: %s", why);
    refuse(s, now, text);
}

/* Why the hub cannot be reached now. */
static const char *reason(const struct zc_hub_tunnel *net)
{
    struct zc_tunnel_status st;
    if (net->t == NULL)
        return "no token yet";
    zc_tunnel_status(net->t, &st);
    switch (st.state) {
    case ZC_TUNNEL_DOWN:
    case ZC_TUNNEL_MEOW:
        if (!net->online) /* else a relay that is down is dialled anew because the hub has left */
            return "the relay cannot be reached";
        return net->psk_wrong ? "it has another pre-shared key: the token is outdated"
                              : "it does not answer: not running, or this spoke is not allowed";
    case ZC_TUNNEL_HANDSHAKE:
        return "it answers, but the handshake does not end";
    default:
        return "the connection was not accepted in time";
    }
}

static void open_conn(struct zc_splice *s, struct zc_now now)
{
    struct zc_hub_tunnel *net = s->net;
    struct zc_tcpmux_conn *conn;
    if (zc_tunnel_connect(net->t, now, s->port, s, &conn) != 0)
        give_up(s, now, "too many connections");
    else
        zc_splice_take(s, now, conn);
    net->ask_at = zc_mono_min(net->ask_at, zc_mono_add_ms(now.mono, OPEN_MS));
}

void zc_spoke_open(struct zc_hub_tunnel *net, struct zc_now now)
{
    struct zc_list *l;
    while (net->up && net->opening < OPENING_MAX && (l = zc_list_first(&net->waiting)) != NULL) {
        struct zc_splice *s = ZC_CONTAINER(l, struct zc_splice, waiting);
        zc_list_remove(l);
        s->opening = true;
        net->opening++;
        open_conn(s, now); /* one that cannot be opened counts no more */
    }
}

struct zc_splice *zc_spoke_attach(struct zc_hub *spoke, struct zc_now now, uint16_t port,
                                  void *data)
{
    struct zc_hub_tunnel *net = spoke->tunnel;
    if (net->splices_count >= net->conns_max)
        return NULL;
    struct zc_splice *s = zc_splice_new(net, port, data);
    if (s == NULL)
        return NULL;
    s->till = zc_mono_add_ms(now.mono, net->wait_hub_ms);
    zc_hub_trace(net, "zmqcat c%llu open port=%u", (unsigned long long)s->serial, (unsigned)port);
    if (spoke->broker->draining) {
        refuse(s, now, "this spoke is being drained: try again once it was restarted");
        return s;
    }
    zc_list_push(&net->held, &s->held); /* all wait equally long: in order of `till` */
    if (port == ZC_HUB_BUS_PORT)
        zc_list_push(&net->waiting, &s->waiting);
    else if (net->up)
        open_conn(s, now);
    zc_spoke_open(net, now);
    return s;
}

void zc_spoke_refused(struct zc_splice *s, struct zc_now now, enum zc_tcp_reason why)
{
    give_up(s, now,
            why == ZC_TCP_REFUSED ? "it refuses the connection: is it a zmqcat hub?"
                                  : "the connection was not accepted");
}

/* ---- the hub ---- */

int zc_spoke_join(struct zc_hub *spoke, struct zc_now now, const struct zc_spoke_target *target)
{
    struct zc_hub_tunnel *net = spoke->tunnel;
    struct zc_tunnel_config config = {
        .role = ZC_TUNNEL_CLIENT,
        .private_key = &net->private_key,
        .psk = target->psk,
        .relays = target->relays,
        .relays_count = target->relays_count,
        .region_id = target->region_id,
        .server_key = target->node_key,
        .server_disco_key = target->disco_key,
        .stamps = net->t != NULL ? zc_tunnel_stamps(net->t) : net->stamps,
    };
    struct zc_tunnel *t;
    int err = zc_tunnel_new(&config, &spoke->rng, now, &t);
    if (err != 0)
        return err;
    for (struct zc_list *l = net->splices.next; l != &net->splices; l = l->next) {
        struct zc_splice *s = ZC_CONTAINER(l, struct zc_splice, all);
        if (s->conn != NULL)
            zc_splice_end(s, now, zc_slice(NULL, 0));
    }
    if (net->t != NULL)
        zc_tunnel_relay_inherit(t);
    zc_tunnel_free(net->t);
    net->t = t;
    net->online = net->up = net->psk_wrong = net->lost_done = false;
    net->down_at = now.mono;
    return 0;
}

static void hub_up(struct zc_hub_tunnel *net, struct zc_now now)
{
    net->up = net->online_due = true;
    net->psk_wrong = net->lost_done = false;
    zc_hub_say(net, now, ZC_HUB_NOTICE, true, "the hub is reached through the relay");
    for (struct zc_list *l = net->held.next, *next; l != &net->held; l = next) {
        struct zc_splice *s = ZC_CONTAINER(l, struct zc_splice, held);
        next = l->next; /* one that cannot be opened leaves the list */
        if (s->conn == NULL && s->port != ZC_HUB_BUS_PORT)
            open_conn(s, now);
    }
}

static void hub_down(struct zc_hub_tunnel *net, struct zc_now now, const char *why)
{
    net->up = false;
    net->down_at = now.mono;
    zc_hub_say(net, now, ZC_HUB_WARNING, true, "hub unreachable: %s: trying again", why);
}

void zc_spoke_tunnel_event(struct zc_hub_tunnel *net, struct zc_now now,
                           const struct zc_tunnel_event *ev)
{
    switch (ev->kind) {
    case ZC_TUNNEL_PEER_UP:
        hub_up(net, now);
        break;
    case ZC_TUNNEL_PEER_DOWN:
        hub_down(net, now, ev->text);
        break;
    case ZC_TUNNEL_TWIN:
        zc_hub_say(net, now, ZC_HUB_WARNING, true,
                   "another spoke uses the key of this one, and they take each other's packets: "
                   "stop one, or give it a key file of its own");
        break;
    case ZC_TUNNEL_PEER_TWIN:
        zc_hub_say(net, now, ZC_HUB_WARNING, true,
                   "two hubs use the key that the token names and take each other's packets: stop "
                   "one, or give it a key file of its own");
        break;
    case ZC_TUNNEL_PSK_WRONG:
        net->psk_wrong = true;
        zc_hub_say(net, now, ZC_HUB_ERR, true,
                   "hub unreachable: it has another pre-shared key: replace this spoke's token "
                   "with the one that `zmqcat token` prints at the hub");
        break;
    default:
        break;
    }
}

static struct zc_mono lost_at(const struct zc_hub_tunnel *net)
{
    bool none = net->up || net->lost_done;
    return none ? ZC_NEVER : zc_mono_add_ms(net->down_at, net->wait_hub_ms);
}

/* The hub stays away: what was open to it ends. One that never answered was not told of yet. */
static void hub_lost(struct zc_hub_tunnel *net, struct zc_now now)
{
    struct zc_tunnel_status st = {.state = ZC_TUNNEL_DOWN};
    if (net->t != NULL)
        zc_tunnel_status(net->t, &st);
    if (st.state == ZC_TUNNEL_MEOW && !net->psk_wrong)
        zc_hub_say(net, now, ZC_HUB_WARNING, true, "hub unreachable: %s", reason(net));
    net->lost_done = true;
    for (struct zc_list *l = net->splices.next; l != &net->splices; l = l->next) {
        struct zc_splice *s = ZC_CONTAINER(l, struct zc_splice, all);
        if (s->opened && !s->ended)
            zc_splice_end(s, now, zc_slice(NULL, 0));
    }
}

/* When the first of those that wait has waited long enough. */
static struct zc_mono held_till(const struct zc_hub_tunnel *net)
{
    const struct zc_list *l = zc_list_first(&net->held);
    return l != NULL ? ZC_CONTAINER(l, struct zc_splice, held)->till : ZC_NEVER;
}

/* Connections stand still that the hub should have accepted by now: it may have forgotten us. */
static void ask(struct zc_hub_tunnel *net, struct zc_now now)
{
    bool waiting = !zc_list_empty(&net->held);
    net->ask_at = waiting ? zc_mono_add_ms(now.mono, OPEN_MS) : ZC_NEVER;
    if (waiting && net->t != NULL)
        zc_tunnel_ask(net->t, now);
}

void zc_spoke_tick(struct zc_hub_tunnel *net, struct zc_now now)
{
    if (net->ask_at.ns <= now.mono.ns)
        ask(net, now);
    while (held_till(net).ns <= now.mono.ns)
        give_up(ZC_CONTAINER(net->held.next, struct zc_splice, held), now, reason(net));
    if (lost_at(net).ns <= now.mono.ns)
        hub_lost(net, now);
}

struct zc_mono zc_spoke_deadline(const struct zc_hub_tunnel *net)
{
    return zc_mono_min(zc_mono_min(held_till(net), lost_at(net)), net->ask_at);
}
