/* The face of the durable log; the picture is in log.h, the parts in log_priv.h. */
#include <stdlib.h>

#include "base/check.h"
#include "store/log_priv.h"

#define SEGMENT_MIN (UINT64_C(64) << 10)
#define SEGMENT_MAX (UINT64_C(1) << 30)

/* Enters the files that were found. */
static int segments_enter(struct zc_log *log, const struct zc_log_config *config)
{
    for (uint32_t i = 0; i < config->segments_count; i++) {
        uint32_t number = config->segments[i];
        if (number == 0 || zc_segment_find(&log->segments, number) != NULL)
            continue;
        if (zc_segment_reserve(&log->segments) != 0)
            return ZC_ENOMEM;
        zc_segment_add(&log->segments, number);
        if (number > log->number_max)
            log->number_max = number;
    }
    return 0;
}

struct zc_log *zc_log_new(const struct zc_log_config *config, struct zc_rng *rng)
{
    struct zc_log *log = calloc(1, sizeof(*log));
    if (log == NULL)
        return NULL;
    log->sync = config->sync;
    log->body_head = config->body_head;
    log->segment_bytes = config->segment_bytes & ~(uint64_t)4095;
    if (log->segment_bytes < SEGMENT_MIN)
        log->segment_bytes = SEGMENT_MIN;
    if (log->segment_bytes > SEGMENT_MAX)
        log->segment_bytes = SEGMENT_MAX;
    log->rng = rng;
    log->opening = true;
    log->state = ZC_LOG_OK;
    log->next.at = log->trim_at = (struct zc_mono){0};
    log->poll_at = ZC_NEVER;
    if (segments_enter(log, config) != 0) {
        zc_log_free(log);
        return NULL;
    }
    return log;
}

void zc_log_free(struct zc_log *log)
{
    if (log == NULL)
        return;
    zc_batch_done(&log->batches);
    zc_segment_done(&log->segments);
    zc_log_read_done(log);
    zc_log_clean_done(log);
    zc_log_index_done(log);
    zc_log_load_done(log);
    zc_buf_done(&log->recover.scan.window);
    free(log->write.check);
    free(log);
}

uint64_t zc_log_room(const struct zc_log *log, uint64_t size)
{
    const struct zc_log_next *n = &log->next;
    uint64_t end = log->end + log->batches.waiting + (log->seals_due ? ZC_SEGMENT_SEALS : 0);
    uint64_t room = zc_log_current(log)->size;
    /* What does not fit at the end of one begins the other. */
    uint64_t lost = ZC_SEGMENT_START + (size > log->largest ? size : log->largest);
    if (n->ready_count > 0 && n->ready[0].size > lost)
        room += n->ready[0].size - lost;
    return end < room ? room - end : 0;
}

/* A record of this size is welcome: 0 or why not. */
static int welcome(const struct zc_log *log, bool put, size_t size)
{
    if (log->opening)
        return ZC_EAGAIN;
    if (log->closing)
        return ZC_ECLOSED;
    /* Until the failure was told, a new ticket could be taken for one of those that failed. */
    if (log->state == ZC_LOG_ERROR || log->failed_due)
        return ZC_EIO;
    if (log->state != ZC_LOG_FULL)
        return 0;
    return put || size > zc_log_room(log, size) ? ZC_ENOSPC : 0;
}

static int64_t append(struct zc_log *log, enum zc_record_type type, uint64_t seq,
                      struct zc_slice body, bool sync_wanted, uint64_t *place)
{
    ZC_ASSERT(type != ZC_RECORD_SEAL && zc_record_shape_ok(type, body.len));
    int err = zc_batch_append(&log->batches, log->ticket + 1, type, seq, body, sync_wanted, place);
    if (err != 0)
        return err;
    zc_log_seq_note(log, seq);
    log->appended += zc_record_size(body.len);
    if (log->largest < zc_record_size(body.len))
        log->largest = zc_record_size(body.len);
    log->others = ++log->ticket;
    return (int64_t)log->ticket;
}

int64_t zc_log_append(struct zc_log *log, enum zc_record_type type, uint64_t seq,
                      struct zc_slice body, bool sync_wanted, uint64_t *place)
{
    int err = welcome(log, zc_record_kept(type), zc_record_size(body.len));
    return err != 0 ? err : append(log, type, seq, body, sync_wanted, place);
}

int64_t zc_log_append_again(struct zc_log *log, uint64_t seq, struct zc_slice body, uint64_t *place)
{
    int err = welcome(log, false, zc_record_size(body.len));
    return err != 0 ? err : append(log, ZC_RECORD_PUT, seq, body, true, place);
}

int zc_log_would_put(const struct zc_log *log, size_t body_len)
{
    return body_len > ZC_RECORD_BODY_MAX ? ZC_ELIMIT : welcome(log, true, zc_record_size(body_len));
}

bool zc_log_backlogged(const struct zc_log *log)
{
    return log->batches.waiting + log->batches.unsynced > ZC_LOG_BACKLOG;
}

void zc_log_own(struct zc_log *log, uint64_t place, uint64_t *owner)
{
    struct zc_segment *s =
        log->recover.phase == ZC_RECOVER_SCAN ? &log->segments.items[log->recover.index] : NULL;
    /* While a log opens it is mostly the record that was told last. */
    if (s == NULL || s->number != place >> 32)
        s = zc_segment_find(&log->segments, (uint32_t)(place >> 32));
    struct zc_live_item *item = s == NULL ? NULL : zc_live_find(&s->table, (uint32_t)place);
    if (item != NULL)
        item->owner = owner;
}

void zc_log_forget(struct zc_log *log, uint64_t place)
{
    struct zc_segment *s = zc_segment_find(&log->segments, (uint32_t)(place >> 32));
    ZC_ASSERT(s != NULL && s->live > 0);
    struct zc_live_item *item = zc_live_find(&s->table, (uint32_t)place);
    if (item != NULL && item->moving)
        zc_log_moves_gone(log, place);
    zc_log_unlist(log, s, item);
}

void zc_log_list(struct zc_log *log, struct zc_segment *s, uint64_t offset, uint32_t size,
                 uint64_t *owner, bool coming)
{
    s->live++;
    if (zc_live_add(&s->table, offset, size, owner, coming) != 0) {
        s->unlisted++;
        return;
    }
    s->live_bytes += size;
    log->live_bytes += size;
}

void zc_log_unlist(struct zc_log *log, struct zc_segment *s, struct zc_live_item *item)
{
    s->live--;
    if (item == NULL) {
        ZC_ASSERT(s->unlisted > 0);
        s->unlisted--;
        return;
    }
    s->live_bytes -= item->size;
    log->live_bytes -= item->size;
    zc_live_drop(&s->table, item);
}

int64_t zc_log_move(struct zc_log *log, enum zc_record_type type, uint64_t seq,
                    struct zc_slice body)
{
    int err = zc_log_moves_room(log, zc_record_size(body.len));
    if (err == 0)
        err = welcome(log, false, zc_record_size(body.len));
    if (err != 0)
        return err;
    uint64_t others = log->others;
    int64_t ticket = append(log, type, seq, body, true, NULL);
    if (ticket > 0) {
        log->others = others;
        struct zc_batch *b = log->batches.last;
        b->items[b->count - 1].copy = true;
        log->appended -= zc_record_size(body.len);
        zc_log_moves_add(log, (uint64_t)ticket);
    }
    return ticket;
}

static bool next_busy(const struct zc_log *log)
{
    return log->next.phase == ZC_NEXT_CREATING || log->next.phase == ZC_NEXT_HEADING ||
           log->next.phase == ZC_NEXT_DROPPING;
}

/* Nothing is with the disk. */
static bool quiet(const struct zc_log *log)
{
    bool mend = log->mend.phase == ZC_MEND_LEAVING || log->mend.phase == ZC_MEND_WRITING ||
                log->mend.phase == ZC_MEND_CHECKING;
    return !next_busy(log) && !mend && !zc_log_writing(log) && log->trimming == 0 &&
           !log->recover.busy && log->reads.busy == 0 && log->clean.phase != ZC_CLEAN_READING &&
           !zc_log_index_busy(log, 0);
}

/* Ends a close when nothing is left to do. */
static void settle(struct zc_log *log)
{
    if (!log->closing || log->state == ZC_LOG_CLOSED || !quiet(log))
        return;
    if (!log->opening && (log->batches.waiting > 0 || log->dirty || log->mend.leave))
        return;
    log->opening = false;
    zc_log_state_set(log, ZC_LOG_CLOSED);
}

bool zc_log_tidying(const struct zc_log *log)
{
    return log->clean.phase == ZC_CLEAN_READING || zc_log_index_busy(log, 0);
}

/* One more request besides writes may go to the disk. */
static bool beside_room(const struct zc_log *log)
{
    uint32_t busy = (uint32_t)next_busy(log) + (uint32_t)zc_log_tidying(log) +
                    (uint32_t)(log->trimming != 0) + log->reads.given;
    return busy < ZC_LOG_BESIDE;
}

bool zc_log_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    if (log->state == ZC_LOG_CLOSED)
        return false;
    if (log->opening && zc_log_recover_op(log, ret_op))
        return true;
    zc_log_clean_leave(log);
    if (zc_log_write_op(log, now, ret_op) || zc_log_mend_op(log, now, ret_op))
        return true;
    if (!beside_room(log))
        return false;
    bool idle = !zc_log_tidying(log);
    return zc_log_next_op(log, now, ret_op) || zc_log_next_trim_op(log, now, ret_op) ||
           (idle && (zc_log_clean_op(log, now, ret_op) || zc_log_index_op(log, ret_op))) ||
           zc_log_read_op(log, ret_op) ||
           /* What a round has gathered that has just ended. */
           zc_log_write_op(log, now, ret_op);
}

void zc_log_input(struct zc_log *log, struct zc_now now, const struct zc_disk_completion *done)
{
    /* Nobody else has a use for it. */
    if (done->written && done->id != ZC_LOG_SLOT_WRITE)
        return;
    switch (done->id) {
    case ZC_LOG_SLOT_WRITE:
    case ZC_LOG_SLOT_BEHIND:
        zc_log_written_input(log, now, done);
        break;
    case ZC_LOG_SLOT_NEXT:
        zc_log_next_input(log, now, done);
        break;
    case ZC_LOG_SLOT_TRIM:
        zc_log_next_trim_input(log, now, done);
        break;
    case ZC_LOG_SLOT_MEND:
        zc_log_mend_input(log, now, done);
        break;
    case ZC_LOG_SLOT_RECOVER:
        zc_log_recover_input(log, now, done);
        break;
    case ZC_LOG_SLOT_CLEAN:
        zc_log_clean_input(log, done);
        break;
    case ZC_LOG_SLOT_INDEX:
        zc_log_index_input(log, done);
        break;
    default:
        zc_log_read_input(log, done);
        break;
    }
    settle(log);
}

void zc_log_tick(struct zc_log *log, struct zc_now now)
{
    /* What is due by the clock comes out of zc_log_op. */
    if (log->poll_at.ns <= now.mono.ns)
        log->poll_at = ZC_NEVER;
}

struct zc_mono zc_log_deadline(const struct zc_log *log)
{
    /* An event that came of a request: a tick brings the user here. */
    if (log->ready_due || log->state_due || log->unusable_due || log->failed_due)
        return (struct zc_mono){0};
    if (log->state == ZC_LOG_CLOSED)
        return ZC_NEVER;
    struct zc_mono at = ZC_NEVER;
    if (beside_room(log))
        at = zc_mono_min(zc_log_next_deadline(log), zc_log_clean_deadline(log));
    return zc_mono_min(zc_log_write_deadline(log), zc_mono_min(at, zc_log_mend_deadline(log)));
}

static bool emit(struct zc_log_event *ret_event, enum zc_log_event_kind kind, uint64_t ticket)
{
    *ret_event = (struct zc_log_event){.kind = kind, .ticket = ticket};
    return true;
}

/* FAILED: what is above counts as gone, so that later tickets stand for themselves. */
static bool emit_failed(struct zc_log *log, struct zc_log_event *ret_event)
{
    log->failed_due = false;
    if (log->batches.waiting + log->batches.unsynced == 0 && !zc_log_writing(log)) {
        log->written = log->synced = log->ticket;
        log->written_told = log->synced_told = log->ticket;
    }
    return emit(ret_event, ZC_LOG_FAILED, log->failed_above);
}

bool zc_log_event(struct zc_log *log, struct zc_log_event *ret_event)
{
    if (log->unusable_due) {
        log->unusable_due = false;
        emit(ret_event, ZC_LOG_UNUSABLE, 0);
        ret_event->err = log->unusable_err;
        ret_event->text = log->unusable_text;
        return true;
    }
    if (log->opening && zc_log_recover_event(log, ret_event))
        return true;
    settle(log);
    if (log->ready_due) {
        log->ready_due = false;
        return emit(ret_event, ZC_LOG_READY, 0);
    }
    if (log->written_told < log->written)
        return emit(ret_event, ZC_LOG_WRITTEN, log->written_told = log->written);
    if (log->synced_told < log->synced)
        return emit(ret_event, ZC_LOG_SYNCED, log->synced_told = log->synced);
    if (log->failed_due)
        return emit_failed(log, ret_event);
    if (log->state_due) {
        log->state_due = false;
        return emit(ret_event, ZC_LOG_STATE, 0);
    }
    return zc_log_read_event(log, ret_event) || zc_log_clean_event(log, ret_event);
}

void zc_log_close(struct zc_log *log, struct zc_now now)
{
    log->closing = true;
    log->next.at = log->state == ZC_LOG_OK ? now.mono : log->next.at;
    settle(log);
}

void zc_log_status(const struct zc_log *log, struct zc_log_status *ret_status)
{
    *ret_status = log->counts;
    ret_status->state = log->opening ? ZC_LOG_OPENING : log->state;
    for (uint32_t i = 0; i < log->segments.len; i++)
        ret_status->bytes += log->segments.items[i].size;
    ret_status->segments = log->segments.len;
    ret_status->live_bytes = log->live_bytes;
    for (uint32_t i = 0; i < log->next.ready_count; i++) {
        ret_status->bytes += log->next.ready[i].size;
        ret_status->segments++;
    }
}

uint64_t zc_log_seq_max(const struct zc_log *log)
{
    return log->seq_max;
}

void zc_log_seq_note(struct zc_log *log, uint64_t seq)
{
    if (seq > log->seq_max)
        log->seq_max = seq;
}
