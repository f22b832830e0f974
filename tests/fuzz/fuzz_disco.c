/*
 * Any bytes as a disco payload, which must come back the same from encode, as a packet, which
 * nobody can have sealed, and as a meow.
 */
#include <string.h>

#include "base/check.h"
#include "crypto/x25519.h"
#include "tunnel/disco.h"
#include "tunnel/meow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_payload(const uint8_t *data, size_t size)
{
    uint8_t out[ZC_DISCO_PACKET_MAX];
    struct zc_disco_msg msg, again;
    if (size > ZC_DISCO_PACKET_MAX - ZC_DISCO_OVERHEAD ||
        !zc_disco_decode(zc_slice(data, size), &msg))
        return;
    size_t len = zc_disco_encode(&msg, out);
    ZC_ASSERT(len <= sizeof(out) && (len <= size || msg.type == ZC_DISCO_CALL));
    ZC_ASSERT(out[0] == data[0] && zc_disco_decode(zc_slice(out, len), &again));
    ZC_ASSERT(memcmp(msg.txid, again.txid, sizeof(msg.txid)) == 0);
    ZC_ASSERT(msg.endpoints_count == again.endpoints_count && msg.padding == again.padding);
    ZC_ASSERT(msg.endpoints_count <= ZC_DISCO_ENDPOINTS_MAX);
    /* Padding is written as zeroes, and what is unknown is left out; the rest is the same. */
    size_t same = msg.type == ZC_DISCO_PING && len > ZC_DISCO_PING_LEN ? ZC_DISCO_PING_LEN : len;
    ZC_ASSERT(same <= 2 || memcmp(out + 2, data + 2, same - 2) == 0);
}

static void check_sealed(const uint8_t *data, size_t size)
{
    static const struct zc_secret a = {{1}}, b = {{2}};
    struct zc_disco_peer pa, pb;
    struct zc_rng rng;
    struct zc_key ka, kb;
    struct zc_disco_msg msg, plain;
    uint8_t seed[32] = {3}, packet[ZC_DISCO_PACKET_MAX], answer[ZC_DISCO_PACKET_MAX];
    zc_rng_init(&rng, seed);
    zc_x25519_public(&a, &ka);
    zc_x25519_public(&b, &kb);
    ZC_ASSERT(zc_disco_peer_init(&pa, &a, &ka, &kb) == 0);
    ZC_ASSERT(zc_disco_peer_init(&pb, &b, &kb, &ka) == 0);
    ZC_ASSERT(!zc_disco_open(&pb, zc_slice(data, size), &msg));
    size_t len = zc_disco_seal(&pa, &rng, zc_slice(data, size), packet, sizeof(packet));
    ZC_ASSERT(len == (size <= sizeof(packet) - ZC_DISCO_OVERHEAD ? size + ZC_DISCO_OVERHEAD : 0));
    if (len == 0)
        return;
    bool known = zc_disco_decode(zc_slice(data, size), &plain);
    ZC_ASSERT(zc_disco_open(&pb, zc_slice(packet, len), &msg) == known);
    size_t n = zc_disco_answer(&pb, &rng, 1, zc_slice(packet, len), answer, sizeof(answer));
    ZC_ASSERT((n > 0) == (known && plain.type == ZC_DISCO_PING));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zc_meow m = zc_meow_decode(zc_slice(data, size));
    if (m.kind == ZC_MEOW_PING) {
        uint8_t ping[ZC_MEOW_PING_LEN];
        zc_meow_encode_ping(ping, &m.node_key, &m.disco_key);
        ZC_ASSERT(memcmp(ping, data, sizeof(ping)) == 0);
    }
    check_payload(data, size);
    check_sealed(data, size);
    return 0;
}
