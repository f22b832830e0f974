/* What the control socket of a hub with a tunnel, or of a spoke, answers beside the broker's own
 * verbs: the tunnel's status, path, token, rotate, revoke, reload; see zmqc/admin.h. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "node/hub_tunnel.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"

#define NO_RELAY "no relay is known yet: the hub's log says what it waits for"

static const char *state_text(const struct zc_hub_tunnel *net, enum zc_tunnel_state state)
{
    static const char *const texts[] = {"down", "online", "joining", "joining", "up"};
    return net->t == NULL ? "no token" : texts[state];
}

/* A text member that may be null. */
static int put_text(struct zc_buf *j, const char *head, const char *value)
{
    int err = zc_json_put_raw(j, head);
    if (err == 0)
        err =
            value == NULL ? zc_json_put_raw(j, "null") : zc_json_put_string(j, zc_slice_str(value));
    return err;
}

/* A number member with three decimals, null when it is negative. */
static int put_thousandths(struct zc_buf *j, const char *head, int64_t value)
{
    char text[48];
    snprintf(text, sizeof(text), "%lld.%03d", (long long)(value / 1000), (int)(value % 1000));
    int err = zc_json_put_raw(j, head);
    return err != 0 ? err : zc_json_put_raw(j, value < 0 ? "null" : text);
}

static int put_count(struct zc_buf *j, const char *head, uint64_t value)
{
    int err = zc_json_put_raw(j, head);
    return err != 0 ? err : zc_json_put_int(j, (int64_t)value);
}

static int put_peer(struct zc_buf *j, bool first, const struct zc_tunnel_peer_status *p)
{
    char key[ZC_SECRET_TEXT_MAX];
    zc_secret_encode(ZC_SECRET_NODE_KEY, p->key.b, key);
    int err = put_text(j, first ? "{\"nodekey\":" : ",{\"nodekey\":", key);
    if (err == 0)
        err = put_text(j, ",\"path\":", p->up ? "relay" : "none");
    if (err == 0)
        err = put_thousandths(j, ",\"rtt_ms\":", p->rtt_us);
    if (err == 0)
        err = put_thousandths(j, ",\"handshake_age_s\":", p->handshake_age_ms);
    if (err == 0)
        err = put_count(j, ",\"rx\":", p->rx_bytes);
    if (err == 0)
        err = put_count(j, ",\"tx\":", p->tx_bytes);
    return err != 0 ? err : zc_json_put_raw(j, "}");
}

static int put_peers(struct zc_hub_tunnel *net, struct zc_buf *j)
{
    struct zc_tunnel_peer_status p;
    int err = zc_json_put_raw(j, ",\"peers\":[");
    for (uint32_t i = 0;
         err == 0 && net->t != NULL && zc_tunnel_peer(net->t, net->hub->broker->now, i, &p); i++)
        err = put_peer(j, i == 0, &p);
    return err != 0 ? err : zc_json_put_raw(j, "]}");
}

static int admin_tunnel(void *arg, struct zc_buf *j)
{
    struct zc_hub_tunnel *net = arg;
    struct zc_tunnel_status st = {.relay_rtt_us = -1};
    char relay[ZC_DERPMAP_STRING_MAX + 16], key[ZC_SECRET_TEXT_MAX];
    if (net->t != NULL)
        zc_tunnel_status(net->t, &st);
    if (st.relay != NULL)
        snprintf(relay, sizeof(relay), "%s:%u", st.relay->host,
                 (unsigned)zc_derpmap_port(st.relay));
    zc_secret_encode(ZC_SECRET_NODE_KEY, st.node_key.b, key);
    int err = put_text(j, "{\"state\":", state_text(net, st.state));
    if (err == 0)
        err = put_text(j, ",\"relay\":", st.relay != NULL ? relay : NULL);
    if (err == 0)
        err = put_thousandths(j, ",\"relay_rtt_ms\":", st.relay_rtt_us);
    if (err == 0)
        err = put_text(j, ",\"nodekey\":", net->t != NULL ? key : NULL);
    if (err == 0)
        err = put_count(j, net->spoke ? ",\"connections\":" : ",\"forwards\":", net->splices_count);
    if (err == 0)
        err = put_count(j, ",\"refused\":", st.refused);
    return err != 0 ? err : put_peers(net, j);
}

static void answer(struct zc_hub_tunnel *net, struct zc_session *s, const struct zc_msg *m, int err,
                   struct zc_buf *json)
{
    if (err != 0)
        zc_broker_kill(net->hub->broker, s, "out of memory: session ended");
    else
        zc_op_result(net->hub->broker, s, m, zc_slice(json->data, json->len));
    if (json->data != NULL)
        zc_secret_wipe(json->data, json->len);
    zc_buf_done(json);
}

static void path(struct zc_hub_tunnel *net, struct zc_session *s, const struct zc_msg *m)
{
    struct zc_tunnel_peer_status p;
    struct zc_key key;
    struct zc_buf j = {0};
    if (zc_secret_parse(ZC_SECRET_NODE_KEY, m->name, key.b) != 0) {
        zc_reply_err(net->hub->broker, s, m->id, "invalid",
                     "path: `name` must be nodekey: and 64 hex digits");
        return;
    }
    uint32_t i = 0;
    while (net->t != NULL && zc_tunnel_peer(net->t, net->hub->broker->now, i, &p) &&
           !zc_secret_key_equal(&p.key, &key))
        i++;
    if (net->t == NULL || !zc_tunnel_peer(net->t, net->hub->broker->now, i, &p)) {
        zc_reply_err(net->hub->broker, s, m->id, "unavailable",
                     "path: no such peer: see zmqcat status");
        return;
    }
    int err = put_text(&j, "{\"path\":", p.up ? "relay" : "none");
    if (err == 0)
        err = put_text(
            &j, ",\"why\":", p.up ? "all traffic goes through the relay" : "it does not answer");
    if (err == 0)
        err = put_thousandths(&j, ",\"rtt_ms\":", p.rtt_us);
    if (err == 0)
        err = zc_json_put_raw(&j, "}");
    answer(net, s, m, err, &j);
}

/* {"token":…}, or why not. */
static void token(struct zc_hub_tunnel *net, struct zc_session *s, const struct zc_msg *m)
{
    char text[ZC_HUB_TOKEN_MAX];
    struct zc_buf j = {0};
    if (zc_hub_token(net->hub, text) != 0) {
        zc_reply_err(net->hub->broker, s, m->id, "unavailable", NO_RELAY);
        return;
    }
    int err = put_text(&j, "{\"token\":", text);
    if (err == 0)
        err = zc_json_put_raw(&j, "}");
    zc_secret_wipe(text, sizeof(text));
    answer(net, s, m, err, &j);
}

/* Remembers who waits for the host. False: it was refused. */
static bool begin(struct zc_hub_tunnel *net, struct zc_session *s, const struct zc_msg *m,
                  enum zc_hub_ask ask)
{
    if (net->ask != ZC_HUB_ASK_NONE) {
        zc_reply_err(net->hub->broker, s, m->id, "unavailable",
                     "another one is under way: try again");
        return false;
    }
    net->ask = ask;
    net->ask_due = true;
    net->ask_serial = s->serial;
    net->ask_id_len = m->id.len < sizeof(net->ask_id) ? m->id.len : sizeof(net->ask_id);
    if (net->ask_id_len > 0)
        memcpy(net->ask_id, m->id.data, net->ask_id_len);
    return true;
}

static void rotate(struct zc_hub_tunnel *net, struct zc_session *s, const struct zc_msg *m)
{
    const char *why = NULL;
    if (!net->has_psk)
        why = "this hub runs with --no-psk: its token has no secret to replace";
    else if (!net->has_token_node)
        why = NO_RELAY;
    if (why != NULL)
        zc_reply_err(net->hub->broker, s, m->id, net->has_psk ? "unavailable" : "denied", why);
    else if (begin(net, s, m, ZC_HUB_ASK_ROTATE))
        zc_rng_bytes(&net->hub->rng, net->psk_new.b, sizeof(net->psk_new.b));
}

static void revoke(struct zc_hub_tunnel *net, struct zc_session *s, const struct zc_msg *m)
{
    struct zc_key key;
    if (zc_secret_parse(ZC_SECRET_NODE_KEY, m->name, key.b) != 0)
        zc_reply_err(net->hub->broker, s, m->id, "invalid",
                     "revoke: `name` must be nodekey: and 64 hex digits");
    else if (!net->allow_on)
        zc_reply_err(net->hub->broker, s, m->id, "denied",
                     "no list of allowed keys is on (--allow, --allow-file): whoever has the token "
                     "comes back with another key: `zmqcat rotate` replaces the token");
    else if (begin(net, s, m, ZC_HUB_ASK_REVOKE))
        net->revoke_key = key;
}

void zc_hub_admin_event(struct zc_hub_tunnel *net, struct zc_hub_event *ret_event)
{
    static const enum zc_hub_event_kind kinds[] = {
        [ZC_HUB_ASK_ROTATE] = ZC_HUB_PSK,
        [ZC_HUB_ASK_RELOAD] = ZC_HUB_RELOAD,
        [ZC_HUB_ASK_REVOKE] = ZC_HUB_REVOKE,
    };
    ret_event->kind = kinds[net->ask];
    ret_event->psk = &net->psk_new;
    ret_event->key = net->revoke_key;
}

static struct zc_session *find_session(struct zc_broker *b, uint64_t serial)
{
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        if (s->serial == serial)
            return s;
    }
    return NULL;
}

/* Who waits for the host, with its id in b->in; NULL: it has gone. Nobody does from here on. */
static struct zc_session *finish(struct zc_hub_tunnel *net, struct zc_now now)
{
    struct zc_broker *b = net->hub->broker;
    net->ask = ZC_HUB_ASK_NONE;
    net->ask_due = false;
    b->now = now;
    zc_msg_clear(&b->in);
    b->in.id = zc_slice(net->ask_id, net->ask_id_len);
    return find_session(b, net->ask_serial);
}

void zc_hub_admin_rotated(struct zc_hub_tunnel *net, struct zc_now now, const char *why)
{
    struct zc_session *s = finish(net, now);
    struct zc_broker *b = net->hub->broker;
    char text[512];
    if (s == NULL)
        return;
    if (why == NULL) {
        token(net, s, &b->in);
        return;
    }
    snprintf(text, sizeof(text), "the new key could not be saved: %s", why);
    zc_reply_err(b, s, b->in.id, "storage", text);
}

void zc_hub_reloaded(struct zc_hub *hub, struct zc_now now, const char *why)
{
    struct zc_hub_tunnel *net = hub->tunnel;
    if (net->ask != ZC_HUB_ASK_RELOAD)
        return;
    struct zc_session *s = finish(net, now);
    if (s == NULL)
        return;
    if (why != NULL)
        zc_reply_err(hub->broker, s, hub->broker->in.id, "invalid", why);
    else
        zc_op_result(hub->broker, s, &hub->broker->in, zc_slice_str("{}"));
}

void zc_hub_revoked(struct zc_hub *hub, struct zc_now now, const char *why, const char *warning)
{
    struct zc_hub_tunnel *net = hub->tunnel;
    ZC_ASSERT(net != NULL && net->ask == ZC_HUB_ASK_REVOKE);
    struct zc_session *s = finish(net, now);
    struct zc_buf j = {0};
    if (s == NULL)
        return;
    if (why != NULL) {
        zc_reply_err(hub->broker, s, hub->broker->in.id, "storage", why);
        return;
    }
    int err = warning != NULL ? put_text(&j, "{\"warning\":", warning) : zc_json_put_raw(&j, "{");
    if (err == 0)
        err = zc_json_put_raw(&j, "}");
    answer(net, s, &hub->broker->in, err, &j);
}

static bool admin_verb(void *arg, struct zc_session *s, const struct zc_msg *m)
{
    struct zc_hub_tunnel *net = arg;
    if (zc_slice_is(m->op, "path"))
        path(net, s, m);
    else if (zc_slice_is(m->op, "reload"))
        (void)begin(net, s, m, ZC_HUB_ASK_RELOAD);
    else if (!net->spoke && zc_slice_is(m->op, "token"))
        token(net, s, m);
    else if (!net->spoke && zc_slice_is(m->op, "rotate"))
        rotate(net, s, m);
    else if (!net->spoke && zc_slice_is(m->op, "revoke"))
        revoke(net, s, m);
    else
        return false;
    return true;
}

void zc_hub_admin_init(struct zc_hub_tunnel *net)
{
    net->admin = (struct zc_admin){net, admin_tunnel, admin_verb};
    net->hub->broker->admin = &net->admin;
}
