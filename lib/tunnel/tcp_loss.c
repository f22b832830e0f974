/*
 * Loss detection and congestion control of the sending half: what SACKs and duplicate
 * acknowledgements tell (RFC 6675, RFC 6582 without SACK), slow start and congestion avoidance
 * counted in bytes (RFC 5681, 3465), limited transmit (RFC 3042, by what leaves the pipe).
 */
#include "tunnel/tcp_out.h"

enum {
    DUP_THRESHOLD = 3,
    CWND_MAX = 32 << 20,
    STEP_SEGMENTS = 8, /* of slow start for one acknowledgement, which may stand for several */
};

/* Length of the part of [start, end) that lies in [from, to). */
static uint32_t overlap(uint32_t start, uint32_t end, uint32_t from, uint32_t to)
{
    start = zc_tcp_seq_max(start, from);
    end = zc_tcp_seq_min(end, to);
    return zc_tcp_seq_lt(start, end) ? end - start : 0;
}

uint32_t zc_tcp_loss_pipe(const struct zc_tcp_out *o)
{
    uint32_t pipe = 0, at = o->una;
    for (uint32_t i = 0; i <= o->sacked.count; i++) {
        uint32_t end = i < o->sacked.count ? o->sacked.at[i].start : o->max;
        pipe += overlap(at, end, o->una, o->rxt); /* sent again */
        pipe += overlap(at, end, o->lost, o->max);
        if (i < o->sacked.count)
            at = o->sacked.at[i].end;
    }
    if (o->bare) {
        /* Each duplicate says that some segment has arrived. */
        uint64_t arrived = (uint64_t)o->dups * o->mss;
        pipe = arrived < pipe ? pipe - (uint32_t)arrived : 0;
    }
    return pipe;
}

void zc_tcp_loss_all(struct zc_tcp_out *o)
{
    o->lost = o->max;
    o->rxt = o->una;
    o->recover = o->max; /* what was lost here calls for no reduction */
    o->recovering = o->hurry = false;
    o->dups = 0;
}

static void halve(struct zc_tcp_out *o)
{
    uint32_t half = (o->max - o->una) / 2, least = 2 * (uint32_t)o->mss;
    o->ssthresh = half > least ? half : least;
}

void zc_tcp_loss_timeout(struct zc_tcp_out *o)
{
    if (o->rtt.backoff == 0 && !o->syn)
        halve(o);
    /* A second timeout in a row: perhaps the peer has thrown away what it reported. */
    if (o->rtt.backoff > 0 || zc_tcp_ranges_find(&o->sacked, o->una) != NULL)
        o->sacked.count = 0;
    zc_tcp_rtt_backoff(&o->rtt);
    o->cwnd = o->mss;
    o->grown = 0;
    o->timed = false;
    zc_tcp_loss_all(o);
}

bool zc_tcp_loss_sacks(struct zc_tcp_out *o, const struct zc_tcp_segment *s)
{
    if (!o->sack || s->sack_count == 0)
        return false;
    uint32_t before = zc_tcp_ranges_bytes(&o->sacked);
    uint32_t una = zc_tcp_seq_max(o->una, s->ack);
    for (unsigned i = 0; i < s->sack_count; i++) {
        struct zc_tcp_range r = s->sacks[i];
        if (zc_tcp_seq_lt(r.start, una) || zc_tcp_seq_lt(o->max, r.end))
            continue;                           /* a duplicate's report, or nonsense */
        (void)zc_tcp_ranges_add(&o->sacked, r); /* one too many: as if it had not been told */
    }
    return zc_tcp_ranges_bytes(&o->sacked) != before;
}

/* Everything below enough of what has arrived counts as lost (IsLost of RFC 6675). */
static void find_lost(struct zc_tcp_out *o)
{
    uint32_t above = 0;
    for (uint32_t i = o->sacked.count; i > 0; i--) {
        const struct zc_tcp_range *r = &o->sacked.at[i - 1];
        above += r->end - r->start;
        if (above > (DUP_THRESHOLD - 1) * (uint32_t)o->mss ||
            o->sacked.count - i + 1 >= DUP_THRESHOLD) {
            o->lost = zc_tcp_seq_max(o->lost, r->start);
            return;
        }
    }
}

/* The first segment that is not acknowledged counts as lost. */
static void first_lost(struct zc_tcp_out *o)
{
    uint32_t end = o->una + o->mss;
    if (o->sacked.count > 0)
        end = zc_tcp_seq_min(end, o->sacked.at[0].start);
    o->lost = zc_tcp_seq_max(o->lost, zc_tcp_seq_min(end, o->max));
}

static void enter_recovery(struct zc_tcp_out *o)
{
    halve(o);
    o->cwnd = o->ssthresh;
    o->recover = o->max;
    o->recovering = true;
    o->rxt = o->una;
    o->hurry = true;
    first_lost(o);
}

static void judge(struct zc_tcp_out *o)
{
    find_lost(o);
    /* No second reduction for what was lost before a timeout. */
    if (o->recovering || zc_tcp_seq_lt(o->una, o->recover))
        return;
    if (o->dups >= DUP_THRESHOLD || zc_tcp_seq_lt(o->una, o->lost))
        enter_recovery(o);
}

void zc_tcp_loss_dup(struct zc_tcp_out *o)
{
    o->dups++;
    judge(o);
}

static void grow(struct zc_tcp_out *o, uint32_t bytes)
{
    if (!o->limited || o->cwnd >= CWND_MAX)
        return;
    if (o->cwnd < o->ssthresh) {
        uint32_t most = STEP_SEGMENTS * (uint32_t)o->mss;
        o->cwnd += bytes < most ? bytes : most;
        return;
    }
    o->grown += bytes;
    if (o->grown >= o->cwnd) {
        o->grown -= o->cwnd;
        o->cwnd += o->mss;
    }
}

static void leave_recovery(struct zc_tcp_out *o)
{
    uint32_t pipe = zc_tcp_loss_pipe(o);
    uint32_t cwnd = (pipe > o->mss ? pipe : o->mss) + o->mss;
    o->cwnd = cwnd < o->ssthresh ? cwnd : o->ssthresh;
    o->recovering = o->hurry = false;
    o->dups = 0;
    o->grown = 0;
}

void zc_tcp_loss_acked(struct zc_tcp_out *o, uint32_t was)
{
    uint32_t bytes = o->una - was;
    zc_tcp_ranges_cut(&o->sacked, o->una);
    o->rxt = zc_tcp_seq_max(o->rxt, o->una);
    o->lost = zc_tcp_seq_max(o->lost, o->una);
    bool whole = zc_tcp_seq_le(o->recover, o->una);
    if (o->recovering && whole) {
        leave_recovery(o);
    } else if (o->recovering) {
        /* Partial: the next hole was lost with the first one. */
        uint32_t segments = (bytes + o->mss - 1) / o->mss;
        o->dups -= segments < o->dups ? segments : o->dups;
        if (o->rxt == o->una) {
            first_lost(o);
            o->hurry = true;
        }
    } else {
        o->dups = 0;
        grow(o, bytes);
    }
    if (whole)
        o->recover = o->una; /* so that it never falls behind by half the number space */
    if (o->sacked.count > 0)
        judge(o);
}
