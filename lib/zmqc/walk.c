/* The order of a mailbox's messages, see walk.h. */
#include "zmqc/walk.h"

#include <stddef.h>

#include "base/check.h"

/* The lowest sequence numbers of the heap, in order: its top, then always the lowest of the
 * children of what was given. `open` is a small heap of slots; each step takes one and adds two. */
struct walk {
    const struct zc_heap *heap;
    uint32_t open[ZC_WALK_MAX + 2];
    uint32_t len;
};

static struct zc_message *message_at(const struct zc_heap *h, uint32_t slot)
{
    return ZC_CONTAINER(h->nodes[slot], struct zc_message, order);
}

static bool lower(const struct walk *w, uint32_t i, uint32_t k)
{
    return message_at(w->heap, w->open[i])->seq < message_at(w->heap, w->open[k])->seq;
}

static void swap(struct walk *w, uint32_t i, uint32_t k)
{
    uint32_t slot = w->open[i];
    w->open[i] = w->open[k];
    w->open[k] = slot;
}

static void walk_add(struct walk *w, uint32_t slot)
{
    if (slot >= w->heap->len)
        return;
    ZC_ASSERT(w->len < ZC_ARRAY_LEN(w->open));
    uint32_t i = w->len++;
    w->open[i] = slot;
    for (; i > 0 && lower(w, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(w, i, (i - 1) / 2);
}

static struct zc_message *walk_peek(const struct walk *w)
{
    return w->len > 0 ? message_at(w->heap, w->open[0]) : NULL;
}

static void walk_next(struct walk *w)
{
    uint32_t slot = w->open[0], i = 0;
    w->open[0] = w->open[--w->len];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= w->len)
            break;
        if (child + 1 < w->len && lower(w, child + 1, child))
            child++;
        if (!lower(w, child, i))
            break;
        swap(w, i, child);
        i = child;
    }
    walk_add(w, 2 * slot + 1);
    walk_add(w, 2 * slot + 2);
}

uint32_t zc_walk_collect(const struct zc_mailbox *mb, uint64_t limit, bool delayed,
                         struct zc_message **ret_found, uint32_t cap)
{
    struct walk back = {.heap = &mb->returned};
    const struct zc_list *l = mb->queue.next;
    uint32_t n = 0;
    walk_add(&back, 0);
    while (n < cap) {
        struct zc_message *m = walk_peek(&back), *first = NULL;
        if (l != &mb->queue)
            first = ZC_CONTAINER(l, struct zc_message, link);
        bool queue = first != NULL && (m == NULL || first->seq < m->seq);
        if (queue)
            m = first;
        if (m == NULL || m->seq >= limit)
            break;
        ret_found[n++] = m;
        if (queue)
            l = l->next;
        else
            walk_next(&back);
    }
    for (l = mb->later.next; delayed && n < cap && l != &mb->later; l = l->next) {
        struct zc_message *m = ZC_CONTAINER(l, struct zc_message, link);
        if (m->seq < limit)
            ret_found[n++] = m;
    }
    return n;
}
