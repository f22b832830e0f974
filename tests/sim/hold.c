/*
 * Leases of operators: items that are reserved, acknowledged and given back, now or later, by
 * whichever session of the scope. One that surely is held is given to nobody else, nor shown; one
 * that was acknowledged never comes again; a purge and a move leave what is held alone.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"

/* What a session that ended had not received is back by then. */
#define RETURN_ENDS (20 * SECOND)

static bool is_waiter(const struct want *want)
{
    return want->op == OP_OPERATE && (want->target == DO_RESERVE || want->target == DO_READY);
}

/* The request is about the delivery that the item still has. */
static bool is_current(const struct item *item, const struct want *want)
{
    return item->holds == want->more[0];
}

/* Its holder has it, and asked for no end. */
static bool surely_held(const struct world *w, const struct item *item)
{
    return item->held && item->ending == 0 && world_ns(w) < item->lease_min;
}

bool hold_may_be_held(const struct item *item, int64_t since)
{
    return (item->lease_max > 0 && item->lease_max + SECOND >= since) || item->back_at >= since;
}

bool hold_is_quiet(const struct world *w)
{
    for (size_t i = 0; i < w->live_len; i++) {
        const struct wants *l = &w->conns[w->live[i]]->wants;
        for (size_t k = 0; k < l->len; k++)
            if (is_waiter(&l->list[k]))
                return false;
    }
    return w->holds_lost_at == 0 || world_ns(w) > w->holds_lost_at + RETURN_ENDS;
}

/* An item that this client had, and may still have. */
static uint32_t own_item(struct world *w, const struct conn *c)
{
    uint32_t found = 0, n = 0;
    for (uint32_t i = 1; i < w->items_len; i++) {
        const struct item *item = &w->items[i];
        if (item->holds > 0 && item->holder == c->client &&
            (item->held || rnd_one_in(&w->rnd, 40)) && rnd_one_in(&w->rnd, ++n))
            found = i;
    }
    return found;
}

bool hold_ask(struct world *w, struct conn *c, struct want *want)
{
    if (is_waiter(want)) {
        want->wait_ms = rnd_one_in(&w->rnd, 2) ? 0 : rnd_range(&w->rnd, 1, 1500);
        want->lease_ms = rnd_range(&w->rnd, 1, 6) * 1000;
        want->max = (int)rnd_range(&w->rnd, 1, 6);
        w->made.wait_ms = want->wait_ms;
        w->made.lease = want->lease_ms / 1000;
        w->made.max = want->max;
        w->made.has |= ZC_MSG_HAS_WAIT | ZC_MSG_HAS_LEASE | ZC_MSG_HAS_MAX;
        return true;
    }
    want->uid = own_item(w, c);
    want->more[0] = w->items[want->uid].holds;
    w->made.name = zc_slice(NULL, 0);
    w->made.delivery = zc_slice_str(w->items[want->uid].delivery);
    if (want->target == DO_NACK && rnd_one_in(&w->rnd, 2)) {
        want->delay_ms = rnd_range(&w->rnd, 1, 4000);
        w->made.delay_ms = want->delay_ms;
        w->made.has |= ZC_MSG_HAS_DELAY;
    }
    return want->uid > 0;
}

void hold_submit(struct world *w, const struct want *want)
{
    struct item *item = &w->items[want->uid];
    if (is_waiter(want))
        w->holds_asked++;
    else if (is_current(item, want))
        item->ending++;
}

static void acked(struct world *w, struct conn *c, const struct want *want)
{
    struct item *item = &w->items[want->uid];
    if (!is_current(item, want) || item->taken)
        world_fail(w, "c%u: ok to the ack of item %u, whose lease was over", c->number, want->uid);
    else if (want->at > item->lease_max + SECOND)
        world_fail(w, "c%u: ok to the ack of item %u, %lld ms after its lease", c->number,
                   want->uid, (long long)((want->at - item->lease_max) / MS));
    item->taken = true;
    item->taken_idx = w->idx;
    item->held = false;
}

void hold_ok(struct world *w, struct conn *c, const struct want *want)
{
    struct item *item = &w->items[want->uid];
    bool current = is_current(item, want);
    if (is_waiter(want))
        world_fail(w, "c%u: ok to %s, which is no answer to it", c->number, want->id);
    else if (want->target == DO_ACK)
        acked(w, c, want);
    if (!current || want->target != DO_NACK)
        return;
    item->ending--;
    item->held = false;
    item->lease_max = 0;
    item->back_at = world_ns(w);
    item->loose = true;
    item->due_at = want->at + want->delay_ms * MS;
    item->due_life = w->lives;
    item->due_idx = w->idx;
}

void hold_lost(struct world *w, const struct want *want)
{
    struct item *item = &w->items[want->uid];
    if (is_waiter(want)) {
        w->holds_lost_at = world_ns(w);
        return;
    }
    if (!is_current(item, want))
        return;
    item->held = false;
    item->loose = true;
    item->maybe_gone |= want->target == DO_ACK;
    item->due_at = 0;
}

void hold_err(struct world *w, struct conn *c, const struct want *want, struct zc_slice code)
{
    struct item *item = &w->items[want->uid];
    if (zc_slice_is(code, "empty") && is_waiter(want)) {
        if (want->got > 0 || world_ns(w) < want->at + (want->wait_ms - 1) * MS)
            world_fail(w, "c%u: %s got empty early, or after a message", c->number, want->id);
        return;
    }
    if (!zc_slice_is(code, "no_delivery") || is_waiter(want)) {
        hold_lost(w, want);
        return;
    }
    if (!is_current(item, want))
        return;
    item->ending--;
    if (surely_held(w, item) && !item->maybe_gone)
        world_fail(w, "c%u: item %u is held for %lld ms more, yet not found", c->number, want->uid,
                   (long long)((item->lease_min - world_ns(w)) / MS));
}

bool hold_allows(const struct want *want, struct zc_slice code)
{
    return zc_slice_is(code, is_waiter(want) ? "empty" : "no_delivery");
}

static bool is_early(const struct world *w, const struct item *item)
{
    return item->due_life == w->lives && world_ns(w) < item->due_at - MS;
}

void hold_peeked(struct world *w, struct conn *c, const struct want *want, uint32_t uid)
{
    const struct item *item = &w->items[uid];
    if (item->taken && item->taken_idx < want->idx)
        world_fail(w, "c%u: item %u was acknowledged, yet a peek shows it", c->number, uid);
    if (surely_held(w, item) && item->held_idx < want->idx)
        world_fail(w, "c%u: item %u is held, yet a peek shows it", c->number, uid);
    if (is_early(w, item) && item->due_idx < want->idx)
        world_fail(w, "c%u: item %u is delayed, yet a peek shows it", c->number, uid);
}

void hold_check(struct world *w, struct conn *c, uint32_t uid)
{
    const struct item *item = &w->items[uid];
    if (surely_held(w, item))
        world_fail(w, "c%u: item %u is held by client %d for %lld ms more", c->number, uid,
                   item->holder, (long long)((item->lease_min - world_ns(w)) / MS));
    if (is_early(w, item))
        world_fail(w, "c%u: item %u came %lld ms before its delay was over", c->number, uid,
                   (long long)((item->due_at - world_ns(w)) / MS));
}

/* Earliest time at which the item can have been given to the waiter. */
static int64_t starts_at(const struct item *item, const struct want *want)
{
    return want->at > item->submit_at ? want->at : item->submit_at;
}

static void note(struct world *w, struct conn *c, const struct want *want, struct item *item,
                 const struct zc_msg *m, bool sure)
{
    int64_t end = world_ns(w) + want->lease_ms * MS;
    item->lease_max = end > item->lease_max ? end : item->lease_max;
    item->loose = true;
    if (!sure)
        return;
    snprintf(item->delivery, sizeof item->delivery, "%.*s", (int)m->delivery.len,
             (const char *)m->delivery.data);
    item->holder = c->client;
    item->holds++;
    item->ending = 0;
    item->held = true;
    item->held_idx = w->idx;
    item->lease_min = starts_at(item, want) + want->lease_ms * MS;
}

void hold_message(struct world *w, struct conn *c, uint32_t uid, const struct zc_msg *m)
{
    struct want *want = wants_by_id(w, &c->wants, m->id, zc_slice(NULL, 0));
    struct item *item = &w->items[uid];
    bool sure;
    if (want == NULL || !is_waiter(want) || !zc_slice_is(m->name, operate_box(want->box))) {
        world_fail(w, "c%u: item %u was not asked for", c->number, uid);
        return;
    }
    sure = starts_at(item, want) + want->lease_ms * MS > world_ns(w);
    if (sure) /* else its lease may have been over when the frame left */
        hold_check(w, c, uid);
    note(w, c, want, item, m, sure);
    want->got++;
    if (want->got > want->max || (want->got == want->max && !m->end))
        world_fail(w, "c%u: frame %d of at most %d", c->number, want->got, want->max);
    if (m->end)
        wants_remove(&c->wants, want);
}

void hold_crash(struct world *w)
{
    w->lives++;
    w->holds_lost_at = 0;
    for (uint32_t i = 1; i < w->items_len; i++) {
        w->items[i].held = false;
        w->items[i].lease_max = 0;
        w->items[i].ending = 0;
        w->items[i].loose = true; /* as delays by the wall clock may be over by now */
        w->items[i].holds++;      /* what is asked of earlier deliveries concerns none */
    }
}
