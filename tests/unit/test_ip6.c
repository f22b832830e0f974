/* IPv6 headers, the Internet checksum against a plain one, and ICMPv6. */
#include <arpa/inet.h>

#include "base/rng.h"
#include "test.h"
#include "tunnel/icmp6.h"
#include "tunnel/tunnel_priv.h"
#include "vector.h"

static const struct zc_ip6_addr A = {{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0, 1}};
static const struct zc_ip6_addr B = {{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0, 2}};

/* RFC 1071, word by word. */
static uint16_t plain_checksum(const struct zc_ip6_addr *src, const struct zc_ip6_addr *dst,
                               uint8_t next, const uint8_t *p, size_t len)
{
    uint8_t all[40 + 4096 + 1] = {0};
    memcpy(all, src->b, 16);
    memcpy(all + 16, dst->b, 16);
    all[34] = (uint8_t)(len >> 8);
    all[35] = (uint8_t)len;
    all[39] = next;
    memcpy(all + 40, p, len);
    uint32_t sum = 0;
    for (size_t i = 0; i < 40 + len; i += 2)
        sum += (uint32_t)(all[i] << 8 | all[i + 1]);
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

TEST(checksum_is_the_plain_one)
{
    uint8_t seed[32] = {1}, data[1300];
    struct zc_rng rng;
    zc_rng_init(&rng, seed);
    for (size_t len = 0; len < 1280; len++) {
        size_t shift = len % 7; /* any alignment */
        zc_rng_bytes(&rng, data, sizeof(data));
        if (len % 5 == 0)
            memset(data, 0xff, sizeof(data));
        CHECK_INT(zc_ip6_checksum(&A, &B, 6, zc_slice(data + shift, len)),
                  plain_checksum(&A, &B, 6, data + shift, len));
    }
}

/* The example of RFC 1071 section 3 inside a pseudo header of zeros. */
TEST(checksum_known)
{
    static const uint8_t data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    struct zc_ip6_addr zero = {{0}};
    /* ddf2 and the length 8 */
    CHECK_INT(zc_ip6_checksum(&zero, &zero, 0, zc_slice(data, 8)), (uint16_t) ~(0xddf2 + 8));
}

TEST(header_round_trip)
{
    uint8_t p[ZC_IP6_HEADER + 100] = {0};
    struct zc_ip6 ip;
    zc_ip6_header(p, &A, &B, ZC_IP6_TCP, 60);
    CHECK(p[0] == 0x60 && p[1] == 0 && p[2] == 0 && p[3] == 0 && p[7] == 64);
    /* 40 bytes of padding behind it */
    CHECK_INT(zc_ip6_parse(p, sizeof(p), &ip), 0);
    CHECK(zc_ip6_addr_eq(&ip.src, &A) && zc_ip6_addr_eq(&ip.dst, &B));
    CHECK_INT(ip.next, ZC_IP6_TCP);
    CHECK_INT(ip.hops, 64);
    CHECK(ip.payload.data == p + 40 && ip.payload.len == 60);
    for (size_t len = 0; len < 100; len++)
        CHECK_INT(zc_ip6_parse(p, len, &ip), ZC_EBADMSG);
    CHECK_INT(zc_ip6_parse(p, 100, &ip), 0);
    p[0] = 0x45;
    CHECK_INT(zc_ip6_parse(p, sizeof(p), &ip), ZC_EBADMSG);
}

TEST(single_hosts)
{
    static const struct {
        uint8_t first[2], last;
        bool single;
    } cases[] = {
        {{0xfd, 0x7a}, 1, true},  {{0x00, 0x00}, 0, false}, {{0x00, 0x00}, 1, false},
        {{0x00, 0x00}, 2, true},  {{0xff, 0x02}, 1, false}, {{0xfe, 0x80}, 1, false},
        {{0xfe, 0xbf}, 1, false}, {{0xfe, 0xc0}, 1, true},  {{0x20, 0x01}, 0, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zc_ip6_addr a = {{cases[i].first[0], cases[i].first[1]}};
        a.b[15] = cases[i].last;
        CHECK_INT(zc_ip6_addr_unicast(&a), cases[i].single);
    }
}

/* Where a node key is found inside the tunnel. */
TEST(addresses_of_nodes)
{
    struct vec_each it = vec_each(vec_section("keys"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        struct zc_key key;
        struct zc_ip6_addr addr;
        char text[INET6_ADDRSTRLEN] = "";
        CHECK_INT(vec_hex(&v, "node_public", key.b, 32), 32);
        zc_tunnel_peer_address(&key, &addr);
        CHECK(inet_ntop(AF_INET6, addr.b, text, sizeof(text)) != NULL);
        CHECK(zc_slice_is(vec_text(&v, "tunnel_ipv6"), text));
        seen++;
    }
    CHECK_INT(seen, 5);
}

TEST(echo)
{
    uint8_t buf[ZC_IP6_MTU], data[1232];
    struct zc_ip6 ip;
    memset(data, 7, sizeof(data));
    CHECK_INT(zc_icmp6_echo(buf, sizeof(buf), &A, &B, false, 258, 3, zc_slice(data, 1232)), 1280);
    CHECK_INT(zc_ip6_parse(buf, 1280, &ip), 0);
    struct zc_icmp6 m = zc_icmp6_parse(&ip);
    CHECK_INT(m.kind, ZC_ICMP6_ECHO_REQUEST);
    CHECK(m.id == 258 && m.seq == 3 && zc_slice_eq(m.rest, zc_slice(data, 1232)));
    CHECK_INT(buf[40], 128);
    CHECK_INT(zc_icmp6_echo(buf, 1279, &A, &B, false, 258, 3, zc_slice(data, 1232)), 0);
    CHECK_INT(zc_icmp6_echo(buf, 47, &A, &B, true, 1, 2, zc_slice(NULL, 0)), 0);
    CHECK_INT(zc_icmp6_echo(buf, 48, &A, &B, true, 1, 2, zc_slice(NULL, 0)), 48);
    CHECK_INT(buf[40], 129);
    CHECK_INT(zc_ip6_parse(buf, 48, &ip), 0);
    CHECK_INT(zc_icmp6_parse(&ip).kind, ZC_ICMP6_ECHO_REPLY);
    /* Each changed bit is noticed. */
    for (int bit = 0; bit < 64; bit++) {
        buf[40 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_INT(zc_icmp6_parse(&ip).kind, ZC_ICMP6_BAD);
        buf[40 + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ip.payload.len = 7;
    CHECK_INT(zc_icmp6_parse(&ip).kind, ZC_ICMP6_BAD);
}

TEST(too_big)
{
    uint8_t packet[2000] = {0}, buf[ZC_IP6_MTU];
    struct zc_ip6 ip;
    zc_ip6_header(packet, &A, &B, ZC_IP6_TCP, sizeof(packet) - 40);
    CHECK_INT(zc_icmp6_too_big(buf, sizeof(buf), &B, zc_slice(packet, 2000), 1280), 1280);
    CHECK_INT(zc_ip6_parse(buf, 1280, &ip), 0);
    CHECK(zc_ip6_addr_eq(&ip.src, &B) && zc_ip6_addr_eq(&ip.dst, &A));
    struct zc_icmp6 m = zc_icmp6_parse(&ip);
    CHECK_INT(m.kind, ZC_ICMP6_TOO_BIG);
    CHECK_INT(m.mtu, 1280);
    CHECK(zc_slice_eq(m.rest, zc_slice(packet, 1232)));
    CHECK_INT(zc_icmp6_too_big(buf, 1279, &B, zc_slice(packet, 2000), 1280), 0);
    CHECK_INT(zc_icmp6_too_big(buf, sizeof(buf), &B, zc_slice(packet, 1999), 1280), 0);
    /* An error is not answered with an error, an echo is. */
    packet[6] = ZC_IP6_ICMP;
    packet[40] = 1;
    CHECK_INT(zc_icmp6_too_big(buf, sizeof(buf), &B, zc_slice(packet, 2000), 1280), 0);
    packet[40] = 128;
    CHECK_INT(zc_icmp6_too_big(buf, sizeof(buf), &B, zc_slice(packet, 2000), 1280), 1280);
    packet[8] = 0xff;
    CHECK_INT(zc_icmp6_too_big(buf, sizeof(buf), &B, zc_slice(packet, 2000), 1280), 0);
}
