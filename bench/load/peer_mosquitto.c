/* Mosquitto: MQTT 3.1.1. A put is a publication with QoS 1, which the broker answers. */
#include <stdio.h>
#include <string.h>

#include "load.h"

static void packet(struct conn *c, uint8_t kind, const char *head, size_t head_len, bool body)
{
    size_t len = head_len + (body ? payload_len : 0);
    conn_add(c, &kind, 1);
    do {
        uint8_t byte = (uint8_t)(len & 0x7f) | (len > 0x7f ? 0x80 : 0);
        conn_add(c, &byte, 1);
        len >>= 7;
    } while (len > 0);
    conn_add(c, head, head_len);
    if (body)
        conn_add(c, payload, payload_len);
}

static size_t string(char *at, const char *text)
{
    size_t len = strlen(text);
    at[0] = (char)(len >> 8);
    at[1] = (char)len;
    memcpy(at + 2, text, len);
    return len + 2;
}

static void greet(struct conn *c)
{
    char head[64], id[24];
    size_t n = string(head, "MQTT");
    memcpy(head + n, "\4\2\0\0", 4); /* version, clean session, no keep-alive */
    snprintf(id, sizeof(id), "load%u", c->number);
    n += 4 + string(head + n + 4, id);
    packet(c, 0x10, head, n, false);
    conn_wait(c);
}

static void put(struct conn *c)
{
    char head[64];
    size_t n = string(head, QUEUE);
    head[n++] = (char)(c->id >> 8);
    head[n++] = (char)(c->id | 1);
    packet(c, 0x32, head, n, true);
}

static void pub(struct conn *c)
{
    char head[64];
    packet(c, 0x30, head, string(head, TOPIC), true);
}

static void subscribe(struct conn *c, const char *topic)
{
    char head[64] = {0, 1};
    size_t n = 2 + string(head + 2, topic);
    head[n++] = 0; /* QoS */
    packet(c, 0x82, head, n, false);
}

static void sub(struct conn *c)
{
    subscribe(c, TOPIC);
}

static void ping(struct conn *c)
{
    packet(c, 0xc0, "", 0, false);
}

static enum answer answer(struct conn *c, const uint8_t *data, size_t len, size_t *ret_used)
{
    size_t size = 0, at = 1;
    (void)c;
    for (unsigned shift = 0;; shift += 7) {
        if (at >= len)
            return MORE;
        size |= (size_t)(data[at] & 0x7f) << shift;
        if ((data[at++] & 0x80) == 0)
            break;
    }
    *ret_used = at + size;
    if (len < *ret_used)
        return MORE;
    switch (data[0] & 0xf0) {
    case 0x20: /* CONNACK */
        return data[3] == 0 ? OK : REFUSED;
    case 0x40: /* PUBACK */
    case 0x90: /* SUBACK */
    case 0xd0: /* PINGRESP */
        return OK;
    case 0x30:
        return MESSAGE;
    default:
        return REFUSED;
    }
}

const struct peer peer_mosquitto = {
    .name = "mosquitto",
    .request = {[PUT] = put, [PING] = ping, [SUB] = sub, [PUB] = pub},
    .answer = answer,
    .greet = greet,
};
