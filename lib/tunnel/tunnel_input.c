/* Packets from the relay: whose they are, and to which part of the tunnel they go; see tunnel.h. */
#include "tunnel/tunnel_priv.h"

static void meow_packet(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from,
                        const struct zc_meow *meow)
{
    if (meow->kind == ZC_MEOW_PING && t->role == ZC_TUNNEL_SERVER)
        zc_tunnel_server_meow(t, now, from, meow);
    else if (meow->kind == ZC_MEOW_MEOWED && t->role == ZC_TUNNEL_CLIENT)
        zc_tunnel_client_meowed(t, now, from);
}

void zc_tunnel_input_packet(struct zc_tunnel *t, struct zc_now now, const struct zc_key *from,
                            uint8_t *data, size_t len)
{
    struct zc_slice packet = zc_slice(data, len);
    struct zc_key sender;
    bool disco = zc_disco_sender(packet, &sender);
    if (!disco) {
        struct zc_meow meow = zc_meow_decode(packet);
        if (meow.kind != ZC_MEOW_NONE) {
            meow_packet(t, now, from, &meow);
            return;
        }
    }
    struct zc_tunnel_peer *p = zc_tunnel_peer_find(t, from);
    if (p == NULL || p->leaving)
        return;
    if (!disco) {
        zc_wg_stray(&t->wg, now, p->wg, data, len);
        zc_wg_input(&t->wg, now, data, len);
        zc_tunnel_input_events(t, now);
    } else if (zc_secret_key_equal(&sender, &p->disco_key)) {
        zc_tunnel_peer_disco(t, now, p, packet);
    }
}

void zc_tunnel_input_events(struct zc_tunnel *t, struct zc_now now)
{
    struct zc_wg_event ev;
    while (zc_wg_event(&t->wg, &ev)) {
        struct zc_tunnel_peer *p = zc_wg_peer_data(ev.peer);
        if (p->leaving)
            continue;
        if (ev.kind == ZC_WG_DATA) {
            p->heard_at = now.mono;
            zc_tcpmux_input(t->mux, now, ev.packet.data, ev.packet.len);
        } else if (ev.kind == ZC_WG_TWIN_OF_PEER || ev.kind == ZC_WG_TWIN_OF_OURS) {
            zc_tunnel_peer_twin(t, now, p, ev.kind == ZC_WG_TWIN_OF_OURS);
        } else if (t->role == ZC_TUNNEL_CLIENT) {
            zc_tunnel_client_wg(t, now, &ev);
        } else if (ev.kind == ZC_WG_HANDSHAKE_DONE) {
            zc_tunnel_peer_is_up(t, now, p, p->came_back);
            p->came_back = false;
        } else if (ev.kind == ZC_WG_GAVE_UP) {
            zc_tunnel_peer_is_down(t, p, "it does not answer");
        }
    }
}
