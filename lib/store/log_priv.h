/*
 * Inside of the log, shared by its files only:
 *
 *   log.c          appends, events, status: the face in log.h
 *   log_write.c    group commit: batches to the current segment
 *   log_written.c  what of it is written, synced or failed
 *   log_next.c     the prepared next segment, and the end of consumed ones
 *   log_clean.c    moving what lives out of the oldest segments: which and when
 *   log_index.c    making indexes of sealed segments
 *   log_moves.c    the same: copies on their way
 *   log_mend.c     after a failed write: moving to a fresh segment, or ERROR
 *   log_read.c     reading one message back
 *   log_recover.c  opening: what the files hold
 *   log_load.c     opening: a segment by its index
 *   log_repair.c   opening: making the files fit to go on
 *   log_scan.c     opening: records out of the bytes of one segment
 *
 * Each keeps at most one request with the disk (log_write.c: two, log_read.c: many); the id of a
 * request says whose it is.
 *
 * Who leaves the current segment for the next one (zc_log_next_take), and its SEALs there:
 *
 *   log_write.c   a record does not fit                      with that record (seals_due)
 *   log_clean.c   `clean.until` or `leave` names it, and     at once (seals_due, seals_now)
 *                 nothing waits or is unsynced
 *   log_mend.c    a write or sync in it failed               they are written, synced and read
 *                                                            back first: none are due
 *   log_repair.c  opening found none                         none: there is no segment before
 *
 *   variable      set by                                     until
 *   clean.until   zc_log_compact                             those segments are gone
 *   leave         opening, when the segment has damage       it is not the current one any more
 *   seals_due     zc_log_next_take                           a write that brings them is written
 *                                                            (log_written.c), or log_mend.c did it
 *   seals_now     zc_log_clean_leave                         log_write.c asks for that write
 *
 * Cleaning has a round when `clean.phase` is not IDLE. Who ends a phase:
 *
 *   WANT          zc_log_clean_op: to READING or, when there is no more, to the end of the round;
 *                 zc_log_moves_failed: to the end
 *   READING       the completion alone: to TELL, or to WANT for another try. A failure meanwhile
 *                 sets `left` to 0, so that nothing of what comes back is told
 *   TELL          zc_log_clean_event: to WANT, or to the end when `left` is 0;
 *                 zc_log_moves_failed: to the end
 *   SYNC          zc_log_moves_synced and zc_log_moves_failed, when no copy is on its way
 *
 * The end of a round is SYNC while copies are on their way, else IDLE: so `moves` is empty when a
 * round begins, and within one it grows by place and ticket.
 */
#ifndef ZC_STORE_LOG_PRIV_H
#define ZC_STORE_LOG_PRIV_H

#include "base/buf.h"
#include "store/log_parts.h"

#define ZC_LOG_RETRY_MS 1000
/* No new work is read from clients beyond this many bytes in memory. */
#define ZC_LOG_BACKLOG (UINT64_C(8) << 20)
/* Written but not synced: at most this much before a sync nobody asked for. */
#define ZC_LOG_UNSYNCED_MAX (UINT64_C(1) << 20)
/* SYNC_BATCH: the fsync starts this long after the first write, so that it ends within 50 ms. */
#define ZC_LOG_BATCH_MS 25
/* Requests besides writes that are with the disk at once: one thread of the host's four is always
 * free for the write that puts wait for. */
#define ZC_LOG_BESIDE 3u
/* How often the host is asked whether the bytes of a write that syncs are written. */
#define ZC_LOG_POLL_MS 1

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

    uint32_t leave; /* a segment that takes no more once it rests, or 0 */
    bool seals_now; /* the SEALs do not wait for the first record */
    uint8_t seals[ZC_SEGMENT_SEALS];
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
    uint64_t others;  /* last of a record that is no copy */
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
    struct zc_log_index index;
    bool index_due; /* a segment may be worth one */
    struct zc_log_load load;
    size_t (*body_head)(struct zc_slice body);
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
/* Cleaning or indexing has its request with the disk: they share one. */
bool zc_log_tidying(const struct zc_log *log);
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
/* With everything to be rewritten, or damage in it, the current segment is left when it rests. */
void zc_log_clean_leave(struct zc_log *log);
/* No more is read in this round. */
void zc_log_clean_end(struct zc_log *log);
/* This segment is needed still. */
bool zc_log_clean_holds(const struct zc_log *log, uint32_t segment);
/* A round gathers copies, which wait for its end unless others are written before. */
bool zc_log_clean_gathers(const struct zc_log *log);
/* A sync is wanted although nobody else waits for it. */
bool zc_log_clean_wants_sync(const struct zc_log *log);
void zc_log_clean_done(struct zc_log *log);

/* log_index.c */
bool zc_log_index_op(struct zc_log *log, struct zc_disk_op *ret_op);
void zc_log_index_input(struct zc_log *log, const struct zc_disk_completion *done);
/* A request about this segment (0: any) is with the disk. */
bool zc_log_index_busy(const struct zc_log *log, uint32_t segment);
void zc_log_index_done(struct zc_log *log);

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

/* log_load.c */
/* Begins with a segment; load.phase NONE, now or later: it has to be read itself. */
void zc_log_load_start(struct zc_log *log, const struct zc_segment *s);
bool zc_log_load_op(struct zc_log *log, const struct zc_segment *s, struct zc_disk_op *ret_op);
void zc_log_load_input(struct zc_log *log, struct zc_segment *s,
                       const struct zc_disk_completion *done);
/* With load.phase GIVE: the next entry. False: the segment is through. */
bool zc_log_load_next(struct zc_log *log, struct zc_segment *s, struct zc_index_entry *ret_entry);
void zc_log_load_done(struct zc_log *log);

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
