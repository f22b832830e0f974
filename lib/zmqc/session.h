/*
 * One connection to the bus: framing of input, ordered output, what it waits for and holds.
 *
 * Output is a list of chunks: small frames are copied together, large or shared ones are
 * referenced. Replies that wait for the disk stand in two lanes, each in order: `replies` (answers
 * to operations) and `gifts` (messages from mailboxes). Heartbeats and reads of state overtake
 * both.
 *
 *   OPEN --eof--> ENDING --output empty--> CLOSED       (half-close: what was asked is answered)
 *   OPEN --bad frame, hub stop--> ENDING                (input is ignored)
 *   any  --silent, stuck--> CLOSED                      (output is dropped)
 */
#ifndef ZC_ZMQC_SESSION_H
#define ZC_ZMQC_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/text.h"
#include "zmqc/mailbox.h"

enum zc_session_state { ZC_SESSION_OPEN, ZC_SESSION_ENDING, ZC_SESSION_CLOSED };

/* Frames up to this size are copied into shared chunks. */
#define ZC_SESSION_COPY_MAX 2048
#define ZC_SESSION_CHUNK 8192
#define ZC_SESSION_CHUNK_FIRST 960

struct zc_chunk {
    struct zc_list link;
    struct zc_block *block; /* referenced frame, or NULL: bytes are in data */
    uint32_t start, end;    /* unsent part */
    uint32_t cap;           /* of data */
    uint8_t data[];
};

/* End positions of the subscription frames that are still in the output. */
struct zc_marks {
    uint64_t *ends;
    uint32_t first, len, cap;
};

struct zc_session {
    struct zc_list link;    /* all sessions */
    struct zc_list dirty;   /* an OUTPUT or CLOSE event is due */
    struct zc_list stalled; /* a lane is not empty */
    struct zc_list yielded; /* its input used up its turn */
    struct zc_timer timer;  /* heartbeat and stall, whichever is earlier */
    uint64_t serial;
    uint64_t owner; /* of ids and leases: the number of the scope, else the serial */
    char id_head[ZC_TEXT_UINT_MAX + 2]; /* what its message ids begin with: s<owner>: */
    uint8_t id_head_len;                /* 0: not made yet */
    struct zc_scope *scope;             /* NULL: none */
    bool has_put;
    void *data; /* the host's */
    char *identity;
    char *default_name;
    struct zc_buf name; /* claimed by hello */
    uint8_t state;      /* enum zc_session_state */
    bool control;
    bool inner; /* served by the node itself: data is not the host's */
    bool half_closed;
    bool paused;     /* input waits in `in` until output or the log has room */
    bool congested;  /* waiters are passed over until output has room */
    bool publishing; /* a publication of it is under way: it stays first in what it does */
    bool behind;     /* a subscription may be behind, see topic.h */
    bool close_told;
    uint32_t cost; /* of the input of this turn */
    bool scanning; /* zc_session_input is on the stack */

    struct zc_buf in;   /* bytes of unfinished or paused frames */
    struct zc_list out; /* zc_chunk */
    uint64_t out_total, sent_total;
    struct zc_list unsent; /* taken messages that the kernel has not accepted, by link */
    struct zc_marks marks; /* subscription frames in the output */

    struct zc_list replies, gifts; /* zc_held */
    uint32_t held_count, held_subs;
    uint64_t held_bytes;
    uint64_t *account;     /* memory of all sessions' output is added up here; NULL: nowhere */
    uint64_t ending_bytes; /* what its end will free, once it is killed */

    struct zc_list waiters, deliveries, subs, requests, jobs;
    uint32_t waiters_count, deliveries_count, subs_count, requests_count, jobs_count;
    uint64_t pub_mark;   /* last publication that was matched, for one copy a session */
    uint32_t match_slot; /* its place among the matches of that publication */
    uint64_t caught;     /* behind: last publication looked at for those that are */

    struct zc_mono heard;    /* last inbound frame */
    struct zc_mono ping_due; /* next heartbeat */
    struct zc_mono progress; /* output last moved, or began to wait */
};

/* NULL when memory is refused. Strings are copied. */
struct zc_session *zc_session_new(const char *identity, const char *name);
/* Frees buffers and output; lists of the broker's things must be empty. */
void zc_session_free(struct zc_session *s);

/* What its message ids begin with: s<owner>: */
struct zc_slice zc_session_id_head(struct zc_session *s);

/* Bytes in the output that the kernel has not accepted. */
static inline uint64_t zc_session_out_bytes(const struct zc_session *s)
{
    return s->out_total - s->sent_total;
}
/* Appends a frame to the output: small ones are copied, others referenced. */
ZC_MUST_CHECK int zc_session_write(struct zc_session *s, struct zc_block *frame);
/* Appends a copy of at most ZC_SESSION_CHUNK bytes. */
ZC_MUST_CHECK int zc_session_copy(struct zc_session *s, struct zc_slice frame);
/* Appends len bytes of block from start on, referenced. What lies behind the bytes that were
 * appended last costs nothing more. */
ZC_MUST_CHECK int zc_session_refer(struct zc_session *s, struct zc_block *block, uint32_t start,
                                   uint32_t len);
/* Unsent slices in order, at most cap. */
size_t zc_session_slices(const struct zc_session *s, struct zc_slice *ret_slices, size_t cap);
/* The kernel accepted n bytes. */
void zc_session_sent(struct zc_session *s, size_t n);
/* Bytes that are output or will become output. */
static inline uint64_t zc_session_waiting(const struct zc_session *s)
{
    return zc_session_out_bytes(s) + s->held_bytes;
}
/* A frame begins or ceases to wait for the session. In the account a block that waits for many
 * counts once. */
void zc_session_charge(struct zc_session *s, struct zc_block *frame);
void zc_session_discharge(struct zc_session *s, struct zc_block *frame);
/* The same for n bytes of memory of its own. */
void zc_session_charge_bytes(struct zc_session *s, uint64_t n);
void zc_session_discharge_bytes(struct zc_session *s, uint64_t n);
/* Drops all output. */
void zc_session_drop_output(struct zc_session *s);
/* Remembers that the frame just written is a subscription's. */
ZC_MUST_CHECK int zc_session_mark(struct zc_session *s);

#endif
