/*
 * Life of one message inside the broker: made from a put, found again by its id, kept hot or cold,
 * timed, journaled, freed.
 */
#ifndef ZC_ZMQC_MESSAGE_H
#define ZC_ZMQC_MESSAGE_H

#include "zmqc/broker.h"

/* New PENDING message in mb that takes over `body` (NULL: it is in the log only); NULL (body
 * released) when memory is refused. */
struct zc_message *zc_message_new(struct zc_broker *b, struct zc_mailbox *mb, uint64_t seq,
                                  struct zc_block *body, const struct zc_item *item);
/* Out of every list, count and timer. Waits for a read under way. The mailbox may go with it. */
void zc_message_free(struct zc_broker *b, struct zc_message *m);
/* State changes with the sums of the broker kept right. */
void zc_message_enter(struct zc_broker *b, struct zc_message *m);
void zc_message_take_out(struct zc_broker *b, struct zc_message *m, enum zc_message_state state);
void zc_message_set_state(struct zc_broker *b, struct zc_message *m, enum zc_message_state state);

/* Key of (mailbox, message id) under the broker's secret keys; 80 bits of it are compared. */
void zc_message_key(struct zc_broker *b, const struct zc_mailbox *mb, struct zc_slice message_id,
                    uint64_t ret_key[2]);
/* No row. */
struct zc_message *zc_message_by_key(const struct zc_broker *b, const uint64_t key[2]);
/* ZC_ENOMEM: not remembered. */
ZC_MUST_CHECK int zc_message_remember(struct zc_broker *b, struct zc_message *m,
                                      const uint64_t key[2]);
/* The id of a message that comes back counts again, unless another has it by now. Needs the
 * body. */
void zc_message_recall_id(struct zc_broker *b, struct zc_message *m);
/* Notes whether the id of a put belongs to a scope. Before zc_message_remember. */
void zc_message_set_scoped(struct zc_broker *b, struct zc_message *m, const struct zc_item *item);
/* Its id counts again, from what set_scoped noted. */
void zc_message_recall_scoped(struct zc_broker *b, struct zc_message *m);
void zc_message_forget_id(struct zc_broker *b, struct zc_message *m);

/* Another body, which is taken over. */
void zc_message_set_body(struct zc_broker *b, struct zc_message *m, struct zc_block *body);
/* Lets go of the body when it can be read back and the hot window is full. */
void zc_message_cool(struct zc_broker *b, struct zc_message *m);
/* Starts reading the body unless it is there. False: it cannot be read. */
bool zc_message_want_body(struct zc_broker *b, struct zc_message *m);

/* Visible now, or DELAYED until due, or dropped when its time is over. Was PENDING or LEASED. */
void zc_message_show(struct zc_broker *b, struct zc_message *m);
/* Gone for good, without anybody to tell: out of the log and out of memory. */
void zc_message_discard(struct zc_broker *b, struct zc_message *m);
/* Its time is over: counted and removed. Was QUEUED or DELAYED or PENDING. */
void zc_message_expire(struct zc_broker *b, struct zc_message *m);
void zc_message_tick(struct zc_broker *b, struct zc_message *m);

/* Journals the removal of n messages in one record. Returns the ticket (0 without a journal) or a
 * negative zc_err, then nothing was changed; on success each gets state REMOVING and an entry to
 * settle. */
ZC_MUST_CHECK int64_t zc_message_remove(struct zc_broker *b, struct zc_message *const *messages,
                                        uint32_t n, bool sync_wanted);
/* Journals attempt and due (unix ms, 0: none). The ticket, or 0 when there is nothing to wait for:
 * a full disk only costs the count. */
uint64_t zc_message_store_state(struct zc_broker *b, struct zc_message *m, int64_t due_ms);
/* Journals m anew, so that its old record can go; body is that of the log, data NULL when it is
 * damaged there. */
void zc_message_move(struct zc_broker *b, struct zc_message *m, struct zc_slice body);
/* Journals the body as a put; when `again`, of a message that was removed once, with its attempts
 * so far. Returns the ticket (0 without a journal) or a negative zc_err. */
ZC_MUST_CHECK int64_t zc_message_store(struct zc_broker *b, struct zc_message *m, bool again);

#endif
