/* Puts and what lies in a mailbox: acceptance, capacity, duplicates. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

bool queue_required(const struct world *w, const struct message *m)
{
    return (m->put == PUT_OK || m->vouched) && m->gone == NO && m->dup == NO &&
           w->deliveries[m->delivery].acks == 0 &&
           (!m->has_over || (m->over_at > world_ns(w) && !(m->crossed && w->wall_moved > 0)));
}

bool queue_possible(const struct message *m)
{
    return m->submit_idx > 0 && m->put != PUT_REFUSED && m->gone != YES && m->dup != YES;
}

bool queue_before(const struct message *m1, const struct message *m2)
{
    if (m1->conn == m2->conn)
        return m1->submit_idx < m2->submit_idx;
    return m1->ok_idx > 0 && m1->ok_idx < m2->submit_idx;
}

void queue_compact(struct world *w, int box)
{
    struct box *b = &w->boxes[box];
    size_t kept = 0;
    for (size_t i = 0; i < b->live_len; i++)
        if (queue_possible(&w->messages[b->live[i]]))
            b->live[kept++] = b->live[i];
    b->live_len = kept;
}

void queue_add(struct world *w, uint32_t uid)
{
    struct box *b = &w->boxes[w->messages[uid].box];
    if (b->live_len == b->live_cap) {
        b->live_cap = b->live_cap == 0 ? 64 : 2 * b->live_cap;
        b->live = realloc(b->live, b->live_cap * sizeof *b->live);
        ZC_ASSERT(b->live != NULL);
    }
    b->live[b->live_len++] = uid;
}

void queue_gone(struct world *w, struct message *m)
{
    m->gone = YES;
    m->gone_at = world_ns(w);
    m->held = false;
}

/* Messages that surely lie queued (or delayed): no waiter can have one of them unseen. */
static size_t sure_queued(struct world *w, int box)
{
    struct box *b = &w->boxes[box];
    size_t n = 0, waiting = b->returning;
    for (size_t i = 0; i < b->live_len; i++) {
        const struct message *m = &w->messages[b->live[i]];
        n += queue_required(w, m) && !m->held;
    }
    for (size_t i = 0; i < w->live_len; i++) {
        const struct conn *c = w->conns[w->live[i]];
        for (size_t k = 0; k < c->wants.len; k++) {
            const struct want *want = &c->wants.list[k];
            if (want_waits(want) && want->box == box)
                waiting += want->max > 0 ? (size_t)want->max : 1;
        }
    }
    return n > waiting ? n - waiting : 0;
}

static void find_first_copy(struct world *w, struct message *m)
{
    struct box *b = &w->boxes[m->box];
    for (size_t i = b->live_len; i-- > 0;) {
        const struct message *old = &w->messages[b->live[i]];
        if (old->conn == m->conn && old->dup != YES && queue_possible(old) &&
            strcmp(old->id, m->id) == 0) {
            m->dup = MAYBE;
            m->dup_of = b->live[i];
            return;
        }
    }
}

void queue_submit(struct world *w, struct conn *c, struct want *want)
{
    struct message *m = &w->messages[want->uid];
    struct box *b = &w->boxes[want->box];
    queue_compact(w, want->box);
    want->sure_before = sure_queued(w, want->box);
    want->maybe_before = b->live_len;
    want->puts_before = b->puts++;
    m->conn = c->number;
    m->submit_idx = want->idx;
    m->submit_at = m->avail_at = want->at;
    m->due_at = want->at + m->delay_ms * MS;
    m->delayed = m->delay_ms > 0;
    if (m->delayed)
        m->avail_at = m->due_at + SECOND;
    m->has_over = m->ttl_ms >= 0;
    m->over_at = want->at + m->ttl_ms * MS;
    m->over_late_at = NEVER;
    find_first_copy(w, m);
    consumer_submit(w, c, want);
    queue_add(w, want->uid);
}

/* A put with an id that was there: surely a duplicate when nobody can have taken the first. */
static void settle_duplicate(struct world *w, struct message *m, const struct want *want)
{
    struct message *first = &w->messages[m->dup_of];
    const struct box *b = &w->boxes[m->box];
    uint32_t takes = b->returning;
    for (size_t i = 0; i < w->live_len; i++)
        takes += wants_waiting(w->conns[w->live[i]], m->box, true);
    if (first->gone != NO || w->deliveries[first->delivery].acks > 0 || first->has_over ||
        first->put == PUT_REFUSED || first->put == PUT_STORAGE || first->dup != NO)
        return;
    if (takes > 0 || b->take_idx > first->submit_idx || b->disturbed ||
        b->disturbed_at >= first->submit_at)
        return;
    m->dup = YES;
    if (first->put == PUT_OPEN && first->is_req == false) {
        world_trace(w, "ok %s vouches for the first copy", want->id);
        first->vouched = true;
    }
}

void queue_put_ok(struct world *w, struct conn *c, struct want *want)
{
    struct message *m = &w->messages[want->uid];
    uint64_t cap = w->p.hub.mailbox_cap;
    if (want->op == OP_REQ) {
        world_fail(w, "c%u: ok to a req", c->number);
        return;
    }
    m->put = PUT_OK;
    m->ok_idx = w->idx;
    m->ok_at = world_ns(w);
    m->over_late_at = m->ok_at + m->ttl_ms * MS;
    consumer_ok(w, c, want);
    if (m->dup == MAYBE)
        settle_duplicate(w, m, want);
    if (m->dup == NO && want->sure_before >= cap && sure_queued(w, want->box) > cap &&
        w->boxes[want->box].wait_idx < want->idx && !m->has_over)
        world_fail(w, "c%u: ok to put %u in a mailbox with at least %zu of %llu", c->number,
                   want->uid, want->sure_before, (unsigned long long)cap);
}

void queue_put_err(struct world *w, struct conn *c, struct want *want, struct zc_slice code)
{
    struct message *m = &w->messages[want->uid];
    const struct box *b = &w->boxes[want->box];
    size_t most = want->maybe_before + (size_t)(b->puts - want->puts_before - 1);
    if (zc_slice_is(code, "full")) {
        if (most < w->p.hub.mailbox_cap && w->p.hub.mailboxes_max >= (uint64_t)w->p.boxes)
            world_fail(w, "c%u: full, but at most %zu of %llu messages can be there", c->number,
                       most, (unsigned long long)w->p.hub.mailbox_cap);
        m->put = PUT_REFUSED;
    } else if (zc_slice_is(code, "unroutable")) {
        consumer_unroutable(w, c, want);
        m->put = PUT_REFUSED;
    } else if (zc_slice_is(code, "storage")) {
        if (m->vouched)
            world_fail(w, "c%u: put %u failed after ok to a duplicate of it", c->number, want->uid);
        m->put = PUT_STORAGE;
    }
}
