/*
 * The end of opening, when all was read: files that a crash left half-made are removed (damaged
 * ones set aside); the last segment is synced, because what was read may have been in the page
 * cache only and is about to be relied on; its torn tail is overwritten with zeros, so that nothing
 * in it can ever pass for a record behind later ones; last, a next segment.
 */
#include "store/log_priv.h"

#define PIECE (1u << 20)

static struct zc_segment *at_work(struct zc_log *log)
{
    return &log->segments.items[log->recover.index];
}

/* The segment that takes records from now on: the last that has any, else the first usable one. */
static uint32_t current_find(const struct zc_log *log)
{
    uint32_t first = 0, last = 0;
    for (uint32_t i = 0; i < log->segments.len; i++) {
        const struct zc_segment *s = &log->segments.items[i];
        if (!s->head_ok)
            continue;
        first = first == 0 ? s->number : first;
        last = s->end > ZC_SEGMENT_HEAD ? s->number : last;
    }
    return last != 0 ? last : first;
}

/* What is to become of one segment that is not the current one. */
static void segment_judge(struct zc_log *log, struct zc_segment *s)
{
    if (!s->head_ok) {
        /* Nothing behind the head: a crash while it was made. */
        s->damaged = s->dirty > ZC_SEGMENT_HEAD;
        s->doomed = true;
        log->counts.damaged += s->damaged;
        log->counts.damaged_bytes += s->damaged ? s->dirty : 0;
    } else if (s->number > log->current) {
        log->counts.torn_bytes += s->dirty - ZC_SEGMENT_HEAD;
        s->doomed = true;
    } else {
        s->sealed = true;
        zc_live_trim(&s->table);
        if (s->limit == 0 && s->dirty > s->end) {
            log->counts.damaged++;
            log->counts.damaged_bytes += s->dirty - s->end;
            s->damaged = true;
        }
    }
}

/* All is read: chooses the current and the next segment and what to remove. */
void zc_log_repair_start(struct zc_log *log)
{
    log->current = current_find(log);
    struct zc_segment *spare = NULL;
    for (uint32_t i = 0; i < log->segments.len; i++) {
        struct zc_segment *s = &log->segments.items[i];
        s->dirty = s->dirty < s->end ? s->end : s->dirty;
        s->dirty = s->head_ok && s->dirty > s->size ? s->size : s->dirty;
        if (s->number != log->current)
            segment_judge(log, s);
        if (s->head_ok && s->number > log->current && s->size >= log->segment_bytes / 2)
            spare = s;
    }
    struct zc_segment *current = zc_log_current(log);
    if (current != NULL) {
        log->end = log->safe = current->end;
        log->counts.torn_bytes += current->dirty - current->end;
    }
    if (spare != NULL && current != NULL) {
        spare->doomed = false;
        log->next.ready[0] = *spare;
        log->next.ready_count = 1;
        zc_segment_drop(&log->segments, spare->number);
    }
    zc_buf_done(&log->recover.scan.window);
    zc_log_load_done(log);
    zc_log_next_count(log);
    log->recover.phase = ZC_RECOVER_DROP;
    log->recover.index = 0;
}

static bool drop_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    while (r->index < log->segments.len && !at_work(log)->doomed)
        r->index++;
    if (r->index < log->segments.len) {
        *ret_op = (struct zc_disk_op){.kind = ZC_DISK_REMOVE,
                                      .segment = at_work(log)->number,
                                      .sync_dir = true,
                                      .aside = at_work(log)->damaged};
        return true;
    }
    r->phase = log->current != 0 ? ZC_RECOVER_SYNC : ZC_RECOVER_NEXT;
    return false;
}

/* The segment whose tail is to be overwritten: the current one, then the next one. */
static struct zc_segment *zero_segment(struct zc_log *log)
{
    if (log->recover.index == 0)
        return zc_log_current(log);
    return log->recover.index == 1 && log->next.ready_count > 0 ? &log->next.ready[0] : NULL;
}

/* Finds the next bytes to overwrite. When there are none a next segment is due. */
static void zero_find(struct zc_log *log)
{
    struct zc_log_recover *r = &log->recover;
    for (; r->index < 2; r->index++, r->zero_at = 0) {
        struct zc_segment *s = zero_segment(log);
        if (s != NULL && r->zero_at < s->end)
            r->zero_at = s->end;
        if (s != NULL && r->zero_at < s->dirty)
            return;
    }
    zc_buf_done(&r->scan.window);
    r->phase = ZC_RECOVER_NEXT;
    if (log->next.ready_count > 0)
        zc_log_repair_next(log, 0);
}

static bool zero_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    struct zc_segment *s = zero_segment(log);
    uint64_t left = s->dirty - r->zero_at;
    r->piece = left < PIECE ? (size_t)left : PIECE;
    if (zc_buf_reserve(&r->scan.window, PIECE) != 0) {
        zc_log_recover_fail(log, ZC_ENOMEM, s->number, " cannot be repaired");
        return false;
    }
    memset(r->scan.window.data, 0, r->piece);
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                  .segment = s->number,
                                  .offset = r->zero_at,
                                  .data = r->scan.window.data,
                                  .len = r->piece,
                                  .sync = r->piece == left};
    return true;
}

static void zero_input(struct zc_log *log, struct zc_now now, const struct zc_disk_completion *done)
{
    struct zc_log_recover *r = &log->recover;
    int err = zc_log_result(done, r->piece);
    if (err == 0) {
        r->zero_at += r->piece;
        zero_find(log);
        return;
    }
    zc_log_note(log, err, zero_segment(log)->number);
    if (r->index == 0)
        zc_log_mend_start(log, now, err);
    else
        zc_log_next_drop(log, now);
    r->index++;
    r->zero_at = 0;
    zero_find(log);
}

void zc_log_repair_next(struct zc_log *log, int err)
{
    if (log->recover.phase != ZC_RECOVER_NEXT || log->unusable)
        return;
    if (err != 0 && log->current == 0) {
        zc_log_recover_fail(log, err, 0, " cannot be made");
        return;
    }
    if (log->current == 0) {
        zc_log_next_take(log);
        return;
    }
    log->recover.phase = ZC_RECOVER_DONE;
    /* Once it is sealed it can have an index, and what is reported now is not reported again. */
    log->leave = zc_log_current(log)->damaged ? log->current : 0;
    log->index_due = true;
    log->opening = false;
    log->ready_due = true;
}

bool zc_log_repair_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    if (log->recover.phase == ZC_RECOVER_DROP && drop_op(log, ret_op))
        return true;
    if (log->recover.phase == ZC_RECOVER_SYNC) {
        *ret_op = (struct zc_disk_op){
            .kind = ZC_DISK_WRITE, .segment = log->current, .sync = true, .sync_dir = true};
        return true;
    }
    return log->recover.phase == ZC_RECOVER_ZERO && zero_op(log, ret_op);
}

void zc_log_repair_input(struct zc_log *log, struct zc_now now,
                         const struct zc_disk_completion *done)
{
    switch (log->recover.phase) {
    case ZC_RECOVER_DROP:
        /* When it cannot be removed now, the next opening tries again. */
        zc_segment_drop(&log->segments, at_work(log)->number);
        return;
    case ZC_RECOVER_SYNC:
        if (done->result < 0) {
            zc_log_recover_fail(log, (int)done->result, log->current, " cannot be synced");
            return;
        }
        log->counts.syncs++;
        log->recover.phase = ZC_RECOVER_ZERO;
        log->recover.index = 0;
        zero_find(log);
        return;
    case ZC_RECOVER_ZERO:
        zero_input(log, now, done);
        return;
    default:
        return;
    }
}
