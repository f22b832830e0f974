/* Matching of waiters and messages, see gift.h. */
#include "zmqc/gift.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "zmqc/group.h"
#include "zmqc/lease.h"
#include "zmqc/message.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"
#include "zmqc/rest.h"
#include "zmqc/scope.h"
#include "zmqc/settle.h"

#define LOOKS_COST 64 /* that many looks of a filter cost as much as a frame */
/* Looks of one call: after that others have their turn, and it goes on in the next one. */
#define LOOKS_MAX 262144

/* A search for messages. */
struct search {
    uint64_t looked; /* messages looked at for a filter */
    bool scarce;     /* the last one was found, and there is no memory for it */
};

/* The line that w stands in. */
static struct zc_line_up *line_of(const struct zc_waiter *w)
{
    return w->group != NULL ? &w->group->line : &w->mailbox->line;
}

void zc_gift_wait(struct zc_broker *b, struct zc_session *s, struct zc_mailbox *mb,
                  const struct zc_msg *m, struct zc_filter *filter, enum zc_gift op)
{
    if (s->waiters_count >= ZC_BROKER_WAITERS_MAX || b->waiters_count >= ZC_BROKER_WAITING_MAX) {
        free(filter);
        zc_reply_gift_err(b, s, m->id, "full", "too many operations wait already");
        return;
    }
    struct zc_group *group = filter != NULL ? zc_group_join(mb, filter) : NULL;
    if (filter != NULL && group == NULL) {
        zc_reply_gift_err(b, s, m->id, "full", "too many different filters wait on this mailbox");
        return;
    }
    struct zc_waiter *w = zc_alloc_zeroed(sizeof(*w) + m->id.len);
    if (w == NULL) {
        if (group != NULL)
            zc_group_leave(mb, group);
        zc_broker_kill(b, s, "out of memory: session ended");
        return;
    }
    w->timer.kind = ZC_TIMER_WAITER;
    w->session = s;
    w->mailbox = mb;
    w->op = (uint8_t)op;
    w->lease_s = zc_lease_seconds(b, m->lease, op == ZC_GIFT_READY);
    w->max = (m->has & ZC_MSG_HAS_MAX) != 0 && op != ZC_GIFT_TAKE ? (uint32_t)m->max : 0;
    w->id_len = (uint16_t)m->id.len;
    if (m->id.len > 0)
        memcpy(w->id, m->id.data, m->id.len);
    w->turn = ++b->turn;
    w->group = group;
    zc_list_init(&w->in_mailbox);
    if (!s->congested)
        zc_list_push(&line_of(w)->waiters, &w->in_mailbox);
    zc_list_push(&s->waiters, &w->in_session);
    mb->waiting++;
    mb->any += group == NULL;
    s->waiters_count++;
    b->waiters_count++;
    bool timed = (m->has & ZC_MSG_HAS_WAIT) != 0;
    if (timed && zc_heap_set(&b->timers, &w->timer, zc_mono_add_ms(b->now.mono, m->wait_ms)) != 0) {
        zc_gift_waiter_free(b, w);
        zc_broker_kill(b, s, "out of memory: session ended");
        return;
    }
    uint32_t line = s->waiters_count;
    zc_gift_dispatch(b, mb);
    /* Nobody of this session was served: w stands still. Else the timer, due now, decides. */
    if (timed && m->wait_ms == 0 && s->waiters_count == line)
        zc_gift_waiter_timeout(b, w);
}

void zc_gift_waiter_timeout(struct zc_broker *b, struct zc_waiter *w)
{
    /* There may be something for it: it is being looked for. */
    if (zc_list_linked(&w->mailbox->dispatch) &&
        zc_heap_set(&b->timers, &w->timer, zc_mono_add_ms(b->now.mono, 1)) == 0)
        return;
    zc_reply_gift_err(b, w->session, zc_slice(w->id, w->id_len), "empty", "mailbox: empty");
    zc_gift_waiter_free(b, w);
}

void zc_gift_waiter_free(struct zc_broker *b, struct zc_waiter *w)
{
    zc_list_remove(&w->in_mailbox);
    zc_list_remove(&w->in_session);
    zc_heap_remove(&b->timers, &w->timer);
    w->mailbox->waiting--;
    if (w->group != NULL)
        zc_group_leave(w->mailbox, w->group);
    else
        w->mailbox->any--;
    w->session->waiters_count--;
    b->waiters_count--;
    zc_broker_reap(b, w->mailbox);
    free(w);
}

void zc_gift_park(struct zc_session *s)
{
    if (s->congested)
        return;
    s->congested = true;
    for (struct zc_list *l = s->waiters.next; l != &s->waiters; l = l->next)
        zc_list_remove(&ZC_CONTAINER(l, struct zc_waiter, in_session)->in_mailbox);
}

/* Puts w back into the line, at its turn. The session's waiters come in the order of their turns,
 * so the search goes on from where the one before it went. */
static void unpark_one(struct zc_broker *b, struct zc_waiter *w)
{
    struct zc_line_up *line = line_of(w);
    struct zc_list *at = line->unparked == b->unpark_round ? line->unpark_at : line->waiters.next;
    while (at != &line->waiters && ZC_CONTAINER(at, struct zc_waiter, in_mailbox)->turn < w->turn)
        at = at->next;
    zc_list_insert_before(at, &w->in_mailbox);
    line->unparked = b->unpark_round;
    line->unpark_at = at;
    zc_broker_want_dispatch(b, w->mailbox);
}

void zc_gift_unpark(struct zc_broker *b, struct zc_session *s)
{
    if (!s->congested)
        return;
    s->congested = false;
    b->unpark_round++;
    for (struct zc_list *l = s->waiters.next; l != &s->waiters; l = l->next)
        unpark_one(b, ZC_CONTAINER(l, struct zc_waiter, in_session));
}

/* First in line. Waiters of sessions that cannot take more stand beside it. */
static struct zc_waiter *first_in(const struct zc_line_up *line)
{
    struct zc_list *l = zc_list_first(&line->waiters);
    return l != NULL ? ZC_CONTAINER(l, struct zc_waiter, in_mailbox) : NULL;
}

/* Next message for w that is still alive. */
static struct zc_message *next_message(struct zc_broker *b, struct zc_mailbox *mb,
                                       struct zc_waiter *w, struct search *search)
{
    struct zc_message *m;
    uint64_t before = search->looked;
    while ((m = zc_rest_next(b, mb, w->group, &search->looked, &search->scarce)) != NULL &&
           m->expires.ns <= b->now.mono.ns) {
        mb->waiting++; /* keeps the mailbox while its last message goes */
        zc_message_expire(b, m);
        mb->waiting--;
    }
    w->session->cost += (uint32_t)((search->looked - before) / LOOKS_COST);
    return m;
}

/* The waiter who came first of those for whom there is something, and that; NULL: there is no
 * memory for it. */
static struct zc_waiter *next_pair(struct zc_broker *b, struct zc_mailbox *mb,
                                   struct search *search, struct zc_message **ret_message)
{
    struct zc_waiter *best = first_in(&mb->line);
    if (best != NULL && (*ret_message = next_message(b, mb, best, search)) == NULL &&
        !search->scarce)
        return NULL; /* nothing at all is there */
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        struct zc_group *g = ZC_CONTAINER(l, struct zc_group, link);
        struct zc_waiter *w = first_in(&g->line);
        struct zc_message *m;
        if (w == NULL || (best != NULL && best->turn < w->turn) ||
            ((m = next_message(b, mb, w, search)) == NULL && !search->scarce))
            continue;
        best = w;
        *ret_message = m;
    }
    return best;
}

static void give_take(struct zc_broker *b, struct zc_waiter *w, struct zc_message *m)
{
    struct zc_session *s = w->session;
    struct zc_held *h = zc_reply_held_new(zc_slice(w->id, w->id_len));
    if (h == NULL || !zc_message_want_body(b, m)) {
        free(h);
        zc_reply_gift_err(b, s, zc_slice(w->id, w->id_len), "storage", "storage: cannot read it");
        return;
    }
    int64_t ticket = zc_message_remove(b, &m, 1, true);
    if (ticket < 0) {
        free(h);
        zc_reply_gift_err(b, s, zc_slice(w->id, w->id_len), "storage",
                          "storage: the removal cannot be made durable, the message stays");
        return;
    }
    m->attempt++;
    m->taken = true;
    m->mailbox->out++;
    b->count.takes++;
    h->gift = true;
    h->gift_op = ZC_GIFT_TAKE;
    h->message = m;
    h->ticket = (uint64_t)ticket;
    zc_reply_hold(b, s, h);
    zc_reply_release(b, s);
}

/* One leased message into the lane; NULL when that is not possible. */
static struct zc_held *give_one_lease(struct zc_broker *b, const struct zc_waiter *w,
                                      struct zc_message *m)
{
    struct zc_held *h = zc_reply_held_new(zc_slice(w->id, w->id_len));
    if (h == NULL || !zc_message_want_body(b, m) || !zc_lease_new(b, w->session, m, w->lease_s)) {
        free(h);
        return NULL;
    }
    m->attempt++;
    m->mailbox->out++;
    b->count.leases++;
    h->gift = true;
    h->gift_op = w->op;
    h->message = m;
    h->batch = w->max > 0;
    h->written_only = true;
    h->ticket = zc_message_store_state(b, m, 0);
    m->delivery->held = h;
    zc_reply_hold(b, w->session, h);
    return h;
}

static uint32_t holds(const struct zc_session *s)
{
    return s->scope != NULL ? s->scope->held : s->deliveries_count;
}

static void give_leases(struct zc_broker *b, struct zc_mailbox *mb, struct zc_waiter *w,
                        struct search *search)
{
    uint32_t max = w->max > 0 ? w->max : 1;
    struct zc_session *s = w->session;
    struct zc_held *last = NULL;
    struct zc_message *m;
    for (uint32_t i = 0; i < max && (m = next_message(b, mb, w, search)) != NULL; i++) {
        if (holds(s) >= ZC_BROKER_LEASES_MAX || (i > 0 && s->congested))
            break;
        struct zc_held *h = give_one_lease(b, w, m);
        if (h == NULL)
            break;
        last = h;
    }
    if (last == NULL && holds(s) >= ZC_BROKER_LEASES_MAX)
        zc_reply_gift_err(b, s, zc_slice(w->id, w->id_len), "full",
                          "this session holds too many deliveries: ack some first");
    else if (last == NULL)
        zc_reply_gift_err(b, s, zc_slice(w->id, w->id_len), "storage", "storage: cannot read it");
    else if (w->max > 0)
        last->end = true;
    zc_reply_release(b, s);
}

void zc_gift_dispatch(struct zc_broker *b, struct zc_mailbox *mb)
{
    mb->waiting++; /* keeps the mailbox until the end of the loop */
    struct zc_waiter *w;
    struct zc_message *m;
    struct search search = {0};
    zc_list_remove(&mb->dispatch);
    while (search.looked < LOOKS_MAX && (w = next_pair(b, mb, &search, &m)) != NULL) {
        if (m == NULL)
            zc_reply_gift_err(b, w->session, zc_slice(w->id, w->id_len), "unavailable",
                              ZC_OP_NO_MEMORY);
        else if (w->op == ZC_GIFT_TAKE)
            give_take(b, w, m);
        else
            give_leases(b, mb, w, &search);
        zc_gift_waiter_free(b, w);
    }
    if (search.looked >= LOOKS_MAX)
        zc_broker_want_dispatch(b, mb);
    mb->waiting--;
    zc_broker_reap(b, mb);
}

/* Fills b->out with the delivery of item. */
static void fill_msg(struct zc_broker *b, const struct zc_item *item, const struct zc_held *h)
{
    struct zc_message *m = h->message;
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("msg");
    bool request_id = h->id_len > 0 && (h->gift_op == ZC_GIFT_RESERVE || h->batch);
    out->id = request_id ? zc_slice(h->id, h->id_len) : item->id;
    out->name = item->name;
    out->from = item->from;
    out->by = item->by;
    out->headers_count = item->headers_count;
    out->headers_bytes = zc_item_headers(item, out->headers);
    out->has = ZC_MSG_HAS_ATTEMPT | ZC_MSG_HAS_AT;
    out->attempt = m->attempt;
    out->at = item->at_ms;
    out->end = h->end;
    if (m->delivery != NULL) {
        out->lease = m->delivery->lease_unix;
        out->delivery = zc_slice(m->delivery->token, ZC_DELIVERY_TOKEN);
    }
    zc_msg_set_payload(out, item->payload);
}

void zc_gift_emit(struct zc_broker *b, struct zc_session *s, struct zc_held *h)
{
    struct zc_message *m = h->message;
    struct zc_item item;
    int err = zc_item_decode(zc_block_slice(m->body), &item);
    ZC_ASSERT(err == 0); /* checked when it was stored and when it was read */
    if (item.request) {
        struct zc_request *q = zc_request_find(&b->requests, item.id, m->mailbox->node.hash);
        if (q != NULL)
            q->worker = s->owner;
    }
    if (m->delivery != NULL && !zc_lease_begin(b, m->delivery, item.id)) {
        zc_broker_kill(b, s, "out of memory: session ended");
        return;
    }
    fill_msg(b, &item, h);
    zc_reply_now(b, s, &b->out);
    if (h->gift_op == ZC_GIFT_TAKE) {
        m->sent_end = s->out_total;
        zc_list_push(&s->unsent, &m->link);
        zc_session_charge_bytes(s, m->body_len);
    } else {
        m->delivery->sent_end = s->out_total;
        zc_message_cool(b, m);
    }
}

void zc_gift_sent(struct zc_broker *b, struct zc_session *s)
{
    while (!zc_list_empty(&s->unsent)) {
        struct zc_message *m = ZC_CONTAINER(s->unsent.next, struct zc_message, link);
        if (m->sent_end > s->sent_total)
            break;
        zc_list_remove(&m->link);
        zc_session_discharge_bytes(s, m->body_len);
        m->taken = false;
        zc_message_free(b, m);
    }
}

/* Messages of a lane whose frame was never made. Leased ones go back with their deliveries. */
static void end_lane(struct zc_broker *b, struct zc_session *s, struct zc_list *lane)
{
    while (!zc_list_empty(lane)) {
        struct zc_held *h = ZC_CONTAINER(lane->next, struct zc_held, link);
        struct zc_message *m = h->message;
        if (m != NULL && m->delivery != NULL)
            m->delivery->held = NULL;
        zc_reply_held_free(s, h);
        if (m != NULL && m->taken)
            zc_settle_revive(b, m);
    }
}

void zc_gift_session_end(struct zc_broker *b, struct zc_session *s)
{
    end_lane(b, s, &s->replies);
    end_lane(b, s, &s->gifts);
    zc_list_remove(&s->stalled);
    while (!zc_list_empty(&s->unsent)) {
        struct zc_message *m = ZC_CONTAINER(s->unsent.next, struct zc_message, link);
        zc_list_remove(&m->link);
        zc_session_discharge_bytes(s, m->body_len);
        zc_settle_revive(b, m);
    }
    zc_lease_session_end(b, s);
    while (!zc_list_empty(&s->waiters))
        zc_gift_waiter_free(b, ZC_CONTAINER(s->waiters.next, struct zc_waiter, in_session));
}
