/* What the holder of a message does with its delivery: ack, nack, touch, rep. */
#include "model.h"

#include <string.h>

/* All deliveries that the request names. */
static size_t targets(const struct want *want, uint32_t ret_targets[5])
{
    size_t n = 0;
    if (!want->list || want->more_count == 0)
        ret_targets[n++] = want->target;
    for (int i = 0; i < want->more_count; i++)
        ret_targets[n++] = want->more[i];
    return n;
}

bool lease_may_be_over(struct world *w, const struct delivery *d)
{
    return d->over || d->releasing || world_ns(w) >= d->lease_min || w->conns[d->conn]->cause != 0;
}

/* A rep by message id may mean another message of the same sender and id: what of them c holds, or
 * is just given, may be acknowledged by it. False: there is none. */
static bool has_twins(struct world *w, const struct conn *c, const struct want *want)
{
    const struct delivery *target = &w->deliveries[want->target];
    const struct message *m = &w->messages[target->message];
    bool found = false;
    for (uint32_t i = 1; want->id[0] != 0 && i < w->messages_len; i++) {
        struct message *other = &w->messages[i];
        struct delivery *d = &w->deliveries[other->delivery];
        if (other == m || other->submit_idx == 0 || other->conn != m->conn ||
            strcmp(other->id, m->id) != 0)
            continue;
        found = true;
        bool its = other->held && d->conn == c->number;
        /* Or its frame is on the way to c. */
        if (!its && wants_waiting(c, other->box, false) == 0)
            continue;
        d->releasing = d->releasing || its;
        if (other->gone == NO)
            other->gone = MAYBE;
    }
    return found;
}

/* By message id the delivery is meant that c holds now, not the one it once had. */
static void resolve_rep(struct world *w, struct conn *c, struct want *want)
{
    struct message *m = &w->messages[w->deliveries[want->target].message];
    has_twins(w, c, want);
    if (want->id[0] != 0 && wants_waiting(c, m->box, false) > 0) {
        m->guessed = true; /* its frame may be on the way to c */
        m->gone = m->gone == NO ? MAYBE : m->gone;
    }
    if (want->id[0] != 0 && m->held && w->deliveries[m->delivery].conn == c->number)
        want->target = m->delivery;
}

void lease_submit(struct world *w, struct conn *c, struct want *want)
{
    uint32_t list[5];
    size_t n = targets(want, list);
    if (want->op == OP_REP)
        resolve_rep(w, c, want);
    for (size_t i = 0; i < n; i++) {
        struct delivery *d = &w->deliveries[list[i]];
        if (list[i] == 0 || d->conn != c->number || d->over)
            continue;
        if (want->op == OP_ACK || want->op == OP_REP)
            d->acks++;
        if (want->op == OP_NACK) {
            d->releasing = true;
            w->messages[d->message].delayed |= want->delay_ms > 0;
        }
        if (want->op == OP_TOUCH) {
            int64_t end = want->at + want->lease_ms * MS;
            d->lease_min = end < d->lease_min ? end : d->lease_min;
            end = NEVER;
            d->lease_max = end;
        }
    }
}

static void less_acks(const struct want *want, struct delivery *d)
{
    if ((want->op == OP_ACK || want->op == OP_REP) && d->acks > 0)
        d->acks--;
}

/* The message may have gone to another session before this answer was seen. */
static void nack_ok(struct world *w, const struct want *want, uint32_t target)
{
    struct delivery *d = &w->deliveries[target];
    struct message *m = &w->messages[d->message];
    d->releasing = false;
    d->over = true;
    if (m->delivery != target)
        return;
    m->held = false;
    m->due_at = want->at + want->delay_ms * MS;
    m->avail_at = world_ns(w) + (want->delay_ms > 0 ? want->delay_ms * MS + SECOND : 0);
}

/* The hub says that it did it. */
static void done_ok(struct world *w, struct conn *c, struct want *want, uint32_t target)
{
    struct delivery *d = &w->deliveries[target];
    struct message *m = &w->messages[d->message];
    if (target == 0 || d->conn != c->number) {
        world_fail(w, "c%u: ok to a delivery that is not its own", c->number);
        return;
    }
    if (want->op == OP_NACK && d->releasing) {
        nack_ok(w, want, target);
        return;
    }
    if (want->op == OP_TOUCH && (d->over || d->releasing))
        return; /* it ended while this answer was on its way */
    if (d->over || m->delivery != target) {
        world_fail(w, "c%u: ok to delivery of %u, which was over", c->number, d->message);
        return;
    }
    if (d->lease_max != NEVER && want->at > d->lease_max + SECOND && !w->boxes[m->box].disturbed)
        world_fail(w, "c%u: ok to delivery of %u, %lld ms after its lease", c->number, d->message,
                   (long long)((want->at - d->lease_max) / MS));
    if (want->op == OP_TOUCH) {
        d->lease_min = want->at + want->lease_ms * MS;
        d->lease_max = world_ns(w) + want->lease_ms * MS;
        return;
    }
    d->over = true;
    queue_gone(w, m);
}

/* The hub says that there is no such delivery. */
static void done_not_found(struct world *w, struct conn *c, struct want *want, uint32_t target)
{
    struct delivery *d = &w->deliveries[target];
    struct message *m = &w->messages[d->message];
    if (target == 0 || d->conn != c->number)
        return;
    less_acks(want, d);
    conn_note_causes(w, c);
    if (!d->over && m->delivery == target && m->held && world_ns(w) < d->lease_min &&
        !(d->releasing && want->op != OP_NACK) && c->cause == 0 && m->gone == NO && !m->half_acked)
        world_fail(w, "c%u: delivery of %u not found, but its lease lasts %lld ms more", c->number,
                   d->message, (long long)((d->lease_min - world_ns(w)) / MS));
}

/* A rep acknowledges the lease, if there still is one. */
static void rep_ok(struct world *w, struct conn *c, struct want *want)
{
    struct delivery *d = &w->deliveries[want->target];
    struct message *m = &w->messages[d->message];
    bool twins = has_twins(w, c, want);
    if (want->target == 0 || d->conn != c->number)
        return;
    less_acks(want, d);
    if (twins) {
        m->gone = m->gone == NO ? MAYBE : m->gone;
        d->releasing = true;
        return;
    }
    if (d->take) {
        m->rep_due |= m->is_req && !m->crossed;
        return;
    }
    if (m->delivery != want->target && m->held && want->id[0] != 0 &&
        w->deliveries[m->delivery].conn == c->number) {
        /* c got it once more meanwhile: which of the two the rep meant is not known */
        m->gone = MAYBE;
        w->deliveries[m->delivery].releasing = true;
        return;
    }
    if (m->delivery != want->target || m->gone != NO)
        return;
    if (lease_may_be_over(w, d)) {
        m->gone = MAYBE;
        return;
    }
    queue_gone(w, m);
    d->over = true;
    m->rep_due |= m->is_req && !m->crossed;
}

void lease_unsure(struct world *w, struct conn *c, struct want *want)
{
    uint32_t list[5];
    size_t n = targets(want, list);
    for (size_t i = 0; i < n; i++) {
        struct delivery *d = &w->deliveries[list[i]];
        struct message *m = &w->messages[d->message];
        if (list[i] == 0 || d->conn != c->number || d->take)
            continue;
        d->releasing = true;
        less_acks(want, d);
        m->half_acked |= want->op == OP_ACK || want->op == OP_REP;
    }
}

static bool named(const struct zc_msg *m, const char *name)
{
    for (uint32_t i = 0; i < m->failed_count; i++)
        if (zc_slice_is(m->failed[i], name))
            return true;
    return false;
}

void lease_answer(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m)
{
    uint32_t list[5];
    size_t n = targets(want, list), failed = 0;
    bool err = zc_slice_is(m->op, "err");
    if (want->op == OP_REP) {
        if (!err)
            rep_ok(w, c, want);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool missed = err || named(m, w->deliveries[list[i]].name);
        failed += missed;
        if (missed)
            done_not_found(w, c, want, list[i]);
        else
            done_ok(w, c, want, list[i]);
    }
    if (!err && want->list && failed != m->failed_count)
        world_fail(w, "c%u: %u deliveries failed that were not named", c->number, m->failed_count);
    if (!err && !want->list && m->failed_count > 0)
        world_fail(w, "c%u: a single delivery failed in an ok", c->number);
}
