/* The client's side of meow: how it becomes, stays and becomes again known to its server. */
#include "base/check.h"
#include "tunnel/tunnel_priv.h"

/* Meows without an answer, until the server counts as gone. */
#define QUIET_MS 3000
/* What comes so long after the first of them was not under way already. */
#define HEARD_MS 1000
#define ASK_EVERY_MS 5000

void zc_tunnel_client_meow(struct zc_tunnel *t, struct zc_now now, const char *why)
{
    zc_tunnel_peer_is_down(t, t->server, why);
    if (!t->online) {
        t->state = ZC_TUNNEL_DOWN;
        t->meow_at = ZC_NEVER;
        return;
    }
    if (t->state == ZC_TUNNEL_MEOW)
        return; /* a relay that answers each meow with PeerGone does not make them come faster */
    if (t->state != ZC_TUNNEL_HANDSHAKE)
        t->meow_since = now.mono;
    t->state = ZC_TUNNEL_MEOW;
    t->meow_at = now.mono;
}

/* Idle for so long that the keys are gone. Soon the server will not know us either, and the next
 * data would wait for an initiation that nobody answers. */
static void idle(struct zc_tunnel *t, struct zc_now now)
{
    if (t->state != ZC_TUNNEL_UP)
        return;
    t->state = ZC_TUNNEL_MEOW;
    t->meow_at = t->meow_since = now.mono;
}

void zc_tunnel_ask(struct zc_tunnel *t, struct zc_now now)
{
    if (t->state != ZC_TUNNEL_UP || now.mono.ns < t->ask_at.ns)
        return;
    t->ask_at = zc_mono_add_ms(now.mono, ASK_EVERY_MS);
    idle(t, now);
}

/* Meows get lost when many packets follow them, but data comes: the server knows us. */
static bool heard(struct zc_tunnel *t)
{
    if (!t->server->up || zc_mono_diff_ms(t->meow_since, t->server->heard_at) < HEARD_MS)
        return false;
    t->state = ZC_TUNNEL_UP;
    t->meow_at = ZC_NEVER;
    return true;
}

bool zc_tunnel_client_ping(struct zc_tunnel *t, struct zc_now now,
                           uint8_t ret_packet[ZC_MEOW_PING_LEN])
{
    if (t->state != ZC_TUNNEL_MEOW || now.mono.ns < t->meow_at.ns)
        return false;
    if (zc_mono_diff_ms(t->meow_since, now.mono) >= QUIET_MS) {
        if (heard(t))
            return false;
        if (t->server->up) /* once: is it the server, or the way to the relay? */
            zc_tunnel_relay_hurry(t, now);
        zc_tunnel_peer_is_down(t, t->server, "it does not answer");
    }
    bool fast = zc_mono_diff_ms(t->meow_since, now.mono) < ZC_TUNNEL_MEOW_FAST_FOR_MS;
    t->meow_at = zc_mono_add_ms(now.mono, fast ? ZC_TUNNEL_MEOW_MS : ZC_TUNNEL_MEOW_SLOW_MS);
    zc_meow_encode_ping(ret_packet, &t->node_key, &t->disco_key);
    return true;
}

void zc_tunnel_client_meowed(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from)
{
    if (t->state != ZC_TUNNEL_MEOW || !zc_secret_key_equal(from, &t->server->key))
        return;
    t->state = ZC_TUNNEL_HANDSHAKE;
    t->meow_at = ZC_NEVER;
    /* Also when there is a session: only a new one proves that the server still has it. */
    zc_wg_handshake(&t->wg, now, t->server->wg);
}

/* The handshake is refused for a reason that will not go away soon. */
static void psk_wrong(struct zc_tunnel *t, struct zc_now now)
{
    zc_tunnel_peer_is_down(t, t->server, "it has another pre-shared key");
    zc_tunnel_peer_psk_wrong(t, t->server);
    if (!t->online)
        return;
    t->state = ZC_TUNNEL_MEOW;
    t->meow_since = (struct zc_mono){now.mono.ns - ZC_TUNNEL_MEOW_FAST_FOR_MS * ZC_NS_PER_MS};
    t->meow_at = zc_mono_add_ms(now.mono, ZC_TUNNEL_MEOW_SLOW_MS);
}

/* After a meow it may be with a server that has started again, and knows no connection. */
static void done(struct zc_tunnel *t, struct zc_now now)
{
    bool introduced = t->state == ZC_TUNNEL_HANDSHAKE;
    if (t->online) {
        t->state = ZC_TUNNEL_UP;
        t->meow_at = ZC_NEVER;
    }
    zc_tunnel_peer_is_up(t, now, t->server, introduced);
}

void zc_tunnel_client_wg(struct zc_tunnel *t, struct zc_now now, const struct zc_wg_event *ev)
{
    switch (ev->kind) {
    case ZC_WG_HANDSHAKE_DONE:
        done(t, now);
        break;
    case ZC_WG_UNANSWERED:
    case ZC_WG_GAVE_UP:
        if (t->state == ZC_TUNNEL_UP || t->state == ZC_TUNNEL_HANDSHAKE)
            zc_tunnel_client_meow(t, now, "it does not answer");
        break;
    case ZC_WG_BAD_RESPONSE:
        psk_wrong(t, now);
        break;
    case ZC_WG_ERASED:
        idle(t, now);
        break;
    default:
        break;
    }
}
