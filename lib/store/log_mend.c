/*
 * After a failed write or fsync. What the kernel did with the pages is unknown, so nothing more is
 * ever acknowledged from that segment: it ends where the last acknowledged record ends. The log
 * moves to the next segment: first the SEALs that say so, synced and read back; then, again, every
 * record that was not acknowledged, each write read back while that segment lasts. When this fails
 * too, or no segment can be had, those records fail and the state is ERROR; each second another
 * fresh segment is tried. Where records were acknowledged without a sync, the segment is synced
 * once before it is left, for what that is worth.
 *
 *   NONE --failure--> WAIT --next segment ready--> WRITING -> CHECK -> CHECKING --same--> NONE
 *                      ^  `--none to be had--> ERROR, WAIT        |
 *                      `------- ERROR, one second later ----------'
 */
#include "store/log_priv.h"

/* Gives up on all that is not acknowledged. */
static void give_up(struct zc_log *log, struct zc_now now)
{
    if (log->mend.phase != ZC_MEND_LEAVING)
        log->mend.phase = ZC_MEND_WAIT;
    log->mend.at = zc_mono_add_ms(now.mono, ZC_LOG_RETRY_MS);
    if (log->state == ZC_LOG_ERROR)
        return;
    zc_batch_clear(&log->batches);
    zc_log_moves_failed(log, log->synced);
    log->failed_due = true;
    log->failed_above = log->synced;
    zc_log_state_set(log, ZC_LOG_ERROR);
}

void zc_log_mend_start(struct zc_log *log, struct zc_now now, int err)
{
    struct zc_segment *s = zc_log_current(log);
    bool again = log->verifying;
    zc_log_note(log, err, log->current);
    s->end = log->end = log->safe;
    log->mend.leave = log->dirty && log->sync != ZC_LOG_SYNC_ALWAYS;
    log->dirty = false;
    log->verifying = false;
    zc_batch_rewind(&log->batches);
    zc_log_moves_failed(log, UINT64_MAX);
    log->mend.phase = ZC_MEND_WAIT;
    log->mend.at = now.mono;
    if (again || (!zc_log_next_coming(log) && !log->opening))
        give_up(log, now);
}

void zc_log_mend_no_next(struct zc_log *log, struct zc_now now)
{
    give_up(log, now);
}

bool zc_log_mend_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_mend *m = &log->mend;
    const struct zc_segment *s = &log->next.ready[0];
    if (log->opening)
        return false;
    *ret_op = (struct zc_disk_op){.id = ZC_LOG_SLOT_MEND, .segment = s->number};
    if (m->phase == ZC_MEND_WAIT && m->leave) {
        ret_op->segment = log->current;
        ret_op->kind = ZC_DISK_WRITE;
        ret_op->offset = log->safe;
        ret_op->sync = true;
        m->leave = false;
        m->phase = ZC_MEND_LEAVING;
        return true;
    }
    if (m->phase == ZC_MEND_WAIT && log->next.ready_count > 0 && log->next.drop == 0 &&
        now.mono.ns >= m->at.ns && !(log->closing && log->state == ZC_LOG_ERROR)) {
        zc_segment_head_encode(m->want, s);
        zc_segment_seals_encode(m->want + ZC_SEGMENT_HEAD, s, log->seq_max, log->current,
                                log->safe);
        ret_op->kind = ZC_DISK_WRITE;
        ret_op->offset = ZC_SEGMENT_HEAD;
        ret_op->data = m->want + ZC_SEGMENT_HEAD;
        ret_op->len = ZC_SEGMENT_SEALS;
        ret_op->sync = true;
        m->phase = ZC_MEND_WRITING;
        return true;
    }
    if (m->phase == ZC_MEND_CHECK) {
        ret_op->kind = ZC_DISK_READ;
        ret_op->data = m->got;
        ret_op->len = sizeof(m->got);
        ret_op->uncached = true;
        m->phase = ZC_MEND_CHECKING;
        return true;
    }
    return false;
}

void zc_log_mend_input(struct zc_log *log, struct zc_now now, const struct zc_disk_completion *done)
{
    struct zc_log_mend *m = &log->mend;
    if (m->phase == ZC_MEND_LEAVING) {
        /* The failure was told already. */
        m->phase = ZC_MEND_WAIT;
        log->counts.syncs += done->result >= 0;
        return;
    }
    bool checking = m->phase == ZC_MEND_CHECKING;
    int err = zc_log_result(done, checking ? sizeof(m->got) : ZC_SEGMENT_SEALS);
    if (err == 0 && checking && memcmp(m->want, m->got, sizeof(m->got)) != 0)
        err = ZC_EIO;
    if (err != 0) {
        zc_log_note(log, err, log->next.ready[0].number);
        zc_log_next_drop(log, now);
        give_up(log, now);
        return;
    }
    if (!checking) {
        log->counts.syncs++;
        m->phase = ZC_MEND_CHECK;
        return;
    }
    zc_log_next_take(log);
    log->seals_due = false;
    log->end = log->safe = ZC_SEGMENT_START;
    zc_log_current(log)->end = log->end;
    log->verifying = true;
    m->phase = ZC_MEND_NONE;
    zc_log_state_set(log, ZC_LOG_OK);
}

struct zc_mono zc_log_mend_deadline(const struct zc_log *log)
{
    if (log->mend.phase != ZC_MEND_WAIT || log->next.ready_count == 0 || log->closing)
        return ZC_NEVER;
    return log->mend.at;
}
