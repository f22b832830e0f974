/* ICMP's "fragmentation needed" and ICMPv6's "packet too big". */
#include "too_big.h"

#include <stdbool.h>
#include <string.h>

/* A message for a message could go on for ever (RFC 1122 3.2.2, RFC 4443 2.4). */
#define ICMP 1
#define ICMP6 58
#define ICMP6_ERROR_MAX 127

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static uint32_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
    for (size_t i = 0; i + 1 < len; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    if (len % 2 == 1)
        sum += (uint32_t)p[len - 1] << 8;
    return sum;
}

static uint32_t checksum(uint32_t sum)
{
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

static size_t answer4(const uint8_t *packet, size_t len, uint32_t mtu, uint8_t *a)
{
    size_t head = (size_t)(packet[0] & 15) * 4, quoted = head + 8;
    bool whole_only = (packet[6] & 0x40) != 0;
    if (head < 20 || len < quoted || !whole_only || packet[9] == ICMP)
        return 0;
    memset(a, 0, 28);
    a[0] = 0x45;
    put16(a + 2, (uint32_t)(28 + quoted));
    a[8] = 64;
    a[9] = ICMP;
    memcpy(a + 12, packet + 16, 4);
    memcpy(a + 16, packet + 12, 4);
    put16(a + 10, checksum(sum16(a, 20, 0)));
    a[20] = 3;
    a[21] = 4;
    put16(a + 26, mtu);
    memcpy(a + 28, packet, quoted);
    put16(a + 22, checksum(sum16(a + 20, 8 + quoted, 0)));
    return 28 + quoted;
}

static size_t answer6(const uint8_t *packet, size_t len, uint32_t mtu, uint8_t *a)
{
    size_t quoted = len < TOO_BIG_MAX - 48 ? len : TOO_BIG_MAX - 48;
    if (len < 41 || (packet[6] == ICMP6 && packet[40] <= ICMP6_ERROR_MAX))
        return 0;
    memset(a, 0, 48);
    a[0] = 0x60;
    put16(a + 4, (uint32_t)(8 + quoted));
    a[6] = ICMP6;
    a[7] = 64;
    memcpy(a + 8, packet + 24, 16);
    memcpy(a + 24, packet + 8, 16);
    a[40] = 2;
    put16(a + 46, mtu);
    memcpy(a + 48, packet, quoted);
    uint32_t pseudo = sum16(a + 8, 32, (uint32_t)(8 + quoted) + ICMP6);
    put16(a + 42, checksum(sum16(a + 40, 8 + quoted, pseudo)));
    return 48 + quoted;
}

size_t too_big_answer(const uint8_t *packet, size_t len, uint32_t mtu,
                      uint8_t ret_answer[TOO_BIG_MAX])
{
    if (len >= 20 && packet[0] >> 4 == 4)
        return answer4(packet, len, mtu, ret_answer);
    if (len >= 40 && packet[0] >> 4 == 6)
        return answer6(packet, len, mtu, ret_answer);
    return 0;
}
