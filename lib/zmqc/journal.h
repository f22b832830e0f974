/*
 * What the broker asks of the store below it. The node fills the functions in; they only queue
 * work, so nothing re-enters the broker. Without a journal mailboxes live in memory.
 */
#ifndef ZC_ZMQC_JOURNAL_H
#define ZC_ZMQC_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum zc_journal_kind {
    ZC_JOURNAL_PUT,    /* body: a stored item */
    ZC_JOURNAL_RETURN, /* the same, of a message that was removed and comes back */
    ZC_JOURNAL_REMOVE, /* body: u64 little-endian sequence numbers */
    ZC_JOURNAL_STATE,  /* body: u32 attempt, i64 due (unix ms), little-endian */
    ZC_JOURNAL_BIND,   /* body: see stored.h */
    ZC_JOURNAL_SEEN,   /* body: see stored.h */
};

struct zc_journal {
    void *arg;
    /* Returns a ticket (1, 2, 3 …; later told as written, synced or failed) or a negative zc_err.
     * *place is set by the time the ticket is synced, and changes when the record moves: it stays
     * valid until the ticket has failed or the place is forgotten. */
    int64_t (*append)(void *arg, enum zc_journal_kind kind, uint64_t seq, struct zc_slice body,
                      bool sync_wanted, uint64_t *place);
    /* zc_broker_read_done follows with the cookie. */
    int (*read)(void *arg, uint64_t place, size_t body_len, void *cookie);
    void (*forget)(void *arg, uint64_t place);
    /* The record at place is kept (while records are restored), and its place from now on in *owner
     * and no more where it was. */
    void (*own)(void *arg, uint64_t place, uint64_t *owner);
    /* Answer to zc_broker_move: the record goes to the head of the log. A ticket, or a negative
     * zc_err: it is asked for again. */
    int64_t (*move)(void *arg, enum zc_journal_kind kind, uint64_t seq, struct zc_slice body);
    /* Appends the `storage` object of status. 0 or ZC_ENOMEM. */
    int (*status)(void *arg, struct zc_buf *json);
};

#endif
