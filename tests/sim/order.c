/* Two orders: messages leave a mailbox first in first out, waiters are served first come first
 * served. Both are judged only where no frame can have been under way unseen. */
#include "model.h"

/* m goes to c now: nobody may have had a later one from the same mailbox, in the same session and
 * by the same kind of operation, since m lay in its queue. */
void order_fifo(struct world *w, const struct conn *c, const struct message *m, bool take)
{
    const struct box *b = &w->boxes[m->box];
    int64_t since = m->avail_at > b->disturbed_at ? m->avail_at : b->disturbed_at;
    /* What a failed removal gave back was not seen, and is stored once the disk works. */
    if (since < w->fault_at + SECOND)
        since = w->fault_at + SECOND;
    if (b->disturbed || (m->delayed && m->crossed && w->wall_moved > 0))
        return;
    for (uint32_t i = w->deliveries_len - 2; i > 0; i--) {
        const struct delivery *d = &w->deliveries[i];
        const struct message *later = &w->messages[d->message];
        if (d->at <= since)
            return;
        if (d->conn != c->number || d->take != take || later->box != m->box || later == m ||
            d->from_at <= since || (d->excluded >> m->sender & 1) != 0 || !queue_before(m, later))
            continue;
        world_fail(w, "c%u: message %u came after %u of the same mailbox, which was put later",
                   c->number, (uint32_t)(m - w->messages), d->message);
        return;
    }
}

void order_waiters(struct world *w, const struct want *served, uint32_t uid)
{
    /* A session whose output is full to its bound is passed over by right. */
    for (size_t i = 0; i < w->live_len && w->p.kind != PROFILE_TINY; i++) {
        struct conn *c = w->conns[w->live[i]];
        if (c->cause != 0 || c->blocked || !c->reading)
            continue;
        for (size_t k = 0; k < c->wants.len; k++) {
            struct want *want = &c->wants.list[k];
            if (want != served && want_waits(want) && want->box == served->box &&
                want->idx < served->idx && sender_passes(want, &w->messages[uid]) &&
                want->got == 0 && c->blocked_at < want->at && c->paused_at < want->at)
                want->passed_by = uid;
        }
    }
}

void order_passed(struct world *w)
{
    for (size_t i = 0; i < w->live_len && !w->failed; i++) {
        struct conn *c = w->conns[w->live[i]];
        for (size_t k = 0; k < c->wants.len; k++) {
            struct want *want = &c->wants.list[k];
            if (want->passed_by == 0)
                continue;
            conn_note_causes(w, c);
            if (c->cause == 0 && !c->blocked && !c->flagged)
                world_fail(w,
                           "c%u: waiter %s of %s was passed over: message %u went to a later one",
                           c->number, want->id, w->boxes[want->box].name, want->passed_by);
            want->passed_by = 0;
        }
    }
}
