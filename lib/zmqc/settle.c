/* Journal entries on their way to disk, see settle.h. */
#include "zmqc/settle.h"

#include <stddef.h>
#include <stdlib.h>

#include "zmqc/binding.h"
#include "zmqc/gift.h"
#include "zmqc/job.h"
#include "zmqc/message.h"
#include "zmqc/reply.h"
#include "zmqc/rest.h"
#include "zmqc/seen.h"
#include "zmqc/transfer.h"

int zc_settle_reserve(struct zc_broker *b, uint32_t n)
{
    if (b->entries_cap - b->entries_len >= n)
        return 0;
    uint32_t cap = b->entries_cap == 0 ? 64 : b->entries_cap;
    while (cap - b->entries_len < n)
        cap *= 2;
    struct zc_entry *entries = malloc(cap * sizeof(*entries));
    if (entries == NULL)
        return ZC_ENOMEM;
    for (uint32_t i = 0; i < b->entries_len; i++)
        entries[i] = b->entries[(b->entries_first + i) % b->entries_cap];
    free(b->entries);
    b->entries = entries;
    b->entries_cap = cap;
    b->entries_first = 0;
    return 0;
}

void zc_settle_push(struct zc_broker *b, uint64_t ticket, struct zc_message *m, bool put)
{
    ZC_ASSERT(b->entries_len < b->entries_cap);
    b->entries[(b->entries_first + b->entries_len++) % b->entries_cap] =
        (struct zc_entry){ticket, m, NULL, put};
}

void zc_settle_push_setting(struct zc_broker *b, uint64_t ticket, struct zc_setting *s, bool put)
{
    ZC_ASSERT(b->entries_len < b->entries_cap);
    s->unsettled = true;
    b->entries[(b->entries_first + b->entries_len++) % b->entries_cap] =
        (struct zc_entry){ticket, NULL, s, put};
}

uint64_t zc_settle_last(const struct zc_broker *b)
{
    return b->entries_len == 0
               ? 0
               : b->entries[(b->entries_first + b->entries_len - 1) % b->entries_cap].ticket;
}

static void setting_settled(struct zc_broker *b, const struct zc_entry *e, bool durable)
{
    e->setting->unsettled = false;
    if (e->setting->owner == ZC_OWNER_BINDING)
        zc_binding_settled(b, e->setting, e->put, durable);
    else
        zc_seen_settled(b, e->setting, durable);
}

void zc_settle_forget(struct zc_broker *b, struct zc_message *m)
{
    if (b->journal == NULL || m->place == 0 || m->reading)
        return;
    b->journal->forget(b->journal->arg, m->place);
    m->place = 0;
}

static void set_orphan(struct zc_broker *b, struct zc_message *m, bool orphan)
{
    b->orphans += (uint32_t)orphan - (uint32_t)m->orphan;
    m->orphan = orphan;
}

void zc_settle_revive(struct zc_broker *b, struct zc_message *m)
{
    m->taken = false;
    m->due = ZC_NEVER; /* it stood where sent_end was */
    set_orphan(b, m, true);
    if (!m->settled)
        return; /* comes back here when the removal is known to be durable */
    if (!zc_message_want_body(b, m)) {
        /* Its read was under way, and the hub is being freed. */
        ZC_ASSERT(b->journal == NULL);
        set_orphan(b, m, false);
        zc_message_free(b, m);
        return;
    }
    zc_list_remove(&m->link);
    if (m->body == NULL) {
        zc_list_push(&b->reviving, &m->link);
        return; /* and when the body is read */
    }
    zc_settle_forget(b, m);
    set_orphan(b, m, false);
    m->settled = false;
    m->mailbox->redelivered++;
    b->count.redelivered++;
    zc_message_recall_id(b, m);
    zc_message_show(b, m); /* stores it again: its removal is on disk */
}

void zc_settle_store_again(struct zc_broker *b)
{
    struct zc_list work;
    zc_list_take_all(&b->unstored, &work);
    while (!zc_list_empty(&work)) {
        struct zc_list *l = work.next;
        zc_list_remove(l);
        zc_message_show(b, ZC_CONTAINER(l, struct zc_message, link)); /* may go back */
    }
}

static void removal_synced(struct zc_broker *b, struct zc_message *m)
{
    m->settled = true;
    if (m->orphan) {
        zc_settle_revive(b, m);
        return;
    }
    if (m->taken && m->body == NULL)
        return; /* the record is still to be read */
    zc_settle_forget(b, m);
    if (!m->taken)
        zc_message_free(b, m);
}

static void put_synced(struct zc_broker *b, struct zc_message *m)
{
    zc_job_move_more(m);
    zc_message_show(b, m);
}

void zc_settle_synced(struct zc_broker *b, uint64_t ticket)
{
    while (b->entries_len > 0 && b->entries[b->entries_first].ticket <= ticket) {
        struct zc_entry e = b->entries[b->entries_first];
        b->entries_first = (b->entries_first + 1) % b->entries_cap;
        b->entries_len--;
        if (e.message == NULL)
            setting_settled(b, &e, true);
        else if (e.message->moving)
            zc_transfer_done(b, e.message);
        else if (e.put)
            put_synced(b, e.message);
        else
            removal_synced(b, e.message);
    }
}

void zc_settle_failed(struct zc_broker *b, uint64_t ticket)
{
    while (b->entries_len > 0) {
        struct zc_entry e = b->entries[(b->entries_first + b->entries_len - 1) % b->entries_cap];
        if (e.ticket <= ticket)
            break;
        b->entries_len--;
        struct zc_message *m = e.message;
        if (m == NULL) {
            setting_settled(b, &e, false);
            continue;
        }
        if (m->moving) {
            zc_transfer_failed(b, m);
            continue;
        }
        if (e.put) {
            m->place = 0;
            if (m->revived) /* acknowledged once: memory keeps it */
                zc_list_push(&b->unstored, &m->link);
            else
                zc_message_free(b, m);
            continue;
        }
        if (m->taken)
            m->attempt--;
        m->taken = false;
        set_orphan(b, m, false);
        zc_message_recall_id(b, m);
        zc_job_move_more(m);
        zc_message_show(b, m);
    }
    /* Only now: what is stored again has a ticket above the failed ones. */
    zc_settle_store_again(b);
}

/* What came is not m's body any more. False: its own is read for whom it was given to. */
static bool read_in_vain(struct zc_broker *b, struct zc_message *m)
{
    bool wanted = m->state == ZC_MESSAGE_LEASED || m->state == ZC_MESSAGE_REMOVING;
    m->stale = false;
    if (m->body != NULL || !wanted)
        return true;
    if (!zc_message_want_body(b, m))
        zc_gift_damaged(b, m);
    return false;
}

static struct zc_block *sound(struct zc_block *body)
{
    struct zc_item item;
    if (body == NULL || zc_item_decode(zc_block_slice(body), &item) == 0)
        return body;
    zc_block_unref(body);
    return NULL;
}

void zc_settle_read_done(struct zc_broker *b, struct zc_message *m, struct zc_block *body)
{
    bool stale = m->stale;
    m->reading = false;
    if (m->dead) {
        zc_block_unref(body);
        if (m->settled)
            zc_settle_forget(b, m);
        zc_message_free(b, m);
        return;
    }
    body = sound(body);
    if (stale && !read_in_vain(b, m)) {
        zc_block_unref(body);
        return;
    }
    if (body == NULL && !stale) {
        zc_gift_damaged(b, m);
        return;
    }
    if (m->body != NULL || stale) {
        zc_block_unref(body);
    } else {
        m->body = body;
        b->hot_bytes += body->len;
        b->hot_count++;
    }
    if (m->settled)
        zc_settle_forget(b, m);
    if (m->orphan)
        zc_settle_revive(b, m);
    else if (m->state == ZC_MESSAGE_QUEUED || m->state == ZC_MESSAGE_DELAYED)
        zc_rest(b, m);
}
