/* Disco messages; see disco.h. */
#include "tunnel/disco.h"

#include <string.h>

#include "base/check.h"
#include "crypto/box.h"

static const uint8_t disco_magic[6] = {'T', 'S', 0xf0, 0x9f, 0x92, 0xac};

_Static_assert(sizeof(disco_magic) + 32 + ZC_BOX_NONCE == ZC_DISCO_HEAD, "head");
_Static_assert(ZC_DISCO_HEAD + ZC_BOX_TAG == ZC_DISCO_OVERHEAD, "overhead");

int zc_disco_peer_init(struct zc_disco_peer *p, const struct zc_secret *own_private,
                       const struct zc_key *own_key, const struct zc_key *peer_key)
{
    int err = zc_box_shared(own_private, peer_key, &p->shared);
    if (err != 0)
        return err;
    p->own_key = *own_key;
    p->peer_key = *peer_key;
    return 0;
}

void zc_disco_peer_done(struct zc_disco_peer *p)
{
    zc_secret_done(&p->shared);
}

bool zc_disco_sender(struct zc_slice packet, struct zc_key *ret_key)
{
    if (packet.len < sizeof(disco_magic) + 32 ||
        memcmp(packet.data, disco_magic, sizeof(disco_magic)) != 0)
        return false;
    memcpy(ret_key->b, packet.data + sizeof(disco_magic), sizeof(ret_key->b));
    return true;
}

size_t zc_disco_seal(const struct zc_disco_peer *p, struct zc_rng *rng, struct zc_slice payload,
                     uint8_t *ret_packet, size_t cap)
{
    if (cap < ZC_DISCO_OVERHEAD || payload.len > cap - ZC_DISCO_OVERHEAD)
        return 0;
    memcpy(ret_packet, disco_magic, sizeof(disco_magic));
    memcpy(ret_packet + 6, p->own_key.b, 32);
    zc_rng_bytes(rng, ret_packet + 38, ZC_BOX_NONCE);
    zc_box_seal(&p->shared, ret_packet + 38, payload, ret_packet + ZC_DISCO_HEAD);
    return payload.len + ZC_DISCO_OVERHEAD;
}

bool zc_disco_open(const struct zc_disco_peer *p, struct zc_slice packet,
                   struct zc_disco_msg *ret_msg)
{
    uint8_t payload[ZC_DISCO_PACKET_MAX];
    struct zc_key sender;
    if (packet.len < ZC_DISCO_OVERHEAD || packet.len > ZC_DISCO_PACKET_MAX ||
        !zc_disco_sender(packet, &sender) || memcmp(sender.b, p->peer_key.b, 32) != 0)
        return false;
    struct zc_slice box = zc_slice(packet.data + ZC_DISCO_HEAD, packet.len - ZC_DISCO_HEAD);
    if (zc_box_open(&p->shared, packet.data + 38, box, payload) != 0)
        return false;
    return zc_disco_decode(zc_slice(payload, box.len - ZC_BOX_TAG), ret_msg);
}

static struct zc_disco_endpoint disco_endpoint(const uint8_t *p)
{
    struct zc_disco_endpoint e;
    memcpy(e.address, p, sizeof(e.address));
    e.port = (uint16_t)(p[16] << 8 | p[17]);
    return e;
}

static bool disco_ping(struct zc_slice body, struct zc_disco_msg *m)
{
    if (body.len < ZC_DISCO_TXID)
        return false;
    memcpy(m->txid, body.data, ZC_DISCO_TXID);
    m->has_node_key = body.len >= ZC_DISCO_TXID + 32;
    if (m->has_node_key) {
        memcpy(m->node_key.b, body.data + ZC_DISCO_TXID, 32);
        m->padding = (uint32_t)body.len - ZC_DISCO_TXID - 32;
    }
    return true;
}

static bool disco_pong(struct zc_slice body, struct zc_disco_msg *m)
{
    if (body.len < ZC_DISCO_TXID + 18)
        return false;
    memcpy(m->txid, body.data, ZC_DISCO_TXID);
    m->seen = disco_endpoint(body.data + ZC_DISCO_TXID);
    return true;
}

/* Another version, or a list that does not come out even, is an empty list. */
static bool disco_call(struct zc_slice body, uint8_t version, struct zc_disco_msg *m)
{
    if (version != 0 || body.len % 18 != 0)
        return true;
    for (size_t at = 0; at < body.len && m->endpoints_count < ZC_DISCO_ENDPOINTS_MAX; at += 18)
        m->endpoints[m->endpoints_count++] = disco_endpoint(body.data + at);
    return true;
}

bool zc_disco_decode(struct zc_slice payload, struct zc_disco_msg *ret_msg)
{
    struct zc_disco_msg *m = ret_msg;
    if (payload.len < 2)
        return false;
    /* The list is as long as its count says, so the rest of it need not be cleared. */
    memset(m, 0, offsetof(struct zc_disco_msg, endpoints));
    m->type = (enum zc_disco_type)payload.data[0];
    struct zc_slice body = zc_slice(payload.data + 2, payload.len - 2);
    switch (m->type) {
    case ZC_DISCO_PING:
        return disco_ping(body, m);
    case ZC_DISCO_PONG:
        return disco_pong(body, m);
    case ZC_DISCO_CALL:
        return disco_call(body, payload.data[1], m);
    }
    return false;
}

static size_t disco_put_endpoint(uint8_t *out, const struct zc_disco_endpoint *e)
{
    memcpy(out, e->address, sizeof(e->address));
    out[16] = (uint8_t)(e->port >> 8);
    out[17] = (uint8_t)e->port;
    return 18;
}

size_t zc_disco_encode(const struct zc_disco_msg *msg, uint8_t ret_payload[ZC_DISCO_PACKET_MAX])
{
    size_t n = 2;
    ret_payload[0] = (uint8_t)msg->type;
    ret_payload[1] = 0;
    if (msg->type != ZC_DISCO_CALL) {
        memcpy(ret_payload + n, msg->txid, ZC_DISCO_TXID);
        n += ZC_DISCO_TXID;
    }
    if (msg->type == ZC_DISCO_PONG)
        n += disco_put_endpoint(ret_payload + n, &msg->seen);
    if (msg->type == ZC_DISCO_PING && msg->has_node_key) {
        ZC_ASSERT(msg->padding <= ZC_DISCO_PACKET_MAX - ZC_DISCO_PING_LEN);
        memcpy(ret_payload + n, msg->node_key.b, 32);
        memset(ret_payload + n + 32, 0, msg->padding);
        n += 32 + msg->padding;
    }
    if (msg->type == ZC_DISCO_CALL) {
        ZC_ASSERT(msg->endpoints_count <= ZC_DISCO_ENDPOINTS_MAX);
        for (uint32_t i = 0; i < msg->endpoints_count; i++)
            n += disco_put_endpoint(ret_payload + n, &msg->endpoints[i]);
    }
    return n;
}

size_t zc_disco_answer(const struct zc_disco_peer *p, struct zc_rng *rng, uint16_t region_id,
                       struct zc_slice packet, uint8_t *ret_packet, size_t cap)
{
    /* The address that stands for the relay; the port names its region. */
    static const uint8_t relay[16] = {[10] = 0xff, [11] = 0xff, 127, 3, 3, 40};
    uint8_t payload[ZC_DISCO_PACKET_MAX];
    struct zc_disco_msg ping, pong;
    if (!zc_disco_open(p, packet, &ping) || ping.type != ZC_DISCO_PING)
        return 0;
    memset(&pong, 0, offsetof(struct zc_disco_msg, endpoints));
    pong.type = ZC_DISCO_PONG;
    memcpy(pong.txid, ping.txid, sizeof(pong.txid));
    memcpy(pong.seen.address, relay, sizeof(relay));
    pong.seen.port = region_id;
    return zc_disco_seal(p, rng, zc_slice(payload, zc_disco_encode(&pong, payload)), ret_packet,
                         cap);
}
