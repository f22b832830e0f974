/* The relay's side of a tunnel's end: dialling, the stream, what goes into it; see tunnel.h. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/tunnel_priv.h"

/* For DNS, TCP and TLS; the login has its own limit. */
#define DIAL_MS 10000
/* For what may be dead since the network has changed. */
#define PROBE_MS 3000

static void say_down(struct zc_tunnel *t, const char *text)
{
    snprintf(t->relay_text, sizeof(t->relay_text), "%s", text);
    t->relay_up_due = false;
    t->relay_down_due = true;
}

static void peers_down(struct zc_tunnel *t)
{
    for (struct zc_list *l = t->peers.next; l != &t->peers; l = l->next)
        zc_tunnel_peer_is_down(t, ZC_CONTAINER(l, struct zc_tunnel_peer, all),
                               "the relay is out of reach");
}

/* Stream or dial are over, whoever ended them. */
static void stream_over(struct zc_tunnel *t, struct zc_now now, const char *text)
{
    t->stream = ZC_TUNNEL_NO_STREAM;
    t->dial_till = ZC_NEVER;
    if (t->online) {
        t->online = false;
        peers_down(t);
    }
    if (t->role == ZC_TUNNEL_CLIENT) {
        t->state = ZC_TUNNEL_DOWN;
        t->meow_at = ZC_NEVER;
    }
    zc_derp_dial_failed(&t->dial, now.mono, t->rng);
    say_down(t, text);
}

bool zc_tunnel_relay_dial(struct zc_tunnel *t, struct zc_now now, struct zc_derp_dial_try *ret_try)
{
    if (t->hangup || t->stream != ZC_TUNNEL_NO_STREAM ||
        !zc_derp_dial_next(&t->dial, now.mono, ret_try))
        return false;
    t->relay = ret_try->node;
    t->stream = ZC_TUNNEL_DIALLING;
    t->dial_till = zc_mono_add_ms(now.mono, DIAL_MS);
    return true;
}

void zc_tunnel_relay_started(struct zc_tunnel *t, struct zc_now now, bool v6)
{
    if (t->stream != ZC_TUNNEL_DIALLING)
        return;
    t->stream = ZC_TUNNEL_STREAM;
    t->dial_till = ZC_NEVER;
    t->v6 = v6;
    zc_derp_start(t->derp, now, t->relay->host, zc_derpmap_port(t->relay));
}

void zc_tunnel_relay_lost(struct zc_tunnel *t, struct zc_now now, const char *text)
{
    if (t->hangup) {
        t->hangup = false; /* both sides gave it up */
        return;
    }
    if (t->stream == ZC_TUNNEL_DIALLING)
        stream_over(t, now, text);
    else if (t->stream == ZC_TUNNEL_STREAM)
        zc_derp_lost(t->derp, now, text);
    zc_tunnel_relay_events(t, now);
    t->hangup = false; /* the host knows */
}

bool zc_tunnel_relay_hangup(struct zc_tunnel *t)
{
    bool due = t->hangup;
    t->hangup = false;
    return due;
}

void zc_tunnel_relay_inherit(struct zc_tunnel *t)
{
    t->hangup = true;
}

static void logged_in(struct zc_tunnel *t, struct zc_now now)
{
    t->online = true;
    t->relay_up_due = true;
    zc_derp_dial_up(&t->dial, now.mono, t->v6);
    if (t->role == ZC_TUNNEL_CLIENT) { /* the handshake wakes what waits */
        zc_tunnel_client_meow(t, now, "");
        return;
    }
    for (struct zc_list *l = t->peers.next; l != &t->peers; l = l->next)
        zc_tcpmux_nudge(t->mux, now, &ZC_CONTAINER(l, struct zc_tunnel_peer, all)->addr);
}

static void peer_gone(struct zc_tunnel *t, struct zc_now now, const struct zc_derp_event *ev)
{
    struct zc_tunnel_peer *p = zc_tunnel_peer_find(t, &ev->key);
    if (p == NULL)
        return;
    if (t->role != ZC_TUNNEL_CLIENT) {
        zc_tunnel_peer_is_down(t, p, "the relay says that it is not connected");
        return;
    }
    zc_tunnel_client_meow(t, now, "the relay says that it is not connected");
    if (!ev->was_here)
        return;
    /* derper tells each connection once about a key, not when it leaves the next time. Thousands
     * of clients may hear it in the same moment. */
    zc_derp_lost(t->derp, now, "dialled anew, since it says only once that a hub leaves");
    zc_tunnel_relay_events(t, now);
    t->relay_down_due = false; /* nobody need know: the relay is well */
    zc_derp_dial_soon(&t->dial, now.mono, t->rng, ZC_TUNNEL_SPREAD_MS);
}

void zc_tunnel_relay_events(struct zc_tunnel *t, struct zc_now now)
{
    struct zc_derp_event ev;
    while (zc_derp_event(t->derp, now, t->rng, &ev)) {
        switch (ev.kind) {
        case ZC_DERP_EVENT_UP:
            logged_in(t, now);
            break;
        case ZC_DERP_EVENT_PACKET:
            zc_tunnel_input_packet(t, now, &ev.key, ev.data, ev.len);
            break;
        case ZC_DERP_EVENT_PEER_GONE:
            peer_gone(t, now, &ev);
            break;
        case ZC_DERP_EVENT_HEALTH:
            snprintf(t->says_text, sizeof(t->says_text), "%s", ev.text);
            t->relay_says_due = true;
            break;
        case ZC_DERP_EVENT_RESTARTING:
            zc_derp_dial_restarting(&t->dial, now.mono, ev.in_ms);
            break;
        case ZC_DERP_EVENT_CLOSED:
            t->hangup = true;
            stream_over(t, now, ev.text);
            break;
        }
    }
}

void zc_tunnel_relay_input(struct zc_tunnel *t, struct zc_now now, const uint8_t *data, size_t len)
{
    while (len > 0 && t->stream == ZC_TUNNEL_STREAM) {
        size_t n = zc_derp_input(t->derp, now, data, len);
        data += n;
        len -= n;
        zc_tunnel_relay_events(t, now);
    }
}

void zc_tunnel_relay_send(struct zc_tunnel *t, struct zc_now now, const struct zc_key *key,
                          const uint8_t *data, size_t len)
{
    zc_derp_send(t->derp, now, key, zc_slice(data, len));
}

/* The next packet of WireGuard or TCP; false when there is none. */
static bool make_data(struct zc_tunnel *t, struct zc_now now)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    struct zc_wgpeer *peer;
    struct zc_ip6_addr dst;
    size_t len = zc_wg_output(&t->wg, now, buf, &peer);
    if (len > 0) {
        zc_tunnel_relay_send(t, now, zc_wg_peer_public(peer), buf, len);
        return true;
    }
    zc_tcpmux_output(t->mux, now, NULL, buf + ZC_WG_HEADER, ZC_IP6_MTU, &len, &dst);
    if (len == 0)
        return false;
    struct zc_tunnel_peer *p = zc_tunnel_peer_at(t, &dst);
    if (p == NULL)
        return true;
    len = zc_wg_send(&t->wg, now, p->wg, buf, len);
    if (len > 0)
        zc_tunnel_relay_send(t, now, &p->key, buf, len);
    return true;
}

/* Makes one packet; false when there is none. */
static bool make_packet(struct zc_tunnel *t, struct zc_now now)
{
    uint8_t buf[ZC_MEOW_PING_LEN];
    struct zc_list *first = zc_list_first(&t->owed);
    if (zc_tunnel_peer_part(t, now))
        return true;
    if (first != NULL) {
        zc_list_remove(first);
        zc_meow_encode_meowed(buf);
        zc_tunnel_relay_send(t, now, &ZC_CONTAINER(first, struct zc_tunnel_peer, owed)->key, buf,
                             ZC_MEOW_MEOWED_LEN);
        return true;
    }
    if (t->role == ZC_TUNNEL_CLIENT && zc_tunnel_client_ping(t, now, buf)) {
        zc_tunnel_relay_send(t, now, &t->server->key, buf, ZC_MEOW_PING_LEN);
        return true;
    }
    return make_data(t, now);
}

size_t zc_tunnel_relay_output(struct zc_tunnel *t, struct zc_now now, uint8_t *buf, size_t cap)
{
    size_t total = 0, n;
    if (t->stream != ZC_TUNNEL_STREAM)
        return 0;
    do {
        while (t->online && zc_derp_room(t->derp) > 0 && make_packet(t, now))
            continue;
        n = zc_derp_output(t->derp, now, buf + total, cap - total);
        total += n;
    } while (n > 0 && total < cap);
    return total;
}

void zc_tunnel_relay_hurry(struct zc_tunnel *t, struct zc_now now)
{
    if (t->online)
        zc_derp_probe(t->derp, now, t->rng, PROBE_MS);
    else
        zc_derp_dial_hurry(&t->dial, now.mono);
    if (t->stream == ZC_TUNNEL_DIALLING)
        t->dial_till = zc_mono_min(t->dial_till, zc_mono_add_ms(now.mono, PROBE_MS));
}

void zc_tunnel_relay_tick(struct zc_tunnel *t, struct zc_now now)
{
    zc_derp_tick(t->derp, now, t->rng);
    zc_tunnel_relay_events(t, now);
    if (now.mono.ns >= t->dial_till.ns && t->stream == ZC_TUNNEL_DIALLING) {
        bool whole = zc_mono_diff_ms(t->dial.began_at, now.mono) >= DIAL_MS;
        t->hangup = true;
        stream_over(t, now,
                    whole ? "the connection to the relay was not made within 10 s"
                          : "the network changed while the connection to the relay was made");
    }
}

struct zc_mono zc_tunnel_relay_deadline(const struct zc_tunnel *t)
{
    struct zc_mono at = zc_mono_min(zc_derp_deadline(t->derp), t->dial_till);
    return zc_mono_min(at, zc_derp_dial_deadline(&t->dial));
}

int zc_tunnel_set_relays(struct zc_tunnel *t, struct zc_now now,
                         const struct zc_derpmap_node *relays, uint32_t count, uint16_t region_id)
{
    if (count > ZC_TUNNEL_RELAYS_MAX)
        return ZC_EINVAL;
    if (t->stream == ZC_TUNNEL_DIALLING) {
        t->hangup = true;
        stream_over(t, now, "another relay is wanted");
    }
    zc_derp_lost(t->derp, now, "another relay is wanted");
    zc_tunnel_relay_events(t, now);
    if (count > 0)
        memcpy(t->relays, relays, count * sizeof(*relays));
    t->relays_count = count;
    t->region_id = region_id;
    t->relay = NULL;
    zc_derp_dial_init(&t->dial, t->relays, count, now.mono);
    return 0;
}
