/*
 * What was journaled and is not yet known to be on disk, in ticket order. Synced: the change
 * becomes final and visible. Failed: it is undone.
 */
#ifndef ZC_ZMQC_SETTLE_H
#define ZC_ZMQC_SETTLE_H

#include "zmqc/broker.h"
#include "zmqc/setting.h"

/* Makes sure that n pushes cannot fail. */
ZC_MUST_CHECK int zc_settle_reserve(struct zc_broker *b, uint32_t n);
void zc_settle_push(struct zc_broker *b, uint64_t ticket, struct zc_message *m, bool put);
void zc_settle_push_setting(struct zc_broker *b, uint64_t ticket, struct zc_setting *s, bool put);
/* The ticket of the last entry, which covers all; 0: there is none. */
uint64_t zc_settle_last(const struct zc_broker *b);
/* All entries up to ticket are durable. */
void zc_settle_synced(struct zc_broker *b, uint64_t ticket);
/* All entries above ticket failed. */
void zc_settle_failed(struct zc_broker *b, uint64_t ticket);
/* The record may go from the log, once nobody reads it any more. */
void zc_settle_forget(struct zc_broker *b, struct zc_message *m);
/* Stores and shows what the log could not take, now that it works again. */
void zc_settle_store_again(struct zc_broker *b);
/* A taken message did not reach its taker: back into the mailbox at its place. */
void zc_settle_revive(struct zc_broker *b, struct zc_message *m);
void zc_settle_read_done(struct zc_broker *b, struct zc_message *m, struct zc_block *body);

#endif
