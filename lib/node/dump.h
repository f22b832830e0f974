/*
 * The contents of a log as lines of JSON, one object a line; docs/man/zmqcat-json.5 lists them:
 *
 *   {"zmqcat":"export","version":1}
 *   {"mailbox":"jobs","seq":7,"id":"s2:1","from":"al", ... "text":"hello"}     a message
 *   {"bind":"jobs","topic":"ev.","seq":9}                                      a binding
 *   {"seen":"0123456789abcdef","of":"fedcba9876543210","until":1764600000000}  an id of a scope
 *   {"end":3}                                                                  lines between
 *
 * The first and the last line frame what a program has written, so that a cut one is noticed; lines
 * written by hand do without.
 */
#ifndef ZC_NODE_DUMP_H
#define ZC_NODE_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "zmqc/item.h"
#include "zmqc/stored.h"

/* Largest line that is read: a payload of which each byte is an escape of six. */
#define ZC_DUMP_LINE_MAX ((size_t)64 << 20)
/* Largest payload that is read back: what no hub could ever deliver is refused. */
#define ZC_DUMP_PAYLOAD_MAX ((size_t)1400 << 10)

enum zc_dump_kind { ZC_DUMP_HEAD, ZC_DUMP_MESSAGE, ZC_DUMP_BIND, ZC_DUMP_SEEN, ZC_DUMP_END };

struct zc_dump_line {
    enum zc_dump_kind kind;
    uint64_t seq;        /* MESSAGE, BIND; 0: not given */
    struct zc_item item; /* MESSAGE; due_ms: the effective one; headers: count only */
    uint32_t attempt;
    struct zc_header headers[ZC_MSG_HEADERS_CAP];
    struct zc_stored_bind bind;
    struct zc_stored_seen seen;
    uint64_t count; /* END */
};

/* All append one line, or return ZC_ENOMEM. */
ZC_MUST_CHECK int zc_dump_head(struct zc_buf *b);
ZC_MUST_CHECK int zc_dump_message(struct zc_buf *b, uint64_t seq, uint32_t attempt, int64_t due_ms,
                                  const struct zc_item *item);
/* body: of a BIND or SEEN record. ZC_EBADMSG: it is none. */
ZC_MUST_CHECK int zc_dump_bind(struct zc_buf *b, uint64_t seq, struct zc_slice body);
ZC_MUST_CHECK int zc_dump_seen(struct zc_buf *b, struct zc_slice body);
ZC_MUST_CHECK int zc_dump_end(struct zc_buf *b, uint64_t count);

/* Reads one line, decoding in place; slices point into data. 0, or ZC_EBADMSG with *ret_why. */
ZC_MUST_CHECK int zc_dump_parse(uint8_t *data, size_t len, struct zc_dump_line *ret_line,
                                const char **ret_why);
/* Body of a BIND or SEEN record for a parsed line. */
#define ZC_DUMP_BODY_MAX ZC_STORED_BIND_MAX
struct zc_slice zc_dump_body(const struct zc_dump_line *line, uint8_t ret_body[ZC_DUMP_BODY_MAX]);

#endif
