/*
 * Mailboxes and the messages in them: order, counts and bytes; nothing of sessions or disks.
 *
 *            put                 due               take, reserve
 *   PENDING -----> QUEUED or DELAYED ----> QUEUED ---------------> REMOVING or LEASED
 *   (not yet        ^                                                 |           |
 *    durable)       +------------- nack, lease end, session end ------+-----------+
 *
 *   LEASED --ack--> REMOVING
 *
 * New messages join `queue`, a list in sequence order. What returns or was delayed joins
 * `returned`, a heap by sequence number. What merely waits is in `rows`, see rest.h. The next
 * message is the lowest of the three heads, so everything keeps its original place at O(1) for the
 * usual path and O(log n) for returns.
 */
#ifndef ZC_ZMQC_MAILBOX_H
#define ZC_ZMQC_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "zmqc/rows.h"

struct zc_delivery;
struct zc_mailbox;

enum zc_message_state {
    ZC_MESSAGE_PENDING, /* its put is not durable yet: nobody may see it */
    ZC_MESSAGE_QUEUED,
    ZC_MESSAGE_DELAYED,
    ZC_MESSAGE_LEASED,
    ZC_MESSAGE_REMOVING, /* taken, acknowledged or expired; the removal is on its way to disk or
                            the frame on its way to the kernel */
};

/* There may be millions: what excludes each other shares its bytes, and no padding lies between. */
struct zc_message {
    union {
        struct zc_list link; /* mailbox queue or `later`, or the taker's list of unsent messages */
        struct zc_timer order; /* while `returned`: in mailbox->returned; the key is seq */
    };
    struct zc_timer timer;    /* end of delay or ttl */
    struct zc_map_node by_id; /* duplicate check, while deduped */
    uint64_t id_tag;          /* second half of the id's hash */
    uint64_t seq;
    uint64_t from;  /* hash of the sender's claimed name, for filters */
    uint64_t place; /* in the log; 0: none */
    uint8_t owner;  /* enum zc_owner, right behind place */
    uint8_t state;  /* enum zc_message_state */
    bool returned;  /* QUEUED in the heap of its mailbox, not in the list */
    bool request;
    bool deduped;
    bool scoped;  /* a put whose id belongs to a scope: id_tag is its hash for seen.h */
    bool watched; /* a group has looked up to here */
    bool reading; /* a read of its body is under way */
    bool stale;   /* that read is of a body which it no longer has */
    bool dead;    /* free it when the read comes back */
    bool settled; /* REMOVING: the removal is durable */
    bool taken;   /* REMOVING by take: a lane or the taker's unsent list has it */
    bool moving;  /* PENDING: its way back is in a transfer */
    bool revived; /* PENDING again after a take that did not reach its taker */
    bool orphan;  /* REMOVING: the taker is gone, back to the queue when settled */
    uint32_t attempt;
    uint32_t seen_s; /* scoped: seconds after b->started at which its id is new again */
    uint32_t body_len, payload_len;
    struct zc_mailbox *mailbox;
    struct zc_block *body; /* stored item, NULL while only on disk */
    struct zc_delivery *delivery;
    union {
        struct zc_mono due; /* ZC_NEVER: none */
        uint64_t sent_end;  /* in the unsent list: output position after which the kernel has it */
    };
    struct zc_mono expires; /* ZC_NEVER: none */
    int64_t at_ms;
};

/* Waiters in the order of their turns, by in_mailbox. */
struct zc_line_up {
    struct zc_list waiters;
    struct zc_list *unpark_at; /* where the last waiter came back in round `unparked` */
    uint64_t unparked;
};

struct zc_mailbox {
    struct zc_map_node node;
    struct zc_list link;     /* all mailboxes */
    struct zc_list dispatch; /* linked while waiters and messages should be matched */
    struct zc_list queue;
    struct zc_heap returned;
    struct zc_rows rows;
    struct zc_line_up line; /* waiters without a filter */
    struct zc_list groups;  /* those with one, see group.h */
    struct zc_list later;   /* DELAYED messages */
    struct zc_list moves;   /* jobs that move out of it; the first is at it */
    uint32_t groups_count, groups_idle;
    uint64_t any;  /* waiters without a filter, parked ones too */
    uint32_t pins; /* somebody works on it: it stays */
    uint64_t queued, delayed, leased, pending, removing, waiting;
    uint64_t bytes; /* payloads queued, delayed and leased */
    uint64_t in, out, redelivered, dropped;
    uint16_t name_len;
    uint8_t name[];
};

/* NULL when memory is refused. */
struct zc_mailbox *zc_mailbox_new(struct zc_slice name);
/* Must be idle (zc_mailbox_idle). */
void zc_mailbox_free(struct zc_mailbox *mb);
static inline struct zc_slice zc_mailbox_name(const struct zc_mailbox *mb)
{
    return zc_slice(mb->name, mb->name_len);
}
/* No message in any state, no waiter, no pin. */
bool zc_mailbox_idle(const struct zc_mailbox *mb);

/* It takes no new message. */
static inline bool zc_mailbox_full(const struct zc_mailbox *mb, uint64_t cap)
{
    return mb->queued + mb->delayed + mb->pending >= cap;
}

/* Enters m at its sequence number: state QUEUED. Without memory for `returned`, it goes into the
 * queue, at a walk through it. */
void zc_mailbox_enter(struct zc_mailbox *mb, struct zc_message *m);
/* A QUEUED message, counted, that is nowhere in the order joins what returned. */
ZC_MUST_CHECK int zc_mailbox_join(struct zc_mailbox *mb, struct zc_message *m);
/* It leaves the order and stays counted. */
void zc_mailbox_leave(struct zc_mailbox *mb, struct zc_message *m);
/* Lowest sequence number that is QUEUED and no row, or NULL. */
struct zc_message *zc_mailbox_peek(const struct zc_mailbox *mb);
/* Takes a QUEUED message out of the order. Its state and counts become those of `state`. */
void zc_mailbox_take_out(struct zc_mailbox *mb, struct zc_message *m, enum zc_message_state state);
/* Moves counts from the message's state to another; for states outside the order. */
void zc_mailbox_set_state(struct zc_mailbox *mb, struct zc_message *m, enum zc_message_state state);
/* Adds or subtracts m from the counts of its state. */
void zc_mailbox_count(struct zc_mailbox *mb, const struct zc_message *m, int sign);

#endif
