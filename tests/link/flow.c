/* One direction of a link. */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

enum { LOSS, DUPLICATE, REORDER, JITTER };

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t roll(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Rolls whatever the knobs say, so that what one direction of chance does is not moved by another.
 */
static bool hit(struct flow *f, int which, const struct flow_dice *d)
{
    bool chance = roll(&f->random[which]) % 1000000 < d->ppm;
    bool nth = d->every > 0 && ++f->nth[which] >= d->every;
    if (nth)
        f->nth[which] = 0;
    return chance || nth;
}

/* ---- lists, in the order of leaving ---- */

static void append(struct flow_list *l, struct flow_packet *p)
{
    p->next = NULL;
    if (l->last == NULL)
        l->first = p;
    else
        l->last->next = p;
    l->last = p;
    l->count++;
    l->bytes += p->len;
}

static struct flow_packet *shift(struct flow_list *l)
{
    struct flow_packet *p = l->first;
    l->first = p->next;
    if (l->first == NULL)
        l->last = NULL;
    l->count--;
    l->bytes -= p->len;
    return p;
}

static size_t held(const struct flow *f)
{
    return f->queue.count + f->line.count + f->behind.count;
}

static size_t held_bytes(const struct flow *f)
{
    return f->queue.bytes + f->line.bytes + f->behind.bytes;
}

static bool room(const struct flow *f, size_t len)
{
    return held(f) < FLOW_PACKETS_MAX && held_bytes(f) + len <= FLOW_BYTES_MAX;
}

static struct flow_packet *packet(const uint8_t *data, size_t len)
{
    struct flow_packet *p = malloc(sizeof(*p) + len);
    if (p == NULL)
        return NULL;
    *p = (struct flow_packet){.len = len};
    memcpy(p->data, data, len);
    return p;
}

/* ---- rate and delay ---- */

static int64_t cost_ns(const struct flow *f, uint64_t bytes)
{
    return (int64_t)(bytes * 8 * UINT64_C(1000000000) / f->knobs.rate_bits);
}

/* When the first of the queue may leave it. */
static int64_t leaves_at(const struct flow *f)
{
    int64_t came = f->queue.first->at, at = came > f->changed_at ? came : f->changed_at;
    if (f->knobs.rate_bits == 0)
        return at;
    int64_t idle = f->paid_ns - cost_ns(f, f->knobs.burst);
    return idle > at ? idle : at;
}

static void keep_order(struct flow_list *l, struct flow_packet *p, int64_t at)
{
    l->latest = l->latest > at ? l->latest : at;
    p->at = l->latest;
    append(l, p);
}

static void send_off(struct flow *f, struct flow_packet *p, int64_t left)
{
    const struct flow_knobs *k = &f->knobs;
    int64_t delay = k->delay_ns;
    uint64_t random = roll(&f->random[JITTER]);
    if (k->jitter_ns > 0)
        delay += (int64_t)(random % (uint64_t)(2 * k->jitter_ns + 1)) - k->jitter_ns;
    int64_t at = left + (delay > 0 ? delay : 0) + (p->behind ? k->reorder_ns : 0);
    struct flow_list *l = p->behind ? &f->behind : &f->line;
    keep_order(l, p, at);
    if (!p->twice)
        return;
    struct flow_packet *copy = room(f, p->len) ? packet(p->data, p->len) : NULL;
    if (copy == NULL) {
        f->counts.overflow++;
        return;
    }
    f->counts.duplicated++;
    keep_order(l, copy, at);
}

/* Moves on what has left the queue by now, at the times at which it did. */
static void advance(struct flow *f, int64_t now)
{
    while (f->queue.first != NULL) {
        int64_t at = leaves_at(f);
        if (at > now)
            return;
        struct flow_packet *p = shift(&f->queue);
        if (f->knobs.rate_bits > 0)
            f->paid_ns = (f->paid_ns > at ? f->paid_ns : at) + cost_ns(f, p->len);
        send_off(f, p, at);
    }
}

static bool full(const struct flow *f, size_t len)
{
    const struct flow_knobs *k = &f->knobs;
    return f->queue.count >= k->queue_packets ||
           (k->queue_bytes > 0 && f->queue.bytes + len > k->queue_bytes);
}

/* Whether the packet finds a place in the queue. */
static bool queue_takes(struct flow *f, size_t len)
{
    const struct flow_knobs *k = &f->knobs;
    if (k->rate_bits == 0)
        return true;
    while (k->drop_oldest && f->queue.first != NULL && full(f, len)) {
        free(shift(&f->queue));
        f->counts.queue_full++;
    }
    return !full(f, len);
}

/* ---- what callers see ---- */

void flow_init(struct flow *f, uint64_t seed)
{
    memset(f, 0, sizeof(*f));
    for (int i = 0; i < 4; i++)
        f->random[i] = roll(&seed);
    f->knobs.queue_packets = 1000;
    f->knobs.reorder_ns = 5000000;
}

void flow_done(struct flow *f)
{
    struct flow_list *lists[] = {&f->queue, &f->line, &f->behind};
    for (int i = 0; i < 3; i++)
        while (lists[i]->first != NULL)
            free(shift(lists[i]));
}

void flow_set(struct flow *f, int64_t now, const struct flow_knobs *k)
{
    advance(f, now);
    if (k->loss.every != f->knobs.loss.every)
        f->nth[LOSS] = 0;
    if (k->duplicate.every != f->knobs.duplicate.every)
        f->nth[DUPLICATE] = 0;
    if (k->reorder.every != f->knobs.reorder.every)
        f->nth[REORDER] = 0;
    if (k->rate_bits != f->knobs.rate_bits)
        f->paid_ns = now;
    f->knobs = *k;
    f->changed_at = now;
    advance(f, now);
}

/* The knobs are for this IP packet. */
static bool concerns(const struct flow *f, const uint8_t *data, size_t len)
{
    if (f->knobs.protocol == 0)
        return true;
    if (len >= 20 && data[0] >> 4 == 4)
        return data[9] == f->knobs.protocol;
    return len >= 40 && data[0] >> 4 == 6 && data[6] == f->knobs.protocol;
}

/* FLOW_TAKEN: goes on to the queue. */
static enum flow_fate judge(struct flow *f, size_t len)
{
    struct flow_knobs *k = &f->knobs;
    if (k->cut) {
        f->counts.cut++;
        return FLOW_DROPPED;
    }
    if (k->mtu > 0 && len > k->mtu) {
        f->counts.too_big++;
        return k->told ? FLOW_TOO_BIG : FLOW_DROPPED;
    }
    bool lost = hit(f, LOSS, &k->loss);
    if (k->lose_next > 0) {
        k->lose_next--;
        lost = true;
    }
    if (lost)
        f->counts.lost++;
    return lost ? FLOW_DROPPED : FLOW_TAKEN;
}

enum flow_fate flow_put(struct flow *f, int64_t now, const uint8_t *data, size_t len)
{
    bool concerned = concerns(f, data, len);
    advance(f, now);
    f->counts.in++;
    f->counts.in_bytes += len;
    enum flow_fate fate = concerned ? judge(f, len) : FLOW_TAKEN;
    if (fate != FLOW_TAKEN)
        return fate;
    bool twice = concerned && hit(f, DUPLICATE, &f->knobs.duplicate);
    bool behind = concerned && hit(f, REORDER, &f->knobs.reorder);
    if (!room(f, len)) {
        f->counts.overflow++;
        return FLOW_DROPPED;
    }
    if (!queue_takes(f, len)) {
        f->counts.queue_full++;
        return FLOW_DROPPED;
    }
    struct flow_packet *p = packet(data, len);
    if (p == NULL)
        return FLOW_NO_MEMORY;
    p->at = now;
    p->twice = twice;
    p->behind = behind;
    f->counts.reordered += behind;
    append(&f->queue, p);
    advance(f, now);
    return FLOW_TAKEN;
}

static struct flow_list *first_due(const struct flow *f)
{
    const struct flow_list *l = &f->line, *b = &f->behind;
    if (l->first == NULL || (b->first != NULL && b->first->at < l->first->at))
        l = b;
    return (struct flow_list *)l;
}

struct flow_packet *flow_take(struct flow *f, int64_t now)
{
    advance(f, now);
    struct flow_list *l = first_due(f);
    if (l->first == NULL || l->first->at > now)
        return NULL;
    struct flow_packet *p = shift(l);
    f->counts.out++;
    f->counts.out_bytes += p->len;
    if (now - p->at > f->counts.late_max_ns)
        f->counts.late_max_ns = now - p->at;
    return p;
}

int64_t flow_next(const struct flow *f)
{
    const struct flow_list *l = first_due(f);
    int64_t at = l->first != NULL ? l->first->at : FLOW_NEVER;
    if (f->queue.first != NULL && leaves_at(f) < at)
        at = leaves_at(f);
    return at;
}
