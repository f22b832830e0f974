/* Mailboxes and the order of their messages, see mailbox.h. */
#include "zmqc/mailbox.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/group.h"

struct zc_mailbox *zc_mailbox_new(struct zc_slice name)
{
    struct zc_mailbox *mb = calloc(1, sizeof(*mb) + name.len);
    if (mb == NULL)
        return NULL;
    zc_list_init(&mb->link);
    zc_list_init(&mb->dispatch);
    zc_list_init(&mb->queue);
    zc_list_init(&mb->line.waiters);
    zc_list_init(&mb->groups);
    zc_list_init(&mb->moves);
    zc_list_init(&mb->later);
    mb->name_len = (uint16_t)name.len;
    if (name.len > 0)
        memcpy(mb->name, name.data, name.len);
    return mb;
}

void zc_mailbox_free(struct zc_mailbox *mb)
{
    if (mb == NULL)
        return;
    zc_list_remove(&mb->link);
    zc_list_remove(&mb->dispatch);
    zc_group_free_all(mb);
    zc_heap_done(&mb->returned);
    zc_rows_done(&mb->rows);
    free(mb);
}

bool zc_mailbox_idle(const struct zc_mailbox *mb)
{
    return mb->queued == 0 && mb->delayed == 0 && mb->leased == 0 && mb->pending == 0 &&
           mb->removing == 0 && mb->waiting == 0 && mb->pins == 0;
}

void zc_mailbox_count(struct zc_mailbox *mb, const struct zc_message *m, int sign)
{
    uint64_t *counts[] = {&mb->pending, &mb->queued, &mb->delayed, &mb->leased, &mb->removing};
    *counts[m->state] += (uint64_t)(int64_t)sign;
    if (m->state != ZC_MESSAGE_REMOVING && m->state != ZC_MESSAGE_PENDING)
        mb->bytes += (uint64_t)((int64_t)sign * m->payload_len);
}

void zc_mailbox_set_state(struct zc_mailbox *mb, struct zc_message *m, enum zc_message_state state)
{
    zc_mailbox_count(mb, m, -1);
    if (m->state == ZC_MESSAGE_DELAYED)
        zc_list_remove(&m->link);
    m->state = (uint8_t)state;
    if (m->state == ZC_MESSAGE_DELAYED)
        zc_list_push(&mb->later, &m->link);
    zc_mailbox_count(mb, m, 1);
}

int zc_mailbox_join(struct zc_mailbox *mb, struct zc_message *m)
{
    m->order = (struct zc_timer){0};
    int err = zc_heap_set(&mb->returned, &m->order, (struct zc_mono){(int64_t)m->seq});
    m->returned = err == 0;
    if (err == 0)
        zc_group_returned(mb, m);
    return err;
}

/* Into the queue before the first that is younger; the last one is. */
static void squeeze_in(struct zc_mailbox *mb, struct zc_message *m)
{
    struct zc_list *l = mb->queue.next;
    while (ZC_CONTAINER(l, struct zc_message, link)->seq < m->seq)
        l = l->next;
    zc_list_init(&m->link);
    zc_list_insert_before(l, &m->link);
}

/* Into the order, where its sequence number wants it. */
static void line_up(struct zc_mailbox *mb, struct zc_message *m)
{
    struct zc_list *tail = zc_list_empty(&mb->queue) ? NULL : mb->queue.prev;
    if (tail == NULL || ZC_CONTAINER(tail, struct zc_message, link)->seq < m->seq) {
        zc_list_push(&mb->queue, &m->link);
        zc_group_pushed(mb, m);
        return;
    }
    if (zc_mailbox_join(mb, m) == 0)
        return;
    squeeze_in(mb, m);
    zc_group_returned(mb, m);
}

void zc_mailbox_enter(struct zc_mailbox *mb, struct zc_message *m)
{
    zc_mailbox_set_state(mb, m, ZC_MESSAGE_QUEUED);
    line_up(mb, m);
}

struct zc_message *zc_mailbox_peek(const struct zc_mailbox *mb)
{
    struct zc_list *first = zc_list_first(&mb->queue);
    struct zc_timer *top = zc_heap_min(&mb->returned);
    struct zc_message *a = first ? ZC_CONTAINER(first, struct zc_message, link) : NULL;
    struct zc_message *b = top ? ZC_CONTAINER(top, struct zc_message, order) : NULL;
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    return a->seq < b->seq ? a : b;
}

void zc_mailbox_leave(struct zc_mailbox *mb, struct zc_message *m)
{
    zc_group_leaving(mb, m);
    if (m->returned) {
        zc_heap_remove(&mb->returned, &m->order);
        m->returned = false;
        zc_list_init(&m->link);
    } else {
        zc_list_remove(&m->link);
    }
}

void zc_mailbox_take_out(struct zc_mailbox *mb, struct zc_message *m, enum zc_message_state state)
{
    zc_mailbox_leave(mb, m);
    zc_mailbox_set_state(mb, m, state);
}
