/* Sessions that end, hubs that crash or stop, and what must be there afterwards. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

static uint32_t holds_lease(struct world *w, const struct conn *c)
{
    for (uint32_t i = w->deliveries_len - 1; i > 0; i--) {
        const struct delivery *d = &w->deliveries[i];
        const struct message *m = &w->messages[d->message];
        if (d->conn == c->number && m->held && m->gone == NO && m->delivery == i && !d->over &&
            !d->releasing && d->acks == 0 && world_ns(w) < d->lease_min)
            return d->message;
    }
    return 0;
}

void model_closed(struct world *w, struct conn *c)
{
    if (c->cause == 0)
        world_fail(w, "c%u: closed by the hub without a reason", c->number);
    else if (c->cause == CAUSE_SILENT && holds_lease(w, c))
        world_fail(w, "c%u: closed for its silence while it holds message %u", c->number,
                   holds_lease(w, c));
    else if (c->cause == CAUSE_GARBAGE && !c->saw_bad_frame && c->kernel == 0)
        world_fail(w, "c%u: closed for a bad frame without saying so", c->number);
}

/* Frames of c to its waiters may have been on their way. */
static bool frames_unseen(const struct world *w, const struct conn *c)
{
    return c->blocked || c->flagged || w->disk_busy;
}

/* A request under way to an end nobody saw. */
static void release_want(struct world *w, struct want *want)
{
    struct message *m;
    if (want->op != OP_ACK && want->op != OP_REP)
        return;
    for (int i = -1; i < want->more_count; i++) {
        uint32_t target = i < 0 ? want->target : want->more[i];
        m = &w->messages[w->deliveries[target].message];
        if (target == 0 || w->deliveries[target].acks == 0 || m->delivery != target)
            continue;
        if (m->gone == NO)
            m->gone = MAYBE;
    }
}

static void release_held(struct world *w, struct conn *c)
{
    for (int b = 0; b < BOXES_MAX; b++) {
        struct box *box = &w->boxes[b];
        uint32_t waiting = wants_waiting(c, b, false);
        bool unseen = waiting > 0 && frames_unseen(w, c);
        for (size_t i = 0; i < box->live_len; i++) {
            struct message *m = &w->messages[box->live[i]];
            struct delivery *d = &w->deliveries[m->delivery];
            if (waiting > 0)
                m->unseen += waiting;
            if (!m->held || d->conn != c->number)
                continue;
            m->held = false;
            d->over = true;
            d->acks = 0;
            m->avail_at = world_ns(w);
            if (d->releasing) {
                /* Whether a nack's delay counts is not known. */
                m->due_at = world_ns(w);
                m->avail_at += DELAY_MAX;
            }
        }
        if (unseen) {
            box->disturbed = true;
            box->returning += wants_waiting(c, b, true);
        }
    }
}

void model_session_over(struct world *w, struct conn *c)
{
    w->idx++;
    world_trace(w, "c%u is over", c->number);
    for (size_t i = 0; i < c->wants.len; i++)
        release_want(w, &c->wants.list[i]);
    release_held(w, c);
    c->wants.len = c->plans.len = 0;
}

/* Takes that may have had a message assigned when the hub died. */
static uint32_t takes_under_way(const struct world *w, int box)
{
    uint32_t n = w->boxes[box].returning + w->boxes[box].failed_takes;
    for (size_t i = 0; i < w->live_len; i++) {
        const struct conn *c = w->conns[w->live[i]];
        if (frames_unseen(w, c))
            n += wants_waiting(c, box, true);
    }
    return n;
}

/* Any `budget` of the required messages in the box may be lost from now on. */
static void allow_losses(struct world *w, int box, uint32_t budget)
{
    struct box *b = &w->boxes[box];
    struct group *g;
    if (budget == 0 || b->live_len == 0)
        return;
    if (w->groups_len == GROUPS_MAX) {
        world_fail(w, "the simulator has no room for more crashes");
        return;
    }
    g = &w->groups[w->groups_len];
    g->box = box;
    g->len = 0;
    g->members = calloc(b->live_len, sizeof *g->members);
    ZC_ASSERT(g->members != NULL);
    for (size_t i = 0; i < b->live_len; i++)
        if (queue_required(w, &w->messages[b->live[i]]))
            g->members[g->len++] = b->live[i];
    for (size_t i = 0; i < g->len; i++)
        w->messages[g->members[i]].maybe_lost = true;
    g->budget = budget < g->len ? budget : (uint32_t)g->len;
    w->groups_len++;
    w->losses_allowed += g->budget;
    world_trace(w, "crash may lose %u of %s to takes", g->budget, b->name);
}

static void message_crash(struct world *w, struct message *m, bool power_loss)
{
    if (!w->p.hub.durable) {
        m->gone = YES;
        return;
    }
    if (m->put == PUT_STORAGE)
        m->put = PUT_OPEN;
    if (m->half_acked && m->gone == NO)
        m->gone = MAYBE;
    m->held = false;
    w->deliveries[m->delivery].over = true;
    w->deliveries[m->delivery].acks = 0;
    m->due_at = m->submit_at + m->delay_ms * MS; /* a nack's delay may be forgotten */
    m->crossed = true;
    m->rep_due = false;
    m->power_lost |= power_loss || w->disk.faults_done > 0;
    m->over_late_at = m->over_late_at == NEVER ? NEVER : m->over_late_at + SECOND;
}

void model_crash(struct world *w, bool power_loss, bool clean)
{
    w->idx++;
    for (int b = 0; b < BOXES_MAX; b++) {
        struct box *box = &w->boxes[b];
        uint32_t budget = takes_under_way(w, b);
        queue_compact(w, b);
        if (w->p.hub.durable)
            allow_losses(w, b, clean ? box->failed_takes : budget);
        box->returning = box->failed_takes = 0;
        box->disturbed = true;
    }
    w->state = HUB_DOWN; /* from here on the hub is not told of anything */
    while (w->live_len > 0)
        conn_end(w, w->conns[w->live[0]]);
    for (int b = 0; b < BOXES_MAX; b++) {
        for (size_t i = 0; i < w->boxes[b].live_len; i++)
            message_crash(w, &w->messages[w->boxes[b].live[i]], power_loss);
        queue_compact(w, b);
    }
}

void model_ready(struct world *w)
{
    struct zc_hub_stats stats;
    uint64_t least = 0, most = 0, lost = 0, have;
    for (int b = 0; b < BOXES_MAX; b++)
        for (size_t i = 0; i < w->boxes[b].live_len; i++) {
            struct message *m = &w->messages[w->boxes[b].live[i]];
            if (m->avail_at < world_ns(w))
                m->avail_at = world_ns(w);
            least += queue_required(w, m) && !m->has_over;
            most += queue_possible(m);
        }
    for (size_t i = 0; i < w->groups_len; i++)
        lost += w->groups[i].budget;
    zc_hub_stats(w->hub, &stats);
    have = stats.queued + stats.delayed + stats.leased;
    for (size_t i = 0; i < w->groups_len && have == most; i++)
        w->groups[i].budget = 0;
    world_trace(w, "ready with %llu messages, model has %llu to %llu", (unsigned long long)have,
                (unsigned long long)least, (unsigned long long)most);
    if (stats.leased > 0)
        world_fail(w, "%llu leases lived through a restart", (unsigned long long)stats.leased);
    if (have + lost < least)
        world_fail(w, "after the restart %llu messages are there, at least %llu should",
                   (unsigned long long)have, (unsigned long long)(least - lost));
    if (have > most)
        world_fail(w, "after the restart %llu messages are there, at most %llu can be",
                   (unsigned long long)have, (unsigned long long)most);
}
