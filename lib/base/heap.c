/* Binary min-heap of timers. Nodes know their slot, so that a timer moves or leaves in O(log n). */
#include <stdlib.h>

#include "base/check.h"
#include "base/heap.h"

#define HEAP_CAP_MIN 16
#define HEAP_CAP_MAX (UINT32_C(1) << 28) /* 2 GiB of pointers */

static void heap_place(struct zc_heap *h, uint32_t i, struct zc_timer *t)
{
    h->nodes[i] = t;
    t->slot = i + 1;
}

static void heap_up(struct zc_heap *h, uint32_t i, struct zc_timer *t)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / 2;
        if (h->nodes[parent]->deadline.ns <= t->deadline.ns)
            break;
        heap_place(h, i, h->nodes[parent]);
        i = parent;
    }
    heap_place(h, i, t);
}

static void heap_down(struct zc_heap *h, uint32_t i, struct zc_timer *t)
{
    while (i < h->len / 2) { /* has a left child */
        uint32_t child = 2 * i + 1;
        if (child + 1 < h->len && h->nodes[child + 1]->deadline.ns < h->nodes[child]->deadline.ns)
            child++;
        if (t->deadline.ns <= h->nodes[child]->deadline.ns)
            break;
        heap_place(h, i, h->nodes[child]);
        i = child;
    }
    heap_place(h, i, t);
}

/* Puts t, which belongs at or near slot i, where its deadline wants it. */
static void heap_settle(struct zc_heap *h, uint32_t i, struct zc_timer *t)
{
    if (i > 0 && t->deadline.ns < h->nodes[(i - 1) / 2]->deadline.ns)
        heap_up(h, i, t);
    else
        heap_down(h, i, t);
}

static int heap_resize(struct zc_heap *h, uint32_t cap)
{
    struct zc_timer **nodes = realloc(h->nodes, cap * sizeof(struct zc_timer *));
    if (nodes == NULL)
        return ZC_ENOMEM;
    h->nodes = nodes;
    h->cap = cap;
    return 0;
}

int zc_heap_set(struct zc_heap *h, struct zc_timer *t, struct zc_mono deadline)
{
    if (t->slot != 0) {
        ZC_ASSERT(t->slot <= h->len && h->nodes[t->slot - 1] == t);
        t->deadline = deadline;
        heap_settle(h, t->slot - 1, t);
        return 0;
    }
    if (h->len == h->cap) {
        if (h->cap >= HEAP_CAP_MAX)
            return ZC_ENOMEM;
        int err = heap_resize(h, h->cap == 0 ? HEAP_CAP_MIN : h->cap * 2);
        if (err != 0)
            return err;
    }
    t->deadline = deadline;
    heap_up(h, h->len++, t);
    return 0;
}

void zc_heap_remove(struct zc_heap *h, struct zc_timer *t)
{
    if (t->slot == 0)
        return;
    uint32_t i = t->slot - 1;
    ZC_ASSERT(i < h->len && h->nodes[i] == t);
    struct zc_timer *last = h->nodes[--h->len];
    t->slot = 0;
    if (last != t)
        heap_settle(h, i, last);
    if (h->cap > HEAP_CAP_MIN && h->len < h->cap / 4)
        (void)heap_resize(h, h->cap / 2); /* refused memory: the large array stays */
}

struct zc_timer *zc_heap_min(const struct zc_heap *h)
{
    return h->len == 0 ? NULL : h->nodes[0];
}

void zc_heap_done(struct zc_heap *h)
{
    free(h->nodes);
    *h = (struct zc_heap){0};
}
