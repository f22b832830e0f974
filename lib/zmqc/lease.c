/* Leases and what ends them, see lease.h and gift.h. */
#include "zmqc/lease.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/gift.h"
#include "zmqc/message.h"
#include "zmqc/reply.h"
#include "zmqc/settle.h"

int64_t zc_gift_lease_s(const struct zc_broker *b, int64_t asked_s, bool ready)
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

static uint64_t message_hash(const struct zc_broker *b, uint64_t serial, struct zc_slice id)
{
    uint8_t text[8 + 32 + ZC_MSG_STRING_MAX];
    memcpy(text, &serial, 8);
    if (id.len > sizeof(text) - 8)
        id.len = sizeof(text) - 8;
    memcpy(text + 8, id.data, id.len);
    return zc_map_hash(b->key2, zc_slice(text, 8 + id.len));
}

bool zc_lease_new(struct zc_broker *b, struct zc_session *s, struct zc_message *m, int64_t lease_s)
{
    struct zc_delivery *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return false;
    zc_rng_hex(&b->rng, d->token, ZC_DELIVERY_TOKEN);
    d->timer.kind = ZC_TIMER_LEASE;
    d->message = m;
    d->session = s;
    d->lease_unix = b->now.wall.ms / 1000 + lease_s;
    if (zc_map_insert(&b->tokens, &d->by_token,
                      token_hash(b, zc_slice(d->token, ZC_DELIVERY_TOKEN))) != 0) {
        free(d);
        return false;
    }
    if (zc_heap_set(&b->timers, &d->timer, zc_mono_add_ms(b->now.mono, lease_s * 1000)) != 0) {
        zc_map_remove(&b->tokens, &d->by_token);
        free(d);
        return false;
    }
    zc_list_push(&s->deliveries, &d->in_session);
    s->deliveries_count++;
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
    d->session->deliveries_count--;
    d->message->delivery = NULL;
    if (d->held != NULL)
        zc_reply_held_free(d->session, d->held);
    free(d->request_id);
    free(d);
}

void zc_lease_key(struct zc_broker *b, struct zc_delivery *d, struct zc_slice message_id)
{
    if (d->message->request && d->request_id == NULL &&
        (d->request_id = malloc(message_id.len)) != NULL) {
        memcpy(d->request_id, message_id.data, message_id.len);
        d->request_id_len = (uint16_t)message_id.len;
    }
    if (!d->has_message_key)
        d->has_message_key = zc_map_insert(&b->held_ids, &d->by_message,
                                           message_hash(b, d->session->serial, message_id)) == 0;
}

uint64_t zc_lease_store_state(struct zc_broker *b, struct zc_message *m, int64_t due_ms)
{
    if (b->journal == NULL || m->place == 0)
        return 0;
    uint8_t body[12];
    for (int i = 0; i < 4; i++)
        body[i] = (uint8_t)(m->attempt >> (8 * i));
    for (int i = 0; i < 8; i++)
        body[4 + i] = (uint8_t)((uint64_t)due_ms >> (8 * i));
    int64_t ticket = b->journal->append(b->journal->arg, ZC_JOURNAL_STATE, m->seq,
                                        zc_slice(body, sizeof(body)), false, NULL);
    return ticket > 0 ? (uint64_t)ticket : 0; /* a full disk only costs the count */
}

struct zc_delivery *zc_gift_delivery(struct zc_broker *b, const struct zc_session *s,
                                     struct zc_slice token)
{
    if (token.len != ZC_DELIVERY_TOKEN)
        return NULL;
    struct zc_map_node *n = zc_map_first(&b->tokens, token_hash(b, token));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_delivery *d = ZC_CONTAINER(n, struct zc_delivery, by_token);
        if (d->session == s && memcmp(d->token, token.data, ZC_DELIVERY_TOKEN) == 0)
            return d;
    }
    return NULL;
}

struct zc_delivery *zc_gift_by_message(struct zc_broker *b, const struct zc_session *s,
                                       struct zc_slice message_id, struct zc_slice name)
{
    struct zc_map_node *n = zc_map_first(&b->held_ids, message_hash(b, s->serial, message_id));
    struct zc_delivery *found = NULL;
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_delivery *d = ZC_CONTAINER(n, struct zc_delivery, by_message);
        if (d->session != s)
            continue;
        if (zc_slice_eq(name, zc_mailbox_name(d->message->mailbox)))
            return d;
        found = d;
    }
    return found;
}

int64_t zc_gift_ack(struct zc_broker *b, struct zc_delivery *const *deliveries, uint32_t n)
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

void zc_gift_return(struct zc_broker *b, struct zc_delivery *d, int64_t delay_ms)
{
    struct zc_message *m = d->message;
    zc_lease_free(b, d);
    m->mailbox->redelivered++;
    b->count.redelivered++;
    if (delay_ms > 0) {
        m->due = zc_mono_add_ms(b->now.mono, delay_ms);
        zc_lease_store_state(b, m, b->now.wall.ms + delay_ms);
    }
    zc_message_show(b, m);
}

int64_t zc_gift_extend(struct zc_broker *b, struct zc_delivery *d, int64_t lease_s)
{
    int64_t s = zc_gift_lease_s(b, lease_s, false);
    if (zc_heap_set(&b->timers, &d->timer, zc_mono_add_ms(b->now.mono, s * 1000)) == 0)
        d->lease_unix = b->now.wall.ms / 1000 + s;
    return d->lease_unix;
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
        zc_settle_revive(b, m);
    }
    while (!zc_list_empty(&s->deliveries))
        zc_gift_return(b, ZC_CONTAINER(s->deliveries.prev, struct zc_delivery, in_session), 0);
    while (!zc_list_empty(&s->waiters))
        zc_gift_waiter_free(b, ZC_CONTAINER(s->waiters.next, struct zc_waiter, in_session));
}
