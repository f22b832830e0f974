/* Reading messages back: any number may be wanted, a few are with the disk; each is answered by one
 * event, in order of completion. */
#include <stdlib.h>

#include "base/check.h"
#include "store/log_priv.h"

/* What cannot be read is given up for good. Lack of memory says nothing about the record, and an
 * error of the disk may pass. */
#define TRIES_NO_MEMORY 64
#define TRIES_FAILED 3

static void push(struct zc_log_reads *q, uint32_t *first, uint32_t *last, uint32_t i)
{
    q->items[i - 1].next = 0;
    if (*first == 0)
        *first = i;
    else
        q->items[*last - 1].next = i;
    *last = i;
}

static uint32_t pop(struct zc_log_reads *q, uint32_t *first)
{
    uint32_t i = *first;
    if (i != 0)
        *first = q->items[i - 1].next;
    return i;
}

static int grow(struct zc_log_reads *q)
{
    uint32_t cap = q->cap == 0 ? 16 : q->cap * 2;
    struct zc_log_read *items = realloc(q->items, cap * sizeof(*items));
    if (items == NULL)
        return ZC_ENOMEM;
    q->items = items;
    for (uint32_t i = cap; i > q->cap; i--) {
        items[i - 1] = (struct zc_log_read){.next = q->free};
        q->free = i;
    }
    q->cap = cap;
    return 0;
}

int zc_log_read(struct zc_log *log, uint64_t place, size_t body_len, void *cookie)
{
    struct zc_log_reads *q = &log->reads;
    if (body_len > ZC_RECORD_BODY_MAX)
        return ZC_EINVAL;
    if (q->free == 0 && grow(q) != 0)
        return ZC_ENOMEM;
    struct zc_block *block = zc_block_new(ZC_RECORD_HEAD + body_len);
    if (block == NULL)
        return ZC_ENOMEM;
    uint32_t i = pop(q, &q->free);
    q->items[i - 1] = (struct zc_log_read){
        .cookie = cookie, .block = block, .place = place, .body_len = body_len};
    q->busy++;
    struct zc_segment *s = zc_segment_find(&log->segments, (uint32_t)(place >> 32));
    if (s == NULL || s->number == log->trimming) {
        /* Nothing in it is wanted any more: the caller's place is old. */
        q->items[i - 1].err = ZC_ENOENT;
        push(q, &q->ready, &q->ready_last, i);
    } else {
        s->reads++; /* it stays until then, whatever moves out of it */
        push(q, &q->wanted, &q->wanted_last, i);
    }
    return 0;
}

bool zc_log_read_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_reads *q = &log->reads;
    uint32_t i = pop(q, &q->wanted);
    if (i == 0)
        return false;
    q->given++;
    struct zc_log_read *r = &q->items[i - 1];
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_READ,
                                  .id = ZC_LOG_SLOT_READ + (i - 1),
                                  .segment = (uint32_t)(r->place >> 32),
                                  .offset = (uint32_t)r->place,
                                  .data = r->block->data,
                                  .len = r->block->len,
                                  .inline_ok = true};
    return true;
}

/* What came back is the message that was asked for. */
static int check(struct zc_log *log, struct zc_log_read *r, int64_t result)
{
    struct zc_segment *s = zc_segment_find(&log->segments, (uint32_t)(r->place >> 32));
    struct zc_record rec;
    ZC_ASSERT(s != NULL && s->reads > 0);
    s->reads--;
    if (result < 0)
        return (int)result;
    if ((uint64_t)result == r->block->len &&
        zc_record_decode(r->block->data, s->salt, (uint32_t)r->place, &rec) == 0 &&
        rec.type == ZC_RECORD_PUT && rec.len == r->body_len &&
        zc_record_body_ok(&rec, r->block->data + ZC_RECORD_HEAD))
        return 0;
    s->damaged = true;
    log->counts.damaged++;
    log->counts.damaged_bytes += r->block->len;
    return ZC_EBADMSG;
}

void zc_log_read_input(struct zc_log *log, const struct zc_disk_completion *done)
{
    struct zc_log_reads *q = &log->reads;
    uint32_t i = (uint32_t)(done->id - ZC_LOG_SLOT_READ) + 1;
    ZC_ASSERT(i <= q->cap && q->items[i - 1].block != NULL);
    struct zc_log_read *r = &q->items[i - 1];
    q->given--;
    uint32_t tries = done->result == ZC_ENOMEM ? TRIES_NO_MEMORY : TRIES_FAILED;
    if (done->result < 0 && r->tries++ < tries) {
        push(q, &q->wanted, &q->wanted_last, i);
        return;
    }
    r->err = check(log, r, done->result);
    push(q, &q->ready, &q->ready_last, i);
}

bool zc_log_read_event(struct zc_log *log, struct zc_log_event *ret_event)
{
    struct zc_log_reads *q = &log->reads;
    uint32_t i = pop(q, &q->ready);
    if (i == 0)
        return false;
    struct zc_log_read *r = &q->items[i - 1];
    *ret_event = (struct zc_log_event){.kind = ZC_LOG_READ,
                                       .type = ZC_RECORD_PUT,
                                       .place = r->place,
                                       .cookie = r->cookie,
                                       .err = r->err};
    if (r->err == 0) {
        /* The head goes, so that the block is the body. */
        memmove(r->block->data, r->block->data + ZC_RECORD_HEAD, r->body_len);
        r->block->len = (uint32_t)r->body_len;
        ret_event->block = r->block;
        ret_event->body = zc_block_slice(r->block);
    } else {
        zc_block_unref(r->block);
    }
    *r = (struct zc_log_read){.next = q->free};
    q->free = i;
    q->busy--;
    return true;
}

void zc_log_read_done(struct zc_log *log)
{
    for (uint32_t i = 0; i < log->reads.cap; i++)
        zc_block_unref(log->reads.items[i].block);
    free(log->reads.items);
    log->reads = (struct zc_log_reads){0};
}
