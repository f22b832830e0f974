/*
 * Every byte arrives as it was sent, in its place and once, whatever is between the ends: a box
 * that loses, doubles, delays, cuts segments in pieces, sends parts again with other boundaries,
 * replays what it saw long ago and strips options, readers that sleep, memory that comes and goes,
 * numbers that wrap. Looked at are the bytes that leave, those that can be read, and those that are
 * kept behind a gap.
 */
#include "tcp_flow.h"

enum { SEEN = 64, HOURS_2_MS = 2 * 3600 * 1000 };

struct end {
    struct zc_tcp t;
    struct zc_tcp_config config;
    struct zc_tcp_budget budget;
    size_t hog; /* of budget.used, not by t */
    uint32_t iss, sent;
    uint64_t to_write, written, read;
    size_t write_max, read_max;
    int64_t asleep_till_ms;
    bool hogs, fin_sent;
};

struct box {
    struct link link; /* its wire and its dice; no stacks */
    struct end ends[2];
    /* of 1000 segments */
    unsigned cut, again, replay;
    bool no_stamps, no_sack, no_scale;
    struct packet *seen[SEEN];
};

static uint8_t byte_of(int end, uint64_t at)
{
    return user_byte((uint8_t)(17 + end), at);
}

static unsigned dice(struct box *b, unsigned n)
{
    return link_rnd(&b->link, n);
}

/* ---- what must be true ---- */

static void check_bytes(struct zc_slice s, int end, uint64_t at)
{
    bool right = true;
    for (size_t i = 0; i < s.len; i++)
        right = right && s.data[i] == byte_of(end, at + i);
    CHECK(right);
}

/* What end says; notes how far it has come. */
static void check_sent(struct box *b, int end, const struct zc_tcp_segment *s)
{
    struct end *e = &b->ends[end], *other = &b->ends[!end];
    uint32_t at = s->seq - e->iss - 1, stop = at + (uint32_t)s->data.len;
    if (s->data.len > 0) {
        CHECK(stop <= e->written);
        check_bytes(s->data, end, at);
        e->sent = stop > e->sent ? stop : e->sent;
    }
    if ((s->flags & ZC_TCP_FIN) != 0) {
        CHECK_INT(stop, e->to_write);
        e->fin_sent = true;
    }
    /* Nothing is acknowledged that the other has not sent, nor reported behind a gap. */
    uint32_t ack = s->ack - other->iss - 1;
    if ((s->flags & ZC_TCP_ACK) != 0)
        CHECK(ack <= other->sent + other->fin_sent);
    for (unsigned i = 0; i < s->sack_count; i++)
        CHECK(s->sacks[i].end - other->iss - 1 <= other->sent);
}

/* All that end holds of the other's bytes: the readable ones, and those behind gaps. Full rings are
 * looked at less often. */
static void check_held(struct box *b, int end)
{
    struct end *e = &b->ends[end];
    const struct zc_tcp_in *in = &e->t.in;
    struct zc_slice parts[2];
    if (dice(b, 1 + in->ring.len / 2048) > 0)
        return;
    size_t n = zc_tcp_ring_slices(&in->ring, 0, in->ring.len, parts);
    uint64_t at = e->read;
    for (size_t i = 0; i < n; i++) {
        check_bytes(parts[i], !end, at);
        at += parts[i].len;
    }
    CHECK(in->ranges.count == 0 || zc_tcp_seq_lt(in->nxt, in->ranges.at[0].start));
    for (uint32_t i = 0; i < in->ranges.count; i++) {
        struct zc_tcp_range r = in->ranges.at[i];
        struct zc_tcp_ring all = in->ring;
        all.len += r.end - in->nxt;
        CHECK(all.len <= all.cap);
        n = zc_tcp_ring_slices(&all, in->ring.len + (r.start - in->nxt), r.end - r.start, parts);
        for (size_t k = 0, from = r.start - in->nxt; k < n; from += parts[k++].len)
            check_bytes(parts[k], !end, at + from);
    }
}

/* ---- the box ---- */

static void put(struct box *b, int from, const struct zc_tcp_segment *s)
{
    uint8_t buf[ZC_IP6_MTU];
    const struct zc_tcp_ends *e = &b->ends[from].t.ends;
    size_t n = zc_tcp_segment_write(s, zc_slice(NULL, 0), &e->local, &e->remote, buf, sizeof(buf));
    link_send(&b->link, from, buf, n);
    struct packet **old = &b->seen[dice(b, SEEN)];
    if (*old == NULL)
        *old = malloc(sizeof(**old));
    (*old)->to = !from;
    (*old)->len = n;
    memcpy((*old)->data, buf, n);
}

static void strip(const struct box *b, struct zc_tcp_segment *s)
{
    if ((s->flags & ZC_TCP_SYN) == 0)
        return;
    s->has_stamp = s->has_stamp && !b->no_stamps;
    s->sack_ok = s->sack_ok && !b->no_sack;
    s->has_scale = s->has_scale && !b->no_scale;
}

/* s in two or three pieces, in any order. */
static void put_pieces(struct box *b, int from, const struct zc_tcp_segment *s)
{
    unsigned len = (unsigned)s->data.len, a = dice(b, len + 1), c = a + dice(b, len - a + 1);
    const unsigned bounds[4] = {0, a, c, len};
    unsigned first = dice(b, 3);
    for (unsigned i = 0; i < 3; i++) {
        unsigned k = (first + i) % 3;
        struct zc_tcp_segment piece = *s;
        piece.seq += bounds[k];
        piece.data = zc_slice(s->data.data + bounds[k], bounds[k + 1] - bounds[k]);
        if (k < 2)
            piece.flags &= (uint8_t) ~(ZC_TCP_FIN | ZC_TCP_PSH);
        if (k == 2 || piece.data.len > 0)
            put(b, from, &piece);
    }
}

/* Bytes that have been sent before, cut anew, with the head of s. */
static void put_again(struct box *b, int from, const struct zc_tcp_segment *s)
{
    uint8_t data[1024];
    const struct end *e = &b->ends[from];
    struct zc_tcp_segment other = *s;
    uint32_t back = dice(b, 4) == 0 ? e->sent : 5000, at = e->sent - dice(b, back);
    if (zc_tcp_seq_lt(at, 0) || at > e->sent)
        at = 0;
    uint32_t len = 1 + dice(b, dice(b, 2) == 0 ? 3 : sizeof(data));
    len = len < e->sent - at ? len : e->sent - at;
    for (uint32_t i = 0; i < len; i++)
        data[i] = byte_of(from, at + i);
    other.seq = e->iss + 1 + at;
    other.data = zc_slice(data, len);
    other.flags &= (uint8_t)~ZC_TCP_FIN;
    if (e->fin_sent && at + len == e->to_write)
        other.flags |= ZC_TCP_FIN;
    put(b, from, &other);
}

static void replay(struct box *b)
{
    const struct packet *old = b->seen[dice(b, SEEN)];
    if (old != NULL)
        link_send(&b->link, !old->to, old->data, old->len);
}

static void pass(struct box *b, int from, const uint8_t *data, size_t len)
{
    struct zc_ip6 ip;
    struct zc_tcp_segment s;
    if (zc_ip6_parse(data, len, &ip) != 0 || zc_tcp_segment_parse(&ip, &s) != 0)
        abort();
    check_sent(b, from, &s);
    strip(b, &s);
    bool syn = (s.flags & ZC_TCP_SYN) != 0;
    if (!syn && b->ends[from].sent > 0 && dice(b, 1000) < b->again)
        put_again(b, from, &s);
    if (dice(b, 1000) < b->replay)
        replay(b);
    if (dice(b, 1000) < b->link.loss)
        return;
    if (!syn && s.data.len > 0 && dice(b, 1000) < b->cut)
        put_pieces(b, from, &s);
    else
        put(b, from, &s);
    if (dice(b, 1000) < b->link.twice)
        put(b, from, &s);
}

static void drain(struct box *b)
{
    uint8_t buf[ZC_IP6_MTU];
    size_t n;
    for (int i = 0; i < 2; i++) {
        while ((n = zc_tcp_output(&b->ends[i].t, b->link.now.mono, buf, sizeof(buf))) > 0)
            pass(b, i, buf, n);
    }
}

static void arrive(struct box *b, const struct packet *p)
{
    struct end *e = &b->ends[p->to];
    struct zc_ip6 ip;
    struct zc_tcp_segment s, reset;
    uint8_t *copy = malloc(p->len); /* which is gone after the call */
    memcpy(copy, p->data, p->len);
    if (zc_ip6_parse(copy, p->len, &ip) != 0 || zc_tcp_segment_parse(&ip, &s) != 0)
        abort();
    if (e->t.budget != NULL) {
        if (zc_tcp_input(&e->t, b->link.now.mono, &s, &reset))
            put(b, p->to, &reset);
    } else if ((s.flags & ZC_TCP_SYN) != 0) {
        zc_tcp_accept(&e->t, &e->config, &e->budget, &e->t.ends, e->iss, 77, b->link.now.mono, &s);
    }
    memset(copy, 0xee, p->len);
    free(copy);
    check_held(b, p->to);
}

/* ---- the users ---- */

static void user_writes(struct box *b, int end)
{
    uint8_t buf[8192];
    struct end *e = &b->ends[end];
    while (e->written < e->to_write) {
        size_t n = 1 + dice(b, (unsigned)e->write_max),
               room = zc_tcp_out_room(&e->t.out, &e->budget);
        n = n < room + 1 ? n : room + 1;
        n = n < e->to_write - e->written ? n : (size_t)(e->to_write - e->written);
        for (size_t i = 0; i < n; i++)
            buf[i] = byte_of(end, e->written + i);
        size_t took = zc_tcp_write(&e->t, b->link.now.mono, zc_slice(buf, n));
        e->written += took;
        if (took < n || dice(b, 8) == 0)
            return;
    }
    zc_tcp_shutdown(&e->t, b->link.now.mono);
}

static void user_reads(struct box *b, int end)
{
    struct end *e = &b->ends[end];
    if (link_ms(&b->link) < e->asleep_till_ms || e->t.in.ring.len == 0)
        return;
    size_t n = 1 + dice(b, (unsigned)e->read_max);
    n = n < e->t.in.ring.len ? n : e->t.in.ring.len;
    struct zc_slice parts[2];
    for (size_t i = 0, k = zc_tcp_ring_slices(&e->t.in.ring, 0, n, parts); i < k; i++) {
        check_bytes(parts[i], !end, e->read);
        e->read += parts[i].len;
    }
    zc_tcp_consume(&e->t, b->link.now.mono, n);
    if (dice(b, 300) == 0)
        e->asleep_till_ms = link_ms(&b->link) + dice(b, 30000);
}

/* Others of the same budget take memory and give it back. */
static void hog(struct box *b, struct end *e)
{
    if (!e->hogs || dice(b, 20) > 0)
        return;
    e->budget.used -= e->hog;
    e->hog = dice(b, 2) * dice(b, (unsigned)e->budget.max);
    e->budget.used += e->hog;
}

static bool end_done(const struct box *b, int end)
{
    const struct end *e = &b->ends[end];
    return e->t.in.fin_read && e->read == b->ends[!end].to_write;
}

/* ---- one case ---- */

static void step(struct box *b)
{
    struct link *l = &b->link;
    drain(b);
    int64_t next = l->now.mono.ns + ZC_NS_PER_S;
    for (int i = 0; i < 2; i++) {
        const struct end *e = &b->ends[i];
        bool busy = e->t.in.ring.len > 0 || e->written < e->to_write;
        int64_t at = e->t.budget == NULL ? next : zc_tcp_deadline(&e->t).ns;
        at = at > l->now.mono.ns ? at : l->now.mono.ns + 1;
        if (busy && at > l->now.mono.ns + ZC_NS_PER_MS)
            at = l->now.mono.ns + ZC_NS_PER_MS;
        next = at < next ? at : next;
    }
    if (l->wire_len > 0 && l->wire[0]->at_ns < next)
        next = l->wire[0]->at_ns;
    l->now.mono.ns = next > l->now.mono.ns ? next : l->now.mono.ns;
    while (l->wire_len > 0 && l->wire[0]->at_ns <= l->now.mono.ns) {
        struct packet *p = link_pop(l);
        arrive(b, p);
        free(p);
    }
    for (int i = 0; i < 2; i++) {
        struct end *e = &b->ends[i];
        if (e->t.budget == NULL)
            continue;
        hog(b, e);
        zc_tcp_tick(&e->t, l->now.mono);
        user_reads(b, i);
        user_writes(b, i);
    }
}

static uint32_t some_iss(struct box *b)
{
    static const uint32_t edges[] = {0, UINT32_C(1) << 31, UINT32_C(1) << 16};
    if (dice(b, 4) == 0)
        return (uint32_t)zc_rng_u64(&b->link.rng);
    return edges[dice(b, 3)] - dice(b, dice(b, 2) == 0 ? 20 : 200000);
}

static void end_init(struct box *b, int end)
{
    static const uint32_t queues[] = {4096, 9000, 20000, 100000, 4 << 20};
    struct end *e = &b->ends[end];
    e->t.ends = (struct zc_tcp_ends){
        .local = link_addr((uint8_t)(2 + end)),
        .remote = link_addr((uint8_t)(3 - end)),
        .local_port = (uint16_t)(5 + end),
        .remote_port = (uint16_t)(6 - end),
    };
    zc_tcp_config_init(&e->config);
    e->config.recv_max = queues[dice(b, 5)];
    e->config.send_max = queues[dice(b, 5)];
    e->config.dead_ms = 2 * HOURS_2_MS;
    e->config.syn_retries = 100;
    e->hogs = dice(b, 3) == 0;
    e->budget.max = dice(b, 3) == 0 ? dice(b, 300000) : 64 << 20;
    e->iss = some_iss(b);
    e->to_write = dice(b, 5) == 0 ? dice(b, 5) : dice(b, 250000);
    e->write_max = dice(b, 3) == 0 ? 10 + dice(b, 90) : 8192;
    e->read_max = dice(b, 3) == 0 ? 10 + dice(b, 3000) : 500000;
}

static void box_init(struct box *b, uint64_t seed)
{
    uint8_t bytes[32] = "exact";
    memset(b, 0, sizeof(*b));
    memcpy(bytes + 8, &seed, sizeof(seed));
    zc_rng_init(&b->link.rng, bytes);
    b->link.now.mono.ns = ZC_NS_PER_S;
    b->link.loss = dice(b, 2) * dice(b, 200);
    b->link.twice = dice(b, 2) * dice(b, 200);
    b->link.late = dice(b, 2) * dice(b, 500);
    b->link.delay_ms = dice(b, 60);
    b->link.late_ms = 1 + dice(b, 150);
    b->cut = dice(b, 2) * dice(b, 800);
    b->again = dice(b, 2) * dice(b, 500);
    b->replay = dice(b, 2) * dice(b, 100);
    b->no_stamps = dice(b, 3) == 0;
    b->no_sack = dice(b, 3) == 0;
    b->no_scale = dice(b, 6) == 0;
    end_init(b, 0);
    end_init(b, 1);
}

static void exact_case(uint64_t seed)
{
    static struct box b;
    box_init(&b, seed);
    struct end *e = b.ends;
    struct zc_tcp_ends ends = e[0].t.ends;
    zc_tcp_connect(&e[0].t, &e[0].config, &e[0].budget, &ends, e[0].iss, 99, b.link.now.mono);
    while (!(end_done(&b, 0) && end_done(&b, 1)) && link_ms(&b.link) < HOURS_2_MS &&
           test_faults == 0)
        step(&b);
    for (int i = 0; i < 2; i++) {
        CHECK(end_done(&b, i));
        CHECK(e[i].t.reason == ZC_TCP_OPEN || e[i].t.reason == ZC_TCP_DONE);
        zc_tcp_done(&e[i].t);
        CHECK_INT(e[i].budget.used, e[i].hog);
    }
    while (b.link.wire_len > 0)
        free(link_pop(&b.link));
    free(b.link.wire);
    for (int i = 0; i < SEEN; i++)
        free(b.seen[i]);
    if (test_faults > 0)
        printf("seed %llu\n", (unsigned long long)seed);
}

/* TCP_SEEDS: how many more; TCP_SEED: the first. */
TEST(bytes_are_exact)
{
    const char *count = getenv("TCP_SEEDS"), *first = getenv("TCP_SEED");
    uint64_t seed = first != NULL ? strtoull(first, NULL, 10) : 0;
    uint64_t end = seed + (count != NULL ? strtoull(count, NULL, 10) : 200);
    for (; seed < end && test_faults == 0; seed++)
        exact_case(seed);
}
