/* Meow packets; see meow.h. */
#include "tunnel/meow.h"

#include <string.h>

static const uint8_t meow_magic[4] = {'m', 'e', 'o', 'w'};

enum { MEOW_PING = 1, MEOW_MEOWED = 2 };

struct zc_meow zc_meow_decode(struct zc_slice packet)
{
    struct zc_meow m = {.kind = ZC_MEOW_NONE};
    if (!zc_slice_starts(packet, zc_slice(meow_magic, sizeof(meow_magic))))
        return m;
    m.kind = ZC_MEOW_BAD;
    if (packet.len < ZC_MEOW_MEOWED_LEN)
        return m;
    if (packet.data[4] == MEOW_MEOWED)
        m.kind = ZC_MEOW_MEOWED;
    if (packet.data[4] != MEOW_PING || packet.len < ZC_MEOW_PING_LEN)
        return m;
    memcpy(m.node_key.b, packet.data + 5, sizeof(m.node_key.b));
    memcpy(m.disco_key.b, packet.data + 37, sizeof(m.disco_key.b));
    if (!zc_secret_is_zero(m.disco_key.b, sizeof(m.disco_key.b)))
        m.kind = ZC_MEOW_PING;
    return m;
}

static void meow_head(uint8_t *packet, uint8_t type)
{
    memcpy(packet, meow_magic, sizeof(meow_magic));
    packet[4] = type;
}

void zc_meow_encode_ping(uint8_t ret_packet[ZC_MEOW_PING_LEN], const struct zc_key *node_key,
                         const struct zc_key *disco_key)
{
    meow_head(ret_packet, MEOW_PING);
    memcpy(ret_packet + 5, node_key->b, sizeof(node_key->b));
    memcpy(ret_packet + 37, disco_key->b, sizeof(disco_key->b));
}

void zc_meow_encode_meowed(uint8_t ret_packet[ZC_MEOW_MEOWED_LEN])
{
    meow_head(ret_packet, MEOW_MEOWED);
}
