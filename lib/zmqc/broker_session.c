/* Sessions of the broker: attach, input, heartbeat, end. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/broker.h"
#include "zmqc/budget.h"
#include "zmqc/gift.h"
#include "zmqc/job.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"
#include "zmqc/scope.h"

static struct zc_mono dead_at(const struct zc_broker *b, const struct zc_session *s)
{
    return zc_mono_add_ms(s->heard, 3 * b->limits.heartbeat_ms + 1000);
}

struct zc_session *zc_broker_attach(struct zc_broker *b, struct zc_now now, const char *identity,
                                    const char *name, bool control, void *data)
{
    b->now = now;
    struct zc_session *s = zc_session_new(identity, name);
    if (s == NULL)
        return NULL;
    s->serial = s->owner = b->serial_next++;
    s->data = data;
    s->account = &b->out_bytes;
    s->control = control;
    s->timer.kind = ZC_TIMER_SESSION;
    s->heard = s->progress = now.mono;
    s->ping_due = ZC_NEVER;
    zc_list_push(&b->sessions, &s->link);
    b->sessions_count++;
    b->bus_sessions += !control;
    if (b->limits.heartbeat_ms > 0) {
        s->ping_due = zc_mono_add_ms(now.mono, b->limits.heartbeat_ms);
        if (zc_heap_set(&b->timers, &s->timer, s->ping_due) != 0) {
            zc_broker_detach(b, s, now);
            return NULL;
        }
    }
    if (!control && b->bus_sessions > b->limits.sessions_max) {
        zc_reply_err(b, s, zc_slice(NULL, 0), "unavailable",
                     "too many sessions: --sessions-max of the hub is reached, try again later");
        s->state = ZC_SESSION_ENDING;
    }
    if (b->stopping)
        s->state = ZC_SESSION_ENDING;
    if (s->state != ZC_SESSION_OPEN)
        zc_broker_touch(b, s);
    return s;
}

static void drop_subs(struct zc_broker *b, struct zc_session *s)
{
    while (!zc_list_empty(&s->subs))
        zc_topics_unsub(&b->topics, ZC_CONTAINER(s->subs.next, struct zc_sub, in_session));
}

static void drop_requests(struct zc_broker *b, struct zc_session *s)
{
    while (!zc_list_empty(&s->requests))
        zc_request_free(&b->requests, &b->timers,
                        ZC_CONTAINER(s->requests.next, struct zc_request, in_session));
}

void zc_broker_detach(struct zc_broker *b, struct zc_session *s, struct zc_now now)
{
    b->now = now;
    s->state = ZC_SESSION_CLOSED;
    drop_subs(b, s);
    drop_requests(b, s);
    zc_job_session_end(b, s);
    zc_gift_session_end(b, s);
    zc_scope_leave(b, s);
    zc_heap_remove(&b->timers, &s->timer);
    b->in_bytes -= s->in.len;
    b->sessions_count--;
    b->bus_sessions -= !s->control;
    b->out_ending -= s->ending_bytes;
    zc_session_free(s);
    zc_budget_fell(b);
    zc_broker_tick(b, now); /* matches what it gave back */
}

void zc_broker_kill(struct zc_broker *b, struct zc_session *s, const char *why)
{
    if (s->state == ZC_SESSION_CLOSED)
        return;
    zc_broker_log(b, 4, s, why);
    s->state = ZC_SESSION_CLOSED;
    s->ending_bytes = zc_session_waiting(s);
    b->out_ending += s->ending_bytes;
    zc_gift_park(s); /* what would be given to it would only come back */
    drop_subs(b, s);
    zc_heap_remove(&b->timers, &s->timer);
    zc_broker_touch(b, s);
}

/* The err goes out, the rest of the input is not looked at. */
static void bad_frame(struct zc_broker *b, struct zc_session *s, const char *why)
{
    zc_broker_log(b, 4, s, why);
    zc_reply_err(b, s, zc_slice(NULL, 0), "bad_frame", why);
    if (s->state == ZC_SESSION_OPEN)
        s->state = ZC_SESSION_ENDING;
    drop_subs(b, s);
    while (!zc_list_empty(&s->waiters))
        zc_gift_waiter_free(b, ZC_CONTAINER(s->waiters.next, struct zc_waiter, in_session));
    zc_broker_touch(b, s);
}

static void handle(struct zc_broker *b, struct zc_session *s, uint8_t *body, size_t len)
{
    const char *why = NULL;
    s->heard = b->now.mono;
    s->cost++;
    if (zc_msg_decode(&b->in, body, len, &why) != 0) {
        bad_frame(b, s, why);
        return;
    }
    if (b->trace)
        zc_broker_trace(b, s, false, &b->in);
    zc_op_run(b, s, &b->in);
}

static bool input_stopped(const struct zc_broker *b, const struct zc_session *s)
{
    return b->input_blocked || s->publishing || zc_reply_over_bound(b, s);
}

/* Runs whole frames of data; returns the bytes used. */
static size_t scan(struct zc_broker *b, struct zc_session *s, uint8_t *data, size_t len)
{
    size_t pos = 0, size = 0;
    s->scanning = true;
    s->cost = 0;
    while (s->state == ZC_SESSION_OPEN && pos < len && !input_stopped(b, s) &&
           s->cost < ZC_BROKER_TURN_COST) {
        enum zc_frame_status st = zc_frame_peek(data + pos, len - pos, &size);
        if (st == ZC_FRAME_PARTIAL)
            break;
        if (st == ZC_FRAME_BAD_MAGIC)
            bad_frame(b, s, "frame: bad magic: a frame begins with ZMQC");
        else if (st == ZC_FRAME_BAD_LENGTH)
            bad_frame(b, s, "frame: the length must be 1 to 2097152");
        else
            handle(b, s, data + pos + ZC_FRAME_HEADER, size - ZC_FRAME_HEADER);
        pos += st == ZC_FRAME_WHOLE ? size : 0;
    }
    s->scanning = false;
    bool spent = s->cost >= ZC_BROKER_TURN_COST;
    s->paused = s->state == ZC_SESSION_OPEN && pos < len && (spent || input_stopped(b, s));
    if (s->paused && spent && !zc_list_linked(&s->yielded))
        zc_list_push(&b->yielded, &s->yielded);
    return pos;
}

static void drop_input(struct zc_broker *b, struct zc_session *s)
{
    b->in_bytes -= s->in.len;
    zc_buf_done(&s->in);
}

static void keep(struct zc_broker *b, struct zc_session *s, const uint8_t *data, size_t len)
{
    if (len == 0)
        return;
    if (b->in_bytes + len > ZC_BROKER_IN_MAX)
        zc_broker_kill(b, s, "too many unfinished frames in all sessions: session ended");
    else if (zc_buf_append(&s->in, data, len) != 0)
        zc_broker_kill(b, s, "out of memory: session ended");
    else
        b->in_bytes += len;
}

static void scan_kept(struct zc_broker *b, struct zc_session *s)
{
    size_t used = scan(b, s, s->in.data, s->in.len);
    if (s->state != ZC_SESSION_OPEN || used == s->in.len) {
        drop_input(b, s);
    } else {
        b->in_bytes -= used;
        zc_buf_consume(&s->in, used);
    }
}

void zc_broker_input(struct zc_broker *b, struct zc_session *s, struct zc_now now, uint8_t *data,
                     size_t len)
{
    b->now = now;
    if (s->state != ZC_SESSION_OPEN || s->half_closed)
        return;
    if (s->in.len > 0) {
        keep(b, s, data, len);
        scan_kept(b, s);
    } else {
        size_t used = scan(b, s, data, len);
        if (s->state == ZC_SESSION_OPEN)
            keep(b, s, data + used, len - used);
    }
}

/* After a half-close: what waits ends without a frame; the session ends with its output. */
static void end_input(struct zc_broker *b, struct zc_session *s)
{
    while (!zc_list_empty(&s->waiters))
        zc_gift_waiter_free(b, ZC_CONTAINER(s->waiters.next, struct zc_waiter, in_session));
    drop_subs(b, s);
    drop_requests(b, s);
    drop_input(b, s);
    s->state = ZC_SESSION_ENDING;
    zc_broker_touch(b, s);
}

void zc_broker_eof(struct zc_broker *b, struct zc_session *s, struct zc_now now)
{
    b->now = now;
    s->half_closed = true;
    if (s->state == ZC_SESSION_OPEN && !s->paused)
        end_input(b, s);
    zc_broker_touch(b, s);
}

void zc_broker_resume(struct zc_broker *b, struct zc_session *s)
{
    if (s->state == ZC_SESSION_OPEN && !s->publishing && zc_reply_has_room(b, s))
        zc_gift_unpark(b, s);
    if (s->jobs_count > 0 && zc_reply_has_room(b, s))
        zc_job_resume(b, s);
    if (!s->paused || s->scanning || s->state != ZC_SESSION_OPEN || input_stopped(b, s))
        return;
    s->heard = b->now.mono; /* it was we who did not listen */
    scan_kept(b, s);
    if (!s->paused)
        zc_broker_touch(b, s);
    if (s->half_closed && !s->paused && s->state == ZC_SESSION_OPEN)
        end_input(b, s);
}

bool zc_broker_wants_input(const struct zc_broker *b, const struct zc_session *s)
{
    return s->state == ZC_SESSION_OPEN && !s->half_closed && !s->paused && !input_stopped(b, s);
}

void zc_broker_block_input(struct zc_broker *b, struct zc_now now, bool blocked)
{
    b->now = now;
    if (b->input_blocked == blocked)
        return;
    b->input_blocked = blocked;
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        zc_broker_touch(b, s);
        if (!blocked)
            zc_broker_resume(b, s);
    }
}

void zc_broker_sent(struct zc_broker *b, struct zc_session *s, struct zc_now now, size_t n)
{
    b->now = now;
    if (n == 0 || s->state == ZC_SESSION_CLOSED)
        return;
    s->progress = now.mono;
    bool stopped = input_stopped(b, s);
    zc_session_sent(s, n);
    zc_gift_sent(b, s);
    zc_reply_replay(b, s);
    if (stopped != input_stopped(b, s) ||
        (s->state == ZC_SESSION_ENDING && zc_session_out_bytes(s) == 0))
        zc_broker_touch(b, s);
    zc_broker_resume(b, s);
    zc_budget_fell(b);
    if (!zc_list_empty(&b->dispatch))
        zc_broker_tick(b, now);
}

static void ping(struct zc_broker *b, struct zc_session *s)
{
    zc_msg_clear(&b->out);
    b->out.op = zc_slice_str("ping");
    zc_reply_now(b, s, &b->out);
}

/* Heartbeat and stall; arms the timer for the next look. */
void zc_broker_pulse(struct zc_broker *b, struct zc_session *s)
{
    struct zc_mono now = b->now.mono, next = ZC_NEVER;
    if (s->state == ZC_SESSION_CLOSED)
        return;
    if (zc_session_out_bytes(s) > 0) {
        next = zc_mono_add_ms(s->progress, ZC_BROKER_STALL_MS);
        if (next.ns <= now.ns) {
            zc_broker_kill(b, s, "takes none of its output for 15 s: session ended");
            return;
        }
    }
    if (b->limits.heartbeat_ms > 0) {
        if (input_stopped(b, s))
            s->heard = now; /* it is we who do not listen */
        struct zc_mono dead = dead_at(b, s);
        bool excused = s->deliveries_count > 0 || s->paused || b->input_blocked;
        if (dead.ns <= now.ns && !excused) {
            zc_broker_kill(b, s, "heartbeat timeout: nothing was heard for three intervals");
            return;
        }
        struct zc_mono quiet = zc_mono_add_ms(s->heard, b->limits.heartbeat_ms);
        if (quiet.ns > now.ns && s->ping_due.ns <= now.ns) {
            s->ping_due = quiet;
        } else if (s->ping_due.ns <= now.ns) {
            ping(b, s);
            s->ping_due = zc_mono_add_ms(now, b->limits.heartbeat_ms);
        }
        next = zc_mono_min(next, s->ping_due);
        if (!excused)
            next = zc_mono_min(next, dead);
    }
    if (s->state != ZC_SESSION_CLOSED && next.ns != ZC_NEVER.ns &&
        zc_heap_set(&b->timers, &s->timer, next) != 0)
        zc_broker_kill(b, s, "out of memory: session ended");
}

void zc_broker_stop(struct zc_broker *b, struct zc_now now)
{
    b->now = now;
    b->stopping = true;
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        while (!zc_list_empty(&s->waiters)) {
            struct zc_waiter *w = ZC_CONTAINER(s->waiters.next, struct zc_waiter, in_session);
            zc_reply_gift_err(b, s, zc_slice(w->id, w->id_len), "closed", "mailbox: closed");
            zc_gift_waiter_free(b, w);
        }
        if (s->state == ZC_SESSION_OPEN)
            end_input(b, s);
    }
}

void zc_broker_cut(struct zc_broker *b)
{
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next)
        zc_broker_kill(b, ZC_CONTAINER(l, struct zc_session, link),
                       "did not take its output before the hub stopped");
}

static struct zc_session *next_dirty(struct zc_list *dirty, bool *ret_close)
{
    struct zc_list *l = zc_list_first(dirty);
    if (l == NULL)
        return NULL;
    zc_list_remove(l);
    struct zc_session *s = ZC_CONTAINER(l, struct zc_session, dirty);
    *ret_close = s->state == ZC_SESSION_CLOSED ||
                 (s->state == ZC_SESSION_ENDING && zc_session_out_bytes(s) == 0 &&
                  zc_list_empty(&s->replies) && zc_list_empty(&s->gifts) && s->jobs_count == 0);
    s->close_told = *ret_close;
    return s;
}

struct zc_session *zc_broker_dirty(struct zc_broker *b, bool *ret_close)
{
    return next_dirty(&b->dirty, ret_close);
}

struct zc_session *zc_broker_inner(struct zc_broker *b, bool *ret_close)
{
    return next_dirty(&b->dirty_inner, ret_close);
}

void zc_broker_make_inner(struct zc_broker *b, struct zc_session *s)
{
    bool due = zc_list_linked(&s->dirty);
    zc_list_remove(&s->dirty);
    s->inner = true;
    if (due)
        zc_broker_touch(b, s);
}
