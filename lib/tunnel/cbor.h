/*
 * The part of CBOR (RFC 8949) that tokens use, strict: definite lengths, shortest forms, valid
 * UTF-8. A cursor that reads heads and a writer into a fixed buffer; no tree, no allocation.
 * Deliberately absent: indefinite lengths, floats as values, tags with a meaning (all of these are
 * stepped over or refused).
 */
#ifndef ZC_TUNNEL_CBOR_H
#define ZC_TUNNEL_CBOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_CBOR_DEPTH_MAX 32

enum zc_cbor_type { /* the major types */
                    ZC_CBOR_UINT,
                    ZC_CBOR_NINT,
                    ZC_CBOR_BYTES,
                    ZC_CBOR_TEXT,
                    ZC_CBOR_ARRAY,
                    ZC_CBOR_MAP,
                    ZC_CBOR_TAG,
                    ZC_CBOR_SIMPLE,
};

enum { ZC_CBOR_FALSE = 20, ZC_CBOR_TRUE = 21, ZC_CBOR_NULL = 22 };

struct zc_cbor_item {
    enum zc_cbor_type type;
    bool number;           /* SIMPLE: a float; value is its bits */
    uint64_t value;        /* of the head: integer, length, count, tag or simple value */
    struct zc_slice bytes; /* BYTES, TEXT: the contents */
};

/* Cursor; error, once set, stays and names the first fault. */
struct zc_cbor {
    struct zc_slice rest;
    const char *error; /* static text or NULL */
    bool cut;          /* the fault is that the input ends too early */
};

void zc_cbor_init(struct zc_cbor *c, struct zc_slice data);
/* Reads one head, and the contents of a string. Members of arrays and maps and what a tag is about
 * follow as items of their own. False: error is set. */
bool zc_cbor_next(struct zc_cbor *c, struct zc_cbor_item *ret_item);
/* Steps over what belongs to `item`, which zc_cbor_next gave; depth: how many arrays, maps and tags
 * are open around it. False: error is set, as for nesting beyond ZC_CBOR_DEPTH_MAX. */
bool zc_cbor_skip(struct zc_cbor *c, const struct zc_cbor_item *item, unsigned depth);
/* The integer of a UINT or NINT: false when it is none or does not fit. */
bool zc_cbor_int(const struct zc_cbor_item *item, int64_t *ret_value);

/* Writer. What does not fit sets full and is left out. */
struct zc_cbor_out {
    uint8_t *data;
    size_t cap;
    size_t len;
    bool full;
};

void zc_cbor_put_head(struct zc_cbor_out *o, enum zc_cbor_type type, uint64_t value);
void zc_cbor_put_int(struct zc_cbor_out *o, int64_t value);
void zc_cbor_put_bytes(struct zc_cbor_out *o, struct zc_slice bytes);
void zc_cbor_put_text(struct zc_cbor_out *o, const char *text);

#endif
