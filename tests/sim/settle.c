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
            if (!surely_available(w, &w->messages[b->live[k]]))
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
    uint64_t bound = w->p.hub.hot_bytes + 1000000;
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

/* All takes of the drain are answered. */
static void drain_box(struct world *w, struct conn *c, int box)
{
    uint32_t before;
    do {
        before = w->deliveries_len;
        for (int i = 0; i < 16; i++)
            ask_take(w, c, box, 0);
        run_calm(w, 500 * MS);
        if (c->wants.len + c->plans.len > 0 && !w->failed)
            world_fail(w, "c%u: a take of the drain has no answer", c->number);
    } while (!w->failed && w->deliveries_len > before);
}

/* Gives the missing message a place in the budget of a crash, moving others (Kuhn's matching). */
static bool excuse(struct world *w, uint32_t uid, uint32_t *used, const uint32_t *missing,
                   uint32_t *of, size_t n, bool *seen)
{
    for (size_t g = 0; g < w->groups_len; g++) {
        bool member = false;
        for (size_t i = 0; i < w->groups[g].len; i++)
            member |= w->groups[g].members[i] == uid;
        if (!member || seen[g])
            continue;
        seen[g] = true;
        if (used[g] < w->groups[g].budget) {
            used[g]++;
            for (size_t i = 0; i < n; i++)
                if (missing[i] == uid)
                    of[i] = (uint32_t)g + 1;
            return true;
        }
        for (size_t i = 0; i < n; i++) {
            if (of[i] != g + 1 || !excuse(w, missing[i], used, missing, of, n, seen))
                continue;
            for (size_t k = 0; k < n; k++)
                if (missing[k] == uid)
                    of[k] = (uint32_t)g + 1;
            return true;
        }
    }
    return false;
}

static void check_missing(struct world *w)
{
    static uint32_t missing[MESSAGES_MAX], of[MESSAGES_MAX];
    uint32_t used[GROUPS_MAX] = {0};
    size_t n = 0;
    for (uint32_t uid = 1; uid < w->messages_len; uid++)
        if (w->messages[uid].submit_idx > 0 && queue_required(w, &w->messages[uid]))
            missing[n++] = uid;
    memset(of, 0, sizeof of);
    for (size_t i = 0; i < n && !w->failed; i++) {
        bool seen[GROUPS_MAX] = {false};
        const struct message *m = &w->messages[missing[i]];
        if (!excuse(w, missing[i], used, missing, of, n, seen))
            world_fail(w, "message %u of %s, put by c%u as %s, is lost (%zu missing)", missing[i],
                       w->boxes[m->box].name, m->conn, m->id, n);
    }
}

/* An empty hub keeps nothing. */
static void check_empty(struct world *w)
{
    struct zc_hub_stats s;
    zc_hub_stats(w->hub, &s);
    if (s.queued + s.leased + s.delayed + s.waiters + s.mailboxes + s.sessions > 0)
        world_fail(w,
                   "drained, but %llu queued %llu leased %llu delayed %llu waiters %llu mailboxes",
                   (unsigned long long)s.queued, (unsigned long long)s.leased,
                   (unsigned long long)s.delayed, (unsigned long long)s.waiters,
                   (unsigned long long)s.mailboxes);
    if (s.memory_bytes > 100000)
        world_fail(w, "drained, but %llu bytes are held", (unsigned long long)s.memory_bytes);
    if (w->p.hub.durable && disk_bytes(&w->disk) > 6 * w->p.hub.log.segment_bytes)
        world_fail(w, "drained, but the log has %llu bytes",
                   (unsigned long long)disk_bytes(&w->disk));
}

/* Messages come and go until one without a ttl did: what waited for a sync (the removal of what
 * expired) has it then. */
static void flush(struct world *w)
{
    bool over = false;
    struct conn *c = w->failed ? NULL : conn_open(w, CLIENTS_MAX - 1);
    while (c != NULL && c->session != NULL && !over && !w->failed) {
        ask_put(w, c, false);
        over = !(w->made.has & ZC_MSG_HAS_TTL);
        run_calm(w, 9 * SECOND);
        for (int b = 0; b < w->p.boxes && !w->failed; b++)
            drain_box(w, c, b);
    }
    if (c != NULL && c->session != NULL)
        conn_end(w, c);
    node_pump(w);
    run_calm(w, 2 * SECOND);
}

void settle_drain(struct world *w)
{
    struct zc_hub_stats s;
    struct conn *c;
    world_trace(w, "the drain begins");
    while (w->live_len > 0)
        conn_end(w, w->conns[w->live[0]]);
    node_pump(w);
    run_calm(w, 2 * SECOND);
    for (int round = 0; round < 50 && !w->failed; round++) {
        c = conn_open(w, CLIENTS_MAX - 1);
        for (int b = 0; b < w->p.boxes && !w->failed && c != NULL; b++)
            drain_box(w, c, b);
        if (c != NULL && c->session != NULL)
            conn_end(w, c);
        zc_hub_stats(w->hub, &s);
        if (s.delayed == 0)
            break;
        run_calm(w, 4 * 3600 * SECOND); /* delays that steps of the wall clock made long */
    }
    flush(w);
    if (!w->failed)
        check_missing(w);
    if (!w->failed)
        check_empty(w);
    if (w->failed)
        return;
    node_stop(w);
    run_calm(w, 6 * SECOND);
}
