/*
 * Messages at rest: one that merely waits in its mailbox is a row (rows.h) and becomes a struct
 * zc_message again when somebody needs it.
 *
 *   zc_message, QUEUED --nobody waits for it, no timer, no attempt, hot window full--> row
 *   row --given, purged, moved, damaged--> zc_message among the returned
 *
 * With a log the payload of a row is there; without one it is packed beside the rows. Counts do
 * not change. A mailbox has its order in three parts, each by sequence number (the list, what came
 * back, the rows), and the next message is the lowest of their heads.
 */
#ifndef ZC_ZMQC_REST_H
#define ZC_ZMQC_REST_H

#include "zmqc/broker.h"

struct zc_group;

/* Of a message that was just shown: it may cool, and may become a row. Then m is gone. */
void zc_rest(struct zc_broker *b, struct zc_message *m);
/* The row is a message again, QUEUED, and so may be others of its chunk. NULL, and nothing changed,
 * when memory is refused. */
struct zc_message *zc_rest_wake(struct zc_broker *b, struct zc_row *row);
/* A message with that key (zc_message_key) is there, at rest or not. */
bool zc_rest_known(const struct zc_broker *b, const uint64_t key[2]);
/* The next message of the mailbox, for the group when that is not NULL. NULL: none, or no memory
 * for it (*ret_short). *looked as for zc_group_find. */
struct zc_message *zc_rest_next(struct zc_broker *b, struct zc_mailbox *mb, struct zc_group *g,
                                uint64_t *looked, bool *ret_short);
/* Wakes the rows that are among the first cap messages of the mailbox below limit. False: there is
 * no memory for all. */
bool zc_rest_wake_first(struct zc_broker *b, struct zc_mailbox *mb, uint64_t limit, uint32_t cap);
/* When the next message of the mailbox came, unix ms; now when there is none. */
int64_t zc_rest_oldest_ms(const struct zc_broker *b, const struct zc_mailbox *mb);
/* The stored form of a row, without a log. NULL: no memory. */
struct zc_block *zc_rest_body(const struct zc_row *row);
/* The record of a row is wanted at the head of the log, see zc_broker_move. */
void zc_rest_move(struct zc_broker *b, struct zc_row *row, struct zc_slice body);
/* All rows of the mailbox go, uncounted: the broker is freed. */
void zc_rest_free_all(struct zc_broker *b, struct zc_mailbox *mb);

#endif
