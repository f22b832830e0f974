/*
 * Making indexes, in the background: one segment at a time is read again, and what opening will
 * want of it is written beside it. Only what has been sealed for a while and still holds much is
 * worth it; a queue that is consumed in order never has its segments read twice. A segment with
 * damage gets one as well, so that the next opening does not report the same again. Reads are not
 * for the loop: between two of them it serves everybody.
 *
 *   IDLE -> WANT -> READING -> (scan) -> WANT ... -> WRITE -> WRITING -> IDLE
 */
#include "base/check.h"
#include "store/index.h"
#include "store/log_priv.h"

#define PIECE (256u << 10)

static bool able(const struct zc_log *log)
{
    return !log->opening && !log->closing && log->state == ZC_LOG_OK &&
           log->mend.phase == ZC_MEND_NONE;
}

/* The next segment that is worth an index, or NULL. */
static struct zc_segment *wanted(const struct zc_log *log)
{
    if (!able(log) || log->segments.len < 2)
        return NULL;
    for (uint32_t i = 0; i + 1 < log->segments.len; i++) {
        struct zc_segment *s = &log->segments.items[i];
        bool old = i + 3 < log->segments.len && s->live > 0 && s->live_bytes >= s->size / 4;
        if (!s->indexed && s->sealed && s->head_ok && s->unlisted == 0 &&
            s->number > log->clean.begun && (old || s->damaged))
            return s;
    }
    return NULL;
}

static void stop(struct zc_log *log)
{
    zc_buf_done(&log->index.scan.window);
    zc_buf_done(&log->index.file);
    log->index.phase = ZC_INDEX_IDLE;
}

/* For want of memory or room, or since the log has other cares: again when one more is sealed. */
static void later(struct zc_log *log)
{
    struct zc_segment *s = zc_segment_find(&log->segments, log->index.segment);
    if (s != NULL)
        s->indexed = false;
    log->index_due = false;
    stop(log);
}

/* As the SEAL in the segment after it says. */
static uint64_t end_of(const struct zc_segment *s)
{
    return s->limit != 0 ? s->limit : s->end;
}

static void begin(struct zc_log *log, struct zc_segment *s)
{
    struct zc_log_index *x = &log->index;
    s->indexed = true; /* tried, at least: what cannot be read, or has too much, is left */
    x->segment = s->number;
    x->copy = (struct zc_segment){
        .number = s->number, .head_ok = true, .salt = s->salt, .end = s->end, .size = s->size};
    x->numbers = (struct zc_index){0};
    x->counts = (struct zc_log_status){0};
    zc_log_scan_start(&x->scan, end_of(s));
    x->phase = ZC_INDEX_WANT;
    if (zc_index_begin(&x->file) != 0)
        later(log);
}

bool zc_log_index_op(struct zc_log *log, struct zc_disk_op *ret_op)
{
    struct zc_log_index *x = &log->index;
    if (x->phase == ZC_INDEX_IDLE && log->index_due) {
        struct zc_segment *s = wanted(log);
        log->index_due = s != NULL;
        if (s != NULL)
            begin(log, s);
    }
    if ((x->phase == ZC_INDEX_WANT || x->phase == ZC_INDEX_WRITE) && !able(log))
        later(log);
    *ret_op = (struct zc_disk_op){.id = ZC_LOG_SLOT_INDEX, .segment = x->segment};
    if (x->phase == ZC_INDEX_WRITE) {
        ret_op->kind = ZC_DISK_INDEX_WRITE;
        ret_op->data = x->file.data;
        ret_op->len = x->file.len;
        x->phase = ZC_INDEX_WRITING;
        return true;
    }
    if (x->phase != ZC_INDEX_WANT)
        return false;
    struct zc_buf *w = &x->scan.window;
    size_t used = x->scan.pos < w->len ? x->scan.pos : w->len;
    zc_buf_consume(w, used);
    x->scan.window_at += used;
    x->scan.pos -= used;
    ret_op->kind = ZC_DISK_READ;
    ret_op->offset = x->scan.window_at + w->len;
    ret_op->len = PIECE;
    if (zc_buf_reserve(w, PIECE) != 0) {
        later(log);
        return false;
    }
    ret_op->data = w->data + w->len;
    x->phase = ZC_INDEX_READING;
    return true;
}

/* One record of the segment: into the index, unless nobody needs it. */
static int add(struct zc_log *log, const struct zc_segment *s, const struct zc_record *r,
               const uint8_t *body, uint64_t offset)
{
    struct zc_log_index *x = &log->index;
    struct zc_index_entry e = {.type = r->type,
                               .seq = r->seq,
                               .offset = offset,
                               .body_len = r->len,
                               .body = zc_slice(body, r->len)};
    uint64_t top = zc_record_seq_max(r, body);
    x->numbers.seq_max = x->numbers.seq_max < top ? top : x->numbers.seq_max;
    if (r->type == ZC_RECORD_SEAL ||
        (zc_record_kept(r->type) && zc_live_find(&s->table, offset) == NULL))
        return 0;
    if (r->type == ZC_RECORD_PUT && log->body_head != NULL)
        e.body.len = log->body_head(e.body);
    return zc_index_add(&x->file, &x->numbers, &e);
}

/* What was read goes into the index. True: the segment is through. */
static bool scan(struct zc_log *log, const struct zc_segment *s, int *ret_err)
{
    struct zc_log_index *x = &log->index;
    struct zc_record r;
    const uint8_t *body;
    uint64_t offset;
    for (;;) {
        switch (zc_log_scan_next(&x->scan, &x->copy, &x->counts, &r, &body, &offset)) {
        case ZC_SCAN_RECORD:
            *ret_err = add(log, s, &r, body, offset);
            if (*ret_err != 0)
                return true;
            break;
        case ZC_SCAN_MORE:
            return false;
        case ZC_SCAN_END:
            return true;
        }
    }
}

void zc_log_index_input(struct zc_log *log, const struct zc_disk_completion *done)
{
    struct zc_log_index *x = &log->index;
    const struct zc_segment *s = zc_segment_find(&log->segments, x->segment);
    int err = 0;
    if (x->phase == ZC_INDEX_WRITING && done->result < 0) {
        later(log);
        return;
    }
    if (x->phase == ZC_INDEX_WRITING || done->result < 0 || s == NULL) {
        stop(log); /* there is one, or else the segment is read */
        return;
    }
    x->scan.window.len += (size_t)done->result;
    x->scan.eof = (size_t)done->result < PIECE;
    x->phase = ZC_INDEX_WANT;
    if (!scan(log, s, &err))
        return;
    x->copy.end = end_of(s);
    x->copy.size = s->size;
    x->numbers.damaged = (uint32_t)x->counts.damaged + s->damaged;
    if (err == ZC_ENOMEM) {
        later(log);
        return;
    }
    /* Found just now: it was not reported yet, so the next opening must find it. */
    if (err != 0 || (x->counts.damaged > 0 && !s->damaged)) {
        stop(log);
        return;
    }
    zc_index_end(&x->file, &x->numbers, &x->copy);
    zc_buf_done(&x->scan.window);
    x->phase = ZC_INDEX_WRITE;
}

bool zc_log_index_busy(const struct zc_log *log, uint32_t segment)
{
    const struct zc_log_index *x = &log->index;
    bool busy = x->phase == ZC_INDEX_READING || x->phase == ZC_INDEX_WRITING;
    return busy && (segment == 0 || x->segment == segment);
}

void zc_log_index_done(struct zc_log *log)
{
    stop(log);
}
