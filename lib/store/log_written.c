/*
 * What the completions of writes mean. A record is written when its bytes are in the page cache,
 * and acknowledged when a sync that began after that is complete (or, when the caller chose so, as
 * soon as it is written). What was written while a sync went on waits for the next one.
 *
 *   waiting --written--> unsynced --sync complete--> kept (its memory is free)
 *      ^                    |
 *      `--- write or sync failed: all that is not kept is written to another segment
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/log_priv.h"

/* Tells the callers where their records lie. Those acknowledged earlier do not listen any more. */
static void places_set(struct zc_log *log, const struct zc_batch *b, uint32_t n, uint64_t offset)
{
    for (uint32_t i = b->written; i < b->written + n; i++) {
        struct zc_batch_item *item = &b->items[i];
        item->at = (uint64_t)log->current << 32 | offset;
        if (item->place != NULL && b->ticket + i > log->synced)
            *item->place = item->at;
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
        struct zc_batch_item *item = &b->items[i];
        log->synced = b->ticket + i;
        if (item->copy)
            zc_log_moves_written(log, log->synced, item->at, item->size);
        else if (item->kept)
            zc_log_list(log, s, (uint32_t)item->at, item->size, item->place, false);
        item->place = NULL;
    }
}

/* What is written of the tickets up to this one, which end there, is on disk or as good as that. */
static void kept(struct zc_log *log, uint64_t ticket, uint64_t end)
{
    for (struct zc_batch *b = log->batches.first; b != NULL && b->ticket <= ticket; b = b->next) {
        uint64_t n = ticket - b->ticket + 1;
        acknowledge(log, b, b->kept, n < b->written ? (uint32_t)n : b->written);
    }
    zc_batch_release(&log->batches, ticket);
    if (log->safe < end)
        log->safe = end;
}

/* The bytes of w are in the page cache. */
static void written(struct zc_log *log, struct zc_now now, const struct zc_log_write *w)
{
    struct zc_batch *b = log->batches.at;
    struct zc_segment *s = zc_log_current(log);
    if (w->len == 0)
        return;
    uint32_t from = w->items > 0 ? b->written : 0;
    if (w->items > 0) {
        places_set(log, b, w->items, log->end + (w->seals ? ZC_SEGMENT_SEALS : 0));
        zc_batch_written(&log->batches, w->items);
        if (log->written < b->ticket + b->written - 1)
            log->written = b->ticket + b->written - 1;
    }
    log->end += w->len;
    log->seals_due = log->seals_due && !w->seals;
    s->end = log->end;
    s->size = s->size < log->end ? log->end : s->size;
    if (!log->dirty)
        log->dirty_at = now.mono;
    log->dirty = true;
    if (log->sync != ZC_LOG_SYNC_ALWAYS) {
        if (w->items > 0)
            acknowledge(log, b, from, b->written);
        log->safe = log->end;
    }
    /* The disk may still look at the bytes of a write that syncs. */
    if (log->sync == ZC_LOG_SYNC_NEVER && !(log->write.phase != ZC_WRITE_IDLE && log->write.sync))
        kept(log, zc_log_cover(log, 0), log->end);
}

/* The write at work is complete (and compared, where that was due). */
static void complete(struct zc_log *log, struct zc_now now, struct zc_log_write *w)
{
    bool told = w->phase == ZC_WRITE_SYNCING;
    w->phase = ZC_WRITE_IDLE;
    /* Once the other one has failed, nothing more of this segment counts as written. */
    if (!told && log->write_err == 0)
        written(log, now, w);
    if (!w->sync)
        return;
    if (!told)
        log->dirty = false;
    log->counts.syncs++;
    kept(log, w->cover, w->cover_end);
    if (log->hard < w->cover)
        log->hard = w->cover;
    zc_log_moves_synced(log);
}

/* The bytes are written, the sync goes on. */
static void told_written(struct zc_log *log, struct zc_now now, struct zc_log_write *w)
{
    /* What is to be read back counts when that is done. */
    if (w->phase != ZC_WRITE_BUSY || !w->sync || log->verifying)
        return;
    written(log, now, w);
    log->dirty = false;
    w->phase = ZC_WRITE_SYNCING;
}

/* Reads back: true when w has to wait for it, or was compared and is the same. */
static bool checked(struct zc_log *log, struct zc_log_write *w, int *err)
{
    if (w->phase == ZC_WRITE_CHECKING) {
        if (*err == 0 && memcmp(w->check, w->data, w->len) != 0)
            *err = ZC_EIO;
        free(w->check);
        w->check = NULL;
        return true;
    }
    return *err != 0 || !log->verifying || w->len == 0;
}

void zc_log_written_input(struct zc_log *log, struct zc_now now,
                          const struct zc_disk_completion *done)
{
    struct zc_log_write *w = done->id == ZC_LOG_SLOT_BEHIND ? &log->behind : &log->write;
    int err = zc_log_result(done, w->len);
    if (done->written) {
        told_written(log, now, w);
        return;
    }
    if (!checked(log, w, &err)) {
        w->phase = ZC_WRITE_CHECK;
        return;
    }
    if (err == 0)
        complete(log, now, w);
    else if (log->write_err == 0)
        log->write_err = err;
    w->phase = ZC_WRITE_IDLE;
    /* The disk still reads the bytes of the other one. */
    if (log->write_err == 0 || zc_log_writing(log))
        return;
    err = log->write_err;
    log->write_err = 0;
    zc_log_mend_start(log, now, err);
}
