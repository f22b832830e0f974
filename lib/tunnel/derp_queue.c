/* The send queue of a relay connection; see derp_queue.h. */
#include "tunnel/derp_queue.h"

#include <string.h>

#include "base/check.h"

/* A buffer that held a giant packet is not kept. */
#define KEEP_BYTES 4096

static struct zc_buf *queue_slot(struct zc_derp_queue *q, uint32_t index)
{
    return &q->slots[(q->first + index) % ZC_DERP_QUEUE_SLOTS];
}

static void queue_release(struct zc_buf *slot)
{
    slot->len = 0;
    if (slot->cap > KEEP_BYTES)
        zc_buf_done(slot);
}

static void queue_shift(struct zc_derp_queue *q)
{
    queue_release(queue_slot(q, 0));
    q->first = (q->first + 1) % ZC_DERP_QUEUE_SLOTS;
    q->count--;
    q->sent = 0;
}

/* Drops the oldest that is not partly sent. */
static void queue_drop(struct zc_derp_queue *q)
{
    if (q->sent == 0) {
        queue_shift(q);
        return;
    }
    /* The frame on its way takes the place of the one behind it. */
    struct zc_buf partly = *queue_slot(q, 0);
    size_t sent = q->sent;
    *queue_slot(q, 0) = *queue_slot(q, 1);
    *queue_slot(q, 1) = partly;
    queue_shift(q);
    q->sent = sent;
}

uint32_t zc_derp_queue_room(const struct zc_derp_queue *q)
{
    uint32_t waiting = q->count - (q->sent > 0);
    return ZC_DERP_QUEUE_SLOTS - 1 - waiting;
}

uint8_t *zc_derp_queue_tail(struct zc_derp_queue *q, size_t len, bool *ret_dropped)
{
    *ret_dropped = zc_derp_queue_room(q) == 0;
    if (*ret_dropped)
        queue_drop(q);
    struct zc_buf *slot = queue_slot(q, q->count);
    ZC_ASSERT(slot->len == 0);
    if (zc_buf_reserve(slot, len) != 0)
        return NULL;
    return slot->data;
}

void zc_derp_queue_push(struct zc_derp_queue *q, size_t len)
{
    struct zc_buf *slot = queue_slot(q, q->count);
    ZC_ASSERT(len > 0 && len <= slot->cap && q->count < ZC_DERP_QUEUE_SLOTS);
    slot->len = len;
    q->count++;
}

size_t zc_derp_queue_take(struct zc_derp_queue *q, uint8_t *ret_data, size_t cap)
{
    size_t n = 0;
    while (n < cap && q->count > 0) {
        struct zc_buf *slot = queue_slot(q, 0);
        size_t part = slot->len - q->sent;
        if (part > cap - n)
            part = cap - n;
        memcpy(ret_data + n, slot->data + q->sent, part);
        n += part;
        q->sent += part;
        if (q->sent == slot->len)
            queue_shift(q);
    }
    return n;
}

size_t zc_derp_queue_rest(const struct zc_derp_queue *q)
{
    return q->sent > 0 ? q->slots[q->first].len - q->sent : 0;
}

void zc_derp_queue_rewind(struct zc_derp_queue *q, bool *ret_dropped)
{
    q->sent = 0;
    *ret_dropped = q->count == ZC_DERP_QUEUE_SLOTS;
    if (*ret_dropped)
        queue_shift(q);
}

void zc_derp_queue_done(struct zc_derp_queue *q)
{
    for (uint32_t i = 0; i < ZC_DERP_QUEUE_SLOTS; i++)
        zc_buf_done(&q->slots[i]);
    *q = (struct zc_derp_queue){0};
}
