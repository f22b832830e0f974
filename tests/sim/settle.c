/* The checks when nothing moves any more, and the drain at the end of a seed. */
#include <string.h>

#include "model.h"

/* Open requests that nothing can explain. */
static void check_unanswered(struct world *w, struct conn *c)
{
    for (size_t i = 0; i < c->wants.len; i++) {
        struct want *want = &c->wants.list[i];
        bool late = want->wait_ms >= 0 && world_ns(w) > want->at + want->wait_ms * MS + 3 * SECOND;
        if (want->op == OP_REQ || (want_waits(want) && !late))
            continue;
        if (w->disk.faults_done > 0 &&
            (want->op == OP_ACK || want->op == OP_NACK || want->op == OP_TOUCH))
            continue; /* answered err storage */
        world_fail(w, "c%u: %s (op %d) has no answer", c->number, want->id, (int)want->op);
    }
}

/* Lies in its queue now, whatever the model did not see. */
static bool surely_available(struct world *w, const struct message *m)
{
    const struct delivery *d = &w->deliveries[m->delivery];
    if (!queue_required(w, m) || m->has_over || m->maybe_lost || (m->crossed && w->wall_moved > 0))
        return false;
    if (m->held && (d->releasing || d->lease_max == NEVER || world_ns(w) < d->lease_max + SECOND))
        return false;
    return world_ns(w) > m->avail_at && world_ns(w) > m->due_at + SECOND;
}

static void check_waiters(struct world *w, struct conn *c)
{
    for (size_t i = 0; i < c->wants.len && !w->failed; i++) {
        const struct want *want = &c->wants.list[i];
        const struct box *b = &w->boxes[want->box];
        if (!want_waits(want))
            continue;
        for (size_t k = 0; k < b->live_len; k++) {
            if (!sender_passes(want, &w->messages[b->live[k]]) ||
                !surely_available(w, &w->messages[b->live[k]]))
                continue;
            world_fail(w, "c%u: %s waits on %s beside message %u", c->number, want->id, b->name,
                       b->live[k]);
            return;
        }
    }
}

static void check_counts(struct world *w)
{
    struct zc_hub_stats s;
    uint64_t least = 0, most = 0, lost = 0, held_least = 0, held_most = 0;
    if (w->p.kind == PROFILE_OPERATE)
        return;
    for (int b = 0; b < BOXES_MAX; b++)
        for (size_t i = 0; i < w->boxes[b].live_len; i++) {
            const struct message *m = &w->messages[w->boxes[b].live[i]];
            const struct delivery *d = &w->deliveries[m->delivery];
            least += queue_required(w, m) && !m->has_over;
            most += queue_possible(m);
            held_most += queue_possible(m) && m->held && !d->over &&
                         (d->lease_max == NEVER || world_ns(w) <= d->lease_max + SECOND);
            held_least += queue_required(w, m) && m->held && !d->over && !d->releasing &&
                          !d->doubtful && world_ns(w) < d->lease_min &&
                          w->conns[d->conn]->cause == 0;
        }
    for (size_t i = 0; i < w->groups_len; i++)
        lost += w->groups[i].budget;
    for (size_t i = 0; i < w->live_len && w->disk_busy; i++)
        for (int b = 0; b < BOXES_MAX; b++)
            lost += wants_waiting(w->conns[w->live[i]], b, true); /* a lease ended just now */
    zc_hub_stats(w->hub, &s);
    if (s.queued + s.delayed + s.leased + lost < least || s.queued + s.delayed + s.leased > most)
        world_fail(w, "the hub counts %llu+%llu+%llu messages, the model %llu to %llu",
                   (unsigned long long)s.queued, (unsigned long long)s.delayed,
                   (unsigned long long)s.leased, (unsigned long long)(least - lost),
                   (unsigned long long)most);
    if (s.leased < held_least || s.leased > held_most)
        world_fail(w, "the hub counts %llu leases, the model %llu to %llu",
                   (unsigned long long)s.leased, (unsigned long long)held_least,
                   (unsigned long long)held_most);
    if (s.sessions != w->live_len)
        world_fail(w, "the hub counts %llu sessions of %zu", (unsigned long long)s.sessions,
                   w->live_len);
}

/* Bodies in memory: the hot window, what is not synced, and the outputs. */
static void check_memory(struct world *w)
{
    struct zc_hub_stats s;
    uint64_t bound = w->p.hub.hot_bytes + 20000;
    zc_hub_stats(w->hub, &s);
    if (w->p.hub.durable && s.memory_bytes > bound)
        world_fail(w, "the hub holds %llu bytes at rest, at most %llu are allowed",
                   (unsigned long long)s.memory_bytes, (unsigned long long)bound);
}

void settle_check(struct world *w)
{
    for (size_t i = 0; i < w->live_len && !w->failed; i++) {
        struct conn *c = w->conns[w->live[i]];
        struct zc_slice slice;
        size_t n = 0;
        conn_note_causes(w, c);
        zc_hub_output(w->hub, c->session, &slice, 1, &n);
        if (n > 0 && !c->blocked)
            world_fail(w, "c%u: output without an event", c->number);
        if ((c->cause & (CAUSE_GARBAGE | CAUSE_EOF)) && !c->blocked)
            world_fail(w, "c%u: not ended after a bad frame or half-close, cause %x", c->number,
                       c->cause);
        if (c->cause != 0)
            continue;
        if (!c->reading && c->in.len > 0)
            world_fail(w, "c%u: the hub does not read", c->number);
        check_unanswered(w, c);
        check_waiters(w, c);
        topics_settled(w, c);
    }
    requests_settled(w);
    if (!w->failed)
        check_counts(w);
    if (!w->failed)
        check_memory(w);
}
