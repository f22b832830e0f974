/* Refcounted immutable bytes (declared in base/buf.h). */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

struct zc_block *zc_block_new(size_t len)
{
    if (len > UINT32_MAX || len > SIZE_MAX - sizeof(struct zc_block))
        return NULL;
    struct zc_block *b = malloc(sizeof(*b) + len);
    if (b == NULL)
        return NULL;
    b->refs = 1;
    b->len = (uint32_t)len;
    b->outs = 0;
    return b;
}

struct zc_block *zc_block_copy(struct zc_slice s)
{
    struct zc_block *b = zc_block_new(s.len);
    if (b != NULL && s.len > 0)
        memcpy(b->data, s.data, s.len);
    return b;
}

struct zc_block *zc_block_ref(struct zc_block *b)
{
    ZC_ASSERT(b->refs > 0 && b->refs < UINT32_MAX);
    b->refs++;
    return b;
}

void zc_block_unref(struct zc_block *b)
{
    if (b == NULL)
        return;
    ZC_ASSERT(b->refs > 0);
    if (--b->refs == 0)
        free(b);
}
