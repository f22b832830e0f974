/* A TCP connection: its life, its timers and what its user asks for; see tcp.h. */
#include "tunnel/tcp.h"

#include "base/check.h"
#include "tunnel/tcp_priv.h"

enum {
    QUEUE_DEFAULT = 4 << 20,
    QUEUE_MAX = 16 << 20, /* what a window of scale 8 can say */
    QUEUE_LEAST = 4096,
    KEEPALIVE_INTERVAL_MS = 75000,
    KEEPALIVES_MAX = 9,
};

const char *zc_tcp_reason_text(enum zc_tcp_reason reason)
{
    static const char *const texts[] = {
        "open", "closed by both sides", "refused", "reset by the peer", "no answer", "aborted"};
    return (unsigned)reason < ZC_ARRAY_LEN(texts) ? texts[reason] : "unknown";
}

void zc_tcp_config_init(struct zc_tcp_config *c)
{
    *c = (struct zc_tcp_config){
        .send_max = QUEUE_DEFAULT,
        .recv_max = QUEUE_DEFAULT,
        .syn_retries = 6,
        .dead_ms = 60000,
        .time_wait_ms = 30000,
        .fin_wait_ms = 60000,
        .keepalive_ms = 7200000,
    };
}

static uint32_t clamp(uint32_t bytes)
{
    if (bytes > QUEUE_MAX)
        return QUEUE_MAX;
    return bytes < QUEUE_LEAST ? QUEUE_LEAST : bytes;
}

static void start(struct zc_tcp *t, const struct zc_tcp_config *config,
                  struct zc_tcp_budget *budget, const struct zc_tcp_ends *ends, uint32_t iss,
                  uint32_t stamp_offset, struct zc_mono now)
{
    *t = (struct zc_tcp){
        .config = config,
        .budget = budget,
        .ends = *ends,
        .state = ZC_TCP_SYN_SENT,
        .stamp_offset = stamp_offset,
        .heard_at = now,
        .end_at = ZC_NEVER,
        .idle_at = ZC_NEVER,
    };
    zc_tcp_in_init(&t->in, clamp(config->recv_max));
    zc_tcp_out_init(&t->out, iss, clamp(config->send_max), now);
    zc_rate_init(&t->replies, ZC_TCP_REPLY_MS, ZC_TCP_REPLY_BURST);
}

void zc_tcp_connect(struct zc_tcp *t, const struct zc_tcp_config *config,
                    struct zc_tcp_budget *budget, const struct zc_tcp_ends *ends, uint32_t iss,
                    uint32_t stamp_offset, struct zc_mono now)
{
    start(t, config, budget, ends, iss, stamp_offset, now);
}

void zc_tcp_accept(struct zc_tcp *t, const struct zc_tcp_config *config,
                   struct zc_tcp_budget *budget, const struct zc_tcp_ends *ends, uint32_t iss,
                   uint32_t stamp_offset, struct zc_mono now, const struct zc_tcp_segment *syn)
{
    start(t, config, budget, ends, iss, stamp_offset, now);
    t->state = ZC_TCP_SYN_RECEIVED;
    t->passive = true;
    zc_tcp_in_peer(&t->in, now, syn, syn->has_scale);
    zc_tcp_out_peer(&t->out, syn, syn->has_scale);
}

void zc_tcp_done(struct zc_tcp *t)
{
    if (t->budget == NULL)
        return;
    zc_tcp_in_done(&t->in, t->budget);
    zc_tcp_out_done(&t->out, t->budget);
}

/* ---- the end ---- */

static bool opened(const struct zc_tcp *t)
{
    return t->state != ZC_TCP_CLOSED && t->state != ZC_TCP_SYN_SENT &&
           t->state != ZC_TCP_SYN_RECEIVED;
}

/* Unread bytes stay. */
static void over(struct zc_tcp *t, enum zc_tcp_reason reason)
{
    if (t->reason != ZC_TCP_OPEN)
        return;
    t->reason = reason;
    t->events |= ZC_TCP_EVENT_CLOSED;
    t->events &= (uint8_t)~ZC_TCP_EVENT_WRITABLE;
    zc_tcp_out_done(&t->out, t->budget);
    if (t->in.ring.len == 0)
        zc_tcp_in_done(&t->in, t->budget);
}

void zc_tcp_close(struct zc_tcp *t, enum zc_tcp_reason reason)
{
    over(t, reason);
    t->state = ZC_TCP_CLOSED;
    t->end_at = t->idle_at = t->in.ack_at = ZC_NEVER;
}

void zc_tcp_time_wait(struct zc_tcp *t, struct zc_mono now)
{
    t->state = ZC_TCP_TIME_WAIT;
    t->end_at = zc_mono_add_ms(now, t->config->time_wait_ms);
    over(t, ZC_TCP_DONE);
}

void zc_tcp_fin_wait(struct zc_tcp *t, struct zc_mono now)
{
    t->state = ZC_TCP_FIN_WAIT_2;
    if (t->released)
        t->end_at = zc_mono_add_ms(now, t->config->fin_wait_ms);
}

struct zc_tcp_segment zc_tcp_reset(const struct zc_tcp *t)
{
    return (struct zc_tcp_segment){
        .src_port = t->ends.local_port,
        .dst_port = t->ends.remote_port,
        .seq = zc_tcp_out_seq(&t->out),
        .ack = t->in.nxt,
        .flags = ZC_TCP_RST | ZC_TCP_ACK,
    };
}

bool zc_tcp_abort(struct zc_tcp *t, enum zc_tcp_reason reason, struct zc_tcp_segment *ret_reset)
{
    bool tell = (opened(t) || t->state == ZC_TCP_SYN_RECEIVED) && t->state != ZC_TCP_CLOSING &&
                t->state != ZC_TCP_LAST_ACK && t->state != ZC_TCP_TIME_WAIT;
    if (tell)
        *ret_reset = zc_tcp_reset(t);
    zc_tcp_close(t, reason);
    return tell;
}

/* ---- the user ---- */

bool zc_tcp_writable(const struct zc_tcp *t)
{
    return !t->out.fin && (t->state == ZC_TCP_SYN_SENT || t->state == ZC_TCP_SYN_RECEIVED ||
                           t->state == ZC_TCP_ESTABLISHED || t->state == ZC_TCP_CLOSE_WAIT);
}

void zc_tcp_active(struct zc_tcp *t, struct zc_mono now)
{
    if (t->in.ring.cap > 0 || t->out.ring.cap > 0)
        t->idle_at = zc_mono_add_ms(now, ZC_TCP_IDLE_MS);
}

size_t zc_tcp_write(struct zc_tcp *t, struct zc_mono now, struct zc_slice data)
{
    if (!zc_tcp_writable(t))
        return 0;
    size_t n = zc_tcp_out_write(&t->out, t->budget, data);
    t->write_full = n < data.len;
    zc_tcp_out_timers(&t->out, now);
    zc_tcp_active(t, now);
    return n;
}

void zc_tcp_consume(struct zc_tcp *t, struct zc_mono now, size_t n)
{
    zc_tcp_in_consume(&t->in, t->budget, n);
    if (t->reason != ZC_TCP_OPEN && t->in.ring.len == 0)
        zc_tcp_in_done(&t->in, t->budget);
    else
        zc_tcp_active(t, now);
}

void zc_tcp_shutdown(struct zc_tcp *t, struct zc_mono now)
{
    if (!zc_tcp_writable(t))
        return;
    t->out.fin = true;
    t->write_full = false;
    t->events &= (uint8_t)~ZC_TCP_EVENT_WRITABLE;
    /* Before the connection is open, opening it does the step. */
    if (t->state == ZC_TCP_ESTABLISHED)
        t->state = ZC_TCP_FIN_WAIT_1;
    else if (t->state == ZC_TCP_CLOSE_WAIT)
        t->state = ZC_TCP_LAST_ACK;
    zc_tcp_out_timers(&t->out, now);
}

bool zc_tcp_release(struct zc_tcp *t, struct zc_mono now, struct zc_tcp_segment *ret_reset)
{
    t->released = true;
    if (t->in.ring.len > 0 && t->reason == ZC_TCP_OPEN)
        return zc_tcp_abort(t, ZC_TCP_ABORTED, ret_reset);
    zc_tcp_in_done(&t->in, t->budget);
    if (t->state == ZC_TCP_SYN_SENT && t->out.ring.len == 0) {
        zc_tcp_close(t, ZC_TCP_ABORTED);
        return false;
    }
    zc_tcp_shutdown(t, now);
    if (t->state == ZC_TCP_FIN_WAIT_2)
        zc_tcp_fin_wait(t, now);
    return false;
}

void zc_tcp_nudge(struct zc_tcp *t, struct zc_mono now)
{
    if (t->reason != ZC_TCP_OPEN)
        return;
    zc_tcp_out_nudge(&t->out, now);
    zc_tcp_probe(t, now);
}

void zc_tcp_probe(struct zc_tcp *t, struct zc_mono since)
{
    if (t->reason == ZC_TCP_OPEN && opened(t) && !zc_tcp_out_waiting(&t->out) &&
        t->heard_at.ns <= since.ns)
        t->keepalive = true;
}

/* ---- time ---- */

/* When a silent peer is probed, or given up. */
static struct zc_mono keepalive_at(const struct zc_tcp *t)
{
    if (t->config->keepalive_ms == 0 || !opened(t) || t->state == ZC_TCP_TIME_WAIT ||
        zc_tcp_out_waiting(&t->out))
        return ZC_NEVER;
    if (t->keepalives > 0)
        return zc_mono_add_ms(t->probed_at, KEEPALIVE_INTERVAL_MS);
    return zc_mono_add_ms(t->heard_at, t->config->keepalive_ms);
}

/* When the peer has owed an answer for too long. */
static struct zc_mono dead_at(const struct zc_tcp *t)
{
    if (!opened(t) || !zc_tcp_out_waiting(&t->out))
        return ZC_NEVER;
    return zc_mono_add_ms(t->out.progress_at, t->config->dead_ms);
}

struct zc_mono zc_tcp_deadline(const struct zc_tcp *t)
{
    struct zc_mono d = zc_mono_min(t->end_at, t->idle_at);
    if (t->state == ZC_TCP_CLOSED || t->state == ZC_TCP_TIME_WAIT)
        return zc_mono_min(d, t->in.ack_at);
    d = zc_mono_min(d, zc_mono_min(t->in.ack_at, zc_tcp_out_deadline(&t->out)));
    return zc_mono_min(d, zc_mono_min(keepalive_at(t), dead_at(t)));
}

static void tick_keepalive(struct zc_tcp *t, struct zc_mono now)
{
    if (keepalive_at(t).ns > now.ns)
        return;
    if (t->keepalives == KEEPALIVES_MAX) {
        zc_tcp_close(t, ZC_TCP_TIMEOUT);
        return;
    }
    t->keepalives++;
    t->keepalive = true;
    t->probed_at = now;
}

static void tick_idle(struct zc_tcp *t)
{
    t->idle_at = ZC_NEVER;
    zc_tcp_ring_trim(&t->out.ring, t->budget, 0);
    if (t->in.ranges.count == 0)
        zc_tcp_ring_trim(&t->in.ring, t->budget, 0);
}

void zc_tcp_tick(struct zc_tcp *t, struct zc_mono now)
{
    if (t->idle_at.ns <= now.ns)
        tick_idle(t);
    if (t->end_at.ns <= now.ns) {
        /* TIME_WAIT has told its reason already. */
        zc_tcp_close(t, ZC_TCP_TIMEOUT);
        return;
    }
    if (t->in.ack_at.ns <= now.ns) {
        t->in.ack_at = ZC_NEVER;
        zc_tcp_in_owe(&t->in);
    }
    if (t->reason != ZC_TCP_OPEN)
        return;
    bool was_syn = t->out.syn;
    zc_tcp_out_tick(&t->out, now);
    if (dead_at(t).ns <= now.ns || (was_syn && t->out.rtt.backoff > t->config->syn_retries))
        zc_tcp_close(t, ZC_TCP_TIMEOUT);
    else
        tick_keepalive(t, now);
}
