/*
 * The operations of the protocol, one function each (docs/man/zmqc.5, OPERATIONS).
 */
#ifndef ZC_ZMQC_OP_H
#define ZC_ZMQC_OP_H

#include "zmqc/broker.h"
#include "zmqc/filter.h"

#define ZC_OP_NO_MEMORY "the hub is out of memory: try again later"

/* A publication; all slices are borrowed. */
struct zc_pub {
    struct zc_item item; /* name is the topic, id the publisher's; its headers are not read: */
    const struct zc_header *headers;
    uint32_t headers_count;
    size_t headers_bytes;
    struct zc_mono expires;
    bool text; /* the payload is known to be valid UTF-8 */
};

/* Runs one decoded message of a session. */
void zc_op_run(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);

/* By file: op_put.c */
void zc_op_put(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_req(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_rep(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
/* A publication into a mailbox that is bound to its topic; dropped and counted when that is full. A
 * ticket (0: none), or a negative zc_err. *ret_made is what it costs in bytes. */
int64_t zc_op_put_bound(struct zc_broker *b, const struct zc_pub *pub, struct zc_slice name,
                        size_t *ret_made);
/* op_pub.c */
void zc_op_pub(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
/* Its mailboxes have it, once ticket is synced (0: nothing to wait for), or err is why not all
 * have: the answer to its session (NULL: it has ended), then subscribers and the last value. */
void zc_op_published(struct zc_broker *b, struct zc_session *s, const struct zc_pub *pub,
                     uint64_t ticket, int err);
void zc_op_sub(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_unsub(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_bind(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_unbind(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
/* op_lease.c */
void zc_op_take(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_reserve(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_ready(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_ack(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_nack(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_touch(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
/* op_box.c */
void zc_op_peek(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_purge(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_move(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
/* op_query.c */
void zc_op_stat(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_list(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);
void zc_op_info(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);

/* op_control.c: verbs of the administrator's socket. False: not one of them. */
bool zc_op_control(struct zc_broker *b, struct zc_session *s, struct zc_msg *m);

/* Checks what put, req and pub share: name, `$`, payload size, headers. True: go on; else an err
 * was sent. */
bool zc_op_check_message(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m);
/* Headers alone, for rep. */
bool zc_op_check_headers(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m);
/* End of life asked for: monotonic instant and wall time (0: none). False: it is over already. */
bool zc_op_lifetime(const struct zc_broker *b, const struct zc_msg *m, struct zc_mono *ret_expires,
                    int64_t *ret_expires_ms);
/* Whatever it holds, its delivery fits a frame: every byte of the strings (ids, names, identity,
 * headers) may be escaped there. */
bool zc_op_fits(size_t payload, size_t strings, size_t headers);
/* The filter of sub, reserve or ready; NULL when it allows all. False: an err was sent. */
bool zc_op_filter(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                  struct zc_filter **ret_filter);
/* The `from` of what m carries. */
struct zc_slice zc_op_from(const struct zc_session *s, const struct zc_msg *m);
/* ok{id} with a result object. */
void zc_op_result(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                  struct zc_slice json);

#endif
