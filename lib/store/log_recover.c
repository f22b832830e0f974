/*
 * Opening a log. First the heads of all segments (salts, and where SEALs end others); then the
 * records, segment by segment, given out as events in log order while at most one piece of one file
 * is in memory; then repair (log_repair.c).
 *
 * What no SEAL of a later segment vouches for is read past the page cache: after a failed fsync the
 * cache holds bytes that never reached the disk and never will, and a process that is started anew
 * must not take them for durable.
 *
 *   HEADS -> SCAN -> DROP -> SYNC -> ZERO -> NEXT -> DONE
 */
#include "base/check.h"
#include "store/log_priv.h"

/* Large, since each request may wait for a thread. */
#define PIECE (4u << 20)
/* Around a block that cannot be read the log reads in pieces of this size, each tried again a few
 * times, and gives up after so many unreadable ones in a row: that is a dead disk, not a bad block.
 */
#define PIECE_CAREFUL 4096u
#define TRIES_MAX 3
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

/* HEADS go from the newest segment to the oldest, so that a SEAL is known before its segment. */
static struct zc_segment *head_at_work(struct zc_log *log)
{
    return &log->segments.items[log->segments.len - 1 - log->recover.index];
}

/* HEADS: one head was read. */
static void head_input(struct zc_log *log, const struct zc_disk_completion *done)
{
    struct zc_log_recover *r = &log->recover;
    struct zc_segment *s = head_at_work(log);
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
        else if (before == NULL && number > log->segments.items[0].number && number < s->number) {
            /* Only the oldest segment is ever removed, so this one was lost. */
            log->counts.damaged++;
            log->counts.damaged_bytes += end;
        }
    }
    r->index++;
}

/* Begins with the records of the segment at work. */
static void scan_start(struct zc_log *log)
{
    struct zc_segment *s = at_work(log);
    zc_log_load_start(log, s);
    zc_log_scan_start(&log->recover.scan, s->limit != 0 ? s->limit : UINT64_MAX);
    log->recover.over = false;
    log->recover.careful_until = 0;
    log->recover.holes = log->recover.tries = 0;
}

/* SCAN: the next piece of the file at work. */
static bool scan_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_recover *r = &log->recover;
    struct zc_log_scan *scan = &r->scan;
    if (log->load.phase == ZC_LOAD_GIVE)
        return false;
    if (zc_log_load_op(log, at_work(log), ret_op))
        return true;
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
                                  .len = r->piece,
                                  .uncached = at_work(log)->limit == 0};
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
    if (r->tries++ < TRIES_MAX)
        return;
    r->tries = 0;
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
    if (log->load.phase != ZC_LOAD_NONE) {
        zc_log_load_input(log, at_work(log), done);
        return;
    }
    if (done->result == ZC_EIO) {
        scan_hole(log);
    } else if (done->result < 0) {
        zc_log_recover_fail(log, (int)done->result, at_work(log)->number, " cannot be read");
    } else {
        ZC_ASSERT((uint64_t)done->result <= r->piece);
        r->scan.window.len += (size_t)done->result;
        r->scan.eof = (size_t)done->result < r->piece;
        r->holes = r->tries = 0;
    }
    if (r->over)
        r->scan.pos = r->scan.window.len;
}

static void segment_finish(struct zc_log *log)
{
    struct zc_log_recover *r = &log->recover;
    if (!at_work(log)->indexed)
        at_work(log)->size = r->scan.window_at + r->scan.window.len;
    r->index++;
    if (r->index < log->segments.len)
        scan_start(log);
    else
        zc_log_repair_start(log);
}

/* Books one record that was found, fills the event. False: it is not for the consumer. */
static bool record_found(struct zc_log *log, const struct zc_record *rec, struct zc_slice body,
                         uint64_t offset, struct zc_log_event *ret_event)
{
    struct zc_segment *s = at_work(log);
    seq_note(log, zc_record_seq_max(rec, body.data));
    if (rec->type == ZC_RECORD_SEAL)
        return false;
    *ret_event = (struct zc_log_event){.kind = ZC_LOG_RECORD,
                                       .type = rec->type,
                                       .seq = rec->seq,
                                       .body = body,
                                       .body_len = rec->len};
    if (zc_record_kept(rec->type)) {
        zc_log_list(log, s, offset, (uint32_t)zc_record_size(rec->len), NULL, false);
        ret_event->place = (uint64_t)s->number << 32 | offset;
    }
    return true;
}

/* The next record by the index. False: the segment is through. */
static bool load_event(struct zc_log *log, struct zc_log_event *ret_event)
{
    struct zc_index_entry e;
    while (zc_log_load_next(log, at_work(log), &e)) {
        struct zc_record rec = {.type = e.type, .seq = e.seq, .len = e.body_len};
        if (record_found(log, &rec, e.body, e.offset, ret_event))
            return true;
    }
    segment_finish(log);
    return false;
}

bool zc_log_recover_event(struct zc_log *log, struct zc_log_event *ret_event)
{
    struct zc_log_recover *r = &log->recover;
    while (r->phase == ZC_RECOVER_SCAN && !r->busy && !log->unusable) {
        struct zc_record rec;
        const uint8_t *body;
        uint64_t offset;
        if (log->load.phase == ZC_LOAD_GIVE) {
            if (load_event(log, ret_event))
                return true;
            continue;
        }
        if (log->load.phase != ZC_LOAD_NONE)
            return false;
        if (r->over) {
            if (!r->scan.eof)
                return false;
            segment_finish(log);
            continue;
        }
        switch (zc_log_scan_next(&r->scan, at_work(log), &log->counts, &rec, &body, &offset)) {
        case ZC_SCAN_RECORD:
            if (record_found(log, &rec, zc_slice(body, rec.len), offset, ret_event))
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
                                      .segment = head_at_work(log)->number,
                                      .data = r->head,
                                      .len = sizeof(r->head),
                                      .uncached = head_at_work(log)->limit == 0};
        return true;
    }
    r->phase = log->segments.len > 0 ? ZC_RECOVER_SCAN : ZC_RECOVER_NEXT;
    r->index = 0;
    if (log->segments.len > 0)
        scan_start(log);
    return false;
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
    if (!found)
        found = zc_log_repair_op(log, ret_op);
    if (!found)
        return false;
    ret_op->id = ZC_LOG_SLOT_RECOVER;
    /* Nobody is served yet: what is in memory is read on the loop. Each hop to a thread and back
     * costs a turn of the scheduler, which is long on a busy machine. */
    ret_op->inline_ok =
        !ret_op->uncached && (ret_op->kind == ZC_DISK_READ || ret_op->kind == ZC_DISK_INDEX_READ);
    r->busy = true;
    return true;
}

void zc_log_recover_input(struct zc_log *log, struct zc_now now,
                          const struct zc_disk_completion *done)
{
    log->recover.busy = false;
    if (log->recover.phase == ZC_RECOVER_HEADS)
        head_input(log, done);
    else if (log->recover.phase == ZC_RECOVER_SCAN)
        scan_input(log, done);
    else
        zc_log_repair_input(log, now, done);
}
