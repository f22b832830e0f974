/*
 * Requests and their answers: ids, matching, errors, and the deliveries that come in between.
 * Private to lib/client.
 */
#ifndef ZC_CLIENT_CALL_H
#define ZC_CLIENT_CALL_H

#include "client/bus.h"

/* What answers a request, beside an err with its id. */
enum zc_call_answer {
    ZC_CALL_OK,       /* ok with our id */
    ZC_CALL_HELLO,    /* the same, of the first request */
    ZC_CALL_PONG,     /* pong with our id */
    ZC_CALL_REP,      /* rep with our id */
    ZC_CALL_RESERVED, /* msg with our id and a delivery */
    ZC_CALL_READY,    /* msg with a delivery: carries the message's id */
    ZC_CALL_TAKEN,    /* msg without a delivery: carries the message's id */
    ZC_CALL_PEEKED,   /* msg with our id and peek */
};

/* Starts bus->out: op, name and an id (NULL: a new one). Forgets the last error. */
void zc_call_begin(struct zmqcat *bus, const char *op, const char *id, struct zc_slice name);
/* Sets the payload of bus->out. */
void zc_call_payload(struct zmqcat *bus, const void *payload, size_t len);
/* Sends bus->out and waits for nothing. */
int zc_call_send(struct zmqcat *bus);
/* Waits for the answer to the request with the id bus->want. ZMQCAT_TIMEOUT without a bus->code: it
 * may still come. */
int zc_call_wait(struct zmqcat *bus, enum zc_call_answer want, int64_t timeout_ms);
/* Sends bus->out and waits up to timeout_ms (negative: for ever) for its answer, which is then
 * bus->msg. Deliveries of subscriptions that come before it are kept. Returns 0 or an enum
 * zmqcat_error with bus->why set. */
int zc_call_run(struct zmqcat *bus, enum zc_call_answer want, int64_t timeout_ms);
/* The same for a frame made by the caller with the id bus->want. */
int zc_call_run_frame(struct zmqcat *bus, struct zc_slice frame, enum zc_call_answer want,
                      int64_t timeout_ms);
/* What ids of zmqcat_ask begin with after bus->id_prefix. */
#define ZC_CALL_ASK_MARK "-a"
/* Waits for a delivery of a subscription or an outcome of zmqcat_ask: bus->msg. */
int zc_call_next(struct zmqcat *bus, int64_t wait_ms);
/* Takes in all that is there. ZMQCAT_FULL when no more can be kept. */
int zc_call_poll(struct zmqcat *bus);
/* Sets bus->why and returns rc. */
int zc_call_fail(struct zmqcat *bus, int rc, const char *why);
/* bus->msg as the public type. */
void zc_call_message(struct zmqcat *bus, struct zmqcat_msg *ret_msg);

#endif
