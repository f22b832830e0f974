/* STUN messages; see stun.h. */
#include "tunnel/stun.h"

#include <string.h>

enum { HEAD = 20, ATTR_HEAD = 4, AT_COOKIE = 4, AT_TXID = 8 };
enum { TYPE_REQUEST = 0x0001, TYPE_RESPONSE = 0x0101 };
enum {
    ATTR_MAPPED = 0x0001,
    ATTR_XOR_MAPPED = 0x0020,
    ATTR_XOR_MAPPED_OLD = 0x8020,
    ATTR_SOFTWARE = 0x8022,
    ATTR_FINGERPRINT = 0x8028,
};
enum { FAMILY_IP4 = 1, FAMILY_IP6 = 2 };

static const uint8_t stun_cookie[4] = {0x21, 0x12, 0xa4, 0x42};
static const uint8_t stun_software[8] = {'t', 'a', 'i', 'l', 'n', 'o', 'd', 'e'};
/* How a disco endpoint begins that holds an IPv4 address. */
static const uint8_t stun_ip4[12] = {[10] = 0xff, 0xff};

struct stun_attr {
    uint16_t type;
    struct zc_slice value;
};

static uint16_t stun_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* Two numbers, since nearly all come in pairs: type and length. */
static uint8_t *stun_put(uint8_t *p, unsigned a, unsigned b)
{
    p[0] = (uint8_t)(a >> 8);
    p[1] = (uint8_t)a;
    p[2] = (uint8_t)(b >> 8);
    p[3] = (uint8_t)b;
    return p + 4;
}

/* Bit by bit: a request has 32 bytes of it, and 1500 are the most. */
static uint32_t stun_fingerprint(const uint8_t *p, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320 & -(crc & 1));
    }
    return ~crc ^ 0x5354554e;
}

bool zc_stun_is(struct zc_slice packet)
{
    return packet.len >= HEAD && packet.len <= ZC_STUN_PACKET_MAX && (packet.data[0] & 0xc0) == 0 &&
           packet.data[1] == 1 &&
           memcmp(packet.data + AT_COOKIE, stun_cookie, sizeof(stun_cookie)) == 0;
}

/* The attributes of a message of this type, as long as it says. */
static bool stun_open(struct zc_slice packet, uint16_t type, struct zc_slice *ret_attrs)
{
    if (!zc_stun_is(packet) || stun_u16(packet.data) != type)
        return false;
    size_t len = stun_u16(packet.data + 2);
    if (len > packet.len - HEAD)
        return false;
    *ret_attrs = zc_slice(packet.data + HEAD, len);
    return true;
}

/* Takes the next attribute off rest. False at the end, and then rest is empty unless the attributes
 * are malformed. */
static bool stun_next(struct zc_slice *rest, struct stun_attr *ret_attr)
{
    if (rest->len < ATTR_HEAD)
        return false;
    size_t len = stun_u16(rest->data + 2), padded = (len + 3) / 4 * 4;
    if (padded > rest->len - ATTR_HEAD)
        return false;
    ret_attr->type = stun_u16(rest->data);
    ret_attr->value = zc_slice(rest->data + ATTR_HEAD, len);
    *rest = zc_slice(rest->data + ATTR_HEAD + padded, rest->len - ATTR_HEAD - padded);
    return true;
}

static uint8_t *stun_head(uint8_t *p, uint16_t type, size_t len, const uint8_t *txid)
{
    stun_put(p, type, (unsigned)len);
    memcpy(p + AT_COOKIE, stun_cookie, sizeof(stun_cookie));
    memcpy(p + AT_TXID, txid, ZC_STUN_TXID);
    return p + HEAD;
}

void zc_stun_encode_request(const uint8_t txid[ZC_STUN_TXID],
                            uint8_t ret_packet[ZC_STUN_REQUEST_LEN])
{
    uint8_t *p = stun_head(ret_packet, TYPE_REQUEST, ZC_STUN_REQUEST_LEN - HEAD, txid);
    p = stun_put(p, ATTR_SOFTWARE, sizeof(stun_software));
    memcpy(p, stun_software, sizeof(stun_software));
    p += sizeof(stun_software);
    uint32_t fingerprint = stun_fingerprint(ret_packet, (size_t)(p - ret_packet));
    p = stun_put(p, ATTR_FINGERPRINT, 4);
    stun_put(p, fingerprint >> 16, fingerprint);
}

bool zc_stun_decode_request(struct zc_slice packet, uint8_t ret_txid[ZC_STUN_TXID])
{
    struct zc_slice rest;
    struct stun_attr attr = {0};
    struct zc_slice software = {0};
    if (!stun_open(packet, TYPE_REQUEST, &rest) || rest.len != packet.len - HEAD)
        return false;
    while (stun_next(&rest, &attr)) {
        if (attr.type == ATTR_SOFTWARE && software.data == NULL)
            software = attr.value;
    }
    if (rest.len != 0 || attr.type != ATTR_FINGERPRINT || attr.value.len != 4 ||
        !zc_slice_eq(software, zc_slice(stun_software, sizeof(stun_software))))
        return false;
    uint8_t want[4];
    size_t before = (size_t)(attr.value.data - packet.data) - ATTR_HEAD;
    uint32_t fingerprint = stun_fingerprint(packet.data, before);
    stun_put(want, fingerprint >> 16, fingerprint);
    if (memcmp(attr.value.data, want, sizeof(want)) != 0)
        return false;
    memcpy(ret_txid, packet.data + AT_TXID, ZC_STUN_TXID);
    return true;
}

size_t zc_stun_encode_response(const uint8_t txid[ZC_STUN_TXID],
                               const struct zc_disco_endpoint *mapped,
                               uint8_t ret_packet[ZC_STUN_RESPONSE_MAX])
{
    bool ip4 = memcmp(mapped->address, stun_ip4, sizeof(stun_ip4)) == 0;
    size_t skip = ip4 ? sizeof(stun_ip4) : 0, len = sizeof(mapped->address) - skip;
    uint8_t *p = stun_head(ret_packet, TYPE_RESPONSE, 2 * ATTR_HEAD + len, txid);
    /* Cookie and txid, as they stand in the packet. */
    const uint8_t *mask = ret_packet + AT_COOKIE;
    p = stun_put(p, ATTR_XOR_MAPPED, (unsigned)(ATTR_HEAD + len));
    p = stun_put(p, ip4 ? FAMILY_IP4 : FAMILY_IP6, mapped->port ^ stun_u16(mask));
    for (size_t i = 0; i < len; i++)
        p[i] = mapped->address[skip + i] ^ mask[i];
    return (size_t)(p - ret_packet) + len;
}

/* An address with 16 bytes of mask; the first of a kind is kept in *kept. False: malformed. */
static bool stun_address(struct zc_slice value, const uint8_t *mask, bool *has,
                         struct zc_disco_endpoint *kept)
{
    struct zc_disco_endpoint e = {0};
    size_t skip = 0;
    if (value.len < ATTR_HEAD)
        return false;
    if (value.data[1] == FAMILY_IP4) {
        skip = sizeof(stun_ip4);
        memcpy(e.address, stun_ip4, skip);
    } else if (value.data[1] != FAMILY_IP6) {
        return false;
    }
    size_t len = sizeof(e.address) - skip;
    if (value.len != ATTR_HEAD + len)
        return false;
    e.port = stun_u16(value.data + 2) ^ stun_u16(mask);
    for (size_t i = 0; i < len; i++)
        e.address[skip + i] = value.data[ATTR_HEAD + i] ^ mask[i];
    if (!*has)
        *kept = e;
    *has = true;
    return true;
}

bool zc_stun_decode_response(struct zc_slice packet, uint8_t ret_txid[ZC_STUN_TXID],
                             struct zc_disco_endpoint *ret_mapped)
{
    static const uint8_t no_mask[16];
    struct zc_slice rest;
    struct stun_attr attr;
    struct zc_disco_endpoint plain, masked;
    bool has_plain = false, has_masked = false, good = true;
    if (!stun_open(packet, TYPE_RESPONSE, &rest))
        return false;
    while (good && stun_next(&rest, &attr)) {
        if (attr.type == ATTR_XOR_MAPPED || attr.type == ATTR_XOR_MAPPED_OLD)
            good = stun_address(attr.value, packet.data + AT_COOKIE, &has_masked, &masked);
        else if (attr.type == ATTR_MAPPED)
            good = stun_address(attr.value, no_mask, &has_plain, &plain);
    }
    if (!good || rest.len != 0 || !(has_plain || has_masked))
        return false;
    memcpy(ret_txid, packet.data + AT_TXID, ZC_STUN_TXID);
    *ret_mapped = has_masked ? masked : plain;
    return true;
}
