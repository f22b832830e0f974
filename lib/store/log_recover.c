/*
 * Opening a log. In order: the heads of all segments (salts, and where SEALs end others); then the
 * records, segment by segment, given out as events in log order while at most one piece of one file
 * is in memory; then repair: files that a crash left half-made are removed, the last segment is
 * synced (what was read may have been in the page cache only, and is about to be relied on), its
 * torn tail is overwritten with zeros so that nothing in it can ever pass for a record behind later
 * ones; last, a next segment.
 *
 *   HEADS -> SCAN -> DROP -> SYNC -> ZERO -> NEXT -> DONE
 */
#include "base/check.h"
#include "store/log_priv.h"

#define PIECE (1u << 20)
/* Around a block that cannot be read the log reads in pieces of this size, and gives up after so
 * many unreadable ones in a row: that is a dead disk, not a bad block. */
#define PIECE_CAREFUL 4096u
#define HOLES_MAX 64

static struct zc_segment *at_work(struct zc_log *log)
{
    return &log->segments.items[log->recover.index];
}

static size_t text_add(char *ret_text, size_t len, size_t cap, const char *s)
{
    while (*s != '\0' && len + 1 < cap)
        ret_text[len++] = *s++;
    ret_text[len] = '\0';
    return len;
}

void zc_log_recover_fail(struct zc_log *log, int err, uint32_t segment, const char *why)
{
    size_t cap = sizeof(log->unusable_text), n = 0;
    char name[ZC_DISK_NAME_MAX];
    zc_disk_name(segment, name);
    n = text_add(log->unusable_text, n, cap, segment != 0 ? name : "the first segment");
    n = text_add(log->unusable_text, n, cap, why);
    n = text_add(log->unusable_text, n, cap, ": ");
    text_add(log->unusable_text, n, cap, zc_err_text(err));
    log->unusable = true;
    log->unusable_due = true;
    log->unusable_err = err;
    zc_log_note(log, err, segment);
}

static void seq_note(struct zc_log *log, uint64_t seq)
{
    if (seq > log->seq_max)
        log->seq_max = seq;
}

/* HEADS: one head was read. */
static void head_input(struct zc_log *log, const struct zc_disk_completion *done)
{
    struct zc_log_recover *r = &log->recover;
    struct zc_segment *s = at_work(log);
    if (done->result < 0) {
        zc_log_recover_fail(log, (int)done->result, s->number, " cannot be read");
        return;
    }
    memset(r->head + done->result, 0, sizeof(r->head) - (size_t)done->result);
    int err = zc_segment_head_decode(r->head, s);
    if (err == ZC_EINVAL) {
        zc_log_recover_fail(log, err, s->number,
                            " was written by a newer version of this program; use that version");
        return;
    }
    s->head_ok = err == 0;
    if (s->head_ok)
        seq_note(log, s->seq);
    uint64_t seq, end;
    uint32_t number;
    if (s->head_ok &&
        zc_segment_seals_decode(r->head + ZC_SEGMENT_HEAD, s, &seq, &number, &end) == 0) {
        struct zc_segment *before = zc_segment_find(&log->segments, number);
        seq_note(log, seq);
        if (before != NULL && number < s->number && end >= ZC_SEGMENT_HEAD)
            before->limit = end;
    }
    r->index++;
}

/* Begins with the records of the segment at work. */
static void scan_start(struct zc_log *log)
{
    struct zc_segment *s = at_work(log);
    zc_log_scan_start(&log->recover.scan, s->limit != 0 ? s->limit : UINT64_MAX);
    log->recover.over = false;
    log->recover.careful_until = 0;
    log->recover.holes = 0;
}

/* SCAN: the next piece of the file at work. */
static bool scan_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    struct zc_log_scan *scan = &r->scan;
    if (scan->eof || (!r->over && scan->pos + scan->need <= scan->window.len))
        return false;
    /* What was scanned makes room. */
    size_t used = scan->pos < scan->window.len ? scan->pos : scan->window.len;
    zc_buf_consume(&scan->window, used);
    scan->window_at += used;
    scan->pos -= used;
    uint64_t offset = scan->window_at + scan->window.len;
    r->piece = offset < r->careful_until ? PIECE_CAREFUL : PIECE;
    if (zc_buf_reserve(&scan->window, r->piece) != 0) {
        zc_log_recover_fail(log, ZC_ENOMEM, at_work(log)->number, " cannot be read");
        return false;
    }
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_READ,
                                  .segment = at_work(log)->number,
                                  .offset = offset,
                                  .data = scan->window.data + scan->window.len,
                                  .len = r->piece};
    return true;
}

/* A piece could not be read: tries smaller ones, and takes a bad block for zeros. */
static void scan_hole(struct zc_log *log)
{
    struct zc_log_recover *r = &log->recover;
    struct zc_buf *window = &r->scan.window;
    uint64_t offset = r->scan.window_at + window->len;
    if (r->piece > PIECE_CAREFUL) {
        r->careful_until = offset + r->piece;
        return;
    }
    if (++r->holes > HOLES_MAX) {
        zc_log_recover_fail(log, ZC_EIO, at_work(log)->number, " cannot be read");
        return;
    }
    memset(window->data + window->len, 0, r->piece);
    window->len += r->piece;
    at_work(log)->damaged = true;
    if (at_work(log)->dirty < offset + r->piece)
        at_work(log)->dirty = offset + r->piece;
}

static void scan_input(struct zc_log *log, const struct zc_disk_completion *done)
{
    struct zc_log_recover *r = &log->recover;
    if (done->result == ZC_EIO) {
        scan_hole(log);
    } else if (done->result < 0) {
        zc_log_recover_fail(log, (int)done->result, at_work(log)->number, " cannot be read");
    } else {
        ZC_ASSERT((uint64_t)done->result <= r->piece);
        r->scan.window.len += (size_t)done->result;
        r->scan.eof = (size_t)done->result < r->piece;
        r->holes = 0;
    }
    if (r->over)
        r->scan.pos = r->scan.window.len;
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
        if (s->limit == 0 && s->dirty > s->end) {
            log->counts.damaged++;
            log->counts.damaged_bytes += s->dirty - s->end;
            s->damaged = true;
        }
    }
}

/* All is read: chooses the current and the next segment and what to remove. */
static void decide(struct zc_log *log)
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
        log->next.segment = *spare;
        log->next.phase = ZC_NEXT_READY;
        zc_segment_drop(&log->segments, spare->number);
    }
    zc_buf_done(&log->recover.scan.window);
    log->recover.phase = ZC_RECOVER_DROP;
    log->recover.index = 0;
}

static void segment_finish(struct zc_log *log)
{
    struct zc_log_recover *r = &log->recover;
    at_work(log)->size = r->scan.window_at + r->scan.window.len;
    r->index++;
    if (r->index < log->segments.len)
        scan_start(log);
    else
        decide(log);
}

/* Books one record that was found, fills the event. False: it is not for the consumer. */
static bool record_found(struct zc_log *log, const struct zc_record *rec, const uint8_t *body,
                         uint64_t offset, struct zc_log_event *ret_event)
{
    struct zc_segment *s = at_work(log);
    seq_note(log, rec->seq);
    if (rec->type == ZC_RECORD_SEAL)
        return false;
    if (rec->type == ZC_RECORD_REMOVE)
        for (uint32_t i = 0; i + 8 <= rec->len; i += 8)
            seq_note(log, zc_record_get64(body + i));
    *ret_event = (struct zc_log_event){.kind = ZC_LOG_RECORD,
                                       .type = rec->type,
                                       .seq = rec->seq,
                                       .body = zc_slice(body, rec->len)};
    if (rec->type == ZC_RECORD_PUT) {
        s->live++;
        ret_event->place = (uint64_t)s->number << 32 | offset;
    }
    return true;
}

bool zc_log_recover_event(struct zc_log *log, struct zc_log_event *ret_event)
{
    struct zc_log_recover *r = &log->recover;
    while (r->phase == ZC_RECOVER_SCAN && !r->busy && !log->unusable) {
        struct zc_record rec;
        const uint8_t *body;
        uint64_t offset;
        if (r->over) {
            if (!r->scan.eof)
                return false;
            segment_finish(log);
            continue;
        }
        switch (zc_log_scan_next(&r->scan, at_work(log), &log->counts, &rec, &body, &offset)) {
        case ZC_SCAN_RECORD:
            if (record_found(log, &rec, body, offset, ret_event))
                return true;
            break;
        case ZC_SCAN_MORE:
            return false;
        case ZC_SCAN_END:
            r->over = true;
            r->scan.pos = r->scan.window.len;
            break;
        }
    }
    return false;
}

/* HEADS: reads the next head, or goes on with the records. */
static bool head_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    if (r->index < log->segments.len) {
        *ret_op = (struct zc_disk_op){.kind = ZC_DISK_READ,
                                      .segment = at_work(log)->number,
                                      .data = r->head,
                                      .len = sizeof(r->head)};
        return true;
    }
    r->phase = log->segments.len > 0 ? ZC_RECOVER_SCAN : ZC_RECOVER_NEXT;
    r->index = 0;
    if (log->segments.len > 0)
        scan_start(log);
    return false;
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
    return log->recover.index == 1 && log->next.phase == ZC_NEXT_READY ? &log->next.segment : NULL;
}

static bool zero_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    for (; r->index < 2; r->index++, r->zero_at = 0) {
        struct zc_segment *s = zero_segment(log);
        if (s == NULL)
            continue;
        if (r->zero_at < s->end)
            r->zero_at = s->end;
        if (r->zero_at >= s->dirty)
            continue;
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
    zc_buf_done(&r->scan.window);
    r->phase = ZC_RECOVER_NEXT;
    if (log->next.phase == ZC_NEXT_READY)
        zc_log_recover_next(log, 0);
    return false;
}

static void zero_input(struct zc_log *log, struct zc_now now, const struct zc_disk_completion *done)
{
    struct zc_log_recover *r = &log->recover;
    int err = zc_log_result(done, r->piece);
    if (err == 0) {
        r->zero_at += r->piece;
        return;
    }
    zc_log_note(log, err, zero_segment(log)->number);
    if (r->index == 0)
        zc_log_mend_start(log, now, err);
    else
        zc_log_next_drop(log, now);
    r->index++;
    r->zero_at = 0;
}

void zc_log_recover_next(struct zc_log *log, int err)
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
    log->opening = false;
    log->ready_due = true;
}

bool zc_log_recover_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    bool found = false;
    if (r->busy || log->unusable || log->closing)
        return false;
    if (r->phase == ZC_RECOVER_HEADS)
        found = head_op(log, ret_op);
    if (!found && r->phase == ZC_RECOVER_SCAN)
        found = scan_op(log, ret_op);
    if (!found && r->phase == ZC_RECOVER_DROP)
        found = drop_op(log, ret_op);
    if (!found && r->phase == ZC_RECOVER_SYNC) {
        *ret_op = (struct zc_disk_op){
            .kind = ZC_DISK_WRITE, .segment = log->current, .sync = true, .sync_dir = true};
        found = true;
    }
    if (!found && r->phase == ZC_RECOVER_ZERO)
        found = zero_op(log, ret_op);
    if (!found)
        return false;
    ret_op->id = ZC_LOG_SLOT_RECOVER;
    r->busy = true;
    return true;
}

void zc_log_recover_input(struct zc_log *log, struct zc_now now,
                          const struct zc_disk_completion *done)
{
    struct zc_log_recover *r = &log->recover;
    r->busy = false;
    switch (r->phase) {
    case ZC_RECOVER_HEADS:
        head_input(log, done);
        return;
    case ZC_RECOVER_SCAN:
        scan_input(log, done);
        return;
    case ZC_RECOVER_DROP:
        /* When it cannot be removed now, the next opening tries again. */
        zc_segment_drop(&log->segments, at_work(log)->number);
        return;
    case ZC_RECOVER_SYNC:
        if (done->result < 0)
            zc_log_recover_fail(log, (int)done->result, log->current, " cannot be synced");
        r->phase = ZC_RECOVER_ZERO;
        r->index = 0;
        return;
    case ZC_RECOVER_ZERO:
        zero_input(log, now, done);
        return;
    case ZC_RECOVER_NEXT:
    case ZC_RECOVER_DONE:
        return;
    }
}
