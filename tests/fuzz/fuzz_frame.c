/*
 * A byte stream cut into frames, as a session does it: whatever the bytes and however they arrive,
 * the splitter looks at what it was given only, ends, and sees the same frames.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "zmqc/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first frame by the book. */
static enum zc_frame_status model(const uint8_t *data, size_t len, size_t *ret_size)
{
    for (size_t i = 0; i < len && i < 4; i++) {
        if (data[i] != "ZMQC"[i])
            return ZC_FRAME_BAD_MAGIC;
    }
    *ret_size = ZC_FRAME_HEADER;
    if (len < ZC_FRAME_HEADER)
        return ZC_FRAME_PARTIAL;
    uint64_t body = 0;
    for (size_t i = 4; i < 8; i++)
        body = body * 256 + data[i];
    if (body < 1 || body > 2097152)
        return ZC_FRAME_BAD_LENGTH;
    *ret_size += (size_t)body;
    return len >= *ret_size ? ZC_FRAME_WHOLE : ZC_FRAME_PARTIAL;
}

/* Judges data[0..len) from memory that ends there. */
static enum zc_frame_status look(const uint8_t *data, size_t len, size_t *ret_size)
{
    uint8_t *copy = calloc(len > 0 ? len : 1, 1);
    ZC_ASSERT(copy != NULL);
    if (len > 0)
        memcpy(copy, data, len);
    size_t size = 0, want = 0;
    enum zc_frame_status status = zc_frame_peek(copy, len, &size);
    ZC_ASSERT(status == model(data, len, &want));
    if (status == ZC_FRAME_WHOLE || status == ZC_FRAME_PARTIAL) {
        ZC_ASSERT(size == want && (status == ZC_FRAME_WHOLE) == (size <= len));
        *ret_size = size;
    }
    free(copy);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0, frame = 0;
    while (look(data + at, size - at, &frame) == ZC_FRAME_WHOLE) {
        uint8_t header[ZC_FRAME_HEADER];
        zc_frame_header(header, frame - ZC_FRAME_HEADER);
        ZC_ASSERT(memcmp(header, data + at, sizeof(header)) == 0);
        at += frame;
    }
    /* The rest, a byte at a time: once bad it stays bad, and it is never whole. */
    bool bad = false;
    for (size_t len = 0; len <= size - at && len < 16; len++) {
        enum zc_frame_status status = look(data + at, len, &frame);
        bool now_bad = status == ZC_FRAME_BAD_MAGIC || status == ZC_FRAME_BAD_LENGTH;
        ZC_ASSERT((!bad || now_bad) && (len < size - at || status != ZC_FRAME_WHOLE));
        bad = now_bad;
    }
    return 0;
}
