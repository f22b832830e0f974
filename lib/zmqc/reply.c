/* Frames on their way to a session, see reply.h. */
#include "zmqc/reply.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/budget.h"
#include "zmqc/gift.h"

#define STORAGE_TEXT "storage: not on disk, nothing was changed: see zmqcat status"

bool zc_reply_over_bound(const struct zc_broker *b, const struct zc_session *s)
{
    return zc_session_waiting(s) > b->limits.session_bytes || s->held_count > 8192 ||
           (b->out_short && zc_session_waiting(s) > ZC_BUDGET_SHARE);
}

bool zc_reply_has_room(const struct zc_broker *b, const struct zc_session *s)
{
    return zc_session_waiting(s) <= b->limits.session_bytes / 2 && s->held_count <= 4096 &&
           (!b->out_short || zc_session_waiting(s) <= ZC_BUDGET_SHARE / 2);
}

_Static_assert(ZC_MSG_SMALL_MAX <= ZC_SESSION_CHUNK, "small frames are copied");

/* Bytes that do not move for a while end a session: the watch begins with the first of them. */
static bool watch_output(struct zc_broker *b, struct zc_session *s)
{
    if (zc_session_out_bytes(s) > 0)
        return true;
    s->progress = b->now.mono;
    struct zc_mono stall = zc_mono_add_ms(b->now.mono, ZC_BROKER_STALL_MS);
    return (zc_heap_has(&s->timer) && s->timer.deadline.ns <= stall.ns) ||
           zc_heap_set(&b->timers, &s->timer, stall) == 0;
}

/* Something was appended to the output, or, when not ok, there was no memory for it. */
static void wrote(struct zc_broker *b, struct zc_session *s, bool ok)
{
    if (!ok) {
        zc_broker_kill(b, s, "out of memory: session ended");
        return;
    }
    /* What others send to it (replies) cannot be held back: a reader that far behind is cut. */
    if (zc_session_out_bytes(s) > 4 * b->limits.session_bytes + 8 * ZC_FRAME_BODY_MAX) {
        zc_broker_kill(b, s, "does not read what it asked for: session ended");
        return;
    }
    zc_budget_rose(b);
    if (zc_reply_over_bound(b, s))
        zc_gift_park(s);
    zc_broker_touch(b, s);
    zc_budget_enforce(b);
}

void zc_reply_write(struct zc_broker *b, struct zc_session *s, struct zc_block *frame, bool sub)
{
    if (s->state == ZC_SESSION_CLOSED)
        return;
    wrote(b, s,
          watch_output(b, s) && zc_session_write(s, frame) == 0 &&
              (!sub || zc_session_mark(s) == 0));
}

struct zc_block *zc_reply_encode(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    int err = 0;
    struct zc_block *frame = zc_msg_encode(m, &err);
    if (frame == NULL)
        zc_broker_kill(b, s, "a frame for it could not be made: session ended");
    else if (b->trace)
        zc_broker_trace(b, s, true, m);
    return frame;
}

void zc_reply_now(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    uint8_t small[ZC_MSG_SMALL_MAX];
    if (s->state == ZC_SESSION_CLOSED)
        return;
    size_t len = zc_msg_encode_small(m, small);
    if (len > 0) {
        if (b->trace)
            zc_broker_trace(b, s, true, m);
        wrote(b, s, watch_output(b, s) && zc_session_copy(s, zc_slice(small, len)) == 0);
        return;
    }
    struct zc_block *frame = zc_reply_encode(b, s, m);
    if (frame == NULL)
        return;
    zc_reply_write(b, s, frame, false);
    zc_block_unref(frame);
}

/* Nothing that must come before it is still to come. */
static bool may_go(const struct zc_broker *b, const struct zc_session *s, uint64_t ticket)
{
    return ticket <= b->synced && zc_list_empty(&s->replies);
}

/* A reply to hold back, with frame, which is taken over (NULL: no memory). NULL: the session ends.
 */
static struct zc_held *held_frame(struct zc_broker *b, struct zc_session *s, struct zc_block *frame,
                                  struct zc_slice id)
{
    struct zc_held *h = frame != NULL ? zc_reply_held_new(id) : NULL;
    if (h == NULL) {
        zc_block_unref(frame);
        zc_broker_kill(b, s, "out of memory: session ended");
        return NULL;
    }
    h->frame = frame;
    return h;
}

/* frame, which is taken over (NULL: no memory), behind ticket and earlier replies. */
static void hold_frame(struct zc_broker *b, struct zc_session *s, struct zc_block *frame,
                       struct zc_slice id, uint64_t ticket, bool pub)
{
    struct zc_held *h = held_frame(b, s, frame, id);
    if (h == NULL)
        return;
    h->ticket = ticket;
    h->pub = pub;
    zc_reply_hold(b, s, h);
}

static void send(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m, uint64_t ticket,
                 bool pub)
{
    if (s->state == ZC_SESSION_CLOSED)
        return;
    if (may_go(b, s, ticket)) {
        zc_reply_now(b, s, m);
        return;
    }
    struct zc_block *frame = zc_reply_encode(b, s, m);
    if (frame != NULL)
        hold_frame(b, s, frame, m->id, ticket, pub);
}

void zc_reply_send(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                   uint64_t ticket)
{
    send(b, s, m, ticket, false);
}

static void fill_err(struct zc_msg *m, struct zc_slice id, const char *code, const char *text)
{
    zc_msg_clear(m);
    m->op = zc_slice_str("err");
    m->id = id;
    m->error = zc_slice_str(text);
    m->code = zc_slice_str(code);
}

void zc_reply_err(struct zc_broker *b, struct zc_session *s, struct zc_slice id, const char *code,
                  const char *text)
{
    fill_err(&b->out, id, code, text);
    zc_reply_send(b, s, &b->out, 0);
}

void zc_reply_gift_err(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                       const char *code, const char *text)
{
    if (s->state == ZC_SESSION_CLOSED)
        return;
    fill_err(&b->out, id, code, text);
    struct zc_held *h = held_frame(b, s, zc_reply_encode(b, s, &b->out), id);
    if (h == NULL)
        return;
    h->gift = true;
    zc_reply_hold(b, s, h);
    zc_reply_release(b, s);
}

/* subs below 0: not the answer to a publication. */
static void send_ok(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                    struct zc_slice name, int64_t subs, uint64_t ticket)
{
    uint8_t small[ZC_MSG_SMALL_MAX];
    size_t len = b->trace ? 0 : zc_msg_encode_ok(id, name, subs, small);
    struct zc_slice frame = zc_slice(small, len);
    if (len == 0) {
        zc_msg_clear(&b->out);
        b->out.op = zc_slice_str("ok");
        b->out.id = id;
        b->out.name = name;
        b->out.subs = subs;
        b->out.has = subs < 0 ? 0 : ZC_MSG_HAS_SUBS;
        send(b, s, &b->out, ticket, subs >= 0);
    } else if (s->state != ZC_SESSION_CLOSED && may_go(b, s, ticket)) {
        wrote(b, s, watch_output(b, s) && zc_session_copy(s, frame) == 0);
    } else if (s->state != ZC_SESSION_CLOSED) {
        hold_frame(b, s, zc_block_copy(frame), id, ticket, subs >= 0);
    }
}

void zc_reply_ok(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                 struct zc_slice name, uint64_t ticket)
{
    send_ok(b, s, id, name, -1, ticket);
}

void zc_reply_ok_pub(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                     struct zc_slice name, uint32_t subs, uint64_t ticket)
{
    send_ok(b, s, id, name, subs, ticket);
}

void zc_reply_storage(struct zc_broker *b, struct zc_session *s, struct zc_slice id, int err)
{
    if (err == ZC_ENOMEM)
        zc_reply_err(b, s, id, "unavailable", "the hub is out of memory: try again later");
    else if (err == ZC_ENOSPC)
        zc_reply_err(b, s, id, "storage", "storage: disk full, nothing was stored");
    else
        zc_reply_err(b, s, id, "storage", STORAGE_TEXT);
}

void zc_reply_publish(struct zc_broker *b, const struct zc_match *match, struct zc_block *frame,
                      const struct zc_fan_part *part)
{
    struct zc_session *s = match->session;
    struct zc_sub *sub = match->replaying;
    if (s->state != ZC_SESSION_OPEN || (sub != NULL && sub->behind))
        return;
    if (s->marks.len + s->held_subs >= b->limits.sub_buffer || zc_reply_over_bound(b, s)) {
        if (sub != NULL)
            zc_topics_fall_behind(&b->topics, sub);
        else
            b->count.dropped_subs++;
        return;
    }
    if (zc_list_empty(&s->replies) && part->block != NULL) {
        wrote(b, s,
              watch_output(b, s) && zc_session_refer(s, part->block, part->start, part->len) == 0 &&
                  zc_session_mark(s) == 0);
        return;
    }
    if (zc_list_empty(&s->replies)) {
        zc_reply_write(b, s, frame, true);
        return;
    }
    /* Behind the reply that it must not overtake. */
    struct zc_held *h = zc_reply_held_new(zc_slice(NULL, 0));
    if (h == NULL) {
        b->count.dropped_subs++;
        return;
    }
    h->frame = zc_block_ref(frame);
    h->sub = true;
    zc_reply_hold(b, s, h);
}

static void fail_lane(struct zc_broker *b, struct zc_session *s, struct zc_list *lane,
                      uint64_t ticket)
{
    for (struct zc_list *l = lane->next; l != lane; l = l->next) {
        struct zc_held *h = ZC_CONTAINER(l, struct zc_held, link);
        if (h->ticket <= ticket)
            continue;
        h->ticket = 0;
        if (h->written_only)
            continue; /* only the count of attempts is not stored */
        zc_reply_discharge(s, h);
        zc_block_unref(h->frame);
        h->message = NULL;
        fill_err(&b->out, zc_slice(h->id, h->id_len), "storage",
                 h->pub ? ZC_REPLY_PUB_FAILED : STORAGE_TEXT);
        h->frame = zc_reply_encode(b, s, &b->out);
        zc_reply_charge(s, h);
    }
}

void zc_reply_fail(struct zc_broker *b, uint64_t ticket)
{
    for (struct zc_list *l = b->stalled.next; l != &b->stalled; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, stalled);
        fail_lane(b, s, &s->replies, ticket);
        fail_lane(b, s, &s->gifts, ticket);
    }
}

/* The buffer takes one more value that is not live. False also for a session that was ended, and
 * its subscriptions with it. */
static bool has_room(const struct zc_broker *b, const struct zc_session *s)
{
    uint64_t room = b->limits.sub_buffer > 1 ? b->limits.sub_buffer / 2 : 1;
    return s->state == ZC_SESSION_OPEN && s->marks.len < room && !zc_reply_over_bound(b, s);
}

void zc_reply_replay(struct zc_broker *b, struct zc_session *s)
{
    struct zc_topic *topic;
    if (s->state != ZC_SESSION_OPEN || !zc_list_empty(&s->replies))
        return;
    for (struct zc_list *l = s->subs.next; l != &s->subs; l = l->next) {
        struct zc_sub *sub = ZC_CONTAINER(l, struct zc_sub, in_session);
        while (has_room(b, s) && (topic = zc_topics_replay(&b->topics, sub)) != NULL) {
            sub->replayed = topic->version;
            zc_reply_write(b, s, topic->frame, true);
        }
        if (s->state != ZC_SESSION_OPEN)
            return;
    }
    while (has_room(b, s) && (topic = zc_topics_catch_up(&b->topics, s)) != NULL) {
        s->caught = topic->version;
        zc_reply_write(b, s, topic->frame, true);
    }
}
