/* Making and ending the broker, mailboxes by name, restored records, journal progress. */
#include "zmqc/broker.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/binding.h"
#include "zmqc/gift.h"
#include "zmqc/job.h"
#include "zmqc/lease.h"
#include "zmqc/message.h"
#include "zmqc/reply.h"
#include "zmqc/rest.h"
#include "zmqc/scope.h"
#include "zmqc/seen.h"
#include "zmqc/settle.h"
#include "zmqc/transfer.h"

struct zc_broker *zc_broker_new(const struct zc_broker_limits *limits, const uint8_t seed[32],
                                struct zc_now now)
{
    struct zc_broker *b = calloc(1, sizeof(*b));
    if (b == NULL)
        return NULL;
    b->limits = *limits;
    b->version = "";
    zc_rng_init(&b->rng, seed);
    zc_rng_bytes(&b->rng, b->key, sizeof(b->key));
    zc_rng_bytes(&b->rng, b->key2, sizeof(b->key2));
    zc_rng_bytes(&b->rng, b->requests.key, sizeof(b->requests.key));
    zc_rng_hex(&b->rng, b->epoch, 32);
    /* 53 random bits: no session number of an earlier start comes back. */
    b->serial_next = (zc_rng_u64(&b->rng) >> 11) + 1;
    b->seq_next = 1;
    b->now = now;
    b->started = now.mono;
    struct zc_list *lists[] = {
        &b->jobs,     &b->jobs_dead,   &b->transfers, &b->bindings, &b->seen_all, &b->mailbox_list,
        &b->dispatch, &b->dead,        &b->unstored,  &b->reviving, &b->yielded,  &b->sessions,
        &b->dirty,    &b->dirty_inner, &b->stalled,   &b->lines,    &b->pubs};
    for (size_t i = 0; i < ZC_ARRAY_LEN(lists); i++)
        zc_list_init(lists[i]);
    b->seen_timer.kind = ZC_TIMER_SEEN;
    zc_topics_init(&b->topics, b->key);
    return b;
}

static void free_all_messages(struct zc_broker *b, struct zc_mailbox *mb)
{
    struct zc_message *m;
    while ((m = zc_mailbox_peek(mb)) != NULL)
        zc_message_free(b, m);
    zc_rest_free_all(b, mb);
}

void zc_broker_free(struct zc_broker *b)
{
    if (b == NULL)
        return;
    b->journal = NULL;                   /* nothing is written any more */
    b->limits.hot_messages = UINT64_MAX; /* nor does anything become a row */
    while (!zc_list_empty(&b->sessions))
        zc_broker_detach(b, ZC_CONTAINER(b->sessions.next, struct zc_session, link), b->now);
    zc_job_pub_free_all(b);
    zc_scope_end_all(b);
    zc_job_free_dead(b);
    zc_transfer_free_all(b);
    zc_heap_remove(&b->timers, &b->seen_timer);
    while (!zc_list_empty(&b->unstored))
        zc_message_free(b, ZC_CONTAINER(b->unstored.next, struct zc_message, link));
    while (!zc_list_empty(&b->reviving))
        zc_message_free(b, ZC_CONTAINER(b->reviving.next, struct zc_message, link));
    while (!zc_list_empty(&b->dead))
        zc_message_free(b, ZC_CONTAINER(b->dead.next, struct zc_message, link));
    /* Timers know the delayed, entries the unsettled, mailboxes the queued. */
    for (struct zc_timer *t; (t = zc_heap_min(&b->timers)) != NULL;) {
        zc_heap_remove(&b->timers, t);
        if (t->kind == ZC_TIMER_MESSAGE)
            zc_message_free(b, ZC_CONTAINER(t, struct zc_message, timer));
    }
    while (b->entries_len > 0) {
        b->entries_len--;
        struct zc_entry *e = &b->entries[(b->entries_first + b->entries_len) % b->entries_cap];
        if (e->message != NULL)
            zc_message_free(b, e->message);
        else if (e->setting->owner == ZC_OWNER_SEEN && e->setting->gone)
            zc_seen_settled(b, e->setting, false);
        else if (!e->put)
            zc_binding_settled(b, e->setting, false, false); /* an entry before may know it */
    }
    for (struct zc_list *l = b->mailbox_list.next; l != &b->mailbox_list;) {
        struct zc_mailbox *mb = ZC_CONTAINER(l, struct zc_mailbox, link);
        l = l->next;
        mb->waiting++;
        free_all_messages(b, mb);
        mb->waiting--;
        zc_broker_reap(b, mb);
    }
    zc_restored_done(b, true);
    while (zc_broker_line(b) != NULL)
        continue;
    zc_binding_free_all(b);
    zc_seen_free_all(b);
    zc_topics_done(&b->topics, &b->timers);
    zc_map_done(&b->mailboxes);
    zc_map_done(&b->ids);
    zc_row_ids_done(&b->row_ids);
    zc_map_done(&b->tokens);
    zc_map_done(&b->held_ids);
    zc_map_done(&b->requests.by_id);
    zc_heap_done(&b->timers);
    zc_buf_done(&b->scratch);
    zc_fan_done(&b->fan);
    free(b->matches);
    free(b->entries);
    free(b);
}

struct zc_mailbox *zc_broker_mailbox(struct zc_broker *b, struct zc_slice name, bool create,
                                     const char **ret_code, const char **ret_text)
{
    if (b->recent != NULL && zc_slice_eq(name, zc_mailbox_name(b->recent)))
        return b->recent;
    uint64_t hash = zc_map_hash(b->key, name);
    struct zc_map_node *n = zc_map_first(&b->mailboxes, hash);
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_mailbox *mb = ZC_CONTAINER(n, struct zc_mailbox, node);
        if (zc_slice_eq(name, zc_mailbox_name(mb)))
            return b->recent = mb;
    }
    if (!create)
        return NULL;
    if (b->mailboxes.len >= b->limits.mailboxes_max) {
        *ret_code = "full";
        *ret_text = "too many mailboxes: --mailboxes-max of the hub is reached";
        return NULL;
    }
    struct zc_mailbox *mb = zc_mailbox_new(name);
    if (mb == NULL || zc_map_insert(&b->mailboxes, &mb->node, hash) != 0) {
        zc_mailbox_free(mb);
        *ret_code = "unavailable";
        *ret_text = "the hub is out of memory: try again later";
        return NULL;
    }
    zc_list_push(&b->mailbox_list, &mb->link);
    return mb;
}

void zc_broker_reap(struct zc_broker *b, struct zc_mailbox *mb)
{
    if (!zc_mailbox_idle(mb))
        return;
    if (b->recent == mb)
        b->recent = NULL;
    zc_map_remove(&b->mailboxes, &mb->node);
    zc_mailbox_free(mb);
}

void zc_broker_want_dispatch(struct zc_broker *b, struct zc_mailbox *mb)
{
    if (mb->waiting > 0 && !zc_list_linked(&mb->dispatch))
        zc_list_push(&b->dispatch, &mb->dispatch);
}

static void dispatch_all(struct zc_broker *b)
{
    struct zc_list turn; /* one that is long comes back for the next one */
    zc_list_take_all(&b->dispatch, &turn);
    while (!zc_list_empty(&turn)) {
        struct zc_list *l = turn.next;
        zc_list_remove(l);
        zc_gift_dispatch(b, ZC_CONTAINER(l, struct zc_mailbox, dispatch));
    }
}

void zc_broker_written(struct zc_broker *b, struct zc_now now, uint64_t ticket)
{
    b->now = now;
    b->written = ticket;
    zc_reply_release_all(b);
}

void zc_broker_synced(struct zc_broker *b, struct zc_now now, uint64_t ticket)
{
    b->now = now;
    b->synced = ticket;
    if (b->written < ticket)
        b->written = ticket;
    zc_settle_synced(b, ticket);
    zc_job_pub_synced(b);
    zc_reply_release_all(b);
    dispatch_all(b);
}

void zc_broker_failed(struct zc_broker *b, struct zc_now now, uint64_t ticket)
{
    b->now = now;
    /* What is below may still be on its way. */
    if (b->written > ticket)
        b->written = ticket;
    zc_reply_fail(b, ticket);
    zc_job_failed(b, ticket);
    zc_settle_failed(b, ticket);
    zc_reply_release_all(b);
    dispatch_all(b);
}

void zc_broker_store_again(struct zc_broker *b)
{
    zc_settle_store_again(b);
}

bool zc_broker_settled(const struct zc_broker *b)
{
    return b->entries_len == 0 && b->orphans == 0 && zc_list_empty(&b->unstored) &&
           zc_list_empty(&b->pubs);
}

void zc_broker_read_done(struct zc_broker *b, struct zc_now now, void *cookie,
                         struct zc_block *body)
{
    b->now = now;
    if (zc_job_read_done(b, cookie, body)) {
        zc_job_run(b);
    } else {
        struct zc_message *m = cookie;
        zc_settle_read_done(b, m, body);
    }
    zc_reply_release_all(b);
    dispatch_all(b);
}

_Static_assert(offsetof(struct zc_message, owner) == offsetof(struct zc_message, place) + 8 &&
                   offsetof(struct zc_setting, owner) == offsetof(struct zc_setting, place) + 8,
               "zc_setting_owner finds the owner behind the place");

void zc_broker_move(struct zc_broker *b, struct zc_now now, struct zc_slice body, uint64_t *owner)
{
    b->now = now;
    switch (zc_setting_owner(owner)) {
    case ZC_OWNER_MESSAGE:
        zc_message_move(b, ZC_CONTAINER(owner, struct zc_message, place), body);
        break;
    case ZC_OWNER_ROW:
        zc_rest_move(b, ZC_CONTAINER(owner, struct zc_row, place), body);
        break;
    case ZC_OWNER_BINDING:
        zc_binding_move(b, ZC_CONTAINER(owner, struct zc_setting, place));
        break;
    case ZC_OWNER_SEEN:
        zc_seen_move(b, ZC_CONTAINER(owner, struct zc_setting, place));
        break;
    }
    dispatch_all(b);
}

static void timer_due(struct zc_broker *b, struct zc_timer *t)
{
    switch (t->kind) {
    case ZC_TIMER_SESSION:
        zc_broker_pulse(b, ZC_CONTAINER(t, struct zc_session, timer));
        break;
    case ZC_TIMER_WAITER:
        zc_gift_waiter_timeout(b, ZC_CONTAINER(t, struct zc_waiter, timer));
        break;
    case ZC_TIMER_LEASE:
        zc_lease_return(b, ZC_CONTAINER(t, struct zc_delivery, timer), 0);
        break;
    case ZC_TIMER_MESSAGE:
        zc_message_tick(b, ZC_CONTAINER(t, struct zc_message, timer));
        break;
    case ZC_TIMER_REQUEST:
        zc_request_free(&b->requests, &b->timers, ZC_CONTAINER(t, struct zc_request, timer));
        break;
    case ZC_TIMER_SEEN:
        zc_seen_tick(b);
        break;
    case ZC_TIMER_TOPIC:
        zc_topics_remove(&b->topics, &b->timers, ZC_CONTAINER(t, struct zc_topic, timer));
        break;
    default:
        ZC_ASSERT(false);
    }
}

void zc_broker_tick(struct zc_broker *b, struct zc_now now)
{
    b->now = now;
    struct zc_timer *t;
    struct zc_list turn;
    zc_list_init(&turn);
    while ((t = zc_heap_min(&b->timers)) != NULL && t->deadline.ns <= now.mono.ns) {
        zc_heap_remove(&b->timers, t);
        timer_due(b, t);
    }
    zc_list_take_all(&b->yielded, &turn);
    while (!zc_list_empty(&turn)) {
        struct zc_list *l = turn.next;
        zc_list_remove(l);
        zc_broker_resume(b, ZC_CONTAINER(l, struct zc_session, yielded));
    }
    zc_job_run(b);
    dispatch_all(b);
}

struct zc_mono zc_broker_deadline(const struct zc_broker *b)
{
    const struct zc_timer *t = zc_heap_min(&b->timers);
    bool jobs = !zc_list_empty(&b->jobs) && !b->input_blocked;
    if (!zc_list_empty(&b->yielded) || !zc_list_empty(&b->dispatch) || jobs)
        return b->now.mono;
    return t != NULL ? t->deadline : ZC_NEVER;
}
