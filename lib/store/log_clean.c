/*
 * Cleaning, so that one message that nobody takes does not keep all that came after it on the disk.
 * The log is a circle: when most of what it holds is useless, the records of the oldest segment
 * that live are appended again, and once the copies are on disk the segment is removed like any
 * other that holds nothing. A copy has the sequence number of its record, so when a crash leaves
 * both, the later one replaces the earlier. Removals in the oldest segment speak of records in it
 * or before it, so they go with it; attempts go with their message, which the caller appends.
 *
 * Segments are cleaned and removed from the oldest on, since nothing else keeps a REMOVE behind its
 * PUT. Cleaning begins when the sealed segments hold more than twice what lives in them and one
 * segment more: for each byte that is copied another one was taken, so the log writes at most twice
 * what it is given. A queue that is consumed in order never comes to that.
 *
 *   IDLE -> WANT -> READING -> TELL -> (WANT ...) -> SYNC -> IDLE
 *
 * One round copies a bounded number of bytes, out of one large segment or several that are nearly
 * empty; they share a write and an fsync with whatever else waits, and the next begins when they
 * are on disk: nobody waits for more than one such write. Meanwhile those that are clean already
 * are removed, one by one.
 * Under load a round copies twice of what was put since the last, so that cleaning keeps up. Reads
 * but the first of a round are not for the loop: between two of them it serves everybody.
 */
#include <stdlib.h>

#include "base/check.h"
#include "store/log_priv.h"

#define ROUND_MIN (UINT64_C(256) << 10)
#define ROUND_MAX (UINT64_C(1) << 20)
/* Most bytes of one read, and useless bytes in it between two records. */
#define SPAN (256u << 10)
#define GAP (16u << 10)
/* Reads of one round. */
#define READS_MAX 64
/* Only so many of the oldest segments are looked at: those that are clean wait to be removed. */
#define SEGMENTS_MAX 16
/* A block that cannot be read is tried so often. */
#define TRIES_MAX 3
/* When some records could not be moved because they are just being removed. */
#define AGAIN_MS 50

static bool able(const struct zc_log *log)
{
    return !log->opening && !log->closing && !log->failed_due && log->segments.len > 0 &&
           log->mend.phase == ZC_MEND_NONE &&
           (log->state == ZC_LOG_OK || log->state == ZC_LOG_FULL);
}

uint64_t zc_log_clean_room(const struct zc_log *log)
{
    uint64_t left = log->segment_bytes / (log->next.ready_count > 0 ? 2 : 8);
    uint64_t room = zc_log_room(log, 0);
    if (log->state != ZC_LOG_FULL)
        return UINT64_MAX;
    return room > left ? room - left : 0;
}

/* Whether segment s is worth it, when `sealed` bytes of sealed segments and `live` bytes that live
 * in them are left once all before it are gone. */
static bool worth(const struct zc_log *log, const struct zc_segment *s, uint64_t sealed,
                  uint64_t live)
{
    /* A full log has little room, and removals want it: only what gains much, and can be finished.
     */
    bool full = log->state == ZC_LOG_FULL;
    if (full && s->live_bytes > zc_log_clean_room(log))
        return false;
    if (s->number <= log->clean.begun || s->number <= log->clean.until)
        return true;
    if (full && log->next.ready_count > 0)
        return sealed > live + log->segment_bytes;
    if (full)
        return s->live_bytes <= s->size / 2;
    return sealed > 2 * live + log->segment_bytes;
}

/* The first segment behind number `after` (0: of all) that is to be cleaned, or NULL. Those that
 * hold nothing any more are passed over: they only wait for their turn to be removed. */
static struct zc_segment *wanted(const struct zc_log *log, uint32_t after)
{
    if (!able(log) || (log->clean.until != 0 && log->clean.until == log->current))
        return NULL; /* not now, or the current one is about to be left */
    uint64_t sealed = log->sealed_bytes;
    uint64_t live = log->live_bytes - zc_log_current(log)->live_bytes;
    uint32_t most = log->state == ZC_LOG_FULL ? 1 : SEGMENTS_MAX;
    for (uint32_t i = 0; i < log->segments.len && i < most; i++) {
        struct zc_segment *s = &log->segments.items[i];
        if (s->number == log->current || !s->sealed || s->unlisted > 0)
            return NULL;
        if (s->live > 0 && s->number > after)
            return worth(log, s, sealed, live) ? s : NULL;
        sealed -= s->size;
        live -= s->live_bytes;
    }
    return NULL;
}

void zc_log_clean_leave(struct zc_log *log)
{
    bool due = log->clean.until == log->current || log->leave == log->current;
    if (!due || log->current == 0 || !able(log) || log->dirty || zc_log_writing(log) ||
        log->batches.waiting + log->batches.unsynced > 0 || log->next.ready_count == 0)
        return;
    zc_log_next_take(log);
    log->seals_now = true;
}

void zc_log_compact(struct zc_log *log)
{
    if (log->opening || log->current == 0)
        return;
    /* Without a next segment the current one cannot be left. */
    bool all = log->live_bytes > 0 && log->state == ZC_LOG_OK;
    log->clean.until = all ? log->current : log->current - 1;
}

bool zc_log_compacting(const struct zc_log *log)
{
    return log->segments.len > 0 && log->segments.items[0].number <= log->clean.until;
}

/* Goes to segment s, or goes on in it. */
static void enter(struct zc_log_clean *c, const struct zc_segment *s)
{
    if (c->segment != s->number)
        c->at = ZC_SEGMENT_HEAD;
    c->segment = s->number;
    c->begun = s->number > c->begun ? s->number : c->begun;
}

static void begin(struct zc_log *log, const struct zc_segment *s)
{
    struct zc_log_clean *c = &log->clean;
    uint64_t budget = 2 * (log->appended - c->appended);
    enter(c, s);
    c->left = budget < ROUND_MIN ? ROUND_MIN : budget > ROUND_MAX ? ROUND_MAX : budget;
    c->first = true;
    c->left_out = false;
    c->reads = 0;
    c->phase = ZC_CLEAN_WANT;
}

void zc_log_clean_end(struct zc_log *log)
{
    struct zc_log_clean *c = &log->clean;
    c->told = 0;
    c->appended = log->appended;
    c->phase = c->moves_len > 0 ? ZC_CLEAN_SYNC : ZC_CLEAN_IDLE;
    if (c->moves_len == 0)
        zc_buf_done(&c->data);
}

/* How many bytes from the item on are read at once: up to the last record that fits. */
static size_t span(const struct zc_log *log, const struct zc_segment *s,
                   const struct zc_live_item *item)
{
    const struct zc_live_item *stop = s->table.items + s->table.len;
    uint64_t from = zc_live_offset(item), to = from + item->size;
    for (item++; item < stop && log->clean.tries == 0; item++) {
        uint64_t at = zc_live_offset(item);
        if (at - to > GAP || at + item->size - from > SPAN)
            break;
        if (!item->gone)
            to = at + item->size;
    }
    return (size_t)(to - from);
}

static bool read_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_clean *c = &log->clean;
    struct zc_segment *s = zc_segment_find(&log->segments, c->segment);
    struct zc_live_item *item = s == NULL ? NULL : zc_live_from(&s->table, c->at);
    while (item == NULL && log->state == ZC_LOG_OK && (s = wanted(log, c->segment)) != NULL) {
        enter(c, s);
        item = zc_live_from(&s->table, c->at);
    }
    if (item == NULL || c->reads == READS_MAX || !able(log)) {
        /* Through, or enough for once. What was left out is tried again. */
        if (item == NULL)
            c->at = ZC_SEGMENT_HEAD;
        if (c->left_out)
            c->not_before = zc_mono_add_ms(now.mono, AGAIN_MS);
        zc_log_clean_end(log);
        return false;
    }
    c->piece = span(log, s, item);
    c->data.len = 0;
    if (zc_buf_reserve(&c->data, c->piece) != 0) {
        c->not_before = zc_mono_add_ms(now.mono, ZC_LOG_RETRY_MS);
        zc_log_clean_end(log);
        return false;
    }
    c->at = c->data_at = zc_live_offset(item);
    c->phase = ZC_CLEAN_READING;
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_READ,
                                  .id = ZC_LOG_SLOT_CLEAN,
                                  .segment = s->number,
                                  .offset = c->data_at,
                                  .data = c->data.data,
                                  .len = c->piece,
                                  .inline_ok = c->first};
    c->first = false;
    c->reads++;
    return true;
}

bool zc_log_clean_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op)
{
    struct zc_log_clean *c = &log->clean;
    if (c->phase == ZC_CLEAN_IDLE && now.mono.ns >= c->not_before.ns) {
        const struct zc_segment *s = wanted(log, 0);
        if (s != NULL)
            begin(log, s);
    }
    return c->phase == ZC_CLEAN_WANT && read_op(log, now, ret_op);
}

void zc_log_clean_input(struct zc_log *log, const struct zc_disk_completion *done)
{
    struct zc_log_clean *c = &log->clean;
    size_t got = done->result < 0 ? 0 : (size_t)done->result;
    ZC_ASSERT(c->phase == ZC_CLEAN_READING && got <= c->piece);
    c->phase = ZC_CLEAN_TELL;
    c->data.len = c->piece;
    if (got == c->piece) {
        c->tries = 0;
        return;
    }
    /* One record at a time, and one that stays unreadable counts as damaged. */
    if (c->tries < TRIES_MAX) {
        c->tries++;
        c->phase = ZC_CLEAN_WANT;
        return;
    }
    memset(c->data.data + got, 0, c->piece - got);
    c->tries = 0;
}

/* The record of item in what was read passes. */
static bool sound(const struct zc_log *log, const struct zc_segment *s,
                  const struct zc_live_item *item, struct zc_record *ret_record,
                  const uint8_t **ret_body)
{
    const struct zc_log_clean *c = &log->clean;
    uint64_t at = zc_live_offset(item);
    const uint8_t *record = c->data.data + (at - c->data_at);
    *ret_body = record + ZC_RECORD_HEAD;
    return zc_record_decode(record, s->salt, at, ret_record) == 0 &&
           zc_record_kept(ret_record->type) && zc_record_size(ret_record->len) == item->size &&
           zc_record_body_ok(ret_record, *ret_body);
}

/* One record of segment s, the next of this round. False: it was dealt with here. */
static bool tell(struct zc_log *log, struct zc_segment *s, struct zc_live_item *item,
                 struct zc_log_event *ret_event)
{
    struct zc_log_clean *c = &log->clean;
    struct zc_record r = {0};
    const uint8_t *body;
    bool ok = sound(log, s, item, &r, &body);
    c->told = (uint64_t)s->number << 32 | zc_live_offset(item);
    c->told_size = item->size;
    c->at = zc_live_offset(item) + item->size;
    if (!ok) {
        log->counts.damaged += !s->damaged;
        log->counts.damaged_bytes += item->size;
        s->damaged = true;
    }
    if (item->owner == NULL) {
        /* Nobody understands it, so nobody can say that it is useless. */
        if (!ok)
            zc_log_unlist(log, s, item);
        else if (zc_log_move(log, r.type, r.seq, zc_slice(body, r.len)) < 0)
            c->left = 0;
        return false;
    }
    *ret_event = (struct zc_log_event){.kind = ZC_LOG_MOVE,
                                       .type = r.type,
                                       .seq = r.seq,
                                       .body = ok ? zc_slice(body, r.len) : zc_slice(NULL, 0),
                                       .place = c->told,
                                       .owner = item->owner,
                                       .err = ok ? 0 : ZC_EBADMSG};
    return true;
}

bool zc_log_clean_event(struct zc_log *log, struct zc_log_event *ret_event)
{
    struct zc_log_clean *c = &log->clean;
    c->left_out = c->left_out || c->told != 0;
    while (c->phase == ZC_CLEAN_TELL) {
        struct zc_segment *s = zc_segment_find(&log->segments, c->segment);
        struct zc_live_item *item = s == NULL ? NULL : zc_live_from(&s->table, c->at);
        uint64_t data_end = c->data_at + c->data.len;
        if (c->left == 0 || !able(log)) {
            zc_log_clean_end(log);
        } else if (item == NULL || zc_live_offset(item) < c->data_at ||
                   zc_live_offset(item) + item->size > data_end) {
            /* Behind what was read, or before it: a failure sent the round back meanwhile. */
            c->phase = ZC_CLEAN_WANT;
        } else if (item->moving) {
            c->at = zc_live_offset(item) + item->size;
        } else if (tell(log, s, item, ret_event)) {
            return true;
        }
    }
    c->told = 0;
    return false;
}

bool zc_log_clean_holds(const struct zc_log *log, uint32_t segment)
{
    return log->clean.phase == ZC_CLEAN_READING && log->clean.segment == segment;
}

bool zc_log_clean_gathers(const struct zc_log *log)
{
    return log->clean.phase == ZC_CLEAN_WANT || log->clean.phase == ZC_CLEAN_READING ||
           log->clean.phase == ZC_CLEAN_TELL;
}

bool zc_log_clean_wants_sync(const struct zc_log *log)
{
    return log->clean.phase == ZC_CLEAN_SYNC ||
           (log->clean.until != 0 && log->clean.until == log->current);
}

struct zc_mono zc_log_clean_deadline(const struct zc_log *log)
{
    if (log->clean.phase != ZC_CLEAN_IDLE || zc_log_tidying(log) || wanted(log, 0) == NULL)
        return ZC_NEVER;
    return log->clean.not_before;
}

void zc_log_clean_done(struct zc_log *log)
{
    free(log->clean.moves);
    zc_buf_done(&log->clean.data);
}
