/*
 * Leases: which session holds which message until when. Found by token, and by message id for rep.
 */
#ifndef ZC_ZMQC_LEASE_H
#define ZC_ZMQC_LEASE_H

#include "zmqc/broker.h"

/* m, QUEUED, becomes LEASED to s. False when memory is refused. */
bool zc_lease_new(struct zc_broker *b, struct zc_session *s, struct zc_message *m, int64_t lease_s);
/* Forgets the lease; the message keeps its state. */
void zc_lease_free(struct zc_broker *b, struct zc_delivery *d);
/* The holder knows the message id from now on. */
void zc_lease_key(struct zc_broker *b, struct zc_delivery *d, struct zc_slice message_id);
/* Journals attempt and due; the ticket, or 0 when there is nothing to wait for. */
uint64_t zc_lease_store_state(struct zc_broker *b, struct zc_message *m, int64_t due_ms);

#endif
