/*
 * The durable log: an append-only sequence of records in preallocated segments, with group commit.
 * Sans-IO: disk requests out, completions in. The format is docs/man/zmqcat-log.5.
 *
 * Records carry a type, a sequence number and opaque bytes; each append gets the next ticket. The
 * tickets 1..written are in the page cache, 1..synced on disk. After a failed write or fsync
 * nothing is acknowledged from that segment again: what was not synced is written to a fresh
 * segment, synced and read back; when that fails too, all tickets above `synced` fail and the state
 * is ERROR.
 *
 *   OPENING --recovered--> OK <--room--> FULL (puts refused; removals use the room kept for them)
 *                          |  ^
 *            write, fsync  v  | fresh segment written, synced, read back
 *                         ERROR (everything refused, retried each second)
 */
#ifndef ZC_STORE_LOG_H
#define ZC_STORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/time.h"
#include "store/disk.h"

struct zc_log;

enum zc_record_type {
    ZC_RECORD_SEAL = 1,   /* first of a segment: where the one before it ends */
    ZC_RECORD_PUT = 2,    /* seq: the message; body: opaque */
    ZC_RECORD_REMOVE = 3, /* body: one or more u64 little-endian seqs that are gone */
    ZC_RECORD_STATE = 4,  /* seq: the message; body: 12 bytes, u32 attempt, i64 due (unix ms) */
    /* Kept like a PUT, until a REMOVE names its seq or its place is forgotten; bodies opaque. SEEN:
     * the id of a message that is gone already; forgotten without a REMOVE when its time is over */
    ZC_RECORD_BIND = 5,
    ZC_RECORD_SEEN = 6,
};

enum zc_log_sync { ZC_LOG_SYNC_ALWAYS, ZC_LOG_SYNC_BATCH, ZC_LOG_SYNC_NEVER };

enum zc_log_state { ZC_LOG_OPENING, ZC_LOG_OK, ZC_LOG_FULL, ZC_LOG_ERROR, ZC_LOG_CLOSED };

struct zc_log_config {
    enum zc_log_sync sync;
    uint64_t segment_bytes;   /* 64 KiB .. 1 GiB */
    const uint32_t *segments; /* numbers of the files found, any order */
    uint32_t segments_count;
    /* How many first bytes of a PUT's body ZC_LOG_RECORD must have; NULL: all of it. A function of
     * the bytes alone. */
    size_t (*body_head)(struct zc_slice body);
};

enum zc_log_event_kind {
    ZC_LOG_RECORD,  /* while OPENING: the records that survive, in log order. PUT, BIND, SEEN: place
                       and body; a second one of the same seq replaces the first (it is a copy, or
                       the message was taken and came back). What is kept wants a zc_log_own, each
                       place that a REMOVE or a second PUT makes useless a zc_log_forget. body is
                       valid until the next event or op call */
    ZC_LOG_READY,   /* recovery is complete, appends are welcome */
    ZC_LOG_WRITTEN, /* tickets up to `ticket` are written */
    ZC_LOG_SYNCED,  /* tickets up to `ticket` are durable (all modes: as durable as asked) */
    ZC_LOG_FAILED,  /* every ticket above `ticket` failed and is forgotten; those up to it may still
                       be on their way to the disk */
    ZC_LOG_STATE,   /* state changed, see zc_log_status */
    ZC_LOG_READ,    /* answer to zc_log_read: cookie, err, body (a new reference or NULL) */
    ZC_LOG_MOVE,    /* the record at *owner is to go to the head of the log, because its segment is
                       mostly useless: answer with zc_log_move before the next event or op call, or
                       not at all when its removal is appended already. type, seq, body, all valid
                       until then; err ZC_EBADMSG: it is damaged, there is only owner */
    ZC_LOG_UNUSABLE, /* while OPENING: cannot go on; err and text say why */
};

struct zc_log_event {
    enum zc_log_event_kind kind;
    enum zc_record_type type;
    uint64_t seq;
    struct zc_slice body;
    uint32_t body_len; /* RECORD: of all of it; body may be its head only, see body_head */
    uint64_t place;
    uint64_t ticket;
    void *cookie;
    uint64_t *owner; /* MOVE: what was given to zc_log_append or zc_log_own */
    struct zc_block *block;
    int err;
    const char *text;
};

/* Numbers for status; all counts since opening unless said otherwise. */
struct zc_log_status {
    enum zc_log_state state;
    uint64_t bytes; /* of all segment files */
    uint32_t segments;
    uint64_t torn_bytes; /* dropped at the tail when opening */
    uint64_t damaged;    /* records that did not pass their checksum when opening or reading */
    uint64_t damaged_bytes;
    uint32_t indexed;    /* segments opened by their index */
    uint64_t live_bytes; /* of records not forgotten */
    uint64_t moved;      /* records copied to the head, so that their segments could go */
    uint64_t moved_bytes;
    uint64_t syncs;
    int last_err; /* last write, fsync or create failure, 0 if none */
    uint32_t last_err_segment;
    uint64_t failures; /* of write, fsync and create */
};

/* NULL when memory is refused. The log asks for reads at once; rng gives segment salts. */
struct zc_log *zc_log_new(const struct zc_log_config *config, struct zc_rng *rng);
/* No request may be with the disk any more. */
void zc_log_free(struct zc_log *log);

/*
 * Appends one record; the body is copied. `place`, when not NULL, gets the record's place (see
 * zc_log_read) once it is written. It must stay valid until its ticket has failed or, for a record
 * that is kept, until zc_log_forget: when the record moves, the log writes its new place there.
 * `sync_wanted`: somebody waits for SYNCED; without it the record is written soon, also while a
 * sync goes on, and synced with the next one that wants it. Returns the ticket, or a negative
 * zc_err: ZC_ENOSPC when FULL (PUT only; REMOVE and STATE while room for them is left), ZC_EIO when
 * ERROR, ZC_ENOMEM, ZC_EAGAIN while OPENING, ZC_ECLOSED after zc_log_close.
 */
ZC_MUST_CHECK int64_t zc_log_append(struct zc_log *log, enum zc_record_type type, uint64_t seq,
                                    struct zc_slice body, bool sync_wanted, uint64_t *place);
/* A PUT of a message whose removal is logged already, because it did not reach its taker: it may
 * use the room that is kept for removals. Otherwise as zc_log_append, with sync_wanted. */
ZC_MUST_CHECK int64_t zc_log_append_again(struct zc_log *log, uint64_t seq, struct zc_slice body,
                                          uint64_t *place);
/* A PUT of body_len bytes would be taken now: 0, ZC_ENOSPC or ZC_EIO. */
int zc_log_would_put(const struct zc_log *log, size_t body_len);
/* True while so much waits to be written that no new work should be read from clients. */
bool zc_log_backlogged(const struct zc_log *log);
/* The record at place is kept (while OPENING), and its place is kept in *owner from now on, no more
 * where it was. */
void zc_log_own(struct zc_log *log, uint64_t place, uint64_t *owner);
/* The message at place is gone for good (its removal is synced): lets its segment be deleted when
 * it and all before it hold nothing live. */
void zc_log_forget(struct zc_log *log, uint64_t place);
/* Answer to ZC_LOG_MOVE: copies the record; body is that of the event or, of a damaged one, what
 * the caller still has. Returns a ticket, behind which what belongs to the record may be appended
 * (STATE), or a negative zc_err: then it is asked for again later. The place changes when the copy
 * is on disk. */
ZC_MUST_CHECK int64_t zc_log_move(struct zc_log *log, enum zc_record_type type, uint64_t seq,
                                  struct zc_slice body);
/* Rewrites all that lives into fresh segments, however little that gains. Off line: open the log
 * (each live record comes as an event), at READY call this, run it until zc_log_compacting is
 * false, close it. */
void zc_log_compact(struct zc_log *log);
bool zc_log_compacting(const struct zc_log *log);
/* Reads back the PUT body of body_len bytes at place; ZC_LOG_READ follows. */
ZC_MUST_CHECK int zc_log_read(struct zc_log *log, uint64_t place, size_t body_len, void *cookie);

/* Next disk request, false when there is none now. Group commit: call it once all input of this
 * turn was given. */
bool zc_log_op(struct zc_log *log, struct zc_now now, struct zc_disk_op *ret_op);
void zc_log_input(struct zc_log *log, struct zc_now now, const struct zc_disk_completion *done);
void zc_log_tick(struct zc_log *log, struct zc_now now);
struct zc_mono zc_log_deadline(const struct zc_log *log);
/* Call until false after input, tick, read and close. */
bool zc_log_event(struct zc_log *log, struct zc_log_event *ret_event);
/* Writes and syncs what waits, then state CLOSED (a ZC_LOG_STATE event). No appends after it. */
void zc_log_close(struct zc_log *log, struct zc_now now);
void zc_log_status(const struct zc_log *log, struct zc_log_status *ret_status);
/* Highest sequence number that any record or header has named, after READY. */
uint64_t zc_log_seq_max(const struct zc_log *log);
/* Raises the number above for headers of later segments. */
void zc_log_seq_note(struct zc_log *log, uint64_t seq);

#endif
