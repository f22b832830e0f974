/*
 * The clock of a seed: whatever is due next happens, one thing at a time, then the hub's events,
 * output and disk requests are served until nothing moves.
 */
#include <string.h>

#include "model.h"
#include "world.h"

#define RESTART_MAX (5 * SECOND) /* a stop must be over by then */

enum due { DUE_NONE, DUE_DISK, DUE_TICK, DUE_GIVE, DUE_READ, DUE_ACT, DUE_CONNECT, DUE_FATE };

struct next {
    int64_t at;
    enum due due;
    uint32_t who;
};

static void consider(struct next *n, int64_t at, enum due due, uint32_t who)
{
    if (at < n->at)
        *n = (struct next){at, due, who};
}

static void advance(struct world *w, int64_t to)
{
    if (to <= world_ns(w))
        return;
    w->now.wall.ms += to / MS - world_ns(w) / MS;
    w->now.mono.ns = to;
    w->spins = 0;
}

static void consider_conn(struct world *w, struct next *n, struct conn *c)
{
    if ((c->in.len > 0 && c->reading) || (c->in.len == 0 && c->eof_soon && !c->eof_done))
        consider(n, c->next_in_at, DUE_GIVE, c->number);
    if (c->kernel > 0 && !c->never_reads)
        consider(n, c->next_read_at, DUE_READ, c->number);
    if (!w->calm && w->state == HUB_UP)
        consider(n, c->next_act_at, DUE_ACT, c->number);
}

static int64_t fate_at(const struct world *w)
{
    int64_t at = w->weather_at;
    if (w->crash_at < at)
        at = w->crash_at;
    if (w->stop_at < at && w->state == HUB_UP)
        at = w->stop_at;
    return at;
}

static struct next find_next(struct world *w)
{
    struct next n = {NEVER, DUE_NONE, 0};
    int64_t tick;
    if (w->hub == NULL)
        return (struct next){w->state_since + rnd_range(&w->rnd, 0, 2000) * MS, DUE_FATE, 0};
    consider(&n, disk_next(&w->disk), DUE_DISK, 0);
    tick = zc_hub_deadline(w->hub).ns;
    consider(&n, tick > NEVER - w->tick_lag_ns ? NEVER : tick + w->tick_lag_ns, DUE_TICK, 0);
    for (size_t i = 0; i < w->live_len; i++)
        consider_conn(w, &n, w->conns[w->live[i]]);
    if (w->calm)
        return n;
    if (w->state == HUB_UP)
        for (int i = 0; i < w->p.clients; i++)
            if (w->clients[i].conn == 0)
                consider(&n, w->clients[i].next_connect_at, DUE_CONNECT, (uint32_t)i);
    consider(&n, fate_at(w), DUE_FATE, 0);
    return n;
}

static int64_t after(struct world *w, int64_t every)
{
    return every == 0 ? NEVER : world_ns(w) + rnd_range(&w->rnd, every / 2, every * 3 / 2);
}

/* Space comes and goes; the wall clock steps; ticks come early. */
static void weather(struct world *w)
{
    w->weather_at = world_ns(w) + rnd_range(&w->rnd, 50, 2000) * MS;
    if (w->p.capacity > 0)
        w->disk.capacity = rnd_one_in(&w->rnd, 2) ? UINT64_MAX : rnd_below(&w->rnd, w->p.capacity);
    if (w->p.wall_steps && rnd_one_in(&w->rnd, 10)) {
        w->now.wall.ms += rnd_range(&w->rnd, -3600000, 3600000);
        w->wall_moved++;
        world_trace(w, "the wall clock steps");
    }
    if (w->hub != NULL)
        zc_hub_tick(w->hub, w->now);
}

static void fate(struct world *w)
{
    if (w->hub == NULL) {
        w->disk.faults = w->calm ? (struct disk_faults){0} : w->p.faults;
        node_start(w);
        w->crash_at = after(w, w->p.crash_every_ns);
        w->stop_at = after(w, w->p.stop_every_ns);
    } else if (w->crash_at <= world_ns(w)) {
        node_crash(w, w->p.power_loss && rnd_one_in(&w->rnd, 2));
        w->crash_at = NEVER;
    } else if (w->stop_at <= world_ns(w) && w->state == HUB_UP) {
        node_stop(w);
        w->stop_at = NEVER;
    } else {
        weather(w);
    }
}

static void act(struct world *w, struct conn *c)
{
    c->next_act_at = world_ns(w) + rnd_range(&w->rnd, 0, 2 * w->p.pace_ns);
    if (rnd_one_in(&w->rnd, 40)) /* at times a long pause, or a burst */
        c->next_act_at += rnd_range(&w->rnd, 0, 20) * 500 * MS;
    if (c->eof_soon || c->given_up)
        return;
    if (rnd_one_in(&w->rnd, 200)) {
        world_trace(w, "c%u resets", c->number);
        conn_end(w, c);
    } else if (rnd_one_in(&w->rnd, 400)) {
        c->eof_soon = true;
    } else {
        ask_something(w, c);
    }
}

static void connect_client(struct world *w, uint32_t client)
{
    struct conn *c = conn_open(w, (int)client);
    w->clients[client].next_connect_at = world_ns(w) + rnd_range(&w->rnd, 0, 500) * MS;
    if (c != NULL)
        w->clients[client].conn = c->number + 1;
    else
        w->clients[client].next_connect_at = NEVER;
}

static void happen(struct world *w, const struct next *n)
{
    switch (n->due) {
    case DUE_DISK:
        node_disk_done(w);
        break;
    case DUE_TICK:
        node_tick(w);
        break;
    case DUE_GIVE:
        conn_give(w, w->conns[n->who]);
        break;
    case DUE_READ:
        conn_read(w, w->conns[n->who]);
        break;
    case DUE_ACT:
        act(w, w->conns[n->who]);
        break;
    case DUE_CONNECT:
        connect_client(w, n->who);
        break;
    case DUE_FATE:
        fate(w);
        break;
    case DUE_NONE:
        break;
    }
}

static void check_stop(struct world *w)
{
    if (w->stopped_seen)
        node_stopped(w);
    else if (world_ns(w) - w->state_since > RESTART_MAX)
        world_fail(w, "the hub has not stopped after 5 s: %zu sessions, %zu disk requests",
                   w->live_len, w->disk.pending_len);
}

/* The hub must end who is silent or stuck. */
static void check_overdue(struct world *w)
{
    int64_t beat = w->p.hub.heartbeat_ms, now = world_ns(w);
    for (size_t i = 0; i < w->live_len; i++) {
        const struct conn *c = w->conns[w->live[i]];
        if (c->blocked && now - c->progress_at > 17 * SECOND)
            world_fail(w, "c%u: stuck for 17 s and not ended", c->number);
        if (beat > 0 && now - c->heard_at > 130 * SECOND + 3 * beat * MS)
            world_fail(w, "c%u: silent for two minutes and not ended", c->number);
    }
}

/* One thing; false when nothing is due before `until`. */
static bool step(struct world *w, int64_t until)
{
    struct next n = find_next(w);
    if (n.due == DUE_TICK && !w->calm && rnd_one_in(&w->rnd, 4))
        n.at += rnd_range(&w->rnd, 0, 3) * MS; /* a busy host is late */
    if (n.at > until || n.due == DUE_NONE) {
        advance(w, until);
        return false;
    }
    advance(w, n.at);
    happen(w, &n);
    node_pump(w);
    if (w->unusable && w->hub != NULL && !w->failed)
        node_crash(w, false); /* its program exits */
    if (w->state == HUB_STOPPING && !w->failed)
        check_stop(w);
    check_overdue(w);
    return true;
}

void run_calm(struct world *w, int64_t ns)
{
    int64_t until = world_ns(w) + ns;
    while (!w->failed && step(w, until))
        ;
}

/* No new work, no faults, everybody reads. */
static void calm_down(struct world *w)
{
    w->calm = true;
    memset(&w->disk.faults, 0, sizeof w->disk.faults);
    w->disk.capacity = UINT64_MAX;
    for (size_t i = 0; i < w->live_len;) {
        struct conn *c = w->conns[w->live[i]];
        if (c->never_reads)
            conn_end(w, c);
        else
            i++;
    }
    node_pump(w);
    for (int i = 0; i < 100 && !w->failed && w->state != HUB_UP; i++)
        run_calm(w, SECOND);
    run_calm(w, 4 * SECOND);
    /* A disk of 20 ms has few requests at once: what is peeked and moved may take longer. */
    for (int i = 0; i < 60 && !w->failed && w->disk.pending_len > 0; i++)
        run_calm(w, SECOND);
    if (w->state != HUB_UP)
        world_fail(w, "the hub does not come up");
}

static void settle(struct world *w)
{
    world_trace(w, "everything settles");
    calm_down(w);
    if (!w->failed)
        settle_check(w);
    w->calm = false;
    w->disk.faults = w->p.faults;
    w->settle_at = after(w, w->p.settle_every_ns);
}

void run_seed(struct world *w)
{
    w->settle_at = after(w, w->p.settle_every_ns);
    w->crash_at = after(w, w->p.crash_every_ns);
    w->stop_at = after(w, w->p.stop_every_ns);
    w->weather_at = world_ns(w);
    w->disk.faults = w->p.faults;
    node_start(w);
    node_pump(w);
    for (uint32_t i = 0; i < w->p.steps && !w->failed; i++) {
        step(w, world_ns(w) + SECOND);
        if (w->settle_at <= world_ns(w) && w->state == HUB_UP)
            settle(w);
    }
    if (!w->failed)
        calm_down(w);
    if (!w->failed)
        settle_check(w);
    if (!w->failed)
        drain_all(w);
}
