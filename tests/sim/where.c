/*
 * Where the items of operators may lie: each move that is under way may have carried them over.
 * From that follows what a purge may remove, and, when it was alone, what it must: how many, and
 * none of them is ever seen again.
 */
#include "model.h"

/* What a move that lost its session has begun is settled by then. */
#define SWEEP_ENDS (20 * SECOND)
/* Below that no mailbox is full, and a move without max stops for nothing. */
#define ITEMS_FEW 1000

static uint8_t bit(int box)
{
    return (uint8_t)(1u << box);
}

/* Some session waits for the answer to one, of that mailbox (-1: of any). */
static bool under_way(const struct world *w, enum operation kind, int box)
{
    for (size_t i = 0; i < w->live_len; i++) {
        const struct wants *l = &w->conns[w->live[i]]->wants;
        for (size_t k = 0; k < l->len; k++)
            if (l->list[k].op == OP_OPERATE && l->list[k].target == kind &&
                (box < 0 || l->list[k].box == box))
                return true;
    }
    return false;
}

/* The item may be in the mailbox, and be met there by whatever is under way. */
static void enter(struct world *w, struct item *item, int box)
{
    if (item->where & bit(box))
        return;
    item->where |= bit(box);
    if (item->purge_at == 0 && under_way(w, DO_PURGE, box))
        item->purge_at = 1;
    if (under_way(w, DO_MOVE, box))
        enter(w, item, 1 - box);
}

static bool lies_in(const struct item *item, int box)
{
    return item->submit_idx > 0 && !item->taken && !item->gone && (item->where & bit(box)) != 0;
}

static void sweep(struct world *w, struct want *want)
{
    bool alone = !under_way(w, DO_MOVE, -1) && !under_way(w, DO_PURGE, -1) &&
                 (w->sweep_ended_at == 0 || world_ns(w) > w->sweep_ended_at + SWEEP_ENDS);
    want->sure_before = alone;
    want->puts_before = ++w->sweeps;
    want->holds_before = hold_is_quiet(w) ? w->holds_asked : UINT64_MAX;
    for (uint32_t i = 1; i < w->items_len; i++) {
        struct item *item = &w->items[i];
        if (!lies_in(item, want->box))
            continue;
        if (want->target == DO_MOVE)
            enter(w, item, 1 - want->box);
        else if (item->purge_at == 0)
            item->purge_at = want->idx;
    }
}

void where_submit(struct world *w, struct want *want)
{
    struct item *item = &w->items[want->uid];
    if (want->target == DO_MOVE || want->target == DO_PURGE)
        sweep(w, want);
    else if (want->uid > 0 && !item->sure && !item->gone) /* one that is known is not put again */
        enter(w, item, want->target == DO_PUB ? 0 : item->box);
}

/* It was surely in one of the mailboxes when this began. */
static bool there_before(const struct item *item, const struct want *want)
{
    return item->ok_idx > 0 && item->ok_idx < want->idx;
}

static void moved(struct world *w, const struct want *want)
{
    for (uint32_t i = 1; i < w->items_len && w->items_len < ITEMS_FEW && want->max == 0; i++)
        if (lies_in(&w->items[i], want->box) && there_before(&w->items[i], want) &&
            !hold_may_be_held(&w->items[i], want->at))
            w->items[i].where = bit(1 - want->box);
}

static void purged(struct world *w, struct conn *c, const struct want *want, int64_t count)
{
    bool quiet = want->holds_before == w->holds_asked;
    int64_t least = 0, most = 0;
    for (uint32_t i = 1; i < w->items_len; i++) {
        struct item *item = &w->items[i];
        if (!lies_in(item, want->box))
            continue;
        most++;
        if (!quiet || !there_before(item, want) || hold_may_be_held(item, want->at))
            continue;
        if (item->where != bit(want->box)) { /* then it is in the other one, or gone */
            item->where = bit(1 - want->box);
            continue;
        }
        least += item->sure && !item->maybe_gone && item->purge_at == want->idx;
        item->gone = true;
        item->gone_idx = w->idx;
    }
    world_trace(w, "c%u: %s: %lld of %lld to %lld", c->number, want->id, (long long)count,
                (long long)least, (long long)most);
    if (count < least || count > most)
        world_fail(w, "c%u: %s removed %lld, not %lld to %lld", c->number, want->id,
                   (long long)count, (long long)least, (long long)most);
}

void where_ok(struct world *w, struct conn *c, struct want *want, int64_t count)
{
    if (!want->sure_before || want->puts_before != w->sweeps)
        return; /* others were under way as well */
    if (want->target == DO_MOVE && want->holds_before == w->holds_asked)
        moved(w, want);
    else if (want->target == DO_PURGE)
        purged(w, c, want, count);
}

void where_lost(struct world *w, const struct want *want)
{
    if (want->op == OP_OPERATE && (want->target == DO_MOVE || want->target == DO_PURGE))
        w->sweep_ended_at = world_ns(w);
    if (want->op == OP_OPERATE && want->target >= DO_RESERVE)
        hold_lost(w, want);
}
