/* Life of one message inside the broker, see message.h. */
#include "zmqc/message.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "zmqc/filter.h"
#include "zmqc/gift.h"
#include "zmqc/rest.h"
#include "zmqc/scope.h"
#include "zmqc/seen.h"
#include "zmqc/settle.h"
#include "zmqc/stored.h"

/* Adds m to, or takes it from, the sums over all mailboxes. */
static void sum(struct zc_broker *b, const struct zc_message *m, int sign)
{
    uint64_t unit = (uint64_t)(int64_t)sign;
    if (m->state == ZC_MESSAGE_QUEUED)
        b->count.queued += unit;
    else if (m->state == ZC_MESSAGE_DELAYED)
        b->count.delayed += unit;
    else if (m->state == ZC_MESSAGE_LEASED)
        b->count.leased += unit;
    else
        return;
    b->count.bytes += unit * m->payload_len;
}

void zc_message_enter(struct zc_broker *b, struct zc_message *m)
{
    sum(b, m, -1);
    zc_mailbox_enter(m->mailbox, m);
    sum(b, m, 1);
}

void zc_message_take_out(struct zc_broker *b, struct zc_message *m, enum zc_message_state state)
{
    sum(b, m, -1);
    zc_mailbox_take_out(m->mailbox, m, state);
    sum(b, m, 1);
}

void zc_message_set_state(struct zc_broker *b, struct zc_message *m, enum zc_message_state state)
{
    sum(b, m, -1);
    zc_mailbox_set_state(m->mailbox, m, state);
    sum(b, m, 1);
}

struct zc_message *zc_message_new(struct zc_broker *b, struct zc_mailbox *mb, uint64_t seq,
                                  struct zc_block *body, const struct zc_item *item)
{
    struct zc_message *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        zc_block_unref(body);
        return NULL;
    }
    zc_list_init(&m->link);
    m->timer.kind = ZC_TIMER_MESSAGE;
    m->seq = seq;
    m->mailbox = mb;
    m->body = body;
    m->body_len = body != NULL ? body->len : 0;
    m->payload_len = (uint32_t)item->payload.len;
    m->request = item->request;
    m->at_ms = item->at_ms;
    m->from = zc_filter_hash(b->key, item->from);
    m->due = m->expires = ZC_NEVER;
    m->state = ZC_MESSAGE_PENDING;
    b->hot_bytes += m->body_len;
    b->hot_count += body != NULL;
    zc_mailbox_count(mb, m, 1);
    return m;
}

static void drop_body(struct zc_broker *b, struct zc_message *m)
{
    if (m->body == NULL)
        return;
    b->hot_bytes -= m->body->len;
    b->hot_count--;
    zc_block_unref(m->body);
    m->body = NULL;
}

void zc_message_set_body(struct zc_broker *b, struct zc_message *m, struct zc_block *body)
{
    drop_body(b, m);
    m->stale = m->reading;
    m->body = body;
    m->body_len = body->len;
    b->hot_bytes += body->len;
    b->hot_count++;
}

void zc_message_free(struct zc_broker *b, struct zc_message *m)
{
    struct zc_mailbox *mb = m->mailbox;
    if (mb != NULL) {
        zc_message_forget_id(b, m);
        zc_heap_remove(&b->timers, &m->timer);
        if (m->state == ZC_MESSAGE_QUEUED)
            zc_message_take_out(b, m, ZC_MESSAGE_REMOVING);
        else
            zc_message_set_state(b, m, ZC_MESSAGE_REMOVING);
        zc_list_remove(&m->link);
        zc_mailbox_count(mb, m, -1);
        m->mailbox = NULL;
        zc_broker_reap(b, mb);
    }
    if (m->reading && b->journal != NULL) {
        if (!m->dead)
            zc_list_push(&b->dead, &m->link);
        m->dead = true;
        return;
    }
    zc_list_remove(&m->link);
    drop_body(b, m);
    free(m);
}

/* Of ids that mean the same in every run: the hash for seen.h, under a secret for the table. */
static void scoped_key(const struct zc_broker *b, uint64_t hash, uint64_t ret_key[2])
{
    uint8_t text[8];
    zc_le_put(text, hash, 8);
    ret_key[0] = zc_map_hash(b->key2, zc_slice(text, sizeof(text)));
    ret_key[1] = hash;
}

void zc_message_set_scoped(struct zc_broker *b, struct zc_message *m, const struct zc_item *item)
{
    m->scoped = !item->request && zc_scope_owns(item->id);
    if (!m->scoped)
        return;
    m->id_tag = zc_seen_hash(zc_mailbox_name(m->mailbox), item->id);
    int64_t left = item->at_ms + ZC_SEEN_MS - b->now.wall.ms;
    left = left < 0 ? 0 : left > ZC_SEEN_MS ? ZC_SEEN_MS : left;
    int64_t run = zc_mono_diff_ms(b->started, b->now.mono);
    m->seen_s = left > 0 ? (uint32_t)((run + left + 999) / 1000) : 0;
}

void zc_message_recall_scoped(struct zc_broker *b, struct zc_message *m)
{
    uint64_t key[2];
    if (!m->scoped || m->deduped)
        return;
    scoped_key(b, m->id_tag, key);
    if (!zc_rest_known(b, key))
        (void)!zc_message_remember(b, m, key); /* without memory a duplicate is possible */
}

void zc_message_key(struct zc_broker *b, const struct zc_mailbox *mb, struct zc_slice message_id,
                    uint64_t ret_key[2])
{
    uint8_t text[8 + ZC_MSG_MESSAGE_ID_MAX];
    ZC_ASSERT(message_id.len <= sizeof(text) - 8);
    if (zc_scope_owns(message_id)) {
        scoped_key(b, zc_seen_hash(zc_mailbox_name(mb), message_id), ret_key);
        return;
    }
    memcpy(text, &mb->node.hash, 8);
    memcpy(text + 8, message_id.data, message_id.len);
    struct zc_slice all = zc_slice(text, 8 + message_id.len);
    zc_map_hash_wide(b->key, all, ret_key);
}

struct zc_message *zc_message_by_key(const struct zc_broker *b, const uint64_t key[2])
{
    struct zc_map_node *n = zc_map_first(&b->ids, key[0]);
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_message *m = ZC_CONTAINER(n, struct zc_message, by_id);
        if ((uint16_t)m->id_tag == (uint16_t)key[1]) /* as much as a row keeps */
            return m;
    }
    return NULL;
}

int zc_message_remember(struct zc_broker *b, struct zc_message *m, const uint64_t key[2])
{
    int err = zc_map_insert(&b->ids, &m->by_id, key[0]);
    if (err != 0)
        return err;
    m->id_tag = key[1];
    m->deduped = true;
    return 0;
}

void zc_message_recall_id(struct zc_broker *b, struct zc_message *m)
{
    struct zc_item item;
    uint64_t key[2];
    if (m->deduped || m->body == NULL || zc_item_decode(zc_block_slice(m->body), &item) != 0 ||
        item.id.len > ZC_MSG_MESSAGE_ID_MAX)
        return;
    zc_message_key(b, m->mailbox, item.id, key);
    if (m->scoped)
        m->id_tag = key[1];
    if (!zc_rest_known(b, key))
        (void)!zc_message_remember(b, m, key); /* without memory a duplicate is possible */
}

void zc_message_forget_id(struct zc_broker *b, struct zc_message *m)
{
    if (m->deduped)
        zc_map_remove(&b->ids, &m->by_id);
    m->deduped = false;
}

void zc_message_cool(struct zc_broker *b, struct zc_message *m)
{
    if (b->journal != NULL && m->place != 0 && m->state != ZC_MESSAGE_PENDING &&
        (b->hot_bytes > b->limits.hot_bytes || b->hot_count > b->limits.hot_messages))
        drop_body(b, m);
}

bool zc_message_want_body(struct zc_broker *b, struct zc_message *m)
{
    if (m->body != NULL || b->journal == NULL)
        return m->body != NULL;
    if (m->reading)
        return true;
    m->reading =
        b->journal != NULL && b->journal->read(b->journal->arg, m->place, m->body_len, m) == 0;
    return m->reading;
}

/* Arms the timer for the next thing that time does to m. */
static void arm(struct zc_broker *b, struct zc_message *m)
{
    struct zc_mono at = m->expires;
    if (m->state == ZC_MESSAGE_DELAYED)
        at = zc_mono_min(at, m->due);
    if (at.ns == ZC_NEVER.ns)
        zc_heap_remove(&b->timers, &m->timer);
    else if (zc_heap_set(&b->timers, &m->timer, at) != 0)
        zc_broker_log(b, 3, NULL, "no memory for a timer: a ttl or delay is late");
}

void zc_message_show(struct zc_broker *b, struct zc_message *m)
{
    if (m->expires.ns <= b->now.mono.ns) {
        zc_message_expire(b, m);
        return;
    }
    if (b->journal != NULL && m->place == 0 && m->body != NULL) {
        /* Memory alone has it: it is shown once it is stored again. */
        zc_message_set_state(b, m, ZC_MESSAGE_PENDING);
        m->revived = true;
        if (zc_message_store(b, m, true) <= 0)
            zc_list_push(&b->unstored, &m->link);
        return;
    }
    if (m->due.ns != ZC_NEVER.ns && m->due.ns > b->now.mono.ns) {
        zc_message_set_state(b, m, ZC_MESSAGE_DELAYED);
    } else {
        m->due = ZC_NEVER;
        zc_message_enter(b, m);
        zc_broker_want_dispatch(b, m->mailbox);
    }
    if (m->due.ns != ZC_NEVER.ns || m->expires.ns != ZC_NEVER.ns)
        arm(b, m);
    zc_rest(b, m);
}

void zc_message_tick(struct zc_broker *b, struct zc_message *m)
{
    if (m->state != ZC_MESSAGE_QUEUED && m->state != ZC_MESSAGE_DELAYED)
        return; /* a lease decides when it ends */
    if (m->expires.ns <= b->now.mono.ns)
        zc_message_expire(b, m);
    else if (m->state == ZC_MESSAGE_DELAYED && m->due.ns <= b->now.mono.ns)
        zc_message_show(b, m);
    else
        arm(b, m);
}

int64_t zc_message_remove(struct zc_broker *b, struct zc_message *const *messages, uint32_t n,
                          bool sync_wanted)
{
    uint8_t seqs[8 * ZC_MSG_DELIVERIES_MAX];
    ZC_ASSERT(n > 0 && n <= ZC_MSG_DELIVERIES_MAX);
    int64_t ticket = 0;
    if (b->journal != NULL) {
        int err = zc_settle_reserve(b, 2 * n);
        if (err != 0)
            return err;
        for (uint32_t i = 0; i < n; i++) {
            zc_le_put(seqs + 8 * (size_t)i, messages[i]->seq, 8);
            if (messages[i]->scoped)
                zc_seen_add(b, messages[i]);
        }
        ticket = b->journal->append(b->journal->arg, ZC_JOURNAL_REMOVE, 0,
                                    zc_slice(seqs, 8 * (size_t)n), sync_wanted, NULL);
        if (ticket < 0)
            return ticket;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct zc_message *m = messages[i];
        if (b->journal == NULL && m->scoped)
            zc_seen_add(b, m);
        zc_message_forget_id(b, m);
        zc_heap_remove(&b->timers, &m->timer);
        m->settled = b->journal == NULL;
        if (m->state == ZC_MESSAGE_QUEUED)
            zc_message_take_out(b, m, ZC_MESSAGE_REMOVING);
        else
            zc_message_set_state(b, m, ZC_MESSAGE_REMOVING);
        if (b->journal != NULL)
            zc_settle_push(b, (uint64_t)ticket, m, false);
    }
    return ticket;
}

static int64_t append_state(struct zc_broker *b, const struct zc_message *m, int64_t due_ms)
{
    uint8_t body[ZC_STORED_STATE_LEN];
    struct zc_stored_state state = {m->attempt, due_ms};
    return b->journal->append(b->journal->arg, ZC_JOURNAL_STATE, m->seq,
                              zc_stored_state_encode(&state, body), false, NULL);
}

uint64_t zc_message_store_state(struct zc_broker *b, struct zc_message *m, int64_t due_ms)
{
    if (b->journal == NULL || m->place == 0)
        return 0;
    int64_t ticket = append_state(b, m, due_ms);
    return ticket > 0 ? (uint64_t)ticket : 0;
}

void zc_message_move(struct zc_broker *b, struct zc_message *m, struct zc_slice body)
{
    bool stays = m->state == ZC_MESSAGE_QUEUED || m->state == ZC_MESSAGE_DELAYED ||
                 m->state == ZC_MESSAGE_LEASED;
    if (body.data == NULL && m->body != NULL)
        body = zc_block_slice(m->body);
    if (!stays)
        return;
    if (body.data == NULL) {
        if (!m->reading) /* else the read finds out */
            zc_gift_damaged(b, m);
        return;
    }
    if (b->journal->move(b->journal->arg, ZC_JOURNAL_PUT, m->seq, body) <= 0)
        return;
    int64_t due_ms = 0;
    if (m->due.ns != ZC_NEVER.ns && m->due.ns > b->now.mono.ns)
        due_ms = b->now.wall.ms + (m->due.ns - b->now.mono.ns) / ZC_NS_PER_MS;
    /* A delay that is over, but stands in the body, does no harm: it is over then as well. */
    if (m->attempt > 0 || due_ms != 0)
        append_state(b, m, due_ms);
}

int64_t zc_message_store(struct zc_broker *b, struct zc_message *m, bool again)
{
    if (b->journal == NULL)
        return 0;
    int err = zc_settle_reserve(b, 1);
    if (err != 0)
        return err;
    int64_t ticket = b->journal->append(b->journal->arg, again ? ZC_JOURNAL_RETURN : ZC_JOURNAL_PUT,
                                        m->seq, zc_block_slice(m->body), true, &m->place);
    if (ticket <= 0)
        return ticket;
    zc_settle_push(b, (uint64_t)ticket, m, true);
    if (again && m->attempt > 0)
        append_state(b, m, 0);
    return ticket;
}

void zc_message_discard(struct zc_broker *b, struct zc_message *m)
{
    if (m->scoped && (b->journal == NULL || zc_settle_reserve(b, 1) == 0))
        zc_seen_add(b, m);
    if (b->journal != NULL && m->place != 0) {
        uint8_t seq[8];
        zc_le_put(seq, m->seq, 8);
        /* Nobody waits for it: a record that does not reach the disk is dropped again when the log
         * opens. */
        (void)b->journal->append(b->journal->arg, ZC_JOURNAL_REMOVE, 0, zc_slice(seq, sizeof(seq)),
                                 false, NULL);
        m->settled = true;
        zc_settle_forget(b, m);
    }
    zc_message_free(b, m);
}

void zc_message_expire(struct zc_broker *b, struct zc_message *m)
{
    b->count.expired++;
    b->count.dropped++;
    m->mailbox->dropped++;
    zc_message_discard(b, m);
}
