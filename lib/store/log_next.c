/*
 * The next segment is made ahead of need: created, its head written, file and directory synced. A
 * log of some size has a second one in reserve, so that when the disk is full removals have room,
 * and so have the copies with which useless segments are turned into free ones. While one of them
 * cannot be had the log is FULL and tries again each second and whenever a segment went away.
 *
 * Consumed segments are removed from the oldest on only. A REMOVE speaks of messages in its own or
 * older segments; were a segment with REMOVEs deleted before the one that holds the messages, they
 * would come back. The directory is synced after each removal, so that a crash cannot undo an
 * earlier one and keep a later one.
 */
#include "base/check.h"
#include "store/log_priv.h"

bool zc_log_next_coming(const struct zc_log *log)
{
    return log->next.ready_count > 0 || log->next.phase == ZC_NEXT_CREATING ||
           log->next.phase == ZC_NEXT_HEAD || log->next.phase == ZC_NEXT_HEADING;
}

/* It failed: the log lives without a next segment for a while. */
static void failed(struct zc_log *log, struct zc_now now, int err)
{
    struct zc_log_next *n = &log->next;
    zc_log_note(log, err, n->segment.number);
    n->at = zc_mono_add_ms(now.mono, ZC_LOG_RETRY_MS);
    if (log->mend.phase != ZC_MEND_NONE) {
        if (n->ready_count == 0)
            zc_log_mend_no_next(log, now);
    } else if (log->state == ZC_LOG_OK && log->current != 0) {
        zc_log_state_set(log, ZC_LOG_FULL);
        log->largest = 0;
        zc_log_write_cut(log);
    }
    zc_log_repair_next(log, err);
}

/* As many as wanted are there. */
static void settle(struct zc_log *log)
{
    if (log->state == ZC_LOG_FULL && log->mend.phase == ZC_MEND_NONE &&
        log->next.ready_count >= zc_log_ready_wanted(log))
        zc_log_state_set(log, ZC_LOG_OK);
}

void zc_log_next_drop(struct zc_log *log, struct zc_now now)
{
    struct zc_log_next *n = &log->next;
    ZC_ASSERT(n->ready_count > 0);
    n->at = zc_mono_add_ms(now.mono, ZC_LOG_RETRY_MS);
    n->drop = n->ready[0].number;
    n->ready[0] = n->ready[1];
    n->ready_count--;
}

/* Begins with a new segment. */
static bool create_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_next *n = &log->next;
    if (now.mono.ns < n->at.ns || log->number_max == UINT32_MAX)
        return false;
    /* Room in the table is taken now, so that using the segment cannot fail. */
    if (zc_segment_reserve(&log->segments) != 0) {
        failed(log, now, ZC_ENOMEM);
        return false;
    }
    n->segment = (struct zc_segment){.number = ++log->number_max,
                                     .head_ok = true,
                                     .salt = zc_rng_u64(log->rng),
                                     .seq = log->seq_max,
                                     .size = log->segment_bytes,
                                     .end = ZC_SEGMENT_HEAD};
    zc_segment_head_encode(n->head, &n->segment);
    n->phase = ZC_NEXT_CREATING;
    *ret_op = (struct zc_disk_op){
        .kind = ZC_DISK_CREATE, .segment = n->segment.number, .size = n->segment.size};
    return true;
}

static bool head_op(struct zc_log_next *n, struct zc_disk_op *ret_op)
{
    n->phase = ZC_NEXT_HEADING;
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                  .segment = n->segment.number,
                                  .data = n->head,
                                  .len = sizeof(n->head),
                                  .sync = true,
                                  .sync_dir = true};
    return true;
}

static bool create_wanted(const struct zc_log *log)
{
    if (log->opening)
        return log->recover.phase >= ZC_RECOVER_NEXT && log->next.ready_count == 0;
    if (log->closing)
        return log->next.ready_count == 0 && log->state == ZC_LOG_OK && log->batches.waiting > 0;
    return log->next.ready_count < zc_log_ready_wanted(log);
}

bool zc_log_next_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_next *n = &log->next;
    bool found = false;
    if (log->unusable || (log->opening && log->recover.phase < ZC_RECOVER_ZERO))
        return false;
    if (n->phase == ZC_NEXT_NONE && n->drop != 0) {
        n->segment = (struct zc_segment){.number = n->drop};
        n->drop = 0;
        n->phase = ZC_NEXT_DROP;
    } else if (n->phase == ZC_NEXT_NONE && !log->opening && !log->closing &&
               log->segments.len < 3 && n->ready_count > 1) {
        /* The log has become small: its reserve goes. */
        n->segment = n->ready[--n->ready_count];
        n->phase = ZC_NEXT_DROP;
    }
    if (n->phase == ZC_NEXT_DROP) {
        n->phase = ZC_NEXT_DROPPING;
        *ret_op = (struct zc_disk_op){
            .kind = ZC_DISK_REMOVE, .segment = n->segment.number, .sync_dir = true};
        found = true;
    } else if (n->phase == ZC_NEXT_NONE) {
        found = create_wanted(log) && create_op(log, now, ret_op);
    } else if (n->phase == ZC_NEXT_HEAD) {
        found = head_op(n, ret_op);
    }
    if (found)
        ret_op->id = ZC_LOG_SLOT_NEXT;
    return found;
}

void zc_log_next_input(struct zc_log *log, struct zc_now now, const struct zc_disk_completion *done)
{
    struct zc_log_next *n = &log->next;
    int err = zc_log_result(done, n->phase == ZC_NEXT_HEADING ? sizeof(n->head) : 0);
    switch (n->phase) {
    case ZC_NEXT_CREATING:
        n->phase = err == 0 ? ZC_NEXT_HEAD : ZC_NEXT_NONE;
        /* A file that an earlier removal left: the next number is tried at once. */
        if (err != 0 && err != ZC_EEXIST)
            failed(log, now, err);
        return;
    case ZC_NEXT_HEADING:
        if (err != 0) {
            n->phase = ZC_NEXT_DROP;
            failed(log, now, err);
            return;
        }
        log->counts.syncs++;
        n->phase = ZC_NEXT_NONE;
        n->ready[n->ready_count++] = n->segment;
        settle(log);
        zc_log_repair_next(log, 0);
        return;
    case ZC_NEXT_DROPPING:
        /* When it cannot be removed it stays, empty; the next opening removes it. */
        n->phase = ZC_NEXT_NONE;
        return;
    default:
        return;
    }
}

void zc_log_next_take(struct zc_log *log)
{
    struct zc_log_next *n = &log->next;
    ZC_ASSERT(n->ready_count > 0);
    struct zc_segment *before = zc_log_current(log);
    if (before != NULL) {
        before->sealed = true;
        zc_live_trim(&before->table);
        before->end = log->safe;
        log->seals_number = before->number;
        log->seals_end = before->end;
    }
    log->seals_due = before != NULL;
    ZC_ASSERT(zc_segment_reserve(&log->segments) == 0);
    *zc_segment_add(&log->segments, n->ready[0].number) = n->ready[0];
    log->current = n->ready[0].number;
    log->end = log->safe = n->ready[0].end;
    log->dirty = false;
    log->verifying = false;
    n->ready[0] = n->ready[1];
    n->ready_count--;
    n->at = (struct zc_mono){0};
    zc_log_next_count(log);
    log->index_due = true;
}

void zc_log_next_count(struct zc_log *log)
{
    log->sealed_bytes = 0;
    for (uint32_t i = 0; i < log->segments.len; i++)
        if (log->segments.items[i].number != log->current)
            log->sealed_bytes += log->segments.items[i].size;
}

/* The oldest segment when nothing in it is wanted any more, or 0. */
static uint32_t consumed(const struct zc_log *log)
{
    if (log->segments.len == 0 || log->opening || log->closing)
        return 0;
    const struct zc_segment *s = &log->segments.items[0];
    if (s->number == log->current || s->live > 0 || s->reads > 0 ||
        zc_log_clean_holds(log, s->number) || zc_log_index_busy(log, s->number))
        return 0;
    return s->number;
}

bool zc_log_next_trim_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    uint32_t number = consumed(log);
    if (number == 0 || log->trimming != 0 || now.mono.ns < log->trim_at.ns)
        return false;
    log->trimming = number;
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_REMOVE,
                                  .id = ZC_LOG_SLOT_TRIM,
                                  .segment = number,
                                  .sync_dir = true,
                                  .aside = zc_segment_find(&log->segments, number)->damaged};
    return true;
}

void zc_log_next_trim_input(struct zc_log *log, struct zc_now now,
                            const struct zc_disk_completion *done)
{
    uint32_t number = log->trimming;
    log->trimming = 0;
    if (done->result < 0 && done->result != ZC_ENOENT) {
        zc_log_note(log, (int)done->result, number);
        log->trim_at = zc_mono_add_ms(now.mono, ZC_LOG_RETRY_MS);
        return;
    }
    zc_segment_drop(&log->segments, number);
    zc_log_next_count(log);
    /* There is room now. */
    log->next.at = now.mono;
    settle(log);
}

struct zc_mono zc_log_next_deadline(const struct zc_log *log)
{
    struct zc_mono at = ZC_NEVER;
    if (log->unusable || log->closing || (log->opening && log->recover.phase < ZC_RECOVER_NEXT))
        return at;
    if (log->next.phase == ZC_NEXT_NONE && create_wanted(log))
        at = log->next.at;
    if (consumed(log) != 0 && log->trimming == 0)
        at = zc_mono_min(at, log->trim_at);
    return at;
}
