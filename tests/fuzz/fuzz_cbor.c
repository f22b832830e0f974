/*
 * Any bytes as CBOR: read item by item and skipped, which must agree, and written again, which must
 * give the same bytes since there is only one form.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "tunnel/cbor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(struct zc_cbor_out *out, const struct zc_cbor_item *item)
{
    if (item->type == ZC_CBOR_BYTES)
        zc_cbor_put_bytes(out, item->bytes);
    else
        zc_cbor_put_head(out, item->type, item->value);
    if (item->type == ZC_CBOR_TEXT && item->bytes.len <= out->cap - out->len) {
        ZC_ASSERT(zc_text_utf8_valid(item->bytes));
        memcpy(out->data + out->len, item->bytes.data, item->bytes.len);
        out->len += item->bytes.len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct zc_cbor walk, skip;
    struct zc_cbor_item item;
    uint8_t *copy = malloc(size + 1);
    ZC_ASSERT(copy != NULL);
    struct zc_cbor_out out = {.data = copy, .cap = size + 1};
    zc_cbor_init(&walk, zc_slice(data, size));
    while (walk.rest.len > 0) {
        const uint8_t *at = walk.rest.data;
        int64_t value;
        if (!zc_cbor_next(&walk, &item)) {
            ZC_ASSERT(walk.error != NULL && *walk.error != '\0');
            break;
        }
        ZC_ASSERT(walk.rest.data > at && walk.rest.data + walk.rest.len == data + size);
        if (item.number || (item.type == ZC_CBOR_SIMPLE && item.value > 23)) {
            out.len = (size_t)(walk.rest.data - data); /* not written by us */
            memcpy(copy, data, out.len);
        } else {
            write_again(&out, &item);
        }
        ZC_ASSERT(!out.full && out.len == (size_t)(walk.rest.data - data));
        ZC_ASSERT(memcmp(copy, data, out.len) == 0);
        if (zc_cbor_int(&item, &value))
            ZC_ASSERT((value < 0) == (item.type == ZC_CBOR_NINT));
        /* What is skipped ends inside the input and never further than the walk could go. */
        skip = walk;
        if (zc_cbor_skip(&skip, &item, 0))
            ZC_ASSERT(skip.rest.len <= walk.rest.len);
        else
            ZC_ASSERT(skip.error != NULL);
    }
    free(copy);
    return 0;
}
