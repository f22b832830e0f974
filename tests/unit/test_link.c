/*
 * tests/link: the fates of packets in one direction of a link. The order is the same for the same
 * seed whenever the caller looks; nothing is lost without being counted; what is due is due
 * exactly.
 */
#include "../link/flow.h"
#include "../link/knobs.h"
#include "../link/too_big.h"
#include "../sim/rnd.h"
#include "test.h"

#define MS INT64_C(1000000)
#define LOG_MAX 8192

/* What left, and when it was due by the flow's own reckoning. */
struct log {
    uint32_t ids[LOG_MAX];
    int64_t at[LOG_MAX];
    size_t n;
};

static struct log logs[2];

static void knob(struct flow *f, int64_t now, const char *words)
{
    char line[256];
    struct flow_knobs k = f->knobs;
    snprintf(line, sizeof(line), "%s", words);
    CHECK(knobs_read(line, &k) == NULL);
    flow_set(f, now, &k);
}

static enum flow_fate put(struct flow *f, int64_t now, uint32_t id, size_t len)
{
    static uint8_t data[65536];
    memcpy(data, &id, sizeof(id));
    return flow_put(f, now, data, len);
}

static void take(struct flow *f, int64_t now, struct log *l)
{
    struct flow_packet *p;
    while ((p = flow_take(f, now)) != NULL) {
        CHECK(p->at <= now && l->n < LOG_MAX);
        memcpy(&l->ids[l->n], p->data, sizeof(uint32_t));
        l->at[l->n++] = p->at;
        free(p);
    }
}

/* All that is held leaves, each at its time. */
static void drain(struct flow *f, struct log *l)
{
    for (int64_t at; (at = flow_next(f)) != FLOW_NEVER;)
        take(f, at, l);
}

/* So many packets of 1000 bytes, `gap` apart from 0 on; then all leave. */
static struct log *send(struct flow *f, uint32_t count, int64_t gap)
{
    struct log *l = &logs[0];
    l->n = 0;
    for (uint32_t i = 0; i < count; i++) {
        put(f, i * gap, i, 1000);
        take(f, i * gap, l);
    }
    drain(f, l);
    return l;
}

static void check_ids(const struct log *l, const uint32_t *ids, size_t n)
{
    CHECK_INT(l->n, n);
    for (size_t i = 0; i < n && i < l->n; i++)
        CHECK_INT(l->ids[i], ids[i]);
}

static void start(struct flow *f, const char *words)
{
    flow_init(f, 7);
    knob(f, 0, words);
}

TEST(delay_is_exact)
{
    struct flow f;
    start(&f, "delay_ms=25");
    struct log *l = send(&f, 100, MS);
    CHECK_INT(l->n, 100);
    for (size_t i = 0; i < l->n; i++)
        CHECK(l->ids[i] == i && l->at[i] == (int64_t)i * MS + 25 * MS);
    CHECK_INT(f.counts.late_max_ns, 0);
    put(&f, 1000 * MS, 100, 60);
    CHECK_INT(flow_next(&f), 1025 * MS);
    CHECK(flow_take(&f, 1025 * MS - 1) == NULL);
    take(&f, 1030 * MS, l);
    CHECK_INT(f.counts.late_max_ns, 5 * MS);
    flow_done(&f);
}

TEST(jitter_keeps_the_order_and_its_bounds)
{
    struct flow f;
    start(&f, "delay_ms=20 jitter_ms=10");
    struct log *l = send(&f, 2000, 30 * MS);
    int64_t least = 30 * MS, most = 10 * MS;
    for (size_t i = 0; i < l->n; i++) {
        int64_t d = l->at[i] - (int64_t)i * 30 * MS;
        CHECK(l->ids[i] == i && d >= 10 * MS && d <= 30 * MS);
        least = d < least ? d : least;
        most = d > most ? d : most;
    }
    CHECK(least < 11 * MS && most > 29 * MS);
    flow_done(&f);
    start(&f, "delay_ms=20 jitter_ms=10");
    l = send(&f, 2000, MS / 10); /* jitter of many gaps */
    CHECK_INT(l->n, 2000);
    for (size_t i = 1; i < l->n; i++)
        CHECK(l->ids[i] == i && l->at[i] >= l->at[i - 1]);
    flow_done(&f);
}

TEST(every_nth_is_lost)
{
    struct flow f;
    start(&f, "loss_every=3");
    check_ids(send(&f, 10, MS), (uint32_t[]){0, 1, 3, 4, 6, 7, 9}, 7);
    CHECK_INT(f.counts.lost, 3);
    knob(&f, 0, "loss_every=0 lose_next=2");
    check_ids(send(&f, 4, MS), (uint32_t[]){2, 3}, 2);
    CHECK_INT(f.counts.lost, 5);
    flow_done(&f);
}

TEST(chance_is_of_the_seed_alone)
{
    struct flow f;
    start(&f, "loss=0.1");
    struct log *l = send(&f, 5000, MS);
    CHECK(l->n > 4400 && l->n < 4600);
    logs[1] = *l;
    flow_done(&f);
    /* The same are lost on a link with other faults. */
    start(&f, "loss=0.1 delay_ms=3 jitter_ms=1 reorder_every=7 duplicate=0.05");
    bool seen[5000] = {false};
    l = send(&f, 5000, MS);
    for (size_t i = 0; i < l->n; i++)
        seen[l->ids[i]] = true;
    for (size_t i = 0; i < logs[1].n; i++)
        seen[logs[1].ids[i]] = !seen[logs[1].ids[i]];
    for (size_t i = 0; i < 5000; i++)
        CHECK(!seen[i]);
    flow_done(&f);
    flow_init(&f, 8);
    knob(&f, 0, "loss=0.1");
    l = send(&f, 5000, MS);
    CHECK(l->n != logs[1].n || memcmp(l->ids, logs[1].ids, l->n * sizeof(*l->ids)) != 0);
    flow_done(&f);
}

TEST(every_nth_comes_twice_or_late)
{
    struct flow f;
    start(&f, "duplicate_every=2");
    check_ids(send(&f, 4, MS), (uint32_t[]){0, 1, 1, 2, 3, 3}, 6);
    CHECK_INT(f.counts.duplicated, 2);
    flow_done(&f);
    start(&f, "delay_ms=10 reorder_every=3 reorder_ms=1.5");
    struct log *l = send(&f, 7, MS);
    check_ids(l, (uint32_t[]){0, 1, 3, 2, 4, 6, 5}, 7);
    CHECK_INT(l->at[3], 2 * MS + 11 * MS + MS / 2);
    CHECK_INT(f.counts.reordered, 2);
    flow_done(&f);
}

TEST(rate_is_exact_and_its_queue_bounded)
{
    struct flow f;
    start(&f, "rate_mbit=8 queue_packets=5"); /* 1000 bytes take a millisecond */
    struct log *l = send(&f, 20, 0);
    check_ids(l, (uint32_t[]){0, 1, 2, 3, 4, 5}, 6);
    for (size_t i = 0; i < l->n; i++)
        CHECK_INT(l->at[i], (int64_t)i * MS);
    CHECK_INT(f.counts.queue_full, 14);
    flow_done(&f);
    start(&f, "rate_mbit=8 queue_packets=5 oldest=1");
    check_ids(send(&f, 20, 0), (uint32_t[]){0, 15, 16, 17, 18, 19}, 6);
    CHECK_INT(f.counts.queue_full, 14);
    flow_done(&f);
    start(&f, "rate_mbit=8 queue_bytes=2500");
    check_ids(send(&f, 20, 0), (uint32_t[]){0, 1, 2}, 3);
    flow_done(&f);
    start(&f, "rate_mbit=8 burst=3000");
    l = send(&f, 6, 0);
    for (int i = 0; i < 6; i++)
        CHECK_INT(l->at[i], i < 4 ? 0 : (i - 3) * MS);
    flow_done(&f);
}

TEST(a_new_rate_is_for_what_waits)
{
    struct flow f;
    struct log *l = &logs[0];
    start(&f, "rate_mbit=8");
    l->n = 0;
    for (uint32_t i = 0; i < 10; i++)
        put(&f, 0, i, 1000);
    knob(&f, 4 * MS, "rate_mbit=80");
    drain(&f, l);
    CHECK_INT(l->n, 10);
    CHECK(l->at[4] == 4 * MS && l->at[5] == 4 * MS && l->at[9] == 4 * MS + 4 * MS / 10);
    for (uint32_t i = 0; i < 10; i++)
        put(&f, 50 * MS, i, 1000);
    knob(&f, 50 * MS + MS / 2, "rate_mbit=0");
    drain(&f, l);
    CHECK_INT(l->n, 20);
    CHECK(l->at[15] == 50 * MS + MS / 2 && l->at[19] == 50 * MS + MS / 2);
    flow_done(&f);
}

TEST(cut_size_and_protocol)
{
    struct flow f;
    uint8_t udp[1300] = {0x45, [9] = 17}, tcp6[1300] = {0x60, [6] = 6};
    start(&f, "mtu=1200");
    CHECK(flow_put(&f, 0, udp, 1200) == FLOW_TAKEN && flow_put(&f, 0, udp, 1201) == FLOW_DROPPED);
    knob(&f, 0, "told=1");
    CHECK(flow_put(&f, 0, udp, 1201) == FLOW_TOO_BIG);
    CHECK(flow_put(&f, 0, tcp6, 1201) == FLOW_TOO_BIG);
    knob(&f, 0, "only=udp");
    CHECK(flow_put(&f, 0, udp, 1201) == FLOW_TOO_BIG);
    CHECK(flow_put(&f, 0, tcp6, 1201) == FLOW_TAKEN);
    tcp6[6] = 17;
    CHECK(flow_put(&f, 0, tcp6, 1201) == FLOW_TOO_BIG);
    tcp6[6] = 6;
    knob(&f, 0, "cut=1");
    CHECK(flow_put(&f, 0, udp, 28) == FLOW_DROPPED && flow_put(&f, 0, tcp6, 60) == FLOW_TAKEN);
    knob(&f, 0, "only=all");
    CHECK(flow_put(&f, 0, tcp6, 60) == FLOW_DROPPED);
    CHECK_INT(f.counts.too_big, 5);
    CHECK_INT(f.counts.cut, 2);
    logs[0].n = 0;
    take(&f, 0, &logs[0]);
    CHECK_INT(logs[0].n, 3);
    flow_done(&f);
}

TEST(memory_is_bounded)
{
    struct flow f;
    start(&f, "delay_ms=1000 duplicate=1");
    for (uint32_t i = 0; i < FLOW_PACKETS_MAX; i++)
        put(&f, 0, i, 100);
    CHECK_INT(f.line.count, FLOW_PACKETS_MAX);
    CHECK_INT(f.counts.overflow, FLOW_PACKETS_MAX / 2);
    flow_done(&f);
    start(&f, "delay_ms=1000 rate_mbit=1 queue_packets=65536");
    for (uint32_t i = 0; i < 2000; i++)
        put(&f, 0, i, 65535);
    CHECK(f.queue.bytes + f.line.bytes <= FLOW_BYTES_MAX && f.counts.overflow > 900);
    flow_done(&f);
}

/* A walk with knobs that change; `lazy` callers look seldom. */
static void walk(struct flow *f, uint64_t seed, uint64_t lazy, struct log *l)
{
    static const char *const turns[] = {
        "delay_ms=5",        "delay_ms=0", "rate_mbit=8",     "rate_mbit=0", "jitter_ms=3",
        "reorder=0.1",       "oldest=1",   "queue_packets=4", "loss=0.05",   "duplicate=0.1",
        "queue_packets=500", "cut=1",      "cut=0 mtu=900",   "burst=5000",  "reorder_ms=0.3",
        "oldest=0 burst=0",  "mtu=0",      "rate_mbit=0.5"};
    struct rnd r = {seed}, look = {seed + lazy};
    int64_t now = 0;
    l->n = 0;
    flow_init(f, seed);
    for (uint32_t i = 0; i < 3000; i++) {
        now += rnd_range(&r, 0, 2 * MS);
        if (rnd_one_in(&r, 50))
            knob(f, now, turns[rnd_below(&r, sizeof(turns) / sizeof(*turns))]);
        put(f, now, i, 100 + rnd_below(&r, 1400));
        if (rnd_one_in(&look, lazy))
            take(f, now, l);
    }
    drain(f, l);
}

TEST(same_fates_whenever_somebody_looks)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct flow f;
        walk(&f, seed, 1, &logs[0]);
        const struct flow_counts *c = &f.counts;
        CHECK_INT(c->in, 3000);
        CHECK_INT(c->out, logs[0].n);
        CHECK_INT(c->in + c->duplicated, c->out + c->lost + c->cut + c->too_big + c->queue_full);
        CHECK_INT(c->overflow, 0);
        CHECK(f.queue.bytes + f.line.bytes + f.behind.bytes == 0);
        flow_done(&f);
        walk(&f, seed, 100, &logs[1]);
        CHECK_INT(logs[1].n, logs[0].n);
        CHECK(memcmp(logs[0].ids, logs[1].ids, logs[0].n * sizeof(logs[0].ids[0])) == 0);
        CHECK(memcmp(logs[0].at, logs[1].at, logs[0].n * sizeof(logs[0].at[0])) == 0);
        flow_done(&f);
    }
}

TEST(words_that_are_no_knobs)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "loss",
                                      "loss=",
                                      "=1",
                                      "loss=1.1",
                                      "loss=-1",
                                      "loss=nan",
                                      "loss=1e-3",
                                      "cut=2",
                                      "cut=yes",
                                      "cut=0.5",
                                      "mtu=70000",
                                      "mtu=1.5",
                                      "speed=1",
                                      "los=1",
                                      "only=sctp",
                                      "only=",
                                      "rate_mbit=0.0001",
                                      "delay_ms=1000000",
                                      "loss_every=0x10",
                                      "queue_packets=0",
                                      "loss=0.1 oh",
                                      "burst=99999999999999999999999999",
                                      "delay_ms=.",
                                      "loss=1.2.3"};
    struct flow f;
    flow_init(&f, 1);
    struct flow_knobs before = f.knobs;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char line[64];
        snprintf(line, sizeof(line), "%s", bad[i]);
        bool refused = knobs_read(line, &f.knobs) != NULL;
        if (!refused)
            printf("taken: \"%s\"\n", bad[i]);
        CHECK(refused && memcmp(&before, &f.knobs, sizeof(before)) == 0);
    }
    char good[] = " loss=.25\tdelay_ms=0.5 only=udp rate_mbit=1.5 oldest=1 \r\n";
    CHECK(knobs_read(good, &f.knobs) == NULL);
    CHECK_INT(f.knobs.loss.ppm, 250000);
    CHECK_INT(f.knobs.delay_ns, MS / 2);
    CHECK_INT(f.knobs.rate_bits, 1500000);
    CHECK(f.knobs.protocol == 17 && f.knobs.drop_oldest);
}

TEST(too_big_is_told_to_whom_it_may)
{
    uint8_t a[TOO_BIG_MAX], udp[1500] = {0x45, [6] = 0x40, [9] = 17, [15] = 1, [19] = 2};
    CHECK_INT(too_big_answer(udp, sizeof(udp), 1200, a), 56);
    CHECK(a[15] == 2 && a[19] == 1 && a[20] == 3 && a[21] == 4 && a[26] == 4 && a[27] == 0xb0);
    udp[6] = 0; /* may be cut into pieces */
    CHECK_INT(too_big_answer(udp, sizeof(udp), 1200, a), 0);
    udp[6] = 0x40;
    udp[9] = 1;
    CHECK_INT(too_big_answer(udp, sizeof(udp), 1200, a), 0);
    uint8_t udp6[2000] = {0x60, [6] = 17, [23] = 1, [39] = 2};
    CHECK_INT(too_big_answer(udp6, sizeof(udp6), 1280, a), 1280);
    CHECK(a[23] == 2 && a[39] == 1 && a[40] == 2 && a[46] == 5 && a[47] == 0);
    udp6[6] = 58; /* an error is not answered, an echo is */
    udp6[40] = 1;
    CHECK_INT(too_big_answer(udp6, sizeof(udp6), 1280, a), 0);
    udp6[40] = 128;
    CHECK_INT(too_big_answer(udp6, sizeof(udp6), 1280, a), 1280);
    CHECK_INT(too_big_answer(udp6, 10, 5, a), 0);
}
