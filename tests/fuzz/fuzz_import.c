/*
 * Any bytes as the Go program's mailbox file and as a line of an export: read to the end, what is
 * given keeps its limits, and what is written of a line that was read is read back the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "node/dump.h"
#include "node/original.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct zc_dump_line first, second;

static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* exact, for AddressSanitizer */
    ZC_ASSERT(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void file(const uint8_t *data, size_t size)
{
    uint8_t *copy = copy_of(data, size);
    struct zc_original o;
    struct zc_item item, back;
    size_t given = 0;
    int r = zc_original_open(&o, copy, size);
    while (r == 0 && (r = zc_original_next(&o, &item)) == 1) {
        r = 0;
        given++;
        ZC_ASSERT(item.name.len > 0 && item.name.len <= ZC_MSG_STRING_MAX);
        ZC_ASSERT(zc_text_utf8_valid(item.name) && zc_text_utf8_valid(item.id) &&
                  zc_text_utf8_valid(item.from));
        ZC_ASSERT(item.payload.len <= ZC_ORIGINAL_PAYLOAD_MAX && item.at_ms >= 0);
        struct zc_block *body = zc_item_encode(&item, NULL, 0);
        ZC_ASSERT(body != NULL && zc_item_decode(zc_block_slice(body), &back) == 0);
        zc_block_unref(body);
        ZC_ASSERT(given <= size); /* it ends */
    }
    ZC_ASSERT((r < 0) == (o.error != NULL) && o.error_at <= size);
    if (r == 0)
        ZC_ASSERT(given >= o.held_len);
    zc_original_done(&o);
    free(copy);
}

/* Writes what was read. */
static void write_line(const struct zc_dump_line *l, struct zc_buf *ret_line)
{
    uint8_t body[ZC_DUMP_BODY_MAX];
    struct zc_item item;
    int err = 0;
    if (l->kind == ZC_DUMP_MESSAGE) {
        struct zc_block *b = zc_item_encode(&l->item, l->headers, l->item.headers_count);
        ZC_ASSERT(b != NULL && zc_item_decode(zc_block_slice(b), &item) == 0);
        err = zc_dump_message(ret_line, l->seq, l->attempt, l->item.due_ms, &item);
        zc_block_unref(b);
    } else if (l->kind == ZC_DUMP_BIND) {
        err = zc_dump_bind(ret_line, l->seq, zc_dump_body(l, body));
    } else if (l->kind == ZC_DUMP_SEEN) {
        err = zc_dump_seen(ret_line, zc_dump_body(l, body));
    } else if (l->kind == ZC_DUMP_END) {
        err = zc_dump_end(ret_line, l->count);
    } else {
        err = zc_dump_head(ret_line);
    }
    ZC_ASSERT(err == 0);
}

static void line(const uint8_t *data, size_t size)
{
    const char *why = NULL;
    struct zc_buf once = {0}, twice = {0};
    uint8_t *copy = copy_of(data, size);
    memset(&first, 0xa5, sizeof(first));
    if (zc_dump_parse(copy, size, &first, &why) == 0) {
        /* A line without seq is given one before it is stored. */
        first.seq = first.seq > 0 ? first.seq : 1;
        write_line(&first, &once);
        uint8_t *json = copy_of(once.data, once.len);
        ZC_ASSERT(zc_dump_parse(json, once.len - 1, &second, &why) == 0);
        ZC_ASSERT(second.kind == first.kind);
        write_line(&second, &twice);
        ZC_ASSERT(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
        free(json);
    } else {
        ZC_ASSERT(why != NULL && *why != '\0');
    }
    zc_buf_done(&once);
    zc_buf_done(&twice);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    file(data, size);
    line(data, size);
    return 0;
}
