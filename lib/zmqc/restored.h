/*
 * Messages while the log opens, by sequence number, until all are known and can be shown in that
 * order. Most records come in it: those stand in an array, where the next look-up mostly is for the
 * one behind the last. Copies that cleaning made come late; they stand in the map that later has
 * the ids.
 */
#ifndef ZC_ZMQC_RESTORED_H
#define ZC_ZMQC_RESTORED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct zc_broker;
struct zc_mailbox;
struct zc_message;

struct zc_restored_item {
    uint64_t seq;
    struct zc_message *message; /* NULL: it is gone */
};

/* All zero is a valid empty one. */
struct zc_restored {
    struct zc_restored_item *items; /* by seq */
    size_t len, cap;
    size_t gone;                /* of the items */
    size_t hint;                /* the item found last */
    struct zc_mailbox *mailbox; /* of the record before, pinned, or NULL */
};

/* The message with this sequence number, or NULL. */
struct zc_message *zc_restored_find(struct zc_broker *b, uint64_t seq);
/* Enters m, whose sequence number no other has. */
ZC_MUST_CHECK int zc_restored_add(struct zc_broker *b, struct zc_message *m);
/* m is not to be shown any more; it is the caller's. */
void zc_restored_drop(struct zc_broker *b, struct zc_message *m);
/* Brings all into the order of their numbers: then `items` has them, some without a message, and
 * the map is empty. ZC_ENOMEM: nothing changed. */
ZC_MUST_CHECK int zc_restored_sort(struct zc_broker *b);
/* Frees the table; frees the messages in it when `all`, for they were never shown. */
void zc_restored_done(struct zc_broker *b, bool all);

#endif
