/* Messages on their way to another mailbox, see transfer.h. */
#include "zmqc/transfer.h"

#include <stddef.h>
#include <stdlib.h>

#include "zmqc/message.h"
#include "zmqc/op.h"
#include "zmqc/seen.h"
#include "zmqc/settle.h"

/* The stored form of m with another name, NULL and *ret_err when it cannot be. */
static struct zc_block *renamed(struct zc_broker *b, const struct zc_message *m,
                                const struct zc_block *body, struct zc_mailbox *to, int *ret_err)
{
    struct zc_header *headers = b->out.headers;
    struct zc_item item;
    *ret_err = zc_item_decode(zc_block_slice(body), &item);
    if (*ret_err != 0)
        return NULL;
    size_t headers_bytes = zc_item_headers(&item, headers);
    item.name = zc_mailbox_name(to);
    item.due_ms = 0;
    if (m->due.ns != ZC_NEVER.ns && m->due.ns > b->now.mono.ns)
        item.due_ms = b->now.wall.ms + zc_mono_diff_ms(b->now.mono, m->due);
    size_t strings = headers_bytes + item.name.len + item.id.len + item.from.len + item.by.len;
    if (!zc_op_fits(item.payload.len, strings, item.headers_count)) {
        *ret_err = ZC_ELIMIT;
        return NULL;
    }
    struct zc_block *made = zc_item_encode(&item, headers, item.headers_count);
    *ret_err = made == NULL ? ZC_ENOMEM : 0;
    return made;
}

/* A request is answered under the mailbox that it lies in. */
static void follow_request(struct zc_broker *b, const struct zc_message *m, struct zc_mailbox *from)
{
    struct zc_item item;
    if (!m->request || zc_item_decode(zc_block_slice(m->body), &item) != 0)
        return;
    struct zc_request *q = zc_request_find(&b->requests, item.id, from->node.hash);
    if (q != NULL)
        q->name_hash = m->mailbox->node.hash;
}

/* m, out of all order, is PENDING in `to` with that body, which it takes over. */
static void relocate(struct zc_broker *b, struct zc_message *m, struct zc_mailbox *to,
                     struct zc_block *body)
{
    struct zc_mailbox *from = m->mailbox;
    zc_message_forget_id(b, m);
    zc_heap_remove(&b->timers, &m->timer);
    if (m->state == ZC_MESSAGE_QUEUED)
        zc_message_take_out(b, m, ZC_MESSAGE_PENDING);
    else
        zc_message_set_state(b, m, ZC_MESSAGE_PENDING);
    zc_mailbox_count(from, m, -1);
    m->mailbox = to;
    zc_mailbox_count(to, m, 1);
    zc_message_set_body(b, m, body);
    zc_message_recall_id(b, m);
    follow_request(b, m, from);
    zc_broker_reap(b, from);
}

int64_t zc_transfer_begin(struct zc_broker *b, struct zc_message *m, struct zc_block *body,
                          struct zc_mailbox *to)
{
    int err = 0;
    struct zc_transfer *t = NULL;
    int64_t ticket = 0;
    struct zc_block *made = renamed(b, m, body, to, &err);
    if (made == NULL)
        return err;
    if (b->journal != NULL) {
        t = calloc(1, sizeof(*t));
        ticket = t != NULL ? zc_settle_reserve(b, 2) : ZC_ENOMEM;
        if (ticket == 0 && m->scoped)
            zc_seen_add(b, m);
        if (ticket == 0)
            ticket = b->journal->append(b->journal->arg, ZC_JOURNAL_PUT, m->seq,
                                        zc_block_slice(made), true, &t->place);
        if (ticket < 0) {
            free(t);
            zc_block_unref(made);
            return ticket;
        }
        *t = (struct zc_transfer){.message = m, .from = m->mailbox, .body = zc_block_ref(body)};
        t->from->pins++;
        zc_list_push(&b->transfers, &t->link);
        zc_settle_push(b, (uint64_t)ticket, m, true);
        m->moving = true;
    }
    if (b->journal == NULL && m->scoped)
        zc_seen_add(b, m);
    m->mailbox->out++;
    to->in++;
    relocate(b, m, to, made);
    if (b->journal == NULL)
        zc_message_show(b, m);
    return ticket;
}

static struct zc_transfer *find(struct zc_broker *b, const struct zc_message *m)
{
    struct zc_list *all = &b->transfers, *l = all->next;
    /* What is durable comes from the front, what failed from the back. */
    if (ZC_CONTAINER(all->prev, struct zc_transfer, link)->message == m)
        l = all->prev;
    while (l != all && ZC_CONTAINER(l, struct zc_transfer, link)->message != m)
        l = l->next;
    ZC_ASSERT(l != all);
    return ZC_CONTAINER(l, struct zc_transfer, link);
}

static void transfer_free(struct zc_broker *b, struct zc_transfer *t)
{
    zc_list_remove(&t->link);
    zc_block_unref(t->body);
    t->from->pins--;
    zc_broker_reap(b, t->from);
    free(t);
}

void zc_transfer_done(struct zc_broker *b, struct zc_message *m)
{
    struct zc_transfer *t = find(b, m);
    uint64_t old = m->place;
    m->moving = false;
    m->place = t->place;
    b->journal->own(b->journal->arg, m->place, &m->place);
    b->journal->forget(b->journal->arg, old);
    transfer_free(b, t);
    zc_message_show(b, m);
}

void zc_transfer_failed(struct zc_broker *b, struct zc_message *m)
{
    struct zc_transfer *t = find(b, m);
    m->moving = false;
    m->mailbox->in--;
    t->from->out--;
    relocate(b, m, t->from, zc_block_ref(t->body));
    transfer_free(b, t);
    zc_message_show(b, m);
}

void zc_transfer_free_all(struct zc_broker *b)
{
    while (!zc_list_empty(&b->transfers))
        transfer_free(b, ZC_CONTAINER(b->transfers.next, struct zc_transfer, link));
}
