/*
 * Bodies of the records that the log keeps beside messages, in bytes and as values; zmqcat-log(5)
 * draws them. A message itself is item.h, and a REMOVE is only numbers.
 */
#ifndef ZC_ZMQC_STORED_H
#define ZC_ZMQC_STORED_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "zmqc/msg.h"

#define ZC_STORED_BIND_MAX (4 + 2 * ZC_MSG_STRING_MAX)
#define ZC_STORED_SEEN_LEN 24
#define ZC_STORED_STATE_LEN 12

struct zc_stored_bind {
    struct zc_slice name, topic; /* at most ZC_MSG_STRING_MAX; the name is not empty */
};

struct zc_stored_seen {
    uint64_t name, id; /* hashes: zc_seen_hash */
    int64_t until_ms;  /* unix time */
};

struct zc_stored_state {
    uint32_t attempt;
    int64_t due_ms; /* unix time; 0: at once */
};

/* Each returns the body, in ret_body. */
struct zc_slice zc_stored_bind_encode(const struct zc_stored_bind *bind,
                                      uint8_t ret_body[ZC_STORED_BIND_MAX]);
struct zc_slice zc_stored_seen_encode(const struct zc_stored_seen *seen,
                                      uint8_t ret_body[ZC_STORED_SEEN_LEN]);
struct zc_slice zc_stored_state_encode(const struct zc_stored_state *state,
                                       uint8_t ret_body[ZC_STORED_STATE_LEN]);
/* 0, or ZC_EBADMSG: it is none. Slices point into the body. */
ZC_MUST_CHECK int zc_stored_bind_decode(struct zc_slice body, struct zc_stored_bind *ret_bind);
ZC_MUST_CHECK int zc_stored_seen_decode(struct zc_slice body, struct zc_stored_seen *ret_seen);
ZC_MUST_CHECK int zc_stored_state_decode(struct zc_slice body, struct zc_stored_state *ret_state);

#endif
