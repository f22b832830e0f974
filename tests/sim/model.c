/* The two streams of a session: requests given to the hub, frames accepted from it. */
#include "model.h"

#include <string.h>

static const char *const op_names[] = {
    "put", "take",  "reserve", "ready", "ack",  "nack",  "touch",   "req",  "rep",    "pub",
    "sub", "unsub", "ping",    "hello", "info", "wrong", "garbage", "pong", "operate"};

static void submit(struct world *w, struct conn *c, struct want *want)
{
    want->idx = ++w->idx;
    want->at = world_ns(w);
    c->heard_at = world_ns(w);
    c->cause &= ~(uint32_t)CAUSE_SILENT;
    world_trace(w, "c%u > %s %s box %d uid %u max %d target %u %u %u %u", c->number,
                op_names[want->op], want->id, want->box, want->uid, want->max, want->target,
                want->more[0], want->more[1], want->more[2]);
    if (want->op == OP_GARBAGE)
        c->cause |= CAUSE_GARBAGE;
    if (want->op == OP_PUT || want->op == OP_REQ)
        queue_submit(w, c, want);
    if (want->op == OP_TAKE && want->box >= 0)
        w->boxes[want->box].take_idx = want->idx;
    if (want_waits(want) && want->box >= 0)
        w->boxes[want->box].wait_idx = want->idx;
    if (want->op == OP_ACK || want->op == OP_NACK || want->op == OP_TOUCH || want->op == OP_REP)
        lease_submit(w, c, want);
    if (want->op == OP_PUB || want->op == OP_SUB || want->op == OP_UNSUB)
        topics_submit(w, c, want);
    if (want->op == OP_OPERATE)
        operate_submit(w, want);
    if (want->op != OP_PONG && want->op != OP_GARBAGE)
        wants_push(&c->wants, want);
}

void model_submit_until(struct world *w, struct conn *c, uint64_t given)
{
    c->gave_idx = w->idx;
    while (c->plans.len > 0 && c->plans.list[0].end <= given) {
        struct want want = c->plans.list[0];
        wants_remove(&c->plans, &c->plans.list[0]);
        submit(w, c, &want);
    }
}

static void trace_frame(struct world *w, const struct conn *c, const struct zc_msg *m)
{
    struct zc_slice text = zc_msg_payload(m);
    if (w->trace == NULL)
        return;
    world_trace(w, "c%u < %.*s id %.*s name %.*s %.*s%.*s payload %.*s attempt %lld%s", c->number,
                (int)m->op.len, (const char *)m->op.data, (int)m->id.len, (const char *)m->id.data,
                (int)m->name.len, (const char *)m->name.data, (int)m->code.len,
                (const char *)m->code.data, (int)m->delivery.len, (const char *)m->delivery.data,
                (int)(text.len < 12 ? text.len : 12), (const char *)text.data,
                (long long)m->attempt, m->end ? " end" : "");
}

void model_frame(struct world *w, struct conn *c, const uint8_t *json, size_t len)
{
    const char *reason = NULL;
    w->frames++;
    memcpy(w->scratch, json, len);
    if (zc_msg_decode(&w->msg, w->scratch, len, &reason) != 0 || w->msg.invalid != NULL) {
        world_fail(w, "c%u: the hub sent a frame that is not sound: %s", c->number,
                   reason != NULL ? reason : w->msg.invalid);
        return;
    }
    if (w->liar != NULL)
        liar_frame(w, c, &w->msg, json, len);
    else
        model_message(w, c, &w->msg);
}

void model_message(struct world *w, struct conn *c, const struct zc_msg *m)
{
    w->idx++;
    trace_frame(w, c, m);
    if (zc_slice_is(m->op, "msg")) {
        if (zc_slice_starts(m->name, zc_slice_str("box")))
            deliver_message(w, c, m);
        else if (zc_slice_starts(m->name, zc_slice_str("mv")))
            operate_message(w, c, m);
        else
            topics_message(w, c, m);
    } else if (zc_slice_is(m->op, "ok")) {
        answer_ok(w, c, m);
    } else if (zc_slice_is(m->op, "err")) {
        answer_err(w, c, m);
    } else if (zc_slice_is(m->op, "rep")) {
        requests_rep(w, c, m);
    } else if (zc_slice_is(m->op, "ping")) {
        if (!c->deaf)
            ask_pong(w, c, m->id);
    } else if (zc_slice_is(m->op, "pong")) {
        struct want *want = wants_by_id(w, &c->wants, m->id, zc_slice(NULL, 0));
        if (want == NULL || want->op != OP_PING)
            world_fail(w, "c%u: a pong nobody asked for", c->number);
        else
            wants_remove(&c->wants, want);
    } else {
        world_fail(w, "c%u: unknown op from the hub", c->number);
    }
}

/* Where a waiter's frame may be stuck, a message may be handed out and return unseen. */
static void note_disturbances(struct world *w)
{
    struct zc_hub_stats stats;
    bool slow = w->disk_busy && world_ns(w) - w->disk_busy_since > 300 * MS;
    for (size_t i = 0; i < w->live_len; i++) {
        struct conn *c = w->conns[w->live[i]];
        if (!c->reading)
            c->paused_at = world_ns(w);
        if (!c->blocked && !slow)
            continue;
        for (int b = 0; b < BOXES_MAX; b++)
            if (wants_waiting(c, b, false) > 0)
                w->boxes[b].disturbed_at = world_ns(w);
    }
    zc_hub_stats(w->hub, &stats);
    if (stats.storage == ZC_LOG_ERROR)
        w->fault_at = world_ns(w); /* what is given back meanwhile is stored, and seen, later */
    for (int b = 0; b < BOXES_MAX && !w->disk_busy; b++) {
        if (stats.storage == ZC_LOG_OK || stats.storage == ZC_LOG_FULL)
            w->boxes[b].failed_takes = 0;
        if (w->boxes[b].disturbed)
            w->boxes[b].disturbed_at = world_ns(w);
        w->boxes[b].disturbed = false;
        /* Once the disk failed, memory alone may keep what was given back. */
        if (w->disk.faults_done == 0)
            w->boxes[b].returning = 0;
    }
}

/* With tiny caps memory is bounded at every instant: messages, and for each session its output
 * bound, the frames that one request may add to it, and its unfinished input. */
static void check_memory(struct world *w)
{
    uint64_t frame = w->p.payload_max * 7 / 3 + 1000; /* payload as text and as base64 */
    uint64_t session = w->p.hub.session_bytes + 40 * frame + 65536;
    uint64_t bound = w->live_len * session + w->p.hub.topics_max * frame;
    struct zc_hub_stats stats;
    for (int b = 0; b < BOXES_MAX; b++)
        bound += w->boxes[b].live_len * (w->p.payload_max + 1000);
    zc_hub_stats(w->hub, &stats);
    if (stats.memory_bytes > bound)
        world_fail(w, "the hub holds %llu bytes, the caps allow %llu",
                   (unsigned long long)stats.memory_bytes, (unsigned long long)bound);
}

void model_after_pump(struct world *w)
{
    note_disturbances(w);
    if (w->p.kind == PROFILE_TINY)
        check_memory(w);
    if (!w->disk_busy && w->state == HUB_UP) {
        order_passed(w);
        consumer_settled(w);
    }
}
