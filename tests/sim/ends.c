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
bool model_frames_unseen(const struct world *w, const struct conn *c)
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
        bool unseen = waiting > 0 && model_frames_unseen(w, c);
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
    for (size_t i = 0; i < c->wants.len; i++) {
        release_want(w, &c->wants.list[i]);
        where_lost(w, &c->wants.list[i]);
    }
    release_held(w, c);
    c->wants.len = c->plans.len = 0;
}
