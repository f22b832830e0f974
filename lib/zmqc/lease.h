/*
 * Leases: which session holds which message until when. Found by token, and by message id for rep.
 */
#ifndef ZC_ZMQC_LEASE_H
#define ZC_ZMQC_LEASE_H

#include "zmqc/broker.h"

/* m, QUEUED, becomes LEASED to s; the lease runs from zc_lease_begin on. False when memory is
 * refused. */
bool zc_lease_new(struct zc_broker *b, struct zc_session *s, struct zc_message *m, int64_t lease_s);
/* The frame leaves: time runs, and the holder knows the message id. False when memory is refused.
 */
bool zc_lease_begin(struct zc_broker *b, struct zc_delivery *d, struct zc_slice message_id);
/* Forgets the lease; the message keeps its state. */
void zc_lease_free(struct zc_broker *b, struct zc_delivery *d);
/* The session's (or its scope's) own delivery of that token, or NULL. */
struct zc_delivery *zc_lease_find(struct zc_broker *b, const struct zc_session *s,
                                  struct zc_slice token);
/* Likewise, that of that message id (in the mailbox of that name, unless empty), or
 * NULL. */
struct zc_delivery *zc_lease_by_message(struct zc_broker *b, const struct zc_session *s,
                                        struct zc_slice message_id, struct zc_slice name);
/* Acknowledges n deliveries in one record: ticket, or a negative zc_err and nothing changed. */
ZC_MUST_CHECK int64_t zc_lease_ack(struct zc_broker *b, struct zc_delivery *const *deliveries,
                                   uint32_t n);
/* Ends the lease; the message is visible again after delay_ms. */
void zc_lease_return(struct zc_broker *b, struct zc_delivery *d, int64_t delay_ms);
/* The session is over: what it holds goes back, but for what its scope keeps. */
void zc_lease_session_end(struct zc_broker *b, struct zc_session *s);
/* New end of the lease; the unix second of it. lease_s <= 0: the default. */
int64_t zc_lease_extend(struct zc_broker *b, struct zc_delivery *d, int64_t lease_s);
/* The lease of s as asked for, in seconds. */
int64_t zc_lease_seconds(const struct zc_broker *b, int64_t asked_s, bool ready);

#endif
