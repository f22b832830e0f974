/*
 * Group commit. One write is with the disk at a time; what is appended meanwhile gathers in the
 * next batch, so that one fsync serves all who wait.
 *
 * An fsync may take seconds, and records that want none need not wait for it. Once the disk has
 * told that the bytes of a write are written and only its sync goes on, such records are written
 * right behind it, one write at a time, up to the first record that wants a sync.
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
    bool full = log->next.ready_count > 0 || log->state == ZC_LOG_FULL;
    return put && !full ? s->size - s->size / 8 : s->size;
}

static bool wants_sync(const struct zc_log *log, const struct zc_batch_item *item)
{
    return log->sync == ZC_LOG_SYNC_ALWAYS && item->wanted;
}

/* How many items of b, with `behind` only those before the first that wants a sync, fit into the
 * current segment, and their bytes. */
static uint32_t fit(const struct zc_log *log, const struct zc_batch *b, bool behind,
                    size_t *ret_len)
{
    const struct zc_segment *s = zc_log_current(log);
    uint64_t end = log->end + (log->seals_due ? ZC_SEGMENT_SEALS : 0);
    bool fresh = end <= ZC_SEGMENT_START;
    uint32_t n = 0;
    *ret_len = 0;
    for (; b->written + n < b->count; n++) {
        const struct zc_batch_item *item = &b->items[b->written + n];
        if (behind && wants_sync(log, item))
            break;
        /* One that is larger than a segment gets a fresh one and extends it. */
        if (end + *ret_len + item->size > room_end(log, s, item->kept) && !(fresh && n == 0))
            break;
        *ret_len += item->size;
    }
    return n;
}

/* Only a sync, of what is written already. */
static bool sync_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    log->write = (struct zc_log_write){
        .phase = ZC_WRITE_BUSY, .sync = true, .cover = zc_log_cover(log, 0), .cover_end = log->end};
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                  .id = ZC_LOG_SLOT_WRITE,
                                  .segment = log->current,
                                  .offset = log->end,
                                  .sync = true};
    return true;
}

/* Only the SEALs, so that it is on disk where the segment before ends. */
static bool seals_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    log->seals_now = false;
    if (!log->seals_due)
        return false;
    zc_segment_seals_encode(log->seals, zc_log_current(log), log->seq_max, log->seals_number,
                            log->seals_end);
    log->write = (struct zc_log_write){.phase = ZC_WRITE_BUSY,
                                       .data = log->seals,
                                       .len = sizeof(log->seals),
                                       .seals = true,
                                       .sync = true,
                                       .cover = zc_log_cover(log, 0),
                                       .cover_end = log->end + sizeof(log->seals)};
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                  .id = ZC_LOG_SLOT_WRITE,
                                  .segment = log->current,
                                  .offset = log->end,
                                  .data = log->seals,
                                  .len = sizeof(log->seals),
                                  .sync = true};
    return true;
}

/* When the fsync of SYNC_BATCH is due. */
static struct zc_mono batch_at(const struct zc_log *log)
{
    if (log->sync != ZC_LOG_SYNC_BATCH || !log->dirty || zc_log_writing(log) ||
        log->mend.phase != ZC_MEND_NONE)
        return ZC_NEVER;
    return zc_mono_add_ms(log->dirty_at, ZC_LOG_BATCH_MS);
}

struct zc_mono zc_log_write_deadline(const struct zc_log *log)
{
    return zc_mono_min(batch_at(log), log->poll_at);
}

static bool sync_due(const struct zc_log *log, struct zc_now now)
{
    if (!log->dirty)
        return false;
    return log->closing || log->batches.unsynced > ZC_LOG_UNSYNCED_MAX ||
           zc_log_clean_wants_sync(log) || batch_at(log).ns <= now.mono.ns;
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
static void urgency(struct zc_log *log, struct zc_now now, const struct zc_batch *b, uint32_t n,
                    struct zc_disk_op *op)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < n; i++)
        wanted += b->items[b->written + i].wanted;
    /* What follows goes to another segment, which must not be durable before this one. */
    bool last = b->written + n < b->count;
    bool always = log->sync == ZC_LOG_SYNC_ALWAYS;
    op->sync = log->verifying || last || sync_due(log, now) || (always && wanted > 0);
    log->write.sync = op->sync;
    log->write.eager = !always || wanted < n;
    op->inline_ok = op->sync ? always && wanted == 1 : op->len <= INLINE_MAX;
}

/* Puts n items of b at the end of the current segment, without sync. */
static void batch_op(struct zc_log *log, struct zc_log_write *w, struct zc_batch *b, uint32_t n,
                     size_t len, struct zc_disk_op *ret_op)
{
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
                                  .id = w == &log->write ? ZC_LOG_SLOT_WRITE : ZC_LOG_SLOT_BEHIND,
                                  .segment = log->current,
                                  .offset = log->end,
                                  .data = w->data,
                                  .len = w->len};
}

/* Records that want no sync, behind those that are being synced. */
static bool behind_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_batch *b = log->batches.at;
    size_t len;
    if (log->write.phase != ZC_WRITE_SYNCING || log->behind.phase != ZC_WRITE_IDLE ||
        log->write_err != 0 || log->closing || b == NULL)
        return false;
    uint32_t n = fit(log, b, true, &len);
    if (n == 0)
        return false;
    /* Those that want a sync go on gathering for the next one. It is not for the loop to write:
     * the file system may make it wait for the fsync. */
    zc_batch_split(&log->batches, b, b->written + n);
    batch_op(log, &log->behind, b, n, len, ret_op);
    return true;
}

/* Somebody waits for the disk to tell that the write at work has only its sync left. */
static bool poll_due(const struct zc_log *log)
{
    const struct zc_log_write *w = &log->write;
    const struct zc_batch *b = log->batches.at;
    if (w->phase != ZC_WRITE_BUSY || !w->sync || log->verifying || log->closing)
        return false;
    if (w->eager)
        return true;
    if (w->items > 0) {
        if (b->written + w->items < b->count)
            return false; /* for the next segment */
        b = b->next;
    }
    return b != NULL && b->written < b->count && !wants_sync(log, &b->items[b->written]);
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

/* The next write of the current segment, or of the next one. */
static bool next_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_write *w = &log->write;
    struct zc_batch *b = log->batches.at;
    if (zc_log_writing(log) || log->mend.phase != ZC_MEND_NONE || log->opening)
        return false;
    if (log->seals_now && (b == NULL || b->written == b->count) && seals_op(log, ret_op))
        return true;
    bool held = zc_log_clean_gathers(log) && log->others <= zc_log_cover(log, 0);
    if (b == NULL || b->written == b->count || held)
        return sync_due(log, now) && sync_op(log, ret_op);
    size_t len;
    uint32_t n = fit(log, b, false, &len);
    if (n == 0) {
        if (log->next.ready_count == 0)
            return sync_due(log, now) && sync_op(log, ret_op);
        /* In every mode: closing syncs the last segment only. */
        if (log->dirty)
            return sync_op(log, ret_op);
        zc_log_next_take(log);
        n = fit(log, b, false, &len);
        ZC_ASSERT(n > 0);
    }
    batch_op(log, w, b, n, len, ret_op);
    urgency(log, now, b, n, ret_op);
    w->cover = zc_log_cover(log, n);
    w->cover_end = log->end + w->len;
    return true;
}

bool zc_log_write_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    bool found = log->write.phase == ZC_WRITE_CHECK
                     ? check_op(log, now, ret_op)
                     : next_op(log, now, ret_op) || behind_op(log, ret_op);
    if (!poll_due(log))
        log->poll_at = ZC_NEVER;
    else if (log->poll_at.ns == ZC_NEVER.ns)
        log->poll_at = zc_mono_add_ms(now.mono, ZC_LOG_POLL_MS);
    return found;
}

void zc_log_write_cut(struct zc_log *log)
{
    struct zc_batch *b = log->batches.at;
    if (b == NULL || log->current == 0)
        return;
    uint64_t room = zc_log_current(log)->size;
    uint64_t end = log->end + (log->seals_due ? ZC_SEGMENT_SEALS : 0);
    bool told = log->write.phase == ZC_WRITE_IDLE || log->write.phase == ZC_WRITE_SYNCING;
    uint64_t busy = told ? 0 : log->write.items;
    busy += log->behind.phase == ZC_WRITE_IDLE ? 0 : log->behind.items;
    for (; b != NULL; b = b->next) {
        for (uint32_t i = b->written; i < b->count; i++) {
            end += b->items[i].size;
            if (busy > 0) {
                busy--;
            } else if (end > room) {
                log->failed_due = true;
                log->failed_above = b->ticket + i - 1;
                zc_log_moves_failed(log, log->failed_above);
                zc_batch_cut(&log->batches, b, i);
                return;
            }
        }
    }
}
