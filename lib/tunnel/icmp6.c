/* ICMPv6, see icmp6.h. */
#include "tunnel/icmp6.h"

enum { TYPE_TOO_BIG = 2, TYPE_LAST_ERROR = 127, TYPE_ECHO_REQUEST = 128, TYPE_ECHO_REPLY = 129 };
enum { HEADER = 8 };

static uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

struct zc_icmp6 zc_icmp6_parse(const struct zc_ip6 *ip)
{
    struct zc_icmp6 m = {.kind = ZC_ICMP6_BAD};
    const uint8_t *p = ip->payload.data;
    if (ip->payload.len < HEADER ||
        zc_ip6_checksum(&ip->src, &ip->dst, ZC_IP6_ICMP, ip->payload) != 0)
        return m;
    m.rest = zc_slice(p + HEADER, ip->payload.len - HEADER);
    if (p[0] == TYPE_ECHO_REQUEST || p[0] == TYPE_ECHO_REPLY) {
        m.kind = p[0] == TYPE_ECHO_REQUEST ? ZC_ICMP6_ECHO_REQUEST : ZC_ICMP6_ECHO_REPLY;
        m.id = get_u16(p + 4);
        m.seq = get_u16(p + 6);
    } else if (p[0] == TYPE_TOO_BIG) {
        m.kind = ZC_ICMP6_TOO_BIG;
        m.mtu = (uint32_t)get_u16(p + 4) << 16 | get_u16(p + 6);
    } else {
        m.kind = p[0] <= TYPE_LAST_ERROR ? ZC_ICMP6_ERROR : ZC_ICMP6_OTHER;
    }
    return m;
}

/* Headers around the len bytes that stand behind them already; returns the whole size. */
static size_t seal(uint8_t *buf, const struct zc_ip6_addr *src, const struct zc_ip6_addr *dst,
                   uint8_t type, uint32_t word, size_t len)
{
    uint8_t *p = buf + ZC_IP6_HEADER;
    zc_ip6_header(buf, src, dst, ZC_IP6_ICMP, HEADER + len);
    memset(p, 0, 4);
    p[0] = type;
    put_u16(p + 4, (uint16_t)(word >> 16));
    put_u16(p + 6, (uint16_t)word);
    put_u16(p + 2, zc_ip6_checksum(src, dst, ZC_IP6_ICMP, zc_slice(p, HEADER + len)));
    return ZC_IP6_HEADER + HEADER + len;
}

size_t zc_icmp6_echo(uint8_t *buf, size_t cap, const struct zc_ip6_addr *src,
                     const struct zc_ip6_addr *dst, bool reply, uint16_t id, uint16_t seq,
                     struct zc_slice data)
{
    const size_t headers = ZC_IP6_HEADER + HEADER;
    if (data.len > UINT16_MAX - HEADER || cap < headers || cap - headers < data.len)
        return 0;
    if (data.len > 0)
        memcpy(buf + headers, data.data, data.len);
    return seal(buf, src, dst, reply ? TYPE_ECHO_REPLY : TYPE_ECHO_REQUEST,
                (uint32_t)id << 16 | seq, data.len);
}

/* RFC 4443 2.4 e: no error about an error, nor to what is no single host. */
static bool may_answer(const struct zc_ip6 *ip)
{
    if (!zc_ip6_addr_unicast(&ip->src))
        return false;
    return ip->next != ZC_IP6_ICMP ||
           (ip->payload.len > 0 && ip->payload.data[0] > TYPE_LAST_ERROR);
}

size_t zc_icmp6_too_big(uint8_t *buf, size_t cap, const struct zc_ip6_addr *src,
                        struct zc_slice packet, uint32_t mtu)
{
    const size_t headers = ZC_IP6_HEADER + HEADER;
    struct zc_ip6 ip;
    if (zc_ip6_parse(packet.data, packet.len, &ip) != 0 || !may_answer(&ip))
        return 0;
    size_t quote = ZC_IP6_HEADER + ip.payload.len;
    if (quote > ZC_IP6_MTU - headers)
        quote = ZC_IP6_MTU - headers;
    if (cap < headers + quote)
        return 0;
    memcpy(buf + headers, packet.data, quote);
    return seal(buf, src, &ip.src, TYPE_TOO_BIG, mtu, quote);
}
