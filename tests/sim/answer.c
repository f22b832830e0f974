/* ok and err: which request they answer, and whether they may. */
#include "model.h"

#include <string.h>

static void check_wait_over(struct world *w, struct conn *c, const struct want *want)
{
    int64_t now = world_ns(w);
    if (want->wait_ms < 0)
        world_fail(w, "c%u: %s waits for good, yet got empty", c->number, want->id);
    else if (now < want->at + (want->wait_ms - 1) * MS)
        world_fail(w, "c%u: %s got empty %lld ms early", c->number, want->id,
                   (long long)(want->wait_ms - (now - want->at) / MS));
    else if (now > want->at + want->wait_ms * MS + SECOND && !c->blocked &&
             c->blocked_at < want->at && c->paused_at < want->at && !w->disk_busy)
        world_fail(w, "c%u: %s got empty %lld ms late", c->number, want->id,
                   (long long)((now - want->at) / MS - want->wait_ms));
    if (want->got > 0)
        world_fail(w, "c%u: %s got empty after a message", c->number, want->id);
}

static bool has_faults(const struct world *w)
{
    return w->p.hub.durable && (w->disk.faults_done > 0 || w->p.capacity > 0);
}

/* A full disk refuses puts only; a failing one whatever must be written. */
static void check_storage(struct world *w, struct conn *c, const struct want *want)
{
    struct zc_hub_stats stats;
    zc_hub_stats(w->hub, &stats);
    if (want->op >= OP_PUB || (want->op != OP_PUT && want->op != OP_REQ &&
                               w->disk.faults_done == 0 && stats.storage == ZC_LOG_FULL))
        world_fail(w, "c%u: %s (op %d) got err storage", c->number, want->id, (int)want->op);
}

/* An err that a sound request of this kind may get. */
static void check_code(struct world *w, struct conn *c, const struct want *want,
                       struct zc_slice code)
{
    bool put = want->op == OP_PUT || want->op == OP_REQ;
    bool by_delivery = want->op == OP_ACK || want->op == OP_NACK || want->op == OP_TOUCH;
    if (want->op == OP_WRONG) {
        if (!zc_slice_is(code, want->want_code))
            world_fail(w, "c%u: %s got code %.*s, not %s", c->number, want->id, (int)code.len,
                       (const char *)code.data, want->want_code);
        return;
    }
    if (zc_slice_is(code, "closed") && (w->state == HUB_STOPPING || c->cause != 0))
        return;
    /* The log was opened by its indexes, so the damage shows when the message is read. */
    if (zc_slice_is(code, "storage") && want_waits(want) && w->rots_read < w->rots) {
        w->rots_read++;
        return;
    }
    if (zc_slice_is(code, "storage") && has_faults(w)) {
        check_storage(w, c, want);
        return;
    }
    if (zc_slice_is(code, "full") &&
        (put || (want_waits(want) && w->p.hub.mailboxes_max < (uint64_t)w->p.boxes)))
        return;
    if (want->op == OP_PUT && zc_slice_is(code, "unroutable") &&
        w->messages[want->uid].wants_consumer)
        return;
    if (zc_slice_is(code, "no_delivery") && by_delivery && !want->list)
        return;
    if (zc_slice_is(code, "empty") && want_waits(want)) {
        check_wait_over(w, c, want);
        return;
    }
    world_fail(w, "c%u: %s got err %.*s", c->number, want->id, (int)code.len,
               (const char *)code.data);
}

/* A req that was accepted stays open, so an err belongs rather to a later one of the same id. Which
 * of them it was is not known: true, and none of them is judged. */
static bool is_one_of_several(struct conn *c, struct want **want)
{
    struct want *first = *want;
    for (size_t i = 0; i < c->wants.len; i++)
        if (c->wants.list[i].op == OP_REQ && strcmp(c->wants.list[i].id, first->id) == 0)
            *want = &c->wants.list[i];
    return *want != first;
}

/* The hub stops: only what waits is told so. */
static struct want *stopped(struct conn *c, const struct zc_msg *m, struct want *first)
{
    for (size_t i = 0; i < c->wants.len; i++)
        if (want_waits(&c->wants.list[i]) && zc_slice_is(m->id, c->wants.list[i].id))
            return &c->wants.list[i];
    return first;
}

void answer_err(struct world *w, struct conn *c, const struct zc_msg *m)
{
    struct want *want = wants_by_id(w, &c->wants, m->id, zc_slice(NULL, 0));
    if (zc_slice_is(m->code, "closed"))
        want = stopped(c, m, want);
    if (m->error.len == 0 || m->code.len == 0)
        world_fail(w, "c%u: err without error or code", c->number);
    if (m->id.len == 0 && zc_slice_is(m->code, "bad_frame") && (c->cause & CAUSE_GARBAGE)) {
        c->saw_bad_frame = true;
        return;
    }
    if (zc_slice_is(m->code, "unavailable") && (c->cause & CAUSE_CROWD))
        return;
    if (want == NULL) {
        world_fail(w, "c%u: err %.*s with id %.*s that nobody asked with", c->number,
                   (int)m->code.len, (const char *)m->code.data, (int)m->id.len,
                   (const char *)m->id.data);
        return;
    }
    if (want->op == OP_OPERATE || (want->op == OP_TAKE && want->box < 0)) {
        if (want->op == OP_OPERATE)
            operate_err(w, c, want, m->code);
        else
            w->items_empty++;
        wants_remove(&c->wants, want);
        return;
    }
    check_code(w, c, want, m->code);
    if (want->op == OP_REQ && is_one_of_several(c, &want)) {
        wants_remove(&c->wants, want);
        return;
    }
    if (want->op == OP_PUT || want->op == OP_REQ)
        queue_put_err(w, c, want, m->code);
    if (want->op == OP_ACK || want->op == OP_NACK || want->op == OP_TOUCH) {
        if (zc_slice_is(m->code, "no_delivery"))
            lease_answer(w, c, want, m);
        else
            lease_unsure(w, c, want);
    }
    if (want->op == OP_REP)
        lease_unsure(w, c, want);
    if (want_waits(want) && zc_slice_is(m->code, "storage")) {
        w->boxes[want->box].disturbed = true;
        w->boxes[want->box].failed_takes += want->op == OP_TAKE;
    }
    wants_remove(&c->wants, want);
}

void answer_ok(struct world *w, struct conn *c, const struct zc_msg *m)
{
    struct want *want = wants_for_ok(w, &c->wants, m->id, m->name);
    if (want == NULL) {
        world_fail(w, "c%u: ok with id %.*s that nobody asked with", c->number, (int)m->id.len,
                   (const char *)m->id.data);
        return;
    }
    switch (want->op) {
    case OP_PUT:
    case OP_REQ:
        queue_put_ok(w, c, want);
        break;
    case OP_ACK:
    case OP_NACK:
    case OP_TOUCH:
    case OP_REP:
        lease_answer(w, c, want, m);
        break;
    case OP_PUB:
    case OP_SUB:
    case OP_UNSUB:
        topics_ok(w, c, want, m);
        break;
    case OP_HELLO:
        if (!zc_slice_eq(m->from, sender_name(want->sender)) || m->epoch.len != 32)
            world_fail(w, "c%u: hello got the wrong from or epoch", c->number);
        break;
    case OP_OPERATE:
        operate_ok(w, c, want, m);
        break;
    case OP_INFO:
        if (m->result.len == 0)
            world_fail(w, "c%u: %s without result", c->number, want->id);
        break;
    default:
        world_fail(w, "c%u: ok to %s, which is no answer to it", c->number, want->id);
        return;
    }
    wants_remove(&c->wants, want);
}
