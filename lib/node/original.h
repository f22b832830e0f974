/*
 * The mailbox file of the Go zmqcat, read: one JSON object
 *
 *   {"boxes": {NAME: [MESSAGE, ...]}, "inflight": {DELIVERY: {"ID":, "Msg": MESSAGE, "Expires":}}}
 *
 * with MESSAGE {"ID":, "Name":, "From":, "Body": base64, "At": RFC 3339}. A message in flight is
 * given out among the queued ones of its mailbox, before the first that was put later: where it
 * would be had nobody taken it. Leases are not kept, because their sessions are gone.
 *
 * null counts as absent, as Go writes it for what is empty; unknown members of a message are
 * skipped. All else that the Go program would not have written is refused.
 */
#ifndef ZC_NODE_ORIGINAL_H
#define ZC_NODE_ORIGINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "zmqc/item.h"

#define ZC_ORIGINAL_PAYLOAD_MAX 1048576

/* RFC 3339 time; all zero: not known. */
struct zc_original_time {
    int64_t s; /* unix */
    uint32_t ns;
};

struct zc_original_message {
    struct zc_slice box, id, from, body;
    struct zc_original_time at;
    uint32_t index; /* order in the file */
    bool given;
};

struct zc_original {
    uint8_t *data;
    struct zc_json boxes; /* at the members of "boxes" */
    bool boxes_first, boxes_over;
    struct zc_slice box; /* at work */
    struct zc_json list; /* its messages */
    bool list_open, list_first;
    bool has_ahead; /* the next queued message was read */
    struct zc_original_message ahead;
    struct zc_original_message *held; /* in flight, by mailbox and time */
    size_t held_len, held_cap;
    size_t held_next; /* in `held`; those of other mailboxes end the range */
    const char *error;
    size_t error_at; /* offset in data */
};

/* Looks at all of data, which is changed while it is read and must stay. Negative: o->error and
 * error_at say what is wrong (ZC_EBADMSG, ZC_ENOMEM). zc_original_done in any case. */
ZC_MUST_CHECK int zc_original_open(struct zc_original *o, uint8_t *data, size_t len);
/* 1: the next message, mailbox by mailbox, in order; its slices point into data. 0: there is none.
 * Negative as above. */
ZC_MUST_CHECK int zc_original_next(struct zc_original *o, struct zc_item *ret_item);
void zc_original_done(struct zc_original *o);
/* Unix time of an RFC 3339 text. */
bool zc_original_time(struct zc_slice text, struct zc_original_time *ret_time);

#endif
