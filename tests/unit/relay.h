/*
 * A relay (DERP server) in memory: login, forwarding with a queue of 32 packets per receiver that
 * drops the oldest, PeerGone. Enough for nodes in one process to meet, with loss on demand.
 */
#ifndef ZC_TESTS_UNIT_RELAY_H
#define ZC_TESTS_UNIT_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"
#include "crypto/box.h"
#include "crypto/x25519.h"

#define RELAY_CONNS 128
#define RELAY_QUEUE 32
#define RELAY_SEEN 128

struct relay_packet {
    uint32_t len;
    uint8_t *data; /* a whole frame */
};

struct relay_conn {
    bool open, upgraded, logged_in;
    struct zc_key key;
    struct zc_buf in;
    struct zc_buf control; /* frames that are never dropped */
    struct relay_packet queue[RELAY_QUEUE];
    uint32_t first, len;
    uint32_t seen[RELAY_SEEN]; /* connections (index + 1) whose packets this one got */
    uint64_t used;             /* when it last sent a frame */
};

struct relay {
    bool up;
    struct zc_rng rng;
    struct zc_secret private_key;
    struct zc_key key;
    struct relay_conn conns[RELAY_CONNS];
    uint64_t turns;
    uint32_t loss_permille;
    bool drops_meows;  /* as when each is followed by many packets */
    bool tells_absent; /* whoever sends to a node that is not there is told, each time */
    uint64_t forwarded, dropped, lost;
    uint64_t hash; /* of all bytes from nodes */
};

static inline void relay_init(struct relay *r, uint8_t seed)
{
    uint8_t bytes[32] = {seed, 0x55};
    memset(r, 0, sizeof(*r));
    zc_rng_init(&r->rng, bytes);
    zc_x25519_generate(&r->rng, &r->private_key);
    zc_x25519_public(&r->private_key, &r->key);
    r->up = true;
}

static inline void relay_put(struct zc_buf *b, const void *data, size_t len)
{
    if (zc_buf_append(b, data, len) != 0)
        abort();
}

static inline void relay_control(struct relay_conn *c, uint8_t type, const void *payload,
                                 size_t len)
{
    uint8_t head[5] = {type, 0, (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    relay_put(&c->control, head, sizeof(head));
    relay_put(&c->control, payload, len);
}

/* A connection of a node; -1: refused. */
static inline int relay_open(struct relay *r)
{
    for (int i = 0; r->up && i < RELAY_CONNS; i++) {
        if (!r->conns[i].open) {
            memset(&r->conns[i], 0, sizeof(r->conns[i]));
            r->conns[i].open = true;
            return i;
        }
    }
    return -1;
}

static inline void relay_close(struct relay *r, int index)
{
    struct relay_conn *gone = &r->conns[index];
    if (!gone->open)
        return;
    gone->open = false;
    for (int i = 0; i < RELAY_CONNS; i++) {
        struct relay_conn *c = &r->conns[i];
        if (!c->open || !c->seen[index])
            continue;
        uint8_t payload[33];
        memcpy(payload, gone->key.b, 32);
        payload[32] = 0;
        if (gone->logged_in)
            relay_control(c, 0x08, payload, sizeof(payload));
        c->seen[index] = 0;
    }
    for (; gone->len > 0; gone->len--, gone->first++)
        free(gone->queue[gone->first % RELAY_QUEUE].data);
    zc_buf_done(&gone->in);
    zc_buf_done(&gone->control);
}

/* All connections end, as when it is killed. */
static inline void relay_kill(struct relay *r)
{
    r->up = false;
    for (int i = 0; i < RELAY_CONNS; i++)
        r->conns[i].logged_in = false;
    for (int i = 0; i < RELAY_CONNS; i++)
        relay_close(r, i);
}

static inline void relay_done(struct relay *r)
{
    relay_kill(r);
}

static inline void relay_login(struct relay *r, struct relay_conn *c, const uint8_t *payload,
                               size_t len)
{
    static const char json[] = "{\"version\":2}";
    struct zc_secret shared;
    uint8_t plain[1024], info[24 + 16 + sizeof(json) - 1];
    memcpy(c->key.b, payload, 32);
    if (len < 72 || len > sizeof(plain) || zc_box_shared(&r->private_key, &c->key, &shared) != 0 ||
        zc_box_open(&shared, payload + 32, zc_slice(payload + 56, len - 56), plain) != 0)
        return; /* never answered */
    zc_rng_bytes(&r->rng, info, 24);
    zc_box_seal(&shared, info, zc_slice(json, sizeof(json) - 1), info + 24);
    relay_control(c, 0x03, info, sizeof(info));
    c->logged_in = true;
}

/* The connection of this key that sent last. */
static inline struct relay_conn *relay_find(struct relay *r, const uint8_t *key)
{
    struct relay_conn *best = NULL;
    for (int i = 0; i < RELAY_CONNS; i++) {
        struct relay_conn *c = &r->conns[i];
        if (c->open && c->logged_in && memcmp(c->key.b, key, 32) == 0 &&
            (best == NULL || c->used > best->used))
            best = c;
    }
    return best;
}

static inline void relay_forward(struct relay *r, struct relay_conn *from, const uint8_t *payload,
                                 size_t len)
{
    struct relay_conn *to = relay_find(r, payload);
    if (to == NULL) {
        uint8_t gone[33];
        memcpy(gone, payload, 32);
        gone[32] = 1;
        if (r->tells_absent)
            relay_control(from, 0x08, gone, sizeof(gone));
        r->lost++;
        return;
    }
    if (r->drops_meows && len >= 36 && memcmp(payload + 32, "meow", 4) == 0) {
        r->lost++;
        return;
    }
    if (r->loss_permille > 0 && zc_rng_u64(&r->rng) % 1000 < r->loss_permille) {
        r->lost++;
        return;
    }
    if (to->len == RELAY_QUEUE) {
        free(to->queue[to->first++ % RELAY_QUEUE].data);
        to->len--;
        r->dropped++;
    }
    struct relay_packet *p = &to->queue[(to->first + to->len++) % RELAY_QUEUE];
    p->len = (uint32_t)(5 + len);
    p->data = malloc(p->len);
    uint8_t head[5] = {0x05, 0, (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    memcpy(p->data, head, 5);
    memcpy(p->data + 5, from->key.b, 32);
    memcpy(p->data + 37, payload + 32, len - 32);
    to->seen[from - r->conns] = 1;
    r->forwarded++;
}

static inline void relay_frame(struct relay *r, struct relay_conn *c, const uint8_t *frame,
                               size_t len)
{
    c->used = ++r->turns;
    if (frame[0] == 0x02 && !c->logged_in)
        relay_login(r, c, frame + 5, len - 5);
    else if (frame[0] == 0x04 && c->logged_in && len >= 37)
        relay_forward(r, c, frame + 5, len - 5);
    else if (frame[0] == 0x12)
        relay_control(c, 0x13, frame + 5, len - 5);
}

static inline void relay_upgrade(struct relay *r, struct relay_conn *c)
{
    static const char ok[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: DERP\r\n"
                             "Connection: Upgrade\r\nDerp-Version: 2\r\n\r\n";
    uint8_t *end = c->in.len > 3 ? memmem(c->in.data, c->in.len, "\r\n\r\n", 4) : NULL;
    if (end == NULL)
        return;
    zc_buf_consume(&c->in, (size_t)(end + 4 - c->in.data));
    c->upgraded = true;
    relay_put(&c->control, ok, sizeof(ok) - 1);
    uint8_t key[40] = {'D', 'E', 'R', 'P', 0xf0, 0x9f, 0x94, 0x91};
    memcpy(key + 8, r->key.b, 32);
    relay_control(c, 0x01, key, sizeof(key));
}

/* Bytes from a node. */
static inline void relay_input(struct relay *r, int index, const uint8_t *data, size_t len)
{
    struct relay_conn *c = &r->conns[index];
    for (size_t i = 0; i < len; i++)
        r->hash = (r->hash ^ data[i]) * UINT64_C(0x100000001b3);
    relay_put(&c->in, data, len);
    if (!c->upgraded)
        relay_upgrade(r, c);
    while (c->upgraded && c->in.len >= 5) {
        size_t size =
            5 + ((size_t)c->in.data[2] << 16 | (size_t)c->in.data[3] << 8 | c->in.data[4]);
        if (c->in.len < size)
            break;
        relay_frame(r, c, c->in.data, size);
        zc_buf_consume(&c->in, size);
    }
}

/* The next bytes for a node (free them): all control frames, or one packet. NULL: none. */
static inline uint8_t *relay_output(struct relay *r, int index, size_t *ret_len)
{
    struct relay_conn *c = &r->conns[index];
    uint8_t *data = NULL;
    if (c->control.len > 0) {
        data = c->control.data;
        *ret_len = c->control.len;
        c->control = (struct zc_buf){0};
    } else if (c->len > 0) {
        struct relay_packet *p = &c->queue[c->first++ % RELAY_QUEUE];
        c->len--;
        data = p->data;
        *ret_len = p->len;
    }
    return data;
}

#endif
