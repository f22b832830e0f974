/*
 * Group commit. One write is with the disk at a time; what is appended meanwhile gathers in the
 * next batch, so that one fsync serves all who wait. Only the write that was synced (or, when the
 * caller chose so, written) is acknowledged, and with it all before it.
 */
#include <stdlib.h>

#include "base/check.h"
#include "store/log_priv.h"

/* A write without sync goes to the page cache only; up to this size that may be done on the loop.
 */
#define INLINE_MAX (64u * 1024)

/* Bytes of the current segment that a PUT, or anything else, may fill. */
static uint64_t room_end(const struct zc_log *log, const struct zc_segment *s, bool put)
{
    bool full = log->next.phase == ZC_NEXT_READY || log->state == ZC_LOG_FULL;
    return put && !full ? s->size - s->size / 8 : s->size;
}

/* How many items of b fit into the current segment, and their bytes. */
static uint32_t fit(const struct zc_log *log, const struct zc_batch *b, size_t *ret_len)
{
    const struct zc_segment *s = zc_log_current(log);
    uint64_t end = log->end + (log->seals_due ? ZC_SEGMENT_SEALS : 0);
    bool fresh = end <= ZC_SEGMENT_START;
    uint32_t n = 0;
    *ret_len = 0;
    for (; b->written + n < b->count; n++) {
        const struct zc_batch_item *item = &b->items[b->written + n];
        /* One that is larger than a segment gets a fresh one and extends it. */
        if (end + *ret_len + item->size > room_end(log, s, item->put) && !(fresh && n == 0))
            break;
        *ret_len += item->size;
    }
    return n;
}

/* Only a sync, of what is written already. */
static bool sync_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    log->write = (struct zc_log_write){.phase = ZC_WRITE_BUSY, .sync = true};
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                  .id = ZC_LOG_SLOT_WRITE,
                                  .segment = log->current,
                                  .offset = log->end,
                                  .sync = true};
    return true;
}

struct zc_mono zc_log_write_deadline(const struct zc_log *log)
{
    if (log->sync != ZC_LOG_SYNC_BATCH || !log->dirty || log->write.phase != ZC_WRITE_IDLE ||
        log->mend.phase != ZC_MEND_NONE)
        return ZC_NEVER;
    return zc_mono_add_ms(log->dirty_at, ZC_LOG_BATCH_MS);
}

static bool sync_due(const struct zc_log *log, struct zc_now now)
{
    if (!log->dirty)
        return false;
    return log->closing || log->batches.unsynced > ZC_LOG_UNSYNCED_MAX ||
           zc_log_write_deadline(log).ns <= now.mono.ns;
}

/* The checksums that depend on the place. */
static void stamp(const struct zc_log *log, const struct zc_batch *b, uint32_t n, uint64_t offset)
{
    const struct zc_segment *s = zc_log_current(log);
    uint8_t *record = b->data.data + b->written_pos;
    for (uint32_t i = 0; i < n; i++) {
        zc_record_stamp(record, s->salt, offset);
        record += b->items[b->written + i].size;
        offset += b->items[b->written + i].size;
    }
}

/* Decides on sync and on who does it, for n items of b. */
static void urgency(const struct zc_log *log, struct zc_now now, const struct zc_batch *b,
                    uint32_t n, struct zc_disk_op *op)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < n; i++)
        wanted += b->items[b->written + i].wanted;
    /* What follows goes to another segment, which must not be durable before this one. */
    bool last = b->written + n < b->count;
    bool always = log->sync == ZC_LOG_SYNC_ALWAYS;
    op->sync = log->verifying || sync_due(log, now) || (always && wanted > 0) ||
               (last && log->sync != ZC_LOG_SYNC_NEVER);
    op->inline_ok = op->sync ? always && wanted == 1 : op->len <= INLINE_MAX;
}

static bool batch_op(struct zc_log *log, struct zc_now now, struct zc_batch *b, uint32_t n,
                     size_t len, struct zc_disk_op *ret_op)
{
    struct zc_log_write *w = &log->write;
    uint8_t *data = b->data.data + b->written_pos;
    b->closed = true;
    *w = (struct zc_log_write){
        .phase = ZC_WRITE_BUSY, .items = n, .data = data, .len = len, .seals = log->seals_due};
    if (w->seals) {
        /* The bytes before are free, or of records that are done with. */
        ZC_ASSERT(b->kept == b->written && b->written_pos >= ZC_BATCH_ROOM);
        w->data -= ZC_SEGMENT_SEALS;
        w->len += ZC_SEGMENT_SEALS;
        zc_segment_seals_encode(w->data, zc_log_current(log), log->seq_max, log->seals_number,
                                log->seals_end);
    }
    stamp(log, b, n, log->end + (w->seals ? ZC_SEGMENT_SEALS : 0));
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                  .id = ZC_LOG_SLOT_WRITE,
                                  .segment = log->current,
                                  .offset = log->end,
                                  .data = w->data,
                                  .len = w->len};
    urgency(log, now, b, n, ret_op);
    w->sync = ret_op->sync;
    return true;
}

/* Reads back what was written, past the page cache. */
static bool check_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_write *w = &log->write;
    w->check = malloc(w->len);
    if (w->check == NULL) {
        w->phase = ZC_WRITE_IDLE;
        zc_log_mend_start(log, now, ZC_ENOMEM);
        return false;
    }
    w->phase = ZC_WRITE_CHECKING;
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_READ,
                                  .id = ZC_LOG_SLOT_WRITE,
                                  .segment = log->current,
                                  .offset = log->end,
                                  .data = w->check,
                                  .len = w->len,
                                  .uncached = true};
    return true;
}

bool zc_log_write_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    if (log->write.phase == ZC_WRITE_CHECK)
        return check_op(log, now, ret_op);
    if (log->write.phase != ZC_WRITE_IDLE || log->mend.phase != ZC_MEND_NONE || log->opening)
        return false;
    struct zc_batch *b = log->batches.at;
    if (b == NULL || b->written == b->count)
        return sync_due(log, now) && sync_op(log, ret_op);
    size_t len;
    uint32_t n = fit(log, b, &len);
    if (n == 0) {
        if (log->next.phase != ZC_NEXT_READY)
            return sync_due(log, now) && sync_op(log, ret_op);
        if (log->dirty && log->sync != ZC_LOG_SYNC_NEVER)
            return sync_op(log, ret_op);
        zc_log_next_take(log);
        n = fit(log, b, &len);
        ZC_ASSERT(n > 0);
    }
    return batch_op(log, now, b, n, len, ret_op);
}

/* Tells the callers where their records lie. Those acknowledged earlier do not listen any more. */
static void places_set(struct zc_log *log, const struct zc_batch *b, uint32_t n, uint64_t offset)
{
    for (uint32_t i = b->written; i < b->written + n; i++) {
        struct zc_batch_item *item = &b->items[i];
        if (item->place != NULL && b->ticket + i > log->synced)
            *item->place = (uint64_t)log->current << 32 | offset;
        offset += item->size;
    }
}

/* Items [from, to) of b are acknowledged: their messages count as live. */
static void acknowledge(struct zc_log *log, struct zc_batch *b, uint32_t from, uint32_t to)
{
    struct zc_segment *s = zc_log_current(log);
    for (uint32_t i = from; i < to; i++) {
        if (b->ticket + i <= log->synced)
            continue;
        s->live += b->items[i].put;
        b->items[i].place = NULL;
        log->synced = b->ticket + i;
    }
}

/* All that was written is on disk, or as good as that. */
static void all_kept(struct zc_log *log)
{
    for (struct zc_batch *b = log->batches.first; b != NULL; b = b->next)
        acknowledge(log, b, b->kept, b->written);
    zc_batch_release(&log->batches);
    log->safe = log->end;
}

/* The write at work is complete (and compared, where that was due). */
static void complete(struct zc_log *log, struct zc_now now)
{
    struct zc_log_write *w = &log->write;
    struct zc_batch *b = log->batches.at;
    if (w->items > 0) {
        uint64_t records = log->end + (w->seals ? ZC_SEGMENT_SEALS : 0);
        uint32_t from = b->written;
        places_set(log, b, w->items, records);
        zc_batch_written(&log->batches, w->items);
        if (log->written < b->ticket + b->written - 1)
            log->written = b->ticket + b->written - 1;
        log->end += w->len;
        log->seals_due = log->seals_due && !w->seals;
        if (log->sync != ZC_LOG_SYNC_ALWAYS) {
            acknowledge(log, b, from, b->written);
            log->safe = log->end;
        }
        if (!log->dirty)
            log->dirty_at = now.mono;
        log->dirty = true;
    }
    struct zc_segment *s = zc_log_current(log);
    s->end = log->end;
    s->size = s->size < log->end ? log->end : s->size;
    if (w->sync) {
        log->counts.syncs++;
        log->dirty = false;
    }
    if (w->sync || log->sync == ZC_LOG_SYNC_NEVER)
        all_kept(log);
    w->phase = ZC_WRITE_IDLE;
}

void zc_log_write_input(struct zc_log *log, struct zc_now now,
                        const struct zc_disk_completion *done)
{
    struct zc_log_write *w = &log->write;
    int err = zc_log_result(done, w->len);
    if (w->phase == ZC_WRITE_CHECKING) {
        if (err == 0 && memcmp(w->check, w->data, w->len) != 0)
            err = ZC_EIO;
        free(w->check);
        w->check = NULL;
    } else if (err == 0 && log->verifying && w->len > 0) {
        w->phase = ZC_WRITE_CHECK;
        return;
    }
    if (err == 0) {
        complete(log, now);
        return;
    }
    w->phase = ZC_WRITE_IDLE;
    zc_log_mend_start(log, now, err);
}

void zc_log_write_cut(struct zc_log *log)
{
    struct zc_batch *b = log->batches.at;
    if (b == NULL || log->current == 0)
        return;
    uint64_t room = zc_log_current(log)->size;
    uint64_t end = log->end + (log->seals_due ? ZC_SEGMENT_SEALS : 0);
    uint64_t busy = log->write.phase == ZC_WRITE_IDLE ? 0 : log->write.items;
    for (; b != NULL; b = b->next)
        for (uint32_t i = b->written; i<b->count; i++, busy -= busy> 0) {
            end += b->items[i].size;
            if (busy > 0 || end <= room)
                continue;
            log->failed_due = true;
            log->failed_above = b->ticket + i - 1;
            zc_batch_cut(&log->batches, b, i);
            return;
        }
}
