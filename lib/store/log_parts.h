/* What each part of the log keeps, see log_priv.h. */
#ifndef ZC_STORE_LOG_PARTS_H
#define ZC_STORE_LOG_PARTS_H

#include "base/buf.h"
#include "store/batch.h"
#include "store/index.h"
#include "store/log.h"
#include "store/segment.h"

enum zc_log_slot {
    ZC_LOG_SLOT_WRITE = 1,
    ZC_LOG_SLOT_BEHIND,
    ZC_LOG_SLOT_NEXT,
    ZC_LOG_SLOT_TRIM,
    ZC_LOG_SLOT_MEND,
    ZC_LOG_SLOT_RECOVER,
    ZC_LOG_SLOT_CLEAN,
    ZC_LOG_SLOT_INDEX,
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

/* A record on its way from one of the oldest segments to the head. */
struct zc_log_move {
    uint64_t from, to; /* places; to: 0 until it is written */
    uint64_t ticket;
    bool gone; /* it was forgotten meanwhile */
};

/* Moving what lives out of the oldest segments. */
struct zc_log_clean {
    enum {
        ZC_CLEAN_IDLE,
        ZC_CLEAN_WANT, /* the bytes from `at` on are to be read */
        ZC_CLEAN_READING,
        ZC_CLEAN_TELL, /* they are there: each record in them is told */
        ZC_CLEAN_SYNC, /* copies are on their way to the disk */
    } phase;
    uint32_t segment;   /* at work, or 0 */
    uint32_t begun;     /* the last that any round has gone to */
    uint32_t until;     /* segments up to this one go, whatever that gains */
    uint64_t at;        /* next offset in it */
    uint64_t data_at;   /* of data in the file */
    struct zc_buf data; /* what was read */
    bool first;         /* read of this round: the only one that may be on the loop */
    uint32_t reads;     /* of this round */
    size_t piece;       /* bytes of the request in flight */
    uint32_t tries;     /* of one that failed */
    uint64_t left;      /* bytes that this round may still copy */
    bool left_out;      /* in this round: something that was told and not moved */
    uint64_t appended;  /* log->appended at the end of the last round */
    struct zc_mono not_before;
    uint64_t told;             /* place of the record in the last event, or 0 */
    uint32_t told_size;        /* of its record */
    struct zc_log_move *moves; /* by place and ticket */
    uint32_t moves_first, moves_len, moves_cap;
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

/* The index that is being made. */
struct zc_log_index {
    enum {
        ZC_INDEX_IDLE,
        ZC_INDEX_WANT, /* the next piece of the segment is to be read */
        ZC_INDEX_READING,
        ZC_INDEX_WRITE, /* it is complete */
        ZC_INDEX_WRITING,
    } phase;
    uint32_t segment;
    struct zc_segment copy; /* what the scan may write to */
    struct zc_log_scan scan;
    struct zc_log_status counts; /* damage that the scan finds */
    struct zc_index numbers;
    struct zc_buf file;
};

/* Opening a segment by its index. */
struct zc_log_load {
    enum {
        ZC_LOAD_NONE,
        ZC_LOAD_READ,
        ZC_LOAD_SIZE, /* the index passes; is the segment as long as it says? */
        ZC_LOAD_GIVE,
    } phase;
    struct zc_buf file;
    size_t pos; /* of the next entry */
    struct zc_index index;
    uint8_t tail[16];
};

struct zc_log_read {
    void *cookie;
    struct zc_block *block; /* head and body */
    uint64_t place;
    size_t body_len;
    int err;
    uint32_t tries; /* that failed */
    uint32_t next;  /* in its queue, index + 1 */
};

struct zc_log_reads {
    struct zc_log_read *items;
    uint32_t cap;
    uint32_t free, wanted, wanted_last, ready, ready_last; /* queues, index + 1, 0 at their end */
    uint32_t busy;
    uint32_t given; /* of them: with the disk */
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

#endif
