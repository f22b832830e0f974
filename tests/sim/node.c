/*
 * The hub as its host sees it: start from what the disk holds, events, disk requests, stop, crash.
 * It does no more for the hub than lib/node/hub.h promises a host will do.
 */
#include "world.h"

#include <string.h>

#include "model.h"

#define TURNS_MAX 100000
#define OPEN_MAX (120 * SECOND)

void node_start(struct world *w)
{
    struct zc_hub_config config = w->p.hub;
    uint8_t seed[32];
    for (size_t i = 0; i < sizeof seed; i++)
        seed[i] = (uint8_t)rnd_u64(&w->rnd);
    config.log.segments = w->segments;
    config.log.segments_count = (uint32_t)disk_segments(&w->disk, w->segments);
    w->state = HUB_OPENING;
    w->state_since = world_ns(w);
    w->stopped_seen = w->unusable = false;
    w->faults_before = w->disk.faults_done;
    world_trace(w, "hub starts with %u segments", config.log.segments_count);
    w->hub = zc_hub_new(&config, seed, w->now);
    if (w->hub == NULL)
        world_fail(w, "zc_hub_new refused");
}

static void closed(struct world *w, struct conn *c)
{
    world_trace(w, "c%u closed by the hub, cause %x", c->number, c->cause);
    if (c->given_up) {
        world_fail(w, "c%u: a second close", c->number);
        return;
    }
    conn_note_causes(w, c);
    model_closed(w, c);
    conn_end(w, c);
}

static void event(struct world *w, const struct zc_hub_event *ev)
{
    struct conn *c = ev->data;
    uint32_t mark[2] = {(uint32_t)ev->kind, c != NULL ? c->number : 0};
    switch (ev->kind) {
    case ZC_HUB_READY:
        w->state = HUB_UP;
        w->state_since = world_ns(w);
        model_ready(w);
        break;
    case ZC_HUB_UNUSABLE:
        w->unusable = true;
        world_trace(w, "the store is unusable: %s", ev->text);
        if (w->disk.faults_done == w->faults_before && ev->err != ZC_ENOSPC)
            world_fail(w, "the hub calls its store unusable: %s (%d)", ev->text, ev->err);
        break;
    case ZC_HUB_OUTPUT:
        c->flagged = true;
        c->reading = zc_hub_wants_input(w->hub, c->session);
        break;
    case ZC_HUB_CLOSE:
        closed(w, c);
        break;
    case ZC_HUB_LOG:
        world_trace(w, "log: %s", ev->text);
        mark[1] = 0;
        break;
    case ZC_HUB_TRACE:
        break;
    case ZC_HUB_STOPPED:
        w->stopped_seen = true;
        break;
    default: /* of the tunnel: no part of this world */
        break;
    }
    world_hash(w, mark, sizeof mark);
}

static void check_op(struct world *w, const struct zc_disk_op *op)
{
    for (size_t i = 0; i < w->disk.pending_len; i++)
        if (w->disk.pending[i].op.id == op->id)
            world_fail(w, "disk request id %llu is used twice", (unsigned long long)op->id);
    if ((op->kind == ZC_DISK_WRITE || op->kind == ZC_DISK_READ) && !op->sync &&
        (op->data == NULL || op->len == 0))
        world_fail(w, "disk request %d without bytes", (int)op->kind);
    if (op->segment == 0)
        world_fail(w, "disk request %d on segment 0", (int)op->kind);
    if (!w->p.hub.durable)
        world_fail(w, "a hub in memory asks for the disk");
}

static bool pump_disk(struct world *w)
{
    struct zc_disk_op op;
    bool moved = false;
    for (int n = 0; !w->failed && zc_hub_disk_op(w->hub, w->now, &op); n++) {
        uint64_t mark[4] = {op.kind, op.segment, op.offset, op.len};
        world_hash(w, mark, sizeof mark);
        check_op(w, &op);
        world_trace(w, "disk op %d seg %u at %llu len %zu%s%s", (int)op.kind, op.segment,
                    (unsigned long long)op.offset, op.len, op.sync ? " sync" : "",
                    op.sync_dir ? " dir" : "");
        disk_submit(&w->disk, world_ns(w), &op);
        if (w->disk.overloaded || n > TURNS_MAX)
            world_fail(w, "more disk requests than bounded work allows");
        moved = true;
    }
    return moved;
}

static bool pump_conns(struct world *w)
{
    bool moved = false;
    for (size_t i = 0; i < w->live_len; i++) {
        struct conn *c = w->conns[w->live[i]];
        if (c->flagged) {
            conn_flush(w, c);
            moved = true;
        }
    }
    return moved;
}

static bool pump_events(struct world *w)
{
    struct zc_hub_event ev;
    int n = 0;
    while (!w->failed && zc_hub_event(w->hub, w->now, &ev)) {
        event(w, &ev);
        if (++n > TURNS_MAX)
            world_fail(w, "events without end");
    }
    return n > 0;
}

void node_pump(struct world *w)
{
    int turns = 0;
    bool moved = true;
    /* Asking for disk requests may make events, so events are asked for last. */
    while (moved && w->hub != NULL && !w->failed) {
        pump_events(w);
        moved = pump_conns(w);
        moved |= pump_disk(w);
        moved |= pump_events(w);
        if (++turns > TURNS_MAX)
            world_fail(w, "turns without end");
    }
    if (w->disk.pending_len > 0 && !w->disk_busy)
        w->disk_busy_since = world_ns(w);
    w->disk_busy = w->disk.pending_len > 0;
    if (w->state == HUB_OPENING && world_ns(w) - w->state_since > OPEN_MAX)
        world_fail(w, "the hub is not ready after two minutes");
    if (w->hub != NULL && !w->failed)
        model_after_pump(w);
}

void node_tick(struct world *w)
{
    zc_hub_tick(w->hub, w->now);
    if (++w->spins > 20000)
        world_fail(w, "the hub's deadline does not move: 20000 ticks at one instant");
}

void node_disk_done(struct world *w)
{
    struct zc_disk_completion done;
    while (w->hub != NULL && disk_complete(&w->disk, world_ns(w), &done)) {
        world_hash(w, &done.result, sizeof done.result);
        world_trace(w, "disk %llu: %lld%s", (unsigned long long)done.id, (long long)done.result,
                    done.written ? " written" : "");
        if (done.result < 0)
            w->fault_at = world_ns(w);
        if (done.result < 0)
            world_trace(w, "disk request fails: %d", (int)done.result);
        zc_hub_disk_done(w->hub, w->now, &done);
    }
}

void node_stop(struct world *w)
{
    struct zc_hub_stats stats;
    world_trace(w, "hub is told to stop");
    zc_hub_stats(w->hub, &stats);
    w->stopped_in_error = stats.storage == ZC_LOG_ERROR;
    w->state = HUB_STOPPING;
    w->state_since = world_ns(w);
    memset(&w->disk.faults, 0, sizeof w->disk.faults);
    zc_hub_stop(w->hub, w->now);
    node_pump(w);
}

/* The hub's memory goes; sessions end without the hub noticing. */
static void discard(struct world *w)
{
    struct zc_hub_stats stats;
    zc_hub_stats(w->hub, &stats);
    w->moved += stats.moved;
    zc_hub_free(w->hub);
    w->hub = NULL;
    w->state_since = world_ns(w);
    w->disk_busy = false;
}

void node_crash(struct world *w, bool power_loss)
{
    world_trace(w, "%s, %zu disk requests under way", power_loss ? "POWER LOSS" : "KILL",
                w->disk.pending_len);
    w->crashes++;
    model_crash(w, power_loss, false);
    if (power_loss)
        disk_power_loss(&w->disk);
    else
        disk_kill(&w->disk);
    if (w->p.kind == PROFILE_ROT && rnd_one_in(&w->rnd, 2)) {
        uint64_t offset = 0;
        uint32_t segment = disk_rot(&w->disk, &offset);
        world_trace(w, "a bit turns over in segment %u at %llu", segment,
                    (unsigned long long)offset);
        model_rot(w);
    }
    discard(w);
}

void node_stopped(struct world *w)
{
    bool power_loss = w->p.hub.durable && rnd_one_in(&w->rnd, 2);
    world_trace(w, "hub has stopped%s", power_loss ? ", then power loss" : "");
    if (w->live_len > 0)
        world_fail(w, "stopped with %zu sessions not closed", w->live_len);
    if (w->disk.pending_len > 0)
        world_fail(w, "stopped with %zu disk requests under way", w->disk.pending_len);
    /* All is on disk, in every mode. */
    model_crash(w, false, true);
    if (power_loss)
        disk_power_loss(&w->disk);
    discard(w);
}
