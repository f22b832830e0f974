/* Leases and what ends them, see lease.h. */
#include "zmqc/lease.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "zmqc/job.h"
#include "zmqc/message.h"
#include "zmqc/reply.h"
#include "zmqc/scope.h"

int64_t zc_lease_seconds(const struct zc_broker *b, int64_t asked_s, bool ready)
{
    if (asked_s > ZC_BROKER_LEASE_MAX_S)
        return ZC_BROKER_LEASE_MAX_S;
    if (asked_s > 0)
        return asked_s;
    /* A worker that answers with rep may be silent for six heartbeats. */
    int64_t six = ready ? b->limits.heartbeat_ms / 1000 * 6 : 0;
    if (six > ZC_BROKER_LEASE_MAX_S)
        return ZC_BROKER_LEASE_MAX_S;
    return six > ZC_BROKER_LEASE_DEFAULT_S ? six : ZC_BROKER_LEASE_DEFAULT_S;
}

static uint64_t token_hash(const struct zc_broker *b, struct zc_slice token)
{
    return zc_map_hash(b->key, token);
}

static uint64_t message_hash(const struct zc_broker *b, uint64_t owner, struct zc_slice id)
{
    uint8_t text[8 + ZC_MSG_MESSAGE_ID_MAX];
    memcpy(text, &owner, 8);
    if (id.len > sizeof(text) - 8)
        id.len = sizeof(text) - 8;
    memcpy(text + 8, id.data, id.len);
    return zc_map_hash(b->key2, zc_slice(text, 8 + id.len));
}

bool zc_lease_new(struct zc_broker *b, struct zc_session *s, struct zc_message *m, int64_t lease_s)
{
    struct zc_delivery *d = zc_alloc_zeroed(sizeof(*d));
    if (d == NULL)
        return false;
    zc_rng_hex(&b->rng, d->token, ZC_DELIVERY_TOKEN);
    d->timer.kind = ZC_TIMER_LEASE;
    d->message = m;
    d->session = s;
    d->scope = s->scope;
    d->owner = s->owner;
    d->lease_s = lease_s;
    if (zc_map_insert(&b->tokens, &d->by_token,
                      token_hash(b, zc_slice(d->token, ZC_DELIVERY_TOKEN))) != 0) {
        free(d);
        return false;
    }
    zc_list_push(&s->deliveries, &d->in_session);
    s->deliveries_count++;
    if (s->scope != NULL)
        s->scope->held++;
    zc_message_take_out(b, m, ZC_MESSAGE_LEASED);
    m->delivery = d;
    return true;
}

void zc_lease_free(struct zc_broker *b, struct zc_delivery *d)
{
    zc_map_remove(&b->tokens, &d->by_token);
    if (d->has_message_key)
        zc_map_remove(&b->held_ids, &d->by_message);
    zc_heap_remove(&b->timers, &d->timer);
    zc_list_remove(&d->in_session);
    if (d->session != NULL)
        d->session->deliveries_count--;
    d->message->delivery = NULL;
    if (d->held != NULL)
        zc_reply_held_free(d->session, d->held);
    if (d->scope != NULL) {
        d->scope->held--;
        zc_scope_drop(b, d->scope);
    }
    free(d->request_id);
    free(d);
}

bool zc_lease_begin(struct zc_broker *b, struct zc_delivery *d, struct zc_slice message_id)
{
    d->held = NULL;
    if (d->message->request && (d->request_id = malloc(message_id.len)) != NULL) {
        memcpy(d->request_id, message_id.data, message_id.len);
        d->request_id_len = (uint16_t)message_id.len;
    }
    d->has_message_key =
        zc_map_insert(&b->held_ids, &d->by_message, message_hash(b, d->owner, message_id)) == 0;
    d->lease_unix = b->now.wall.ms / 1000 + d->lease_s;
    return d->has_message_key &&
           zc_heap_set(&b->timers, &d->timer, zc_mono_add_ms(b->now.mono, d->lease_s * 1000)) == 0;
}

struct zc_delivery *zc_lease_find(struct zc_broker *b, const struct zc_session *s,
                                  struct zc_slice token)
{
    if (token.len != ZC_DELIVERY_TOKEN)
        return NULL;
    struct zc_map_node *n = zc_map_first(&b->tokens, token_hash(b, token));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_delivery *d = ZC_CONTAINER(n, struct zc_delivery, by_token);
        if ((d->session == s || d->owner == s->owner) &&
            memcmp(d->token, token.data, ZC_DELIVERY_TOKEN) == 0)
            return d;
    }
    return NULL;
}

static struct zc_delivery *by_message(struct zc_broker *b, uint64_t owner,
                                      struct zc_slice message_id, struct zc_slice name)
{
    struct zc_map_node *n = zc_map_first(&b->held_ids, message_hash(b, owner, message_id));
    struct zc_delivery *found = NULL;
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_delivery *d = ZC_CONTAINER(n, struct zc_delivery, by_message);
        if (d->owner != owner)
            continue;
        if (zc_slice_eq(name, zc_mailbox_name(d->message->mailbox)))
            return d;
        found = d;
    }
    return found;
}

struct zc_delivery *zc_lease_by_message(struct zc_broker *b, const struct zc_session *s,
                                        struct zc_slice message_id, struct zc_slice name)
{
    struct zc_delivery *d = by_message(b, s->owner, message_id, name);
    if (d == NULL && s->owner != s->serial) /* given before it had a scope */
        d = by_message(b, s->serial, message_id, name);
    return d;
}

void zc_lease_session_end(struct zc_broker *b, struct zc_session *s)
{
    while (!zc_list_empty(&s->deliveries)) {
        struct zc_delivery *d = ZC_CONTAINER(s->deliveries.prev, struct zc_delivery, in_session);
        bool received = d->sent_end != 0 && d->sent_end <= s->sent_total;
        if (d->scope == NULL || !received) {
            zc_lease_return(b, d, 0);
            continue;
        }
        zc_list_remove(&d->in_session);
        zc_list_push_front(&d->scope->deliveries, &d->in_session);
        s->deliveries_count--;
        d->session = NULL;
    }
}

int64_t zc_lease_ack(struct zc_broker *b, struct zc_delivery *const *deliveries, uint32_t n)
{
    struct zc_message *messages[ZC_MSG_DELIVERIES_MAX];
    ZC_ASSERT(n > 0 && n <= ZC_MSG_DELIVERIES_MAX);
    for (uint32_t i = 0; i < n; i++)
        messages[i] = deliveries[i]->message;
    int64_t ticket = zc_message_remove(b, messages, n, true);
    if (ticket < 0)
        return ticket;
    for (uint32_t i = 0; i < n; i++)
        zc_lease_free(b, deliveries[i]);
    b->count.acks += n;
    if (b->journal == NULL) {
        for (uint32_t i = 0; i < n; i++)
            zc_message_free(b, messages[i]);
    }
    return ticket;
}

void zc_lease_return(struct zc_broker *b, struct zc_delivery *d, int64_t delay_ms)
{
    struct zc_message *m = d->message;
    zc_lease_free(b, d);
    m->mailbox->redelivered++;
    b->count.redelivered++;
    if (delay_ms > 0) {
        m->due = zc_mono_add_ms(b->now.mono, delay_ms);
        zc_message_store_state(b, m, b->now.wall.ms + delay_ms);
    }
    zc_job_move_more(m);
    zc_message_show(b, m);
}

int64_t zc_lease_extend(struct zc_broker *b, struct zc_delivery *d, int64_t lease_s)
{
    int64_t s = zc_lease_seconds(b, lease_s, false);
    if (zc_heap_set(&b->timers, &d->timer, zc_mono_add_ms(b->now.mono, s * 1000)) == 0)
        d->lease_unix = b->now.wall.ms / 1000 + s;
    return d->lease_unix;
}
