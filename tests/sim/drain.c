/* The end of a seed: everything is taken out, nothing may be missing and nothing may stay. */
#include "model.h"

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

/* The log is as small as it promises: twice what lives, and some segments. */
static void check_log(struct world *w)
{
    struct zc_hub_stats s;
    zc_hub_stats(w->hub, &s);
    uint64_t most = 2 * s.live_bytes + 5 * w->p.hub.log.segment_bytes;
    if (s.storage == ZC_LOG_OK && s.log_bytes > most)
        world_fail(w, "the log has %llu bytes for %llu that live", (unsigned long long)s.log_bytes,
                   (unsigned long long)s.live_bytes);
}

void drain_all(struct world *w)
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
        if (c != NULL && w->p.kind == PROFILE_OPERATE)
            operate_drain(w, c);
        for (int b = 0; b < w->p.boxes && !w->failed && c != NULL; b++)
            drain_box(w, c, b);
        if (c != NULL && c->session != NULL)
            conn_end(w, c);
        zc_hub_stats(w->hub, &s);
        if (s.delayed + s.leased == 0)
            break;
        run_calm(w, 4 * 3600 * SECOND); /* delays that steps of the wall clock made long */
    }
    if (!w->failed)
        operate_judge(w);
    flush(w);
    if (!w->failed)
        losses_judge(w);
    if (!w->failed)
        check_empty(w);
    if (!w->failed)
        check_log(w);
    if (w->failed)
        return;
    node_stop(w);
    run_calm(w, 6 * SECOND);
}
