/*
 * Messages given to sessions: matching of waiters and messages, leases, acknowledgement, return.
 */
#ifndef ZC_ZMQC_GIFT_H
#define ZC_ZMQC_GIFT_H

#include "zmqc/broker.h"

struct zc_filter;

/* A waiting take, reserve or ready at the end of the mailbox's line. The filter (or NULL) is taken
 * over. Sends an err when it cannot wait. */
void zc_gift_wait(struct zc_broker *b, struct zc_session *s, struct zc_mailbox *mb,
                  const struct zc_msg *m, struct zc_filter *filter, enum zc_gift op);
/* Answers `mailbox: empty`. */
void zc_gift_waiter_timeout(struct zc_broker *b, struct zc_waiter *w);
void zc_gift_waiter_free(struct zc_broker *b, struct zc_waiter *w);
/* The session has no room for more: its waiters leave their lines, and come back to their turns
 * when it has read half of its bound. */
void zc_gift_park(struct zc_session *s);
void zc_gift_unpark(struct zc_broker *b, struct zc_session *s);
/* Matches waiters and messages of one mailbox. */
void zc_gift_dispatch(struct zc_broker *b, struct zc_mailbox *mb);
/* Makes and writes the frame of a held message. */
void zc_gift_emit(struct zc_broker *b, struct zc_session *s, struct zc_held *h);
/* The body cannot be read: the message is lost, counted, and whoever was to get it is told. */
void zc_gift_damaged(struct zc_broker *b, struct zc_message *m);
/* The kernel has more of s's output: taken messages that are through are gone for good. */
void zc_gift_sent(struct zc_broker *b, struct zc_session *s);

/* Gives back all that the session holds or has not received, and its waiters. */
void zc_gift_session_end(struct zc_broker *b, struct zc_session *s);
#endif
