/*
 * Packets inside the tunnel: a script of raw packets, of segments that fit the connections there
 * are (their checksum is put right and their numbers count from what is expected), of time and of
 * what users do. Whatever comes, memory and answers stay bounded, every packet sent is a good one,
 * timers lie ahead, and at the end everything is freed.
 *
 *   script: byte of choice, then its arguments; numbers of missing bytes are 0
 */
#include <string.h>

#include "base/check.h"
#include "tunnel/tcpmux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNS = 4, PORT = 7, BYTES_MAX = 100000, CONNS_MAX = 8, OUT_MAX = 4000 };

/* A connection as its peer sees it. */
struct end {
    struct zc_tcpmux_conn *conn; /* NULL: released, or not told of */
    uint16_t theirs, ours;
    uint32_t seq, ack; /* where the mux waits, and what it has sent */
    uint32_t stamp, echo;
    bool stamps;
};

struct world {
    const uint8_t *data;
    size_t left;
    struct zc_tcpmux *mux;
    struct zc_ip6_addr us, peer;
    struct zc_now now;
    struct end ends[CONNS];
    unsigned next;
};

static unsigned take(struct world *w)
{
    if (w->left == 0)
        return 0;
    w->left--;
    return *w->data++;
}

static struct end *end_at(struct world *w, uint16_t ours, uint16_t theirs)
{
    for (unsigned i = 0; i < CONNS; i++) {
        if (w->ends[i].ours == ours && w->ends[i].theirs == theirs)
            return &w->ends[i];
    }
    return NULL;
}

/* Reads everything the mux wants to send. */
static void drain(struct world *w)
{
    uint8_t buf[ZC_IP6_MTU];
    for (unsigned count = 0;; count++) {
        struct zc_ip6_addr dst;
        struct zc_ip6 ip;
        struct zc_tcp_segment s;
        size_t n;
        zc_tcpmux_output(w->mux, w->now, NULL, buf, sizeof(buf), &n, &dst);
        if (n == 0)
            return;
        ZC_ASSERT(count < OUT_MAX && n <= ZC_IP6_MTU);
        ZC_ASSERT(zc_ip6_parse(buf, n, &ip) == 0 && zc_ip6_addr_eq(&ip.dst, &dst));
        if (ip.next != ZC_IP6_TCP)
            continue;
        ZC_ASSERT(zc_tcp_segment_parse(&ip, &s) == 0);
        struct end *e = end_at(w, s.src_port, s.dst_port);
        if (e == NULL || (s.flags & ZC_TCP_RST) != 0)
            continue;
        e->ack = s.seq + zc_tcp_segment_len(&s);
        e->seq = (s.flags & ZC_TCP_ACK) != 0 ? s.ack : e->seq;
        e->echo = s.stamp;
        e->stamps = s.has_stamp;
    }
}

static void events(struct world *w)
{
    struct zc_tcpmux_event ev;
    while (zc_tcpmux_event(w->mux, &ev)) {
        struct end *e = end_at(w, zc_tcpmux_local_port(ev.conn), zc_tcpmux_remote_port(ev.conn));
        if (ev.kind == ZC_TCPMUX_CLOSED || e == NULL) {
            if (e != NULL && e->conn == ev.conn)
                e->conn = NULL;
            zc_tcpmux_release(w->mux, w->now, ev.conn);
        } else if (ev.kind == ZC_TCPMUX_ACCEPTED) {
            e->conn = ev.conn;
        }
    }
}

static void raw_packet(struct world *w)
{
    size_t len = take(w) * 6;
    if (len > w->left)
        len = w->left;
    zc_tcpmux_input(w->mux, w->now, w->data, len);
    w->data += len;
    w->left -= len;
}

static uint32_t near(struct world *w, uint32_t base)
{
    unsigned how = take(w), far = take(w);
    return how < 128 ? base : base + (uint32_t)(int8_t)far * (how < 200 ? 1 : 1000);
}

static void segment(struct world *w)
{
    static const uint8_t zeros[ZC_IP6_MTU];
    uint8_t buf[ZC_IP6_MTU];
    struct end *e = &w->ends[take(w) % CONNS];
    unsigned extra = take(w);
    struct zc_tcp_segment s = {.src_port = e->theirs, .dst_port = e->ours};
    s.flags = take(w) & 0x3f;
    s.seq = near(w, e->seq);
    s.ack = near(w, e->ack);
    s.window = (uint16_t)(take(w) << (extra & 7));
    s.has_stamp = e->stamps != ((extra & 8) != 0);
    s.stamp = near(w, e->stamp++);
    s.echo = e->echo;
    if ((s.flags & ZC_TCP_SYN) != 0) {
        s.mss = (uint16_t)(take(w) * 10);
        s.sack_ok = (extra & 16) != 0;
        s.has_scale = (extra & 32) != 0;
        s.scale = extra & 15;
    } else {
        s.sack_count = extra >> 6;
        for (unsigned i = 0; i < s.sack_count; i++) {
            s.sacks[i].start = near(w, e->ack);
            s.sacks[i].end = s.sacks[i].start + take(w) * 10;
        }
    }
    s.data = zc_slice(zeros, (size_t)take(w) * 4);
    size_t n = zc_tcp_segment_write(&s, zc_slice(NULL, 0), &w->peer, &w->us, buf, sizeof(buf));
    zc_tcpmux_input(w->mux, w->now, buf, n);
}

static void use(struct world *w)
{
    static const uint8_t zeros[20000];
    struct end *e = &w->ends[take(w) % CONNS];
    unsigned what = take(w) % 6;
    struct zc_slice parts[2];
    if (e->conn == NULL)
        return;
    if (what == 0) {
        size_t n = zc_tcpmux_readable(e->conn, parts);
        zc_tcpmux_consume(w->mux, w->now, e->conn, n > 0 ? parts[0].len : 0);
    } else if (what == 1) {
        size_t room = zc_tcpmux_room(e->conn), n = take(w) * 70;
        size_t took = zc_tcpmux_write(w->mux, w->now, e->conn, zc_slice(zeros, n));
        ZC_ASSERT(took == (n < room ? n : room));
    } else if (what == 2) {
        zc_tcpmux_shutdown(w->mux, w->now, e->conn);
    } else if (what == 3) {
        zc_tcpmux_abort(w->mux, w->now, e->conn);
    } else if (what == 4) {
        zc_tcpmux_release(w->mux, w->now, e->conn);
        e->conn = NULL;
    } else {
        zc_tcpmux_nudge(w->mux, w->now, &w->peer);
    }
}

static void pass_time(struct world *w)
{
    unsigned how = take(w);
    int64_t ms = how < 250 ? how * 4 : INT64_C(1) << (how - 240) << 10;
    w->now.mono = zc_mono_add_ms(w->now.mono, ms);
    zc_tcpmux_tick(w->mux, w->now);
    ZC_ASSERT(zc_tcpmux_deadline(w->mux).ns > w->now.mono.ns);
}

static void dial(struct world *w)
{
    struct end *e = &w->ends[w->next++ % CONNS];
    if (e->conn != NULL)
        return;
    if (zc_tcpmux_connect(w->mux, w->now, &w->peer, PORT, NULL, &e->conn) == 0) {
        *e = (struct end){.conn = e->conn, .theirs = PORT};
        e->ours = zc_tcpmux_local_port(e->conn);
    }
}

static void start(struct world *w)
{
    uint8_t seed[32] = {1};
    struct zc_rng rng;
    struct zc_tcpmux_config c;
    zc_rng_init(&rng, seed);
    w->us.b[0] = w->peer.b[0] = 0xfd;
    w->us.b[15] = 1;
    w->now.mono.ns = ZC_NS_PER_S;
    zc_tcpmux_config_init(&c, &w->us);
    c.bytes_max = BYTES_MAX;
    c.conns_max = CONNS_MAX;
    c.half_open_max = 3;
    c.tcp.recv_max = c.tcp.send_max = 50000;
    ZC_ASSERT(zc_tcpmux_new(&c, &rng, &w->mux) == 0);
    ZC_ASSERT(zc_tcpmux_listen(w->mux, PORT, PORT) == 0);
    for (unsigned i = 0; i < CONNS; i++)
        w->ends[i] = (struct end){.theirs = (uint16_t)(1000 + i), .ours = PORT};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.data = data, .left = size};
    start(&w);
    for (unsigned steps = 0; w.left > 0 && steps < 2000; steps++) {
        unsigned choice = take(&w) % 16;
        if (choice < 8)
            segment(&w);
        else if (choice < 11)
            use(&w);
        else if (choice < 13)
            pass_time(&w);
        else if (choice < 14)
            raw_packet(&w);
        else if (choice < 15)
            dial(&w);
        if (choice != 15) /* else several things come before an answer */
            drain(&w);
        events(&w);
        struct zc_tcpmux_stats s = zc_tcpmux_stats(w.mux);
        ZC_ASSERT(s.conns <= CONNS_MAX && s.half_open <= 3);
        ZC_ASSERT(s.bytes <= BYTES_MAX + 2 * CONNS_MAX * ZC_TCP_RING_FREE);
    }
    zc_tcpmux_free(w.mux);
    return 0;
}
