/*
 * tunnel/wg.h over a bad network: seeded loss, duplicates, reordering, silence, outputs that nobody
 * takes, restarts, pauses and clock steps. Whatever happens, an inner packet comes out unchanged
 * and at most once, state stays bounded, and once the network heals both directions work.
 */
#include "wg_pair.h"

#include "crypto/blake2s.h"

#define FLIGHT_MAX 256
#define NUMBERS 20000

struct flight {
    bool used, to_b;
    int64_t at;
    size_t len;
    uint8_t data[ZC_WG_PACKET_MAX];
};

static struct net {
    struct pair p;
    struct zc_rng rng;
    struct zc_blake2s hash; /* of everything sent, with its time */
    struct flight flights[FLIGHT_MAX];
    uint8_t inner_len[NUMBERS]; /* in units of 8 bytes, 0: not sent */
    bool seen[NUMBERS];
    uint32_t sent, delivered;
    unsigned loss, twice, delay_ms; /* percent, percent, most */
    bool blocked;                   /* the owner has no way: outputs are not taken */
} net;

static unsigned pick(unsigned n)
{
    return (unsigned)(zc_rng_u64(&net.rng) % n);
}

static void fly(bool to_b, const uint8_t *data, size_t len)
{
    struct flight *f = &net.flights[pick(FLIGHT_MAX)]; /* a full slot is a lost packet */
    f->used = true;
    f->to_b = to_b;
    f->at = net.p.ms + pick(net.delay_ms + 1);
    f->len = len;
    memcpy(f->data, data, len);
}

static void post(struct side *from, const uint8_t *data, size_t len)
{
    CHECK(len >= 32 && len <= ZC_WG_PACKET_MAX && data[0] >= 1 && data[0] <= 4);
    zc_blake2s_update(&net.hash, &net.p.ms, sizeof(net.p.ms));
    zc_blake2s_update(&net.hash, data, len);
    bool to_b = from == &net.p.a;
    if (pick(100) >= net.loss)
        fly(to_b, data, len);
    if (pick(100) < net.twice)
        fly(to_b, data, len);
}

static void check_bounds(const struct side *s)
{
    CHECK(s->wg.indices.len <= 4 && s->peer->staged_count <= ZC_WG_STAGED_MAX);
    CHECK_INT(s->wg.staged, s->peer->staged_count);
    CHECK(zc_wg_deadline(&s->wg).ns > pair_now(&net.p).mono.ns);
}

static void take_outputs(struct side *s)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    size_t len;
    int count = 0;
    zc_wg_tick(&s->wg, pair_now(&net.p));
    side_events(s);
    while (!net.blocked && (len = pair_output(&net.p, s, buf)) > 0) {
        post(s, buf, len);
        CHECK(++count < 200);
    }
    check_bounds(s);
}

static void check_delivered(struct side *s)
{
    uint8_t want[ZC_WG_MTU];
    uint32_t number = pair_number(s->last);
    CHECK(number < net.sent && !net.seen[number]);
    if (number >= net.sent)
        return;
    net.seen[number] = true;
    net.delivered++;
    pair_packet(pair_other(&net.p, s), want, net.inner_len[number] * 8, number);
    CHECK(s->last_len == net.inner_len[number] * 8u && memcmp(want, s->last, s->last_len) == 0);
}

static void arrive(void)
{
    for (int i = 0; i < FLIGHT_MAX; i++) {
        struct flight *f = &net.flights[i];
        if (!f->used || f->at > net.p.ms)
            continue;
        f->used = false;
        struct side *s = f->to_b ? &net.p.b : &net.p.a;
        int before = s->got;
        pair_input(&net.p, s, f->data, f->len);
        if (s->got != before)
            check_delivered(s);
        take_outputs(s);
    }
}

static void send_one(struct side *s)
{
    uint8_t buf[ZC_WG_PACKET_MAX];
    if (net.sent == NUMBERS)
        return;
    uint8_t units = (uint8_t)(5 + pick(156));
    net.inner_len[net.sent] = units;
    size_t len = pair_send(&net.p, s, buf, units * 8, net.sent++);
    if (len > 0 && !net.blocked)
        post(s, buf, len);
    take_outputs(s);
}

static void step(int64_t ms)
{
    int64_t end = net.p.ms + ms;
    while (net.p.ms < end) {
        net.p.ms += 1 + pick(50);
        for (int i = 0; i < 2; i++)
            take_outputs(i == 0 ? &net.p.a : &net.p.b);
        arrive();
        if (pick(4) == 0)
            send_one(pick(2) == 0 ? &net.p.a : &net.p.b);
    }
}

/* The other process begins anew, with the same key. */
static void restart(struct side *s)
{
    static const struct zc_secret psk = {{1, 2, 3}};
    bool is_a = s == &net.p.a;
    zc_wg_done(&s->wg);
    side_init(s, is_a ? 1 : 2, 4);
    zc_rng_bytes(&net.rng, s->rng.key, 32);
    zc_rng_init(&s->rng, s->rng.key);
    side_meet(s, pair_other(&net.p, s), &psk);
}

static void change(void)
{
    static const unsigned losses[] = {0, 0, 5, 30, 70, 100};
    static const unsigned delays[] = {0, 5, 50, 800};
    net.loss = losses[pick(ZC_ARRAY_LEN(losses))];
    net.twice = pick(3) == 0 ? 20 : 0;
    net.delay_ms = delays[pick(ZC_ARRAY_LEN(delays))];
    net.blocked = pick(12) == 0;
    switch (pick(10)) {
    case 0: /* asleep: neither side runs */
        net.p.ms += pick(700) * 1000;
        break;
    case 1:
        net.p.wall_ms += (int64_t)pick(7200000) - 3600000;
        break;
    case 2:
        net.p.wall_ms += 20 * 3600000; /* so that a restart's clock is later, as it must be */
        restart(pick(2) == 0 ? &net.p.a : &net.p.b);
        break;
    case 3:
        zc_wg_handshake(&net.p.a.wg, pair_now(&net.p), net.p.a.peer);
        break;
    default:
        break;
    }
}

static void heal(void)
{
    net.loss = net.twice = net.delay_ms = 0;
    net.blocked = false;
    /* Old packets are gone, silence of a dead session is noticed within 15 s, then 5 s each. */
    memset(net.flights, 0, sizeof(net.flights));
    step(30000);
    for (int i = 0; i < 2; i++) {
        uint32_t before = net.delivered;
        send_one(i == 0 ? &net.p.a : &net.p.b);
        for (int round = 0; round < 8; round++)
            arrive();
        CHECK(net.delivered > before);
    }
}

static void run(uint8_t seed, uint8_t ret_hash[32])
{
    memset(&net, 0, sizeof(net));
    zc_rng_init(&net.rng, (const uint8_t[32]){seed, 123});
    zc_blake2s_init(&net.hash, 32, NULL, 0);
    pair_init(&net.p);
    for (int i = 0; i < 25; i++) {
        change();
        step(pick(60000));
        if (pick(4) == 0)
            heal();
    }
    heal();
    CHECK(net.delivered > 100);
    zc_blake2s_final(&net.hash, ret_hash);
    pair_done(&net.p);
}

TEST(wg_bad_network)
{
    uint8_t hash[32], again[32];
    for (uint8_t seed = 0; seed < 30 && test_faults == 0; seed++) {
        run(seed, hash);
        if (test_faults > 0)
            printf("seed %d, at %lld ms\n", seed, (long long)net.p.ms);
        if (seed % 10 == 0) {
            run(seed, again);
            CHECK(memcmp(hash, again, 32) == 0);
        }
    }
}
