/*
 * A message on its way to another mailbox. The move is one record: a PUT in the new mailbox under
 * the old sequence number, so a crash finds the message in exactly one of them. Until it is durable
 * the message is PENDING in the new mailbox; when that fails it goes back to its old place.
 */
#ifndef ZC_ZMQC_TRANSFER_H
#define ZC_ZMQC_TRANSFER_H

#include "zmqc/broker.h"

struct zc_transfer {
    struct zc_list link; /* b->transfers, in the order of their tickets */
    struct zc_message *message;
    struct zc_mailbox *from; /* pinned */
    struct zc_block *body;   /* as it is stored there */
    uint64_t place;          /* of the new record, while m->place is that of the old one */
};

/* Moves m, QUEUED or DELAYED, whose stored form is body. Returns the ticket (0 without a journal)
 * or a negative zc_err: nothing changed. ZC_ELIMIT: under its new name it would not fit a frame. */
ZC_MUST_CHECK int64_t zc_transfer_begin(struct zc_broker *b, struct zc_message *m,
                                        struct zc_block *body, struct zc_mailbox *to);
/* The record of m is durable, or has failed; m is `moving`. */
void zc_transfer_done(struct zc_broker *b, struct zc_message *m);
void zc_transfer_failed(struct zc_broker *b, struct zc_message *m);
void zc_transfer_free_all(struct zc_broker *b);

#endif
