/*
 * Intrusive doubly linked list with a sentinel head. All operations O(1).
 */
#ifndef ZC_BASE_LIST_H
#define ZC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct zc_list {
    struct zc_list *prev;
    struct zc_list *next;
};

static inline void zc_list_init(struct zc_list *l)
{
    l->prev = l->next = l;
}

static inline bool zc_list_empty(const struct zc_list *l)
{
    return l->next == l;
}

/* A node that was never linked, or was unlinked, and is all zero or self-linked. */
static inline bool zc_list_linked(const struct zc_list *n)
{
    return n->next != NULL && n->next != n;
}

static inline void zc_list_insert_before(struct zc_list *pos, struct zc_list *n)
{
    n->prev = pos->prev;
    n->next = pos;
    pos->prev->next = n;
    pos->prev = n;
}

/* To the tail of head. */
static inline void zc_list_push(struct zc_list *head, struct zc_list *n)
{
    zc_list_insert_before(head, n);
}

static inline void zc_list_push_front(struct zc_list *head, struct zc_list *n)
{
    zc_list_insert_before(head->next, n);
}

/* Unlinks n; harmless when it is not linked. */
static inline void zc_list_remove(struct zc_list *n)
{
    if (!zc_list_linked(n))
        return;
    n->prev->next = n->next;
    n->next->prev = n->prev;
    zc_list_init(n);
}

/* Moves all nodes of head to `to`, which is made, in their order: for a turn through a list to
 * which nodes come back meanwhile. */
static inline void zc_list_take_all(struct zc_list *head, struct zc_list *to)
{
    zc_list_init(to);
    if (zc_list_empty(head))
        return;
    *to = *head;
    to->next->prev = to->prev->next = to;
    zc_list_init(head);
}

static inline struct zc_list *zc_list_first(const struct zc_list *head)
{
    return zc_list_empty(head) ? NULL : head->next;
}

#endif
