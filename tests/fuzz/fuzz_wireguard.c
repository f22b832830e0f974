/*
 * Two WireGuard devices under a script: the input is a row of orders, with strangers' bytes,
 * changed and repeated packets, inner packets of any content, and time. Nothing but well-formed
 * inner packets of the right source comes out, state stays bounded, and the devices end empty.
 *
 * The devices have the keys of the tests' vectors, so that the vectors' packets get past mac1.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crypto/aead.h"
#include "tunnel/wg.h"
#include "tunnel/wgpeer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEPT 8

struct end {
    struct zc_wg wg;
    struct zc_rng rng;
    struct zc_wgpeer *peer;
    uint8_t address[16];
};

struct script {
    const uint8_t *data;
    size_t size;
    struct end ends[2];
    struct zc_now now;
    /* Packets that were on the way, to be sent again. */
    uint8_t kept[KEPT][ZC_WG_PACKET_MAX];
    size_t kept_len[KEPT];
    unsigned kept_next;
};

static uint8_t take(struct script *s)
{
    if (s->size == 0)
        return 0;
    s->size--;
    return *s->data++;
}

static void end_init(struct end *e, uint8_t first, uint8_t last)
{
    struct zc_secret private;
    for (uint8_t i = 0; i < 32; i++)
    private.b[i] = i == 0 ? 0 : (uint8_t)(i + first);
    private.b[31] = last;
    zc_rng_init(&e->rng, (const uint8_t[32]){last});
    zc_wg_init(&e->wg, &private, &e->rng, 2);
    memset(e->address, last, sizeof(e->address));
}

static void end_meet(struct end *e, const struct end *other)
{
    struct zc_wg_peer_config config = {.public = other->wg.self.public};
    memcpy(config.address, other->address, sizeof(config.address));
    int err = zc_wg_add(&e->wg, &config, &e->peer);
    ZC_ASSERT(err == 0);
}

static void events(struct script *s, int who)
{
    struct end *e = &s->ends[who], *other = &s->ends[1 - who];
    struct zc_wg_event ev;
    while (zc_wg_event(&e->wg, &ev)) {
        ZC_ASSERT(ev.peer == e->peer);
        if (ev.kind != ZC_WG_DATA)
            continue;
        const uint8_t *p = ev.packet.data;
        ZC_ASSERT(ev.packet.len >= 40 && p[0] >> 4 == 6);
        ZC_ASSERT(ev.packet.len == 40u + (p[4] << 8 | p[5]));
        ZC_ASSERT(memcmp(p + 8, other->address, 16) == 0);
    }
    ZC_ASSERT(e->wg.indices.len <= 4 && e->wg.staged <= ZC_WG_STAGED_MAX);
}

/* From memory that ends with the packet. */
static void input(struct script *s, int who, const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    ZC_ASSERT(copy != NULL);
    if (len > 0)
        memcpy(copy, data, len);
    zc_wg_input(&s->ends[who].wg, s->now, copy, len);
    events(s, who);
    free(copy);
}

static void keep(struct script *s, const uint8_t *data, size_t len)
{
    memcpy(s->kept[s->kept_next % KEPT], data, len);
    s->kept_len[s->kept_next++ % KEPT] = len;
}

/* Delivers up to `most` packets of one side, one of them changed at a place if `change`. */
static void deliver(struct script *s, int who, int most, uint8_t change, uint8_t place)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    struct zc_wgpeer *peer;
    size_t len;
    for (int i = 0; i < most && (len = zc_wg_output(&s->ends[who].wg, s->now, buf, &peer)) > 0;
         i++) {
        ZC_ASSERT(len >= 32 && len <= ZC_WG_PACKET_MAX && peer == s->ends[who].peer);
        keep(s, buf, len);
        buf[(size_t)place * len / 256] ^= change;
        input(s, 1 - who, buf, len);
    }
}

static void send_inner(struct script *s, int who)
{
    uint8_t buf[ZC_WG_PACKET_MAX] = {0};
    struct end *e = &s->ends[who];
    size_t len = 1 + (take(s) << 8 | take(s)) % ZC_WG_MTU, given = take(s);
    uint8_t *inner = buf + ZC_WG_HEADER;
    inner[0] = 0x60;
    inner[4] = (uint8_t)((len - 40) >> 8);
    inner[5] = (uint8_t)(len - 40);
    memcpy(inner + 8, e->address, 16);
    for (size_t i = 0; i < given && s->size > 0; i += 2) {
        size_t at = take(s) % (len < 48 ? len : 48);
        inner[at] = take(s);
    }
    size_t n = zc_wg_send(&e->wg, s->now, e->peer, buf, len);
    ZC_ASSERT(n == 0 || (n >= len + 32 && n <= ZC_WG_PACKET_MAX && (n % 16 == 0)));
    if (n > 0) {
        keep(s, buf, n);
        input(s, 1 - who, buf, n);
    }
}

static void raw(struct script *s, int who)
{
    size_t len = take(s) << 8 | take(s);
    if (len > s->size)
        len = s->size;
    input(s, who, s->data, len);
    s->data += len;
    s->size -= len;
}

/* The answer of a peer under load to the last handshake message, one byte of it changed. */
static void cookie(struct script *s, int who)
{
    struct zc_wgpeer *p = s->ends[who].peer;
    uint8_t reply[ZC_COOKIE_REPLY_BYTES] = {3};
    uint32_t index = p->under_way ? zc_wgpeer_index_value(&p->index) : 0;
    memcpy(reply + 4, &index, sizeof(index));
    zc_aead_xseal(&p->noise.cookie_keys.reply, reply + 8, zc_slice(p->cookie.last_mac1, 16),
                  reply + 32, 16);
    uint8_t place = take(s);
    reply[place % sizeof(reply)] ^= take(s);
    input(s, who, reply, sizeof(reply));
}

static void pass(struct script *s, int64_t ms, int64_t wall_ms)
{
    s->now.mono = zc_mono_add_ms(s->now.mono, ms);
    s->now.wall.ms += ms + wall_ms;
    for (int who = 0; who < 2; who++) {
        zc_wg_tick(&s->ends[who].wg, s->now);
        ZC_ASSERT(zc_wg_deadline(&s->ends[who].wg).ns > s->now.mono.ns);
        events(s, who);
    }
}

static void order(struct script *s)
{
    uint8_t op = take(s);
    int who = op & 1;
    switch (op >> 1 & 7) {
    case 0:
        raw(s, who);
        break;
    case 1:
        deliver(s, who, 1 + (op >> 4), 0, 0);
        break;
    case 2:
        deliver(s, who, 1, take(s), take(s));
        break;
    case 3:
        send_inner(s, who);
        break;
    case 4:
        pass(s, take(s) << (op >> 4), 0);
        break;
    case 5: /* a kept packet once more */
        input(s, who, s->kept[op >> 4 & 7], s->kept_len[op >> 4 & 7]);
        break;
    case 6:
        if (op >> 4 & 1) {
            cookie(s, who);
            break;
        }
        zc_wg_handshake(&s->ends[who].wg, s->now, s->ends[who].peer);
        events(s, who);
        break;
    default:
        pass(s, 0, (int8_t)take(s) * (INT64_C(1) << (op >> 4)));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct script s;
    memset(&s, 0, sizeof(s));
    s.data = data;
    s.size = size;
    s.now = (struct zc_now){{ZC_NS_PER_S}, {1700000000000}};
    end_init(&s.ends[0], 1, 0x60);
    end_init(&s.ends[1], 2, 0x61);
    end_meet(&s.ends[0], &s.ends[1]);
    end_meet(&s.ends[1], &s.ends[0]);
    for (int i = 0; s.size > 0 && i < 2000; i++)
        order(&s);
    for (int who = 0; who < 2; who++) {
        zc_wg_remove(&s.ends[who].wg, s.ends[who].peer);
        ZC_ASSERT(s.ends[who].wg.indices.len == 0 && s.ends[who].wg.staged == 0);
        zc_wg_done(&s.ends[who].wg);
    }
    return 0;
}
