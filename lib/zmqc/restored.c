/* Messages while the log opens, see restored.h. */
#include "zmqc/restored.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "zmqc/broker.h"
#include "zmqc/message.h"

#define CAP_MIN 64

/* The first item with this number or a higher one. */
static size_t lower_bound(const struct zc_restored *r, uint64_t seq)
{
    size_t low = 0, high = r->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->items[mid].seq < seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The item of this number, with or without a message, or NULL. */
static struct zc_restored_item *item_find(struct zc_restored *r, uint64_t seq)
{
    if (r->len == 0 || r->items[r->len - 1].seq < seq)
        return NULL;
    bool next = r->hint + 1 < r->len && r->items[r->hint + 1].seq == seq;
    r->hint = next ? r->hint + 1 : lower_bound(r, seq);
    return r->items[r->hint].seq == seq ? &r->items[r->hint] : NULL;
}

static struct zc_message *late_find(const struct zc_broker *b, uint64_t seq)
{
    struct zc_map_node *n = zc_map_first(&b->ids, seq);
    return n != NULL ? ZC_CONTAINER(n, struct zc_message, by_id) : NULL;
}

struct zc_message *zc_restored_find(struct zc_broker *b, uint64_t seq)
{
    struct zc_restored_item *item = item_find(&b->restored, seq);
    if (item != NULL && item->message != NULL)
        return item->message;
    return b->ids.len > 0 ? late_find(b, seq) : NULL;
}

/* Room for one more: what is gone is squeezed out when it is much. */
static int reserve(struct zc_restored *r)
{
    if (r->len < r->cap)
        return 0;
    if (r->gone > r->len / 2) {
        size_t n = 0;
        for (size_t i = 0; i < r->len; i++)
            if (r->items[i].message != NULL)
                r->items[n++] = r->items[i];
        r->len = n;
        r->gone = r->hint = 0;
        return 0;
    }
    size_t cap = r->cap == 0 ? CAP_MIN : r->cap * 2;
    struct zc_restored_item *items = realloc(r->items, cap * sizeof(*items));
    if (items == NULL)
        return ZC_ENOMEM;
    r->items = items;
    r->cap = cap;
    return 0;
}

int zc_restored_add(struct zc_broker *b, struct zc_message *m)
{
    struct zc_restored *r = &b->restored;
    struct zc_restored_item *item = item_find(r, m->seq);
    if (item != NULL) {
        ZC_ASSERT(item->message == NULL);
        item->message = m;
        r->gone--;
        return 0;
    }
    if (r->len > 0 && r->items[r->len - 1].seq > m->seq) {
        int err = zc_map_insert(&b->ids, &m->by_id, m->seq);
        m->deduped = err == 0;
        return err;
    }
    int err = reserve(r);
    if (err == 0)
        r->items[r->len++] = (struct zc_restored_item){m->seq, m};
    return err;
}

void zc_restored_drop(struct zc_broker *b, struct zc_message *m)
{
    struct zc_restored_item *item = item_find(&b->restored, m->seq);
    if (item != NULL && item->message == m) {
        item->message = NULL;
        b->restored.gone++;
    }
    zc_message_forget_id(b, m);
}

static int by_seq(const void *a, const void *b)
{
    const struct zc_restored_item *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* What came late leaves the map. */
static void late_take(struct zc_broker *b, struct zc_restored_item *ret_items)
{
    size_t n = 0;
    for (uint32_t k = 0; k < b->ids.cap; k++) {
        for (struct zc_map_node *node = b->ids.buckets[k]; node != NULL; node = node->next) {
            struct zc_message *m = ZC_CONTAINER(node, struct zc_message, by_id);
            ret_items[n++] = (struct zc_restored_item){m->seq, m};
        }
    }
    for (size_t i = 0; i < n; i++) {
        ret_items[i].message->by_id = (struct zc_map_node){0};
        ret_items[i].message->deduped = false;
    }
    zc_map_done(&b->ids);
    qsort(ret_items, n, sizeof(ret_items[0]), by_seq);
}

int zc_restored_sort(struct zc_broker *b)
{
    struct zc_restored *r = &b->restored;
    size_t late = b->ids.len, len = r->len + late;
    if (late == 0)
        return 0;
    struct zc_restored_item *items = realloc(r->items, len * sizeof(*items));
    struct zc_restored_item *more = malloc(late * sizeof(*more));
    r->items = items != NULL ? items : r->items;
    if (items == NULL || more == NULL) {
        free(more);
        return ZC_ENOMEM;
    }
    late_take(b, more);
    /* From the end on, so that nothing is overwritten that is still to be moved. */
    for (size_t i = r->len, k = late, to = len; k > 0;) {
        bool old = i > 0 && items[i - 1].seq > more[k - 1].seq;
        items[--to] = old ? items[--i] : more[--k];
    }
    free(more);
    r->len = r->cap = len;
    return 0;
}

void zc_restored_done(struct zc_broker *b, bool all)
{
    struct zc_restored *r = &b->restored;
    for (size_t i = 0; all && i < r->len; i++)
        if (r->items[i].message != NULL)
            zc_message_free(b, r->items[i].message);
    /* The map shrinks meanwhile, which moves nodes to lower buckets: hence round and round. */
    for (uint32_t i = 0; all && b->ids.len > 0; i = i + 1 < b->ids.cap ? i + 1 : 0)
        while (b->ids.len > 0 && i < b->ids.cap && b->ids.buckets[i] != NULL)
            zc_message_free(b, ZC_CONTAINER(b->ids.buckets[i], struct zc_message, by_id));
    free(r->items);
    struct zc_mailbox *mb = r->mailbox;
    *r = (struct zc_restored){0};
    if (mb == NULL)
        return;
    mb->pins--;
    zc_broker_reap(b, mb);
}
