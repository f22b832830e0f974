/*
 * The broker: sessions, mailboxes, topics and requests of one hub, and the rules between them
 * (docs/man/zmqc.5). Sans-IO; the node above gives it bytes, time and a journal.
 *
 * What an operation changes is in memory at once; what the client may see of it waits for the disk:
 *
 *   put      PENDING until its ticket is synced, then ok, then waiters are matched
 *   take     it leaves the mailbox, its removal is journaled; the frame leaves when that is synced
 *   ack      likewise; the ok waits
 *   reserve  the attempt count is journaled; the frame leaves when that is written
 *
 * A failed ticket undoes exactly that: the put is refused, the message is back in its place.
 */
#ifndef ZC_ZMQC_BROKER_H
#define ZC_ZMQC_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/time.h"
#include "zmqc/admin.h"
#include "zmqc/fan.h"
#include "zmqc/item.h"
#include "zmqc/journal.h"
#include "zmqc/mailbox.h"
#include "zmqc/msg.h"
#include "zmqc/request.h"
#include "zmqc/restored.h"
#include "zmqc/row_ids.h"
#include "zmqc/session.h"
#include "zmqc/topic.h"

#define ZC_BROKER_LEASE_DEFAULT_S 60
#define ZC_BROKER_LEASE_MAX_S 86400
#define ZC_BROKER_STALL_MS 15000    /* output without progress ends the session */
#define ZC_BROKER_WAITERS_MAX 16384 /* waiting operations of a session */
#define ZC_BROKER_REQUESTS_MAX 16384
#define ZC_BROKER_LEASES_MAX 65536
#define ZC_BROKER_SUBS_MAX 1024
#define ZC_BROKER_TURN_COST                                                                        \
    8192 /* work of one session before others have their turn; a frame is 1 */
#define ZC_BROKER_MEMORY_MAX (UINT64_C(1) << 30) /* messages of a hub without a log */
#define ZC_BROKER_WAITING_MAX 262144 /* waiting operations, and requests, of all sessions */
#define ZC_BROKER_IN_MAX (UINT64_C(256) << 20) /* unfinished frames of all sessions */
#define ZC_BROKER_LOG_MAX 1024                 /* log and trace lines kept for the host */

/* Kinds of timers in the one heap. */
enum zc_timer_kind {
    ZC_TIMER_SESSION,
    ZC_TIMER_WAITER,
    ZC_TIMER_LEASE,
    ZC_TIMER_MESSAGE,
    ZC_TIMER_REQUEST,
    ZC_TIMER_TOPIC,
    ZC_TIMER_SEEN,
};

struct zc_broker_limits {
    int64_t heartbeat_ms; /* <= 0: off */
    uint64_t payload_max, mailbox_cap, sub_buffer, topics_max, headers_max, headers_bytes,
        mailboxes_max, sessions_max, session_bytes, output_bytes, hot_bytes, hot_messages;
};

/* take, reserve or ready that waits. */
struct zc_waiter {
    struct zc_list in_mailbox, in_session;
    struct zc_timer timer;
    struct zc_session *session;
    struct zc_mailbox *mailbox;
    struct zc_group *group; /* NULL: no filter */
    uint64_t turn;          /* order of arrival */
    uint8_t op;             /* enum zc_gift */
    int64_t lease_s;
    uint32_t max; /* 0: not given */
    uint16_t id_len;
    uint8_t id[];
};

enum zc_gift { ZC_GIFT_TAKE, ZC_GIFT_RESERVE, ZC_GIFT_READY };

#define ZC_DELIVERY_TOKEN 24

/* A lease: one message in the hands of one session. */
struct zc_delivery {
    struct zc_map_node by_token;
    struct zc_map_node by_message; /* session and message id, once the frame was made */
    struct zc_list in_session;     /* or in the scope, once its session has ended */
    struct zc_timer timer;
    struct zc_message *message;
    struct zc_session *session; /* NULL: it has ended */
    struct zc_scope *scope;     /* NULL: none */
    uint64_t owner;             /* of the session when it was given */
    uint64_t sent_end;          /* output position behind its frame; 0: not made */
    struct zc_held *held;       /* frame not made yet */
    int64_t lease_s, lease_unix;
    uint8_t *request_id; /* message id, for a rep by delivery; requests only */
    uint16_t request_id_len;
    bool has_message_key; /* by_message is in the map */
    char token[ZC_DELIVERY_TOKEN];
};

/* A frame that waits in a lane. */
struct zc_held {
    struct zc_list link;
    uint64_t ticket;   /* 0: nothing */
    bool written_only; /* written is enough */
    bool gift;         /* message and gift_op count; else frame does */
    bool sub;          /* frame of a subscription */
    bool pub;          /* ok to a publication */
    bool end, batch;   /* of a request with max: the last, and any */
    uint8_t gift_op;
    struct zc_block *frame;
    struct zc_message *message;
    uint16_t id_len; /* request id, for errors and reserve */
    uint8_t id[];
};

/* What to settle when a ticket is synced or failed. */
struct zc_entry {
    uint64_t ticket;
    struct zc_message *message; /* or NULL: */
    struct zc_setting *setting;
    bool put; /* else removal */
};

struct zc_line {
    struct zc_list link;
    uint8_t level;
    bool trace;
    char text[];
};

/* A session that a publication goes to. */
struct zc_match {
    struct zc_session *session;
    struct zc_sub *replaying; /* a matching subscription whose replay is not over, or NULL */
};

struct zc_counters {
    uint64_t puts, takes, leases, acks, redelivered, expired, dropped, dropped_subs, damaged;
    uint64_t queued, leased, delayed, bytes; /* sums over mailboxes */
};

struct zc_broker {
    struct zc_broker_limits limits;
    const char *version;
    const struct zc_journal *journal; /* NULL: memory only */
    const struct zc_admin *admin;     /* NULL: no tunnel */
    struct zc_rng rng;
    uint8_t key[16], key2[16];
    char epoch[33];
    struct zc_now now;
    struct zc_mono started;
    uint64_t serial_next, seq_next;
    bool trace, stopping;
    bool draining;      /* nothing new comes in, until the next start */
    bool input_blocked; /* the log is behind: read nothing more */

    struct zc_map mailboxes;
    struct zc_mailbox *recent; /* found last; NULL: none */
    struct zc_list mailbox_list;
    struct zc_list dispatch; /* mailboxes to match */
    struct zc_list dead;     /* messages that only a read under way still knows */
    struct zc_list jobs;     /* those that go on in the next turn */
    struct zc_list jobs_dead;
    struct zc_list pubs;         /* publications for bound mailboxes; the first one is under way */
    struct zc_list transfers;    /* messages on their way to another mailbox */
    struct zc_map ids;           /* messages by (mailbox, id) for duplicates */
    struct zc_row_ids row_ids;   /* the same of rows */
    struct zc_restored restored; /* while the log opens */
    struct zc_map tokens;        /* deliveries */
    struct zc_map held_ids;      /* deliveries by (session, message id) */
    struct zc_heap timers;
    struct zc_topics topics;
    struct zc_fan fan;
    struct zc_requests requests;
    struct zc_map scopes;
    struct zc_map seen, seen_boxes;
    struct zc_list seen_all;
    struct zc_timer seen_timer;
    struct zc_map bound; /* mailboxes that topics are bound to, by name */
    struct zc_map bindings_by_key, bindings_by_seq;
    struct zc_list bindings;
    uint32_t bindings_count;
    bool bindings_unsure;         /* a record of one failed, and may be on disk nevertheless */
    struct zc_binding_walk *walk; /* of the first of pubs, or NULL */
    uint64_t walks;

    struct zc_list sessions, dirty, stalled;
    struct zc_list dirty_inner;            /* the node's own, see zc_broker_inner */
    struct zc_list yielded;                /* sessions whose input used up its turn */
    uint64_t sessions_count, bus_sessions; /* all, and those that are not the administrator's */
    uint64_t waiters_count;
    uint64_t pub_mark, turn, unpark_round;
    struct zc_match *matches; /* scratch of pub */
    uint32_t matches_len, matches_cap;

    struct zc_entry *entries; /* ring of unsettled journal entries */
    uint32_t entries_first, entries_len, entries_cap;
    uint64_t written, synced; /* tickets */
    uint32_t orphans;         /* taken messages on their way back into their mailboxes */
    struct zc_list unstored;  /* PENDING messages that the log could not take back, by link */
    struct zc_list reviving;  /* taken messages whose body is read so that they can come back */

    struct zc_list lines;
    uint32_t lines_count;
    uint64_t lines_dropped;
    struct zc_line *line_told;

    uint64_t hot_bytes, hot_count; /* of bodies in memory; without a log rows count as bytes */
    uint64_t in_bytes;   /* kept in sessions: unfinished frames, and what waits for its turn */
    uint64_t out_bytes;  /* memory of output, and of what becomes output, of all sessions */
    uint64_t out_ending; /* the part of killed sessions, which goes with them */
    bool out_short;      /* it is too much: see budget.h */
    struct zc_counters count;
    struct zc_msg in, out; /* scratch */
    struct zc_buf scratch;
};

struct zc_broker *zc_broker_new(const struct zc_broker_limits *limits, const uint8_t seed[32],
                                struct zc_now now);
void zc_broker_free(struct zc_broker *b);

/* One surviving record of the log while it opens. PUT: body is copied unless memory is tight. */
ZC_MUST_CHECK int zc_broker_restore_put(struct zc_broker *b, uint64_t seq, struct zc_slice body,
                                        size_t body_len, uint64_t place);
void zc_broker_restore_remove(struct zc_broker *b, uint64_t seq);
ZC_MUST_CHECK int zc_broker_restore_bind(struct zc_broker *b, uint64_t seq, struct zc_slice body,
                                         uint64_t place);
ZC_MUST_CHECK int zc_broker_restore_seen(struct zc_broker *b, uint64_t seq, struct zc_slice body,
                                         uint64_t place);
void zc_broker_restore_state(struct zc_broker *b, uint64_t seq, uint32_t attempt, int64_t due_ms);
/* All records were given: what was queued is visible. ZC_ENOMEM: nothing is. */
ZC_MUST_CHECK int zc_broker_restored(struct zc_broker *b, struct zc_now now, uint64_t seq_max);

struct zc_session *zc_broker_attach(struct zc_broker *b, struct zc_now now, const char *identity,
                                    const char *name, bool control, void *data);
void zc_broker_detach(struct zc_broker *b, struct zc_session *s, struct zc_now now);
void zc_broker_input(struct zc_broker *b, struct zc_session *s, struct zc_now now, uint8_t *data,
                     size_t len);
void zc_broker_eof(struct zc_broker *b, struct zc_session *s, struct zc_now now);
bool zc_broker_wants_input(const struct zc_broker *b, const struct zc_session *s);
void zc_broker_sent(struct zc_broker *b, struct zc_session *s, struct zc_now now, size_t n);
/* Input may flow, or must not, whatever the session (the log is behind). */
void zc_broker_block_input(struct zc_broker *b, struct zc_now now, bool blocked);

/* Journal progress. */
void zc_broker_written(struct zc_broker *b, struct zc_now now, uint64_t ticket);
void zc_broker_synced(struct zc_broker *b, struct zc_now now, uint64_t ticket);
void zc_broker_failed(struct zc_broker *b, struct zc_now now, uint64_t ticket);
/* The log takes records again: what it could not take back is stored now. */
void zc_broker_store_again(struct zc_broker *b);
/* Nothing is on its way to the disk or back from a taker, or waits for the disk to work. */
bool zc_broker_settled(const struct zc_broker *b);
/* body is a reference that the broker takes over, NULL when the read failed. */
void zc_broker_read_done(struct zc_broker *b, struct zc_now now, void *cookie,
                         struct zc_block *body);

/* The record whose place is in *owner is wanted at the head of the log. What lives is journaled
 * again with journal->move; what is just being removed is left alone, for a copy behind its REMOVE
 * would bring it back. body.data NULL: it is damaged. */
void zc_broker_move(struct zc_broker *b, struct zc_now now, struct zc_slice body, uint64_t *owner);

void zc_broker_tick(struct zc_broker *b, struct zc_now now);
struct zc_mono zc_broker_deadline(const struct zc_broker *b);
/* Waiters are told `mailbox: closed`, sessions end after their output. */
void zc_broker_stop(struct zc_broker *b, struct zc_now now);
/* Ends every session at once, whatever it has not read. */
void zc_broker_cut(struct zc_broker *b);

/* Next session with output to write or an end to act on (*ret_close), or NULL. */
struct zc_session *zc_broker_dirty(struct zc_broker *b, bool *ret_close);
/* The same of sessions that were made inner: those the node serves itself. */
struct zc_session *zc_broker_inner(struct zc_broker *b, bool *ret_close);
void zc_broker_make_inner(struct zc_broker *b, struct zc_session *s);
/* Next line for the log or the trace, or NULL; valid until the next call. */
const struct zc_line *zc_broker_line(struct zc_broker *b);
/* Ends a session without its output and says why in the log. */
void zc_broker_kill(struct zc_broker *b, struct zc_session *s, const char *why);
/* A line for the administrator about a session (NULL: about the hub); what is static text. */
void zc_broker_log(struct zc_broker *b, int level, const struct zc_session *s, const char *what);
/* A line of the trace. */
void zc_broker_trace(struct zc_broker *b, const struct zc_session *s, bool out,
                     const struct zc_msg *m);
/* An event for the host is due. */
static inline void zc_broker_touch(struct zc_broker *b, struct zc_session *s)
{
    if (!zc_list_linked(&s->dirty) && !s->close_told)
        zc_list_push(s->inner ? &b->dirty_inner : &b->dirty, &s->dirty);
}
/* Heartbeat and stall of a session, when its timer is due. */
void zc_broker_pulse(struct zc_broker *b, struct zc_session *s);
/* Takes up paused input and ends half-closed sessions, if the time for it has come. */
void zc_broker_resume(struct zc_broker *b, struct zc_session *s);
/* The mailbox of that name; made when `create`. NULL: not there, or *ret_code and *ret_text say
 * why. */
struct zc_mailbox *zc_broker_mailbox(struct zc_broker *b, struct zc_slice name, bool create,
                                     const char **ret_code, const char **ret_text);
/* Frees the mailbox when nothing is in it and nobody waits. */
void zc_broker_reap(struct zc_broker *b, struct zc_mailbox *mb);
/* Matching is due for this mailbox. */
void zc_broker_want_dispatch(struct zc_broker *b, struct zc_mailbox *mb);

#endif
