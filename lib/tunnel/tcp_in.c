/* The receiving half of a TCP connection, see tcp_in.h. */
#include "tunnel/tcp_in.h"

#include "base/check.h"

enum {
    SEGMENT_LEAST = 536,
    SEGMENT_USUAL = 1220,
    OWED_MAX = 8,
    PAWS_DAYS_MS = 24 * 24 * 3600 * 1000, /* an older timestamp proves nothing */
};

void zc_tcp_in_init(struct zc_tcp_in *i, uint32_t ring_max)
{
    *i = (struct zc_tcp_in){.ring_max = ring_max, .ack_at = ZC_NEVER, .segment_max = SEGMENT_LEAST};
}

void zc_tcp_in_done(struct zc_tcp_in *i, struct zc_tcp_budget *b)
{
    zc_tcp_ring_done(&i->ring, b);
    i->ranges.count = 0;
    i->ack_at = ZC_NEVER;
}

void zc_tcp_in_peer(struct zc_tcp_in *i, struct zc_mono now, const struct zc_tcp_segment *syn,
                    bool scaled)
{
    i->nxt = i->edge = i->acked = syn->seq + 1;
    i->scale = scaled ? ZC_TCP_SCALE : 0;
    i->sack = syn->sack_ok;
    i->stamp = syn->has_stamp;
    i->stamp_recent = syn->stamp;
    i->stamp_at = now;
}

/* ---- judging ---- */

bool zc_tcp_in_acceptable(const struct zc_tcp_in *i, const struct zc_tcp_segment *s)
{
    uint32_t len = zc_tcp_segment_len(s), wnd = i->edge - i->nxt;
    if (s->seq == i->nxt)
        return true;
    if (len == 0) /* a peer that filled the window speaks from its edge */
        return s->seq - i->nxt <= wnd;
    if (zc_tcp_seq_lt(s->seq, i->nxt))
        return zc_tcp_seq_lt(i->nxt, s->seq + len);
    return s->seq - i->nxt < wnd;
}

bool zc_tcp_in_paws(const struct zc_tcp_in *i, struct zc_mono now, const struct zc_tcp_segment *s)
{
    return i->stamp && s->has_stamp && zc_tcp_seq_lt(s->stamp, i->stamp_recent) &&
           zc_mono_diff_ms(i->stamp_at, now) < PAWS_DAYS_MS;
}

/* ---- taking ---- */

void zc_tcp_in_owe(struct zc_tcp_in *i)
{
    if (i->owed == 0)
        i->owed = 1;
}

/* Something came out of order. Without SACK the peer counts the answers, so each gets one. */
static void owe_duplicate(struct zc_tcp_in *i)
{
    if (i->sack)
        i->owed = 1;
    else if (i->owed < OWED_MAX)
        i->owed++;
}

static void note_recent(struct zc_tcp_in *i, uint32_t seq)
{
    for (uint32_t k = ZC_TCP_SACKS - 1; k > 0; k--)
        i->recent[k] = i->recent[k - 1];
    i->recent[0] = seq;
    if (i->recent_count < ZC_TCP_SACKS)
        i->recent_count++;
}

static void take_stamp(struct zc_tcp_in *i, struct zc_mono now, const struct zc_tcp_segment *s)
{
    /* RFC 7323 4.3: only of what the last acknowledgement asked for. */
    if (!i->stamp || !s->has_stamp || !zc_tcp_seq_le(s->seq, i->acked))
        return;
    if (zc_tcp_seq_lt(s->stamp, i->stamp_recent) && zc_tcp_in_paws(i, now, s))
        return;
    i->stamp_recent = s->stamp;
    i->stamp_at = now;
}

/* What of the segment's data is new and fits between nxt, the edge and FIN; *ret_seq is its first
 * number. Notes where FIN is. */
static struct zc_slice trim(struct zc_tcp_in *i, const struct zc_tcp_segment *s, uint32_t *ret_seq)
{
    struct zc_slice data = s->data;
    uint32_t seq = s->seq, end = seq + (uint32_t)data.len;
    if ((s->flags & ZC_TCP_FIN) != 0 && !i->fin_known && zc_tcp_seq_le(end, i->edge) &&
        zc_tcp_seq_le(i->nxt, end)) {
        i->fin_known = true;
        i->fin = end;
    }
    uint32_t limit = i->fin_known ? zc_tcp_seq_min(i->edge, i->fin) : i->edge;
    end = zc_tcp_seq_min(end, limit);
    uint32_t start = zc_tcp_seq_max(seq, i->nxt);
    *ret_seq = start;
    if (!zc_tcp_seq_lt(start, end))
        return zc_slice(NULL, 0);
    return zc_slice(data.data + (start - seq), end - start);
}

/* The ring holds everything up to end now. */
static void move_on(struct zc_tcp_in *i, uint32_t end)
{
    /* What it covers goes; the next range may begin right there. */
    zc_tcp_ranges_cut(&i->ranges, end);
    if (i->ranges.count > 0 && i->ranges.at[0].start == end) {
        end = i->ranges.at[0].end;
        zc_tcp_ranges_cut(&i->ranges, end);
    }
    i->ring.len += end - i->nxt;
    i->nxt = end;
}

/* Stores data that starts at seq >= nxt. */
static void store(struct zc_tcp_in *i, struct zc_tcp_budget *b, uint32_t seq, struct zc_slice data)
{
    size_t offset = i->ring.len + (seq - i->nxt);
    if (zc_tcp_ring_reserve(&i->ring, b, offset + data.len) != 0) {
        /* Memory is refused: the peer sends again what does not fit. */
        size_t fits = i->ring.cap > offset ? i->ring.cap - offset : 0;
        data.len = data.len < fits ? data.len : fits;
    }
    struct zc_tcp_range r = {seq, seq + (uint32_t)data.len};
    if (data.len == 0)
        return;
    if (seq != i->nxt) {
        if (zc_tcp_ranges_add(&i->ranges, r)) {
            zc_tcp_ring_put(&i->ring, offset, data);
            note_recent(i, seq);
        }
        return;
    }
    zc_tcp_ring_put(&i->ring, offset, data);
    move_on(i, r.end);
}

uint32_t zc_tcp_in_take(struct zc_tcp_in *i, struct zc_tcp_budget *b, struct zc_mono now,
                        const struct zc_tcp_segment *s)
{
    take_stamp(i, now, s);
    uint32_t len = zc_tcp_segment_len(s), seq, before = i->ring.len;
    if (len == 0 || i->fin_read)
        return 0;
    if (s->data.len > i->segment_max)
        i->segment_max = (uint32_t)s->data.len;
    bool gap = i->ranges.count > 0, in_order = s->seq == i->nxt;
    struct zc_slice data = trim(i, s, &seq);
    if (data.len > 0)
        store(i, b, seq, data);
    uint32_t grown = i->ring.len - before;
    if (i->fin_known && i->nxt == i->fin) {
        i->fin_read = true;
        i->nxt++;
        i->edge = zc_tcp_seq_max(i->edge, i->nxt);
        zc_tcp_in_owe(i);
    }
    i->silent += grown;
    if (!in_order && grown == 0 && !i->fin_read)
        owe_duplicate(i);
    else if (gap || grown < s->data.len || i->silent >= 2 * i->segment_max)
        zc_tcp_in_owe(i);
    else if (i->ack_at.ns == ZC_NEVER.ns)
        i->ack_at = zc_mono_add_ms(now, ZC_TCP_DELAY_MS);
    return grown;
}

/* ---- the window ---- */

/* Silly windows are not told (RFC 9293 3.8.6.2.2). */
static uint32_t step(const struct zc_tcp_in *i)
{
    return i->ring_max / 2 < SEGMENT_USUAL ? i->ring_max / 2 : SEGMENT_USUAL;
}

/* Bytes beyond nxt for which there is memory. */
static uint32_t room(const struct zc_tcp_in *i, const struct zc_tcp_budget *b)
{
    size_t reach = zc_tcp_ring_reach(&i->ring, b, i->ring_max);
    return reach > i->ring.len ? (uint32_t)(reach - i->ring.len) : 0;
}

/* How far beyond the edge memory would let it go. */
static uint32_t growth(const struct zc_tcp_in *i, const struct zc_tcp_budget *b)
{
    uint32_t most = room(i, b), told = i->edge - i->nxt;
    return most > told ? most - told : 0;
}

void zc_tcp_in_consume(struct zc_tcp_in *i, struct zc_tcp_budget *b, size_t n)
{
    zc_tcp_ring_drop(&i->ring, n);
    if (i->ranges.count == 0)
        zc_tcp_ring_trim(&i->ring, b, ZC_TCP_RING_KEEP);
    if (i->fin_read)
        return;
    uint32_t more = growth(i, b), told = i->edge - i->nxt;
    bool low = told < i->ring_max / 2, dry = told < SEGMENT_USUAL;
    if (more >= i->ring_max / 4 || (low && more >= 2 * SEGMENT_USUAL) || (dry && more >= step(i)))
        zc_tcp_in_owe(i);
    if (i->shut && room(i, b) >= step(i))
        zc_tcp_in_owe(i);
}

/* ---- telling ---- */

static void add_sack(struct zc_tcp_segment *s, unsigned most, const struct zc_tcp_range *r)
{
    for (unsigned k = 0; k < s->sack_count; k++) {
        if (s->sacks[k].start == r->start)
            return;
    }
    if (s->sack_count < most)
        s->sacks[s->sack_count++] = *r;
}

/* The range of the latest arrival first, then those told before it (RFC 2018 section 4). */
static void fill_sacks(const struct zc_tcp_in *i, struct zc_tcp_segment *s)
{
    unsigned most = s->has_stamp ? ZC_TCP_SACKS - 1 : ZC_TCP_SACKS;
    s->sack_count = 0;
    if (!i->sack || i->ranges.count == 0)
        return;
    for (uint32_t k = 0; k < i->recent_count; k++) {
        const struct zc_tcp_range *r = zc_tcp_ranges_find(&i->ranges, i->recent[k]);
        if (r != NULL)
            add_sack(s, most, r);
    }
    for (uint32_t k = 0; k < i->ranges.count && s->sack_count < most; k++)
        add_sack(s, most, &i->ranges.at[k]);
}

void zc_tcp_in_fill(const struct zc_tcp_in *i, const struct zc_tcp_budget *b,
                    struct zc_tcp_segment *s)
{
    uint32_t more = growth(i, b), wnd = i->edge - i->nxt;
    uint8_t scale = (s->flags & ZC_TCP_SYN) != 0 ? 0 : i->scale;
    uint32_t most = room(i, b);
    if (more >= step(i))
        wnd += more;
    /* Others have used up the memory behind the window. A peer that runs into a closed one waits;
     * into one that is open but takes nothing, it gives up. */
    if (most < wnd && most < step(i))
        wnd = 0;
    wnd >>= scale;
    s->ack = i->nxt;
    s->window = (uint16_t)(wnd < UINT16_MAX ? wnd : UINT16_MAX);
    s->echo = i->stamp ? i->stamp_recent : 0;
    fill_sacks(i, s);
}

void zc_tcp_in_told(struct zc_tcp_in *i, const struct zc_tcp_segment *s)
{
    uint8_t scale = (s->flags & ZC_TCP_SYN) != 0 ? 0 : i->scale;
    i->edge = zc_tcp_seq_max(i->edge, s->ack + ((uint32_t)s->window << scale));
    i->acked = s->ack;
    i->shut = s->window == 0 && i->edge - i->nxt >= step(i);
    i->owed = i->owed > 0 && s->data.len == 0 ? i->owed - 1 : 0;
    i->silent = 0;
    i->ack_at = ZC_NEVER;
}
