/* What the log holds, given record by record while it opens, see broker.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/binding.h"
#include "zmqc/broker.h"
#include "zmqc/message.h"
#include "zmqc/seen.h"
#include "zmqc/settle.h"

/* While records are restored, seq is the key under which messages stand in `ids`. */
static struct zc_message *restored(struct zc_broker *b, uint64_t seq)
{
    struct zc_map_node *n = zc_map_first(&b->ids, seq);
    return n != NULL ? ZC_CONTAINER(n, struct zc_message, by_id) : NULL;
}

/* The body when it is all there and may stay, else NULL. False: no memory. */
static bool keep_body(const struct zc_broker *b, struct zc_slice body, size_t body_len,
                      struct zc_block **ret_body)
{
    *ret_body = NULL;
    if (b->journal != NULL && (body.len < body_len || b->hot_bytes > b->limits.hot_bytes))
        return true;
    *ret_body = zc_block_new(body.len);
    if (*ret_body != NULL)
        memcpy((*ret_body)->data, body.data, body.len);
    return *ret_body != NULL;
}

int zc_broker_restore_put(struct zc_broker *b, uint64_t seq, struct zc_slice body, size_t body_len,
                          uint64_t place)
{
    /* A copy takes the place of its record; what was stored of its attempts stays. */
    struct zc_message *old = restored(b, seq);
    uint32_t attempt = old != NULL ? old->attempt : 0;
    struct zc_mono due = old != NULL ? old->due : ZC_NEVER;
    zc_broker_restore_remove(b, seq);
    struct zc_item item;
    const char *code, *text;
    if (zc_item_decode_head(body, body_len, &item) != 0 || item.name.len == 0 ||
        item.name.len > ZC_MSG_STRING_MAX)
        return ZC_EBADMSG;
    uint64_t cap = b->limits.mailboxes_max;
    b->limits.mailboxes_max = UINT64_MAX; /* what was accepted once is not refused now */
    struct zc_mailbox *mb = zc_broker_mailbox(b, item.name, true, &code, &text);
    b->limits.mailboxes_max = cap;
    struct zc_block *copy;
    if (mb == NULL || !keep_body(b, body, body_len, &copy))
        return ZC_ENOMEM;
    struct zc_message *m = zc_message_new(b, mb, seq, copy, &item);
    if (m == NULL || zc_map_insert(&b->ids, &m->by_id, seq) != 0) {
        if (m != NULL)
            zc_message_free(b, m);
        return ZC_ENOMEM;
    }
    m->body_len = (uint32_t)body_len;
    m->deduped = true;
    zc_message_set_scoped(b, m, &item);
    m->place = place;
    if (b->journal != NULL)
        b->journal->own(b->journal->arg, place, &m->place);
    m->attempt = attempt;
    m->due = due;
    if (item.expires_ms > 0) {
        int64_t left = item.expires_ms - b->now.wall.ms;
        m->expires = zc_mono_add_ms(b->now.mono, left > 0 ? left : 0);
    }
    if (old == NULL && item.due_ms > b->now.wall.ms)
        m->due = zc_mono_add_ms(b->now.mono, item.due_ms - b->now.wall.ms);
    zc_message_set_state(b, m, ZC_MESSAGE_REMOVING); /* so that it may cool before it is shown */
    zc_message_cool(b, m);
    return 0;
}

void zc_broker_restore_remove(struct zc_broker *b, uint64_t seq)
{
    struct zc_message *m = restored(b, seq);
    if (m == NULL) {
        zc_binding_restore_remove(b, seq);
        return;
    }
    zc_settle_forget(b, m);
    zc_message_free(b, m);
}

int zc_broker_restore_seen(struct zc_broker *b, uint64_t seq, struct zc_slice body, uint64_t place)
{
    (void)seq;
    return zc_seen_restore(b, body, place);
}

int zc_broker_restore_bind(struct zc_broker *b, uint64_t seq, struct zc_slice body, uint64_t place)
{
    return zc_binding_restore(b, seq, body, place);
}

void zc_broker_restore_state(struct zc_broker *b, uint64_t seq, uint32_t attempt, int64_t due_ms)
{
    struct zc_message *m = restored(b, seq);
    if (m == NULL)
        return;
    m->attempt = attempt;
    m->due =
        due_ms > b->now.wall.ms ? zc_mono_add_ms(b->now.mono, due_ms - b->now.wall.ms) : ZC_NEVER;
}

/* A restored message, with its key beside it for the sort. */
struct found {
    uint64_t seq;
    struct zc_message *message;
};

static int by_seq(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* All restored messages, in the order of their sequence numbers, out of the map. */
static void collect(struct zc_broker *b, struct found *ret_all)
{
    size_t i = 0;
    bool sorted = true;
    for (uint32_t k = 0; k < b->ids.cap; k++) {
        for (struct zc_map_node *node = b->ids.buckets[k]; node != NULL; node = node->next) {
            struct zc_message *m = ZC_CONTAINER(node, struct zc_message, by_id);
            ret_all[i] = (struct found){m->seq, m};
            sorted = sorted && (i == 0 || ret_all[i - 1].seq < m->seq);
            i++;
        }
    }
    for (size_t k = 0; k < i; k++) {
        ret_all[k].message->by_id = (struct zc_map_node){0};
        ret_all[k].message->deduped = false;
    }
    zc_map_done(&b->ids);
    if (!sorted)
        qsort(ret_all, i, sizeof(ret_all[0]), by_seq);
}

int zc_broker_restored(struct zc_broker *b, struct zc_now now, uint64_t seq_max)
{
    b->now = now;
    b->seq_next = seq_max + 1;
    size_t n = b->ids.len;
    struct found *all = malloc((n + 1) * sizeof(all[0]));
    if (all == NULL)
        return ZC_ENOMEM;
    collect(b, all);
    for (size_t i = 0; i < n; i++) {
        zc_message_recall_scoped(b, all[i].message);
        zc_message_show(b, all[i].message);
    }
    free(all);
    zc_seen_tick(b);
    return 0;
}
