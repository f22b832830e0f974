/*
 * Any bytes as a STUN packet, and as the attributes of a response. What is read must be written the
 * same, must need all of its bytes and none behind them; what is written must be read the same.
 */
#include "tunnel/stun.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct zc_disco_endpoint *a, const struct zc_disco_endpoint *b)
{
    return memcmp(a->address, b->address, sizeof(a->address)) == 0 && a->port == b->port;
}

static void check_written(const uint8_t *txid, const struct zc_disco_endpoint *mapped)
{
    uint8_t packet[ZC_STUN_RESPONSE_MAX], again[ZC_STUN_TXID];
    struct zc_disco_endpoint got;
    size_t len = zc_stun_encode_response(txid, mapped, packet);
    ZC_ASSERT(len == 32 || len == ZC_STUN_RESPONSE_MAX);
    ZC_ASSERT(zc_stun_decode_response(zc_slice(packet, len), again, &got));
    ZC_ASSERT(same(&got, mapped) && memcmp(again, txid, sizeof(again)) == 0);
    ZC_ASSERT(!zc_stun_decode_request(zc_slice(packet, len), again));
    zc_stun_encode_request(txid, packet);
    ZC_ASSERT(zc_stun_decode_request(zc_slice(packet, ZC_STUN_REQUEST_LEN), again));
    ZC_ASSERT(memcmp(again, txid, sizeof(again)) == 0);
    ZC_ASSERT(!zc_stun_decode_response(zc_slice(packet, ZC_STUN_REQUEST_LEN), again, &got));
}

static void check_response(const uint8_t *data, size_t size)
{
    uint8_t txid[ZC_STUN_TXID];
    struct zc_disco_endpoint mapped, again;
    if (!zc_stun_decode_response(zc_slice(data, size), txid, &mapped))
        return;
    size_t len = 20 + (size_t)(data[2] << 8 | data[3]);
    ZC_ASSERT(len >= 32 && len <= size && len % 4 == 0 && size <= ZC_STUN_PACKET_MAX);
    ZC_ASSERT(data[0] == 1 && zc_stun_is(zc_slice(data, size)));
    ZC_ASSERT(memcmp(txid, data + 8, sizeof(txid)) == 0);
    ZC_ASSERT(zc_stun_decode_response(zc_slice(data, len), txid, &again) && same(&again, &mapped));
    ZC_ASSERT(!zc_stun_decode_response(zc_slice(data, len - 1), txid, &again));
    check_written(txid, &mapped);
}

static void check_request(const uint8_t *data, size_t size)
{
    uint8_t txid[ZC_STUN_TXID];
    if (!zc_stun_decode_request(zc_slice(data, size), txid))
        return;
    ZC_ASSERT(size >= ZC_STUN_REQUEST_LEN && size == 20 + (size_t)(data[2] << 8 | data[3]));
    ZC_ASSERT(data[0] == 0 && zc_stun_is(zc_slice(data, size)));
    ZC_ASSERT(memcmp(txid, data + 8, sizeof(txid)) == 0);
    ZC_ASSERT(!zc_stun_decode_request(zc_slice(data, size - 1), txid));
}

/* The same bytes behind a header, so that every input gets as far as the attributes. */
static void check_attributes(const uint8_t *data, size_t size)
{
    static const uint8_t head[20] = {1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 9, 8, 7, 6, 5, 4, 3, 2, 1};
    if (size > UINT16_MAX)
        return;
    uint8_t *packet = malloc(sizeof(head) + size); /* exact, for AddressSanitizer */
    ZC_ASSERT(packet != NULL);
    memcpy(packet, head, sizeof(head));
    packet[2] = (uint8_t)(size >> 8);
    packet[3] = (uint8_t)size;
    if (size > 0)
        memcpy(packet + sizeof(head), data, size);
    check_response(packet, sizeof(head) + size);
    free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_response(data, size);
    check_request(data, size);
    check_attributes(data, size);
    if (size >= ZC_STUN_TXID + 18) {
        struct zc_disco_endpoint e;
        memcpy(e.address, data + ZC_STUN_TXID, sizeof(e.address));
        e.port = (uint16_t)(data[28] << 8 | data[29]);
        check_written(data, &e);
    }
    return 0;
}
