/*
 * The stored form of a message: one block of bytes that memory, the log and the outputs share. The
 * log keeps it as the opaque body of a PUT record; docs/man/zmqcat-log.5 draws it. Little endian:
 *
 *   u32 payload length | u32 headers length | u16 name, id, from, by length | u16 header count |
 *   u16 flags | i64 at | i64 expires | i64 due (unix ms, 0: none) | name | id | from | by |
 *   headers: each u32 key length, u32 value length, key, value | payload as it is
 */
#ifndef ZC_ZMQC_ITEM_H
#define ZC_ZMQC_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "zmqc/msg.h"

#define ZC_ITEM_FIXED 44

/* All slices are borrowed. */
struct zc_item {
    struct zc_slice name; /* mailbox */
    struct zc_slice id;   /* message id as takers see it */
    struct zc_slice from; /* claimed sender */
    struct zc_slice by;   /* authenticated sender */
    struct zc_slice payload;
    struct zc_slice headers; /* encoded */
    uint16_t headers_count;
    bool request; /* came by req */
    int64_t at_ms, expires_ms, due_ms;
};

/* New block; headers come from the array (count entries), item->headers is not read. NULL when
 * memory is refused. */
struct zc_block *zc_item_encode(const struct zc_item *item, const struct zc_header *headers,
                                uint32_t count);
/* Slices point into body. ZC_EBADMSG when the lengths do not add up. */
ZC_MUST_CHECK int zc_item_decode(struct zc_slice body, struct zc_item *ret_item);
/* The same of the first bytes of a body that has body_len: zc_item_head of them are enough. Headers
 * and payload have their lengths, and no data unless they are there. */
ZC_MUST_CHECK int zc_item_decode_head(struct zc_slice head, size_t body_len,
                                      struct zc_item *ret_item);
/* How many bytes of a body stand before its headers and payload; at most body.len. */
size_t zc_item_head(struct zc_slice body);
/* Fills ret_headers (room for item->headers_count, at most ZC_MSG_HEADERS_CAP); returns the sum of
 * names and values in bytes. */
size_t zc_item_headers(const struct zc_item *item, struct zc_header *ret_headers);

#endif
