/*
 * Frame boundaries in a byte stream: "ZMQC" | u32 big-endian length | JSON. See docs/man/zmqc.5.
 * Deliberately absent: looking for the next magic after a fault; the session ends.
 */
#include <string.h>

#include "base/check.h"
#include "zmqc/frame.h"

static const uint8_t frame_magic[4] = {'Z', 'M', 'Q', 'C'};

enum zc_frame_status zc_frame_peek(const uint8_t *data, size_t len, size_t *ret_size)
{
    size_t magic = len < sizeof(frame_magic) ? len : sizeof(frame_magic);
    if (magic > 0 && memcmp(data, frame_magic, magic) != 0)
        return ZC_FRAME_BAD_MAGIC;
    if (len < ZC_FRAME_HEADER) {
        *ret_size = ZC_FRAME_HEADER;
        return ZC_FRAME_PARTIAL;
    }
    uint32_t body = (uint32_t)data[4] << 24 | (uint32_t)data[5] << 16 | (uint32_t)data[6] << 8 |
                    (uint32_t)data[7];
    if (body == 0 || body > ZC_FRAME_BODY_MAX)
        return ZC_FRAME_BAD_LENGTH;
    *ret_size = ZC_FRAME_HEADER + (size_t)body;
    return len < *ret_size ? ZC_FRAME_PARTIAL : ZC_FRAME_WHOLE;
}

void zc_frame_header(uint8_t ret_header[ZC_FRAME_HEADER], size_t body_len)
{
    ZC_ASSERT(body_len > 0 && body_len <= ZC_FRAME_BODY_MAX);
    memcpy(ret_header, frame_magic, sizeof(frame_magic));
    ret_header[4] = (uint8_t)(body_len >> 24);
    ret_header[5] = (uint8_t)(body_len >> 16);
    ret_header[6] = (uint8_t)(body_len >> 8);
    ret_header[7] = (uint8_t)body_len;
}
