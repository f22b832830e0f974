/* What the log holds, given record by record while it opens, see broker.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/binding.h"
#include "zmqc/broker.h"
#include "zmqc/message.h"
#include "zmqc/seen.h"
#include "zmqc/settle.h"

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

/* The mailbox of a record: mostly that of the one before. NULL: no memory. */
static struct zc_mailbox *mailbox(struct zc_broker *b, struct zc_slice name)
{
    struct zc_mailbox *last = b->restored.mailbox;
    const char *code, *text;
    if (last != NULL && zc_slice_eq(name, zc_mailbox_name(last)))
        return last;
    uint64_t cap = b->limits.mailboxes_max;
    b->limits.mailboxes_max = UINT64_MAX; /* what was accepted once is not refused now */
    struct zc_mailbox *mb = zc_broker_mailbox(b, name, true, &code, &text);
    b->limits.mailboxes_max = cap;
    if (mb == NULL)
        return NULL;
    mb->pins++; /* also when the message that made it is removed again */
    b->restored.mailbox = mb;
    if (last != NULL) {
        last->pins--;
        zc_broker_reap(b, last);
    }
    return mb;
}

int zc_broker_restore_put(struct zc_broker *b, uint64_t seq, struct zc_slice body, size_t body_len,
                          uint64_t place)
{
    /* A copy takes the place of its record; what was stored of its attempts stays. */
    struct zc_message *old = zc_restored_find(b, seq);
    uint32_t attempt = old != NULL ? old->attempt : 0;
    struct zc_mono due = old != NULL ? old->due : ZC_NEVER;
    zc_broker_restore_remove(b, seq);
    struct zc_item item;
    if (zc_item_decode_head(body, body_len, &item) != 0 || item.name.len == 0 ||
        item.name.len > ZC_MSG_STRING_MAX)
        return ZC_EBADMSG;
    struct zc_mailbox *mb = mailbox(b, item.name);
    struct zc_block *copy;
    if (mb == NULL || !keep_body(b, body, body_len, &copy))
        return ZC_ENOMEM;
    struct zc_message *m = zc_message_new(b, mb, seq, copy, &item);
    if (m == NULL || zc_restored_add(b, m) != 0) {
        if (m != NULL)
            zc_message_free(b, m);
        return ZC_ENOMEM;
    }
    m->body_len = (uint32_t)body_len;
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
    struct zc_message *m = zc_restored_find(b, seq);
    if (m == NULL) {
        zc_binding_restore_remove(b, seq);
        return;
    }
    zc_restored_drop(b, m);
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
    struct zc_message *m = zc_restored_find(b, seq);
    if (m == NULL)
        return;
    m->attempt = attempt;
    m->due =
        due_ms > b->now.wall.ms ? zc_mono_add_ms(b->now.mono, due_ms - b->now.wall.ms) : ZC_NEVER;
}

int zc_broker_restored(struct zc_broker *b, struct zc_now now, uint64_t seq_max)
{
    struct zc_restored *r = &b->restored;
    b->now = now;
    b->seq_next = seq_max + 1;
    int err = zc_restored_sort(b);
    if (err != 0)
        return err;
    for (size_t i = 0; i < r->len; i++) {
        struct zc_message *m = r->items[i].message;
        if (m == NULL)
            continue;
        zc_message_recall_scoped(b, m);
        zc_message_show(b, m);
    }
    zc_restored_done(b, false);
    zc_seen_tick(b);
    return 0;
}
