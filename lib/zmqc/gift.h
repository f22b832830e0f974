/*
 * Messages given to sessions: matching of waiters and messages, leases, acknowledgement, return.
 */
#ifndef ZC_ZMQC_GIFT_H
#define ZC_ZMQC_GIFT_H

#include "zmqc/broker.h"

/* A waiting take, reserve or ready at the end of the mailbox's line. wait_ms < 0: for good. Sends
 * an err when it cannot wait. */
void zc_gift_wait(struct zc_broker *b, struct zc_session *s, struct zc_mailbox *mb,
                  const struct zc_msg *m, enum zc_gift op);
/* Answers `mailbox: empty`. */
void zc_gift_waiter_timeout(struct zc_broker *b, struct zc_waiter *w);
void zc_gift_waiter_free(struct zc_broker *b, struct zc_waiter *w);
/* Matches waiters and messages of one mailbox. */
void zc_gift_dispatch(struct zc_broker *b, struct zc_mailbox *mb);
/* Makes and writes the frame of a held message. */
void zc_gift_emit(struct zc_broker *b, struct zc_session *s, struct zc_held *h);
/* The body cannot be read: the message is lost, counted, and whoever was to get it is told. */
void zc_gift_damaged(struct zc_broker *b, struct zc_message *m);
/* The kernel has more of s's output: taken messages that are through are gone for good. */
void zc_gift_sent(struct zc_broker *b, struct zc_session *s);

/* The session's own delivery of that token, or NULL. */
struct zc_delivery *zc_gift_delivery(struct zc_broker *b, const struct zc_session *s,
                                     struct zc_slice token);
/* The session's own delivery of that message id (in the mailbox of that name, unless empty), or
 * NULL. */
struct zc_delivery *zc_gift_by_message(struct zc_broker *b, const struct zc_session *s,
                                       struct zc_slice message_id, struct zc_slice name);
/* Acknowledges n deliveries in one record: ticket, or a negative zc_err and nothing changed. */
ZC_MUST_CHECK int64_t zc_gift_ack(struct zc_broker *b, struct zc_delivery *const *deliveries,
                                  uint32_t n);
/* Ends the lease; the message is visible again after delay_ms. */
void zc_gift_return(struct zc_broker *b, struct zc_delivery *d, int64_t delay_ms);
/* New end of the lease; the unix second of it. lease_s <= 0: the default. */
int64_t zc_gift_extend(struct zc_broker *b, struct zc_delivery *d, int64_t lease_s);
/* Gives back all that the session holds or has not received, and its waiters. */
void zc_gift_session_end(struct zc_broker *b, struct zc_session *s);
/* The lease of s as asked for, in seconds. */
int64_t zc_gift_lease_s(const struct zc_broker *b, int64_t asked_s, bool ready);

#endif
