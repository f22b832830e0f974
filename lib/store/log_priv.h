/*
 * Inside of the log, shared by its files only:
 *
 *   log.c          appends, events, status: the face in log.h
 *   log_write.c    group commit: batches to the current segment
 *   log_written.c  what of it is written, synced or failed
 *   log_next.c     the prepared next segment, and the end of consumed ones
 *   log_clean.c    moving what lives out of the oldest segment: which and when
 *   log_moves.c    the same: copies on their way
 *   log_mend.c     after a failed write: moving to a fresh segment, or ERROR
 *   log_read.c     reading one message back
 *   log_recover.c  opening: what the files hold
 *   log_repair.c   opening: making the files fit to go on
 *   log_scan.c     opening: records out of the bytes of one segment
 *
 * Each keeps at most one request with the disk (log_write.c: two, log_read.c: many); the id of a
 * request says whose it is.
 */
#ifndef ZC_STORE_LOG_PRIV_H
#define ZC_STORE_LOG_PRIV_H

#include "base/buf.h"
#include "store/batch.h"
#include "store/log.h"
#include "store/segment.h"

#define ZC_LOG_RETRY_MS 1000
/* No new work is read from clients beyond this many bytes in memory. */
#define ZC_LOG_BACKLOG (UINT64_C(8) << 20)
/* Written but not synced: at most this much before a sync nobody asked for. */
#define ZC_LOG_UNSYNCED_MAX (UINT64_C(1) << 20)
/* SYNC_BATCH: the fsync starts this long after the first write, so that it ends within 50 ms. */
#define ZC_LOG_BATCH_MS 25
/* How often the host is asked whether the bytes of a write that syncs are written. */
#define ZC_LOG_POLL_MS 1

enum zc_log_slot {
    ZC_LOG_SLOT_WRITE = 1,
    ZC_LOG_SLOT_BEHIND,
    ZC_LOG_SLOT_NEXT,
    ZC_LOG_SLOT_TRIM,
    ZC_LOG_SLOT_MEND,
    ZC_LOG_SLOT_RECOVER,
    ZC_LOG_SLOT_CLEAN,
    ZC_LOG_SLOT_READ = 16, /* and above: index into the table of reads */
};

/* A write of part of one batch, and its check. */
struct zc_log_write {
    enum {
        ZC_WRITE_IDLE,
        ZC_WRITE_BUSY,
        ZC_WRITE_SYNCING, /* written, the sync goes on */
        ZC_WRITE_CHECK,
        ZC_WRITE_CHECKING,
    } phase;
    uint32_t items;
    uint8_t *data;
    size_t len;
    bool sync;
    bool eager;         /* some of its records want no sync and wait for the write only */
    bool seals;         /* the write opens the segment */
    uint64_t cover;     /* the sync is for tickets up to this one */
    uint64_t cover_end; /* and for the segment up to here */
    uint8_t *check;     /* what was read back */
};

/* The segments after the current one. */
struct zc_log_next {
    enum {
        ZC_NEXT_NONE,
        ZC_NEXT_CREATING,
        ZC_NEXT_HEAD, /* created, the head waits to be written */
        ZC_NEXT_HEADING,
        ZC_NEXT_DROP, /* unusable, or too many: to be removed */
        ZC_NEXT_DROPPING,
    } phase;                   /* of `segment` */
    struct zc_segment segment; /* being made or removed */
    struct zc_mono at;         /* not before */
    uint8_t head[ZC_SEGMENT_HEAD];
    /* Ready, in order. The second is the reserve with which a full log can still be cleaned. */
    struct zc_segment ready[2];
    uint32_t ready_count;
    uint32_t drop; /* one that failed and is to be removed, or 0 */
};

/* The move to a fresh segment. */
struct zc_log_mend {
    enum {
        ZC_MEND_NONE,
        ZC_MEND_WAIT,
        ZC_MEND_LEAVING,
        ZC_MEND_WRITING,
        ZC_MEND_CHECK,
        ZC_MEND_CHECKING,
    } phase;
    bool leave; /* the segment that failed holds what was acknowledged without a sync */
    struct zc_mono at;
    uint8_t want[ZC_SEGMENT_START];
    uint8_t got[ZC_SEGMENT_START];
};

/* A record on its way from the oldest segment to the head. */
struct zc_log_move {
    uint64_t from, to; /* places; to: 0 until it is written */
    uint64_t ticket;
    bool gone; /* it was forgotten meanwhile */
};

/* Moving what lives out of the oldest segment. */
struct zc_log_clean {
    enum {
        ZC_CLEAN_IDLE,
        ZC_CLEAN_WANT, /* the bytes from `at` on are to be read */
        ZC_CLEAN_READING,
        ZC_CLEAN_TELL, /* they are there: each record in them is told */
        ZC_CLEAN_SYNC, /* copies are on their way to the disk */
    } phase;
    uint32_t segment;   /* at work, or 0 */
    uint32_t until;     /* segments up to this one go, whatever that gains */
    uint64_t at;        /* next offset in it */
    uint64_t data_at;   /* of data in the file */
    struct zc_buf data; /* what was read */
    size_t piece;       /* bytes of the request in flight */
    uint32_t tries;     /* of one that failed */
    uint64_t left;      /* bytes that this round may still copy */
    uint64_t appended;  /* log->appended at the end of the last round */
    struct zc_mono not_before;
    uint64_t told;             /* place of the record in the last event, or 0 */
    uint32_t told_size;        /* of its record */
    struct zc_log_move *moves; /* by place and ticket */
    uint32_t moves_first, moves_len, moves_cap;
};

struct zc_log_read {
    void *cookie;
    struct zc_block *block; /* head and body */
    uint64_t place;
    size_t body_len;
    int err;
    uint32_t next; /* in its queue, index + 1 */
};

struct zc_log_reads {
    struct zc_log_read *items;
    uint32_t cap;
    uint32_t free, wanted, wanted_last, ready, ready_last; /* queues, index + 1, 0 at their end */
    uint32_t busy;
};

/* Records out of one segment, from its bytes in pieces. */
struct zc_log_scan {
    struct zc_buf window; /* file bytes from window_at on */
    uint64_t window_at;
    size_t pos;     /* of the next record in window */
    bool eof;       /* window reaches the end of the file */
    uint64_t limit; /* end named by a SEAL, or UINT64_MAX */
    bool bad;       /* since bad_at nothing passed */
    uint64_t bad_at;
    uint64_t bad_count;
    uint64_t need; /* bytes that the next record wants in window from pos on */
};

struct zc_log_recover {
    enum {
        ZC_RECOVER_HEADS,
        ZC_RECOVER_SCAN,
        ZC_RECOVER_DROP,
        ZC_RECOVER_SYNC,
        ZC_RECOVER_ZERO,
        ZC_RECOVER_NEXT,
        ZC_RECOVER_DONE
    } phase;
    bool busy;
    bool over;              /* no more records in this segment, but its size is not known yet */
    uint32_t index;         /* of the segment at work */
    size_t piece;           /* bytes of the request in flight */
    uint64_t zero_at;       /* next byte to overwrite with zeros */
    uint64_t careful_until; /* small reads up to here, around a block that cannot be read */
    uint32_t holes;         /* such blocks in a row */
    uint32_t tries;         /* of the one at work */
    struct zc_log_scan scan;
    uint8_t head[ZC_SEGMENT_START];
};

struct zc_log {
    enum zc_log_sync sync;
    uint64_t segment_bytes;
    struct zc_rng *rng;
    struct zc_segments segments;
    uint32_t number_max; /* highest segment number ever seen */
    uint64_t seq_max;

    bool opening;
    bool unusable; /* with opening: for good */
    bool closing;
    enum zc_log_state state; /* behind `opening` */

    uint32_t current; /* segment that takes records, or 0 */
    uint64_t end;     /* of what is written in it */
    uint64_t safe;    /* of what is acknowledged in it: where it is sealed after a failure */
    bool seals_due;   /* the first write to it brings its SEALs */
    uint32_t seals_number;
    uint64_t seals_end;
    bool verifying; /* every write is read back */
    bool dirty;     /* written since the last sync began */
    struct zc_mono dirty_at;

    struct zc_batches batches;
    uint64_t ticket;  /* last given out */
    uint64_t written; /* as in log.h */
    uint64_t synced;
    uint64_t hard; /* covered by a sync, whatever the mode */
    uint64_t written_told;
    uint64_t synced_told;

    struct zc_log_write write;
    struct zc_log_write behind; /* without sync, while `write` is SYNCING */
    int write_err;              /* of one of them, until both are back */
    struct zc_mono poll_at;     /* records wait for `write` to be SYNCING */
    struct zc_log_next next;
    struct zc_log_mend mend;
    struct zc_log_reads reads;
    struct zc_log_clean clean;
    struct zc_log_recover recover;
    uint32_t trimming; /* segment whose removal is with the disk, or 0 */
    struct zc_mono trim_at;

    uint64_t largest;      /* record that was appended while FULL */
    uint64_t appended;     /* bytes that the caller appended */
    uint64_t sealed_bytes; /* of all segments but the current one */
    uint64_t live_bytes;   /* of all segments */

    bool ready_due, state_due, unusable_due, failed_due;
    uint64_t failed_above;
    int unusable_err;
    char unusable_text[160];

    struct zc_log_status counts; /* state, bytes and segments are filled when asked */
};

static inline struct zc_segment *zc_log_current(const struct zc_log *log)
{
    return zc_segment_find(&log->segments, log->current);
}

/* How many segments are to be ready. One is enough for a log that is small. */
static inline uint32_t zc_log_ready_wanted(const struct zc_log *log)
{
    return log->segments.len > 3 ? 2 : 1;
}

static inline void zc_log_state_set(struct zc_log *log, enum zc_log_state state)
{
    log->state_due = log->state_due || log->state != state;
    log->state = state;
}

/* Remembers a failure for status. */
static inline void zc_log_note(struct zc_log *log, int err, uint32_t segment)
{
    log->counts.last_err = err;
    log->counts.failures++;
    log->state_due = true;
    log->counts.last_err_segment = segment;
}

/* The first error of a request that should have moved `len` bytes. */
static inline int zc_log_result(const struct zc_disk_completion *done, size_t len)
{
    if (done->result < 0)
        return (int)done->result;
    /* A short write means that there was no room for the rest. */
    return (uint64_t)done->result < len ? ZC_ENOSPC : 0;
}

/* Part of a batch is with the disk, or waits for its check. */
static inline bool zc_log_writing(const struct zc_log *log)
{
    return log->write.phase != ZC_WRITE_IDLE || log->behind.phase != ZC_WRITE_IDLE;
}

/* The last ticket that is written once n more items are. */
static inline uint64_t zc_log_cover(const struct zc_log *log, uint32_t n)
{
    const struct zc_batch *b = log->batches.at;
    return b == NULL ? log->ticket : b->ticket + b->written + n - 1;
}

/* log.c */
/* Bytes that a FULL log still takes, when the next record has this size. */
uint64_t zc_log_room(const struct zc_log *log, uint64_t size);
/* A record of segment s lives from now on; no longer. item NULL: one that has no entry. */
void zc_log_list(struct zc_log *log, struct zc_segment *s, uint64_t offset, uint32_t size,
                 uint64_t *owner, bool coming);
void zc_log_unlist(struct zc_log *log, struct zc_segment *s, struct zc_live_item *item);

/* log_write.c */
bool zc_log_write_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op);
/* Records that find no room in the current segment, and all behind them, fail. */
void zc_log_write_cut(struct zc_log *log);
/* When the fsync of SYNC_BATCH is due, or zc_log_write_op wants to be asked again. */
struct zc_mono zc_log_write_deadline(const struct zc_log *log);

/* log_written.c */
void zc_log_written_input(struct zc_log *log, struct zc_now now,
                          const struct zc_disk_completion *done);

/* log_next.c */
bool zc_log_next_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op);
void zc_log_next_input(struct zc_log *log, struct zc_now now,
                       const struct zc_disk_completion *done);
/* Makes the next segment the current one, sealing the one before. One must be ready. */
void zc_log_next_take(struct zc_log *log);
/* The next segment failed: it is removed and another one tried later. */
void zc_log_next_drop(struct zc_log *log, struct zc_now now);
/* True while a next segment may still come without waiting for the clock. */
bool zc_log_next_coming(const struct zc_log *log);
bool zc_log_next_trim_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op);
void zc_log_next_trim_input(struct zc_log *log, struct zc_now now,
                            const struct zc_disk_completion *done);
struct zc_mono zc_log_next_deadline(const struct zc_log *log);

/* sealed_bytes is counted anew. */
void zc_log_next_count(struct zc_log *log);

/* log_clean.c */
bool zc_log_clean_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op);
void zc_log_clean_input(struct zc_log *log, const struct zc_disk_completion *done);
bool zc_log_clean_event(struct zc_log *log, struct zc_log_event *ret_event);
struct zc_mono zc_log_clean_deadline(const struct zc_log *log);
/* Bytes that copies may still fill. A full log keeps some for removals. */
uint64_t zc_log_clean_room(const struct zc_log *log);
/* No more is read in this round. */
void zc_log_clean_end(struct zc_log *log);
/* The oldest segment is needed still. */
bool zc_log_clean_holds(const struct zc_log *log, uint32_t segment);
/* A sync is wanted although nobody else waits for it. */
bool zc_log_clean_wants_sync(const struct zc_log *log);
void zc_log_clean_done(struct zc_log *log);

/* log_moves.c */
/* Room for a copy: 0 or why not. Makes sure that zc_log_moves_add cannot fail. */
ZC_MUST_CHECK int zc_log_moves_room(struct zc_log *log, size_t size);
/* The record told last is appended. */
void zc_log_moves_add(struct zc_log *log, uint64_t ticket);
/* The copy with this ticket is written to the current segment. */
void zc_log_moves_written(struct zc_log *log, uint64_t ticket, uint64_t place, uint32_t size);
/* Copies that are on disk take the place of their records. */
void zc_log_moves_synced(struct zc_log *log);
/* The record at this place, of which a copy is on its way, was forgotten. */
void zc_log_moves_gone(struct zc_log *log, uint64_t place);
/* Copies with tickets above this one, and those that were written to a segment which then failed,
 * do not count. */
void zc_log_moves_failed(struct zc_log *log, uint64_t ticket);

/* log_mend.c */
/* The current segment cannot be trusted with anything more. */
void zc_log_mend_start(struct zc_log *log, struct zc_now now, int err);
/* No next segment can be had. */
void zc_log_mend_no_next(struct zc_log *log, struct zc_now now);
bool zc_log_mend_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op);
void zc_log_mend_input(struct zc_log *log, struct zc_now now,
                       const struct zc_disk_completion *done);
struct zc_mono zc_log_mend_deadline(const struct zc_log *log);

/* log_read.c */
bool zc_log_read_op(struct zc_log *log, struct zc_disk_op *ret_op);
void zc_log_read_input(struct zc_log *log, const struct zc_disk_completion *done);
bool zc_log_read_event(struct zc_log *log, struct zc_log_event *ret_event);
void zc_log_read_done(struct zc_log *log);

/* log_recover.c */
bool zc_log_recover_op(struct zc_log *log, struct zc_disk_op *ret_op);
void zc_log_recover_input(struct zc_log *log, struct zc_now now,
                          const struct zc_disk_completion *done);
/* Next surviving record. */
bool zc_log_recover_event(struct zc_log *log, struct zc_log_event *ret_event);
void zc_log_recover_fail(struct zc_log *log, int err, uint32_t segment, const char *why);

/* log_repair.c */
/* All is read: chooses the current and the next segment and what to remove. */
void zc_log_repair_start(struct zc_log *log);
bool zc_log_repair_op(struct zc_log *log, struct zc_disk_op *ret_op);
void zc_log_repair_input(struct zc_log *log, struct zc_now now,
                         const struct zc_disk_completion *done);
/* A next segment is there, or cannot be had: opening ends. */
void zc_log_repair_next(struct zc_log *log, int err);

/* log_scan.c */
enum zc_log_scan_step { ZC_SCAN_RECORD, ZC_SCAN_MORE, ZC_SCAN_END };
void zc_log_scan_start(struct zc_log_scan *scan, uint64_t limit);
/* Looks for the next record of segment s in the window. MORE: read on at the window's end. END: the
 * segment is through; s->end and s->dirty are final. Damage found on the way is counted. */
enum zc_log_scan_step zc_log_scan_next(struct zc_log_scan *scan, struct zc_segment *s,
                                       struct zc_log_status *counts, struct zc_record *ret_record,
                                       const uint8_t **ret_body, uint64_t *ret_offset);

#endif
