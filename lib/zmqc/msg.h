/*
 * One ZMQC message: the JSON object inside a frame, decoded to slices and encoded to a frame.
 * Source: docs/man/zmqc.5, sections FRAME and ADDITIONS. Both directions, hub and client, use it.
 */
#ifndef ZC_ZMQC_MSG_H
#define ZC_ZMQC_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "zmqc/frame.h"

#define ZC_MSG_STRING_MAX 1024                /* bytes of id, name, from, topic, to */
#define ZC_MSG_MESSAGE_ID_MAX 1056            /* an id with the hub's scope before it */
#define ZC_MSG_OP_MAX 64                      /* bytes of op */
#define ZC_MSG_DELIVERIES_MAX 1024            /* entries of deliveries and failed */
#define ZC_MSG_HEADERS_CAP 256                /* headers kept; the hub's own limit is lower */
#define ZC_MSG_SECONDS_MAX INT64_C(315360000) /* ten years */
#define ZC_MSG_MAX_MAX 1024 /* largest `max` of reserve, ready, peek; list allows 1,000 */

struct zc_header {
    struct zc_slice key;
    struct zc_slice value;
};

/* Fields present beside their zero value. */
enum zc_msg_has {
    ZC_MSG_HAS_LEASE = 1 << 0,
    ZC_MSG_HAS_DELAY = 1 << 1,
    ZC_MSG_HAS_TTL = 1 << 2,
    ZC_MSG_HAS_EXPIRES = 1 << 3,
    ZC_MSG_HAS_WAIT = 1 << 4,
    ZC_MSG_HAS_MAX = 1 << 5,
    ZC_MSG_HAS_DELIVERIES = 1 << 6,
    ZC_MSG_HAS_SUBS = 1 << 7,
    ZC_MSG_HAS_COUNT = 1 << 8,
    ZC_MSG_HAS_ON = 1 << 9,
    ZC_MSG_HAS_ATTEMPT = 1 << 10,
    ZC_MSG_HAS_AT = 1 << 11,
    ZC_MSG_HAS_FILTER_OBJECT = 1 << 12,
};

/*
 * All slices point into the decoded buffer (decode) or into the caller's memory (encode).
 * Decode leaves body as raw payload bytes; payload is body when not empty, else text.
 */
struct zc_msg {
    uint32_t has; /* enum zc_msg_has */
    /* Set by decode when the frame is sound but the message is not (zmqc.5: code `invalid`):
     * static text that says why. The session stays; id may still be used unless id_bad. */
    const char *invalid;
    bool id_bad;

    struct zc_slice op, id, name, from, text, body, error;
    int64_t lease;
    struct zc_slice delivery;
    /* additions, in wire order */
    uint32_t headers_count; /* of headers, below */
    size_t headers_bytes;   /* names plus values */
    int64_t attempt;
    int64_t at; /* unix ms */
    struct zc_slice by;
    bool end, peek;
    int64_t subs;
    struct zc_slice epoch;
    int64_t count;
    uint32_t failed_count; /* of failed, below */
    struct zc_slice code;
    struct zc_slice result; /* raw JSON object */
    /* requests only */
    int64_t delay_ms, ttl_ms, wait_ms; /* from seconds, rounded up to ms */
    int64_t expires;                   /* unix ms */
    int64_t max;
    uint32_t deliveries_count; /* of deliveries, below */
    struct zc_slice topic, to, scope, condition /* `if` */, after;
    struct zc_slice filter; /* string, or with ZC_MSG_HAS_FILTER_OBJECT a raw JSON object */
    bool on;                /* control socket: trace */

    /* Large, so last: what their counts do not cover is never touched. */
    struct zc_header headers[ZC_MSG_HEADERS_CAP];
    struct zc_slice failed[ZC_MSG_DELIVERIES_MAX];
    struct zc_slice deliveries[ZC_MSG_DELIVERIES_MAX];
};

/* Payload of a decoded message. */
static inline struct zc_slice zc_msg_payload(const struct zc_msg *m)
{
    return m->body.len > 0 ? m->body : m->text;
}

/* Zeroes what encode reads, without touching the large arrays. */
void zc_msg_clear(struct zc_msg *m);

/*
 * Decodes the JSON of one frame (without its header) in place: data is overwritten and must outlive
 * m. Returns 0, or ZC_EBADMSG with *ret_reason (static text) when the rules are broken so that the
 * session must end. Allocates nothing; cost linear in len.
 */
ZC_MUST_CHECK int zc_msg_decode(struct zc_msg *m, uint8_t *data, size_t len,
                                const char **ret_reason);

/*
 * Encodes m as one whole frame, header included. Fields in wire order, empty ones omitted: zero
 * lengths; numbers and booleans by `has` or true (lease: when not 0; headers, deliveries, failed:
 * when their count is not 0; attempt, at: when HAS bit). Requests carry delay, ttl, wait and the
 * like as seconds with at most three decimals. Returns NULL and *ret_err ZC_ENOMEM, or ZC_ELIMIT
 * when the JSON would exceed ZC_FRAME_BODY_MAX.
 */
struct zc_block *zc_msg_encode(const struct zc_msg *m, int *ret_err);

/* Frames that zc_msg_encode_small can make. */
#define ZC_MSG_SMALL_MAX 8192
/* The same without a block, for what is certainly small. Returns the length of the frame, or 0: it
 * might be too large, or has headers or lists. */
size_t zc_msg_encode_small(const struct zc_msg *m, uint8_t ret_frame[ZC_MSG_SMALL_MAX]);
/* The same for ok{id,name,subs}, by far the most frequent answer; subs below 0: none. */
size_t zc_msg_encode_ok(struct zc_slice id, struct zc_slice name, int64_t subs,
                        uint8_t ret_frame[ZC_MSG_SMALL_MAX]);

/*
 * For a delivery: puts payload into m as body, and as text too when it is valid UTF-8 and the frame
 * still fits ZC_FRAME_BODY_MAX; both empty for an empty payload.
 */
void zc_msg_set_payload(struct zc_msg *m, struct zc_slice payload);
/* The same for one that is known to be valid UTF-8. */
void zc_msg_set_text(struct zc_msg *m, struct zc_slice payload);

#endif
