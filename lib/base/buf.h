/*
 * Bytes: slices that point, growable buffers that own, and refcounted blocks that several owners
 * share (a message body, an encoded frame for a thousand subscribers).
 */
#ifndef ZC_BASE_BUF_H
#define ZC_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

/* Borrowed bytes. data may be NULL when len is 0. */
struct zc_slice {
    const uint8_t *data;
    size_t len;
};

static inline struct zc_slice zc_slice(const void *data, size_t len)
{
    return (struct zc_slice){(const uint8_t *)data, len};
}

/* Slice of a C string, without its NUL. */
static inline struct zc_slice zc_slice_str(const char *s)
{
    return zc_slice(s, strlen(s));
}

static inline bool zc_slice_eq(struct zc_slice a, struct zc_slice b)
{
    /* An empty slice may carry NULL, which memcmp must not see. */
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Equal to the C string s. */
static inline bool zc_slice_is(struct zc_slice a, const char *s)
{
    return zc_slice_eq(a, zc_slice_str(s));
}

/* memcmp order, the shorter first when one is the other's prefix. */
int zc_slice_cmp(struct zc_slice a, struct zc_slice b);
bool zc_slice_starts(struct zc_slice a, struct zc_slice prefix);

/* Growable byte buffer. All zero is a valid empty one. */
struct zc_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
};

/* Makes room for `more` bytes after len. ZC_ENOMEM leaves the buffer as it was. */
ZC_MUST_CHECK int zc_buf_reserve(struct zc_buf *b, size_t more);
ZC_MUST_CHECK int zc_buf_append(struct zc_buf *b, const void *data, size_t len);
/* Drops the first n bytes (n <= len), moving the rest. */
void zc_buf_consume(struct zc_buf *b, size_t n);
/* Frees the memory and leaves an empty buffer. */
void zc_buf_done(struct zc_buf *b);

/* Refcounted immutable bytes. Not thread-safe: one loop owns them. */
struct zc_block {
    uint32_t refs;
    uint32_t len;
    uint32_t outs; /* references from outputs of sessions; for who counts what waits there */
    uint8_t data[];
};

/* New block of len bytes, contents undefined, one reference; NULL when memory is refused. */
struct zc_block *zc_block_new(size_t len);
/* The same with the bytes of s. */
struct zc_block *zc_block_copy(struct zc_slice s);
struct zc_block *zc_block_ref(struct zc_block *b);
/* Drops one reference; NULL is fine. */
void zc_block_unref(struct zc_block *b);

static inline struct zc_slice zc_block_slice(const struct zc_block *b)
{
    return (struct zc_slice){b->data, b->len};
}

#endif
