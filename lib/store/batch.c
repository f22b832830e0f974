/* The queue of records on their way to the disk; see batch.h. */
#include "store/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define SPARE_MAX 4
/* Buffers that grew beyond this are not kept. */
#define SPARE_BYTES (1u << 20)

static void batch_free(struct zc_batch *b)
{
    zc_buf_done(&b->data);
    free(b->items);
    free(b);
}

static void recycle(struct zc_batches *q, struct zc_batch *b)
{
    if (q->spare_count >= SPARE_MAX || b->data.cap > SPARE_BYTES) {
        batch_free(b);
        return;
    }
    b->next = q->spare;
    q->spare = b;
    q->spare_count++;
}

static struct zc_batch *batch_new(struct zc_batches *q)
{
    struct zc_batch *b = q->spare;
    if (b != NULL) {
        q->spare = b->next;
        q->spare_count--;
    } else {
        b = calloc(1, sizeof(*b));
        if (b == NULL || zc_buf_reserve(&b->data, 4096) != 0) {
            free(b);
            return NULL;
        }
    }
    *b = (struct zc_batch){.data = b->data, .items = b->items, .cap = b->cap};
    b->data.len = b->kept_pos = b->written_pos = ZC_BATCH_ROOM;
    return b;
}

/* Room for n more items. */
static int items_reserve(struct zc_batch *b, uint32_t n)
{
    if (b->cap - b->count >= n)
        return 0;
    uint32_t cap = b->cap == 0 ? 32 : b->cap;
    while (cap - b->count < n)
        cap *= 2;
    struct zc_batch_item *items = realloc(b->items, cap * sizeof(*items));
    if (items == NULL)
        return ZC_ENOMEM;
    b->items = items;
    b->cap = cap;
    return 0;
}

/* The batch that takes the next record, appended to the queue when it is new. */
static struct zc_batch *open_batch(struct zc_batches *q, uint64_t ticket)
{
    if (q->last != NULL && !q->last->closed)
        return q->last;
    struct zc_batch *b = batch_new(q);
    if (b == NULL)
        return NULL;
    b->ticket = ticket;
    if (q->last != NULL)
        q->last->next = b;
    else
        q->first = b;
    q->last = b;
    if (q->at == NULL)
        q->at = b;
    return b;
}

int zc_batch_append(struct zc_batches *q, uint64_t ticket, enum zc_record_type type, uint64_t seq,
                    struct zc_slice body, bool wanted, uint64_t *place)
{
    size_t size = zc_record_size(body.len);
    struct zc_batch *b = open_batch(q, ticket);
    if (b == NULL || items_reserve(b, 1) != 0 || zc_buf_reserve(&b->data, size) != 0)
        return ZC_ENOMEM;
    if (b->count == 0)
        b->ticket = ticket;
    ZC_ASSERT(b->ticket + b->count == ticket);
    zc_record_encode(b->data.data + b->data.len, type, seq, body);
    b->data.len += size;
    b->items[b->count++] = (struct zc_batch_item){
        .place = place, .size = (uint32_t)size, .kept = zc_record_kept(type), .wanted = wanted};
    q->waiting += size;
    return 0;
}

/* Moves q->at past batches with nothing more to write; one may be empty because all of it was cut
 * off. */
static void at_settle(struct zc_batches *q)
{
    while (q->at != NULL && q->at->closed && q->at->written == q->at->count)
        q->at = q->at->next;
}

void zc_batch_written(struct zc_batches *q, uint32_t n)
{
    struct zc_batch *b = q->at;
    ZC_ASSERT(b != NULL && n <= b->count - b->written);
    for (; n > 0; n--) {
        size_t size = b->items[b->written++].size;
        b->written_pos += size;
        q->waiting -= size;
        q->unsynced += size;
    }
    at_settle(q);
}

void zc_batch_release(struct zc_batches *q, uint64_t ticket)
{
    while (q->first != NULL && q->first->ticket <= ticket) {
        struct zc_batch *b = q->first;
        for (; b->kept < b->written && b->ticket + b->kept <= ticket; b->kept++) {
            b->kept_pos += b->items[b->kept].size;
            q->unsynced -= b->items[b->kept].size;
        }
        if (!b->closed || b->kept < b->count)
            break;
        q->first = b->next;
        recycle(q, b);
    }
    if (q->first == NULL)
        q->last = NULL;
}

void zc_batch_split(struct zc_batches *q, struct zc_batch *b, uint32_t from)
{
    if (b->closed || from >= b->count)
        return;
    ZC_ASSERT(b == q->last && from >= b->written);
    uint32_t n = b->count - from;
    size_t len = 0;
    for (uint32_t i = from; i < b->count; i++)
        len += b->items[i].size;
    struct zc_batch *tail = batch_new(q);
    if (tail == NULL)
        return;
    if (items_reserve(tail, n) != 0 || zc_buf_reserve(&tail->data, len) != 0) {
        recycle(q, tail);
        return;
    }
    b->count = from;
    b->data.len -= len;
    b->closed = true;
    memcpy(tail->items, b->items + from, n * sizeof(*b->items));
    memcpy(tail->data.data + tail->data.len, b->data.data + b->data.len, len);
    tail->data.len += len;
    tail->count = n;
    tail->ticket = b->ticket + from;
    b->next = q->last = tail;
}

void zc_batch_rewind(struct zc_batches *q)
{
    for (struct zc_batch *b = q->first; b != NULL; b = b->next) {
        b->written = b->kept;
        b->written_pos = b->kept_pos;
    }
    q->at = q->first;
    at_settle(q);
    q->waiting += q->unsynced;
    q->unsynced = 0;
}

void zc_batch_cut(struct zc_batches *q, struct zc_batch *at, uint32_t from)
{
    ZC_ASSERT(from >= at->written);
    for (uint32_t i = from; i < at->count; i++) {
        at->data.len -= at->items[i].size;
        q->waiting -= at->items[i].size;
    }
    at->count = from;
    at->closed = true;
    while (at->next != NULL) {
        struct zc_batch *b = at->next;
        at->next = b->next;
        for (uint32_t i = 0; i < b->count; i++)
            q->waiting -= b->items[i].size;
        recycle(q, b);
    }
    q->last = at;
    at_settle(q);
}

void zc_batch_clear(struct zc_batches *q)
{
    while (q->first != NULL) {
        struct zc_batch *b = q->first;
        q->first = b->next;
        recycle(q, b);
    }
    q->last = q->at = NULL;
    q->waiting = q->unsynced = 0;
}

void zc_batch_done(struct zc_batches *q)
{
    zc_batch_clear(q);
    while (q->spare != NULL) {
        struct zc_batch *b = q->spare;
        q->spare = b->next;
        batch_free(b);
    }
    *q = (struct zc_batches){0};
}
