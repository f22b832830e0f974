/*
 * Puts that want a consumer: refused as unroutable only while nobody surely waits for the message
 * or holds one of its mailbox, accepted only while somebody may.
 */
#include "model.h"

/* The session that may hold it may still hold it. */
static bool may_be_held(struct world *w, const struct message *m)
{
    const struct delivery *d = &w->deliveries[m->delivery];
    return m->held && (d->lease_max == NEVER || world_ns(w) <= d->lease_max + SECOND);
}

/* It was in the mailbox, leased, before the put came, and still is. */
static bool surely_held(struct world *w, const struct message *m, const struct want *put)
{
    struct delivery *d = &w->deliveries[m->delivery];
    struct conn *holder = w->conns[d->conn];
    if (!m->held || m->gone != NO || m->half_acked || d->take || d->over || d->releasing ||
        d->acks > 0 || d->doubtful || d->idx > put->idx || world_ns(w) >= d->lease_min)
        return false;
    conn_note_causes(w, holder);
    return holder->session != NULL && holder->cause == 0;
}

/* What c asked for just now may bring a message to anyone. */
static bool may_bring(const struct conn *c)
{
    for (size_t i = 0; i < c->wants.len; i++) {
        enum op op = c->wants.list[i].op;
        if (op == OP_PUT || op == OP_REQ || op == OP_NACK)
            return true;
    }
    return false;
}

/* The waiter came right before the put, in the same bytes: one of the messages that lay there may
 * be its own, in a frame that nobody has seen. */
static bool may_have_got(struct world *w, const struct conn *putter, const struct want *waiter,
                         const struct want *put)
{
    const struct box *b = &w->boxes[put->box];
    if (waiter->idx <= putter->gave_idx)
        return false;
    for (size_t i = 0; i < b->live_len; i++) {
        const struct message *m = &w->messages[b->live[i]];
        if (sender_passes(waiter, m) && !surely_held(w, m, put) &&
            (m->crossed || m->due_at <= world_ns(w) + MS))
            return true;
    }
    return false;
}

/* Or somebody who waits for others may just have got one of those, and hold it. */
static bool may_be_awaited(struct world *w, const struct conn *putter, const struct want *put)
{
    bool brings = may_bring(putter);
    for (size_t i = 0; i < w->live_len; i++) {
        const struct conn *c = w->conns[w->live[i]];
        for (size_t k = 0; k < c->wants.len; k++) {
            const struct want *waiter = &c->wants.list[k];
            if (want_waits(waiter) && waiter->box == put->box &&
                (brings || model_frames_unseen(w, c) ||
                 sender_passes(waiter, &w->messages[put->uid]) ||
                 (c == putter && may_have_got(w, c, waiter, put))))
                return true;
        }
    }
    return false;
}

void consumer_submit(struct world *w, struct conn *c, struct want *want)
{
    const struct box *b = &w->boxes[want->box];
    want->consumer =
        may_be_awaited(w, c, want) || b->disturbed || b->disturbed_at + SECOND >= world_ns(w);
    for (size_t i = 0; i < b->live_len && !want->consumer; i++)
        want->consumer = may_be_held(w, &w->messages[b->live[i]]);
}

void consumer_ok(struct world *w, struct conn *c, const struct want *want)
{
    const struct message *m = &w->messages[want->uid];
    if (m->wants_consumer && !want->consumer && m->dup == NO &&
        w->boxes[want->box].wait_idx < want->idx)
        world_fail(w, "c%u: ok to put %u, but nobody can wait for it or hold one of %s", c->number,
                   want->uid, w->boxes[want->box].name);
}

/* Whoever waited before the put and still will when nothing is on its way waited all the time. */
static void note_waiters(struct world *w, const struct want *put)
{
    for (size_t i = 0; i < w->live_len; i++) {
        struct conn *c = w->conns[w->live[i]];
        if (c->cause != 0 || c->blocked || !c->reading)
            continue;
        for (size_t k = 0; k < c->wants.len; k++) {
            struct want *want = &c->wants.list[k];
            if (want_waits(want) && want->box == put->box && want->idx < put->idx &&
                c->blocked_at < want->at && c->paused_at < want->at &&
                sender_passes(want, &w->messages[put->uid]))
                want->unseen_by = put->uid;
        }
    }
}

void consumer_unroutable(struct world *w, struct conn *c, const struct want *want)
{
    const struct box *b = &w->boxes[want->box];
    note_waiters(w, want);
    for (size_t i = 0; i < b->live_len; i++)
        if (surely_held(w, &w->messages[b->live[i]], want))
            world_fail(w, "c%u: put %u is unroutable, but message %u of %s is held", c->number,
                       want->uid, b->live[i], b->name);
}

void consumer_settled(struct world *w)
{
    for (size_t i = 0; i < w->live_len && !w->failed; i++) {
        struct conn *c = w->conns[w->live[i]];
        for (size_t k = 0; k < c->wants.len; k++) {
            struct want *want = &c->wants.list[k];
            if (want->unseen_by == 0)
                continue;
            conn_note_causes(w, c);
            if (c->cause == 0 && !c->blocked && !c->flagged)
                world_fail(w, "c%u: %s waits on %s, but put %u is unroutable", c->number, want->id,
                           w->boxes[want->box].name, want->unseen_by);
            want->unseen_by = 0;
        }
    }
}
