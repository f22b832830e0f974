/*
 * The ZMQC frame: "ZMQC" | u32 big-endian length | that many bytes of one JSON object.
 * Source: docs/man/zmqc.5. Splits a byte stream; never resynchronises.
 */
#ifndef ZC_ZMQC_FRAME_H
#define ZC_ZMQC_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_FRAME_HEADER 8
#define ZC_FRAME_BODY_MAX 2097152 /* bytes of JSON in one frame */

enum zc_frame_status {
    ZC_FRAME_WHOLE,     /* *ret_size bytes from data are one frame, header included */
    ZC_FRAME_PARTIAL,   /* valid so far; *ret_size is the size once known, else ZC_FRAME_HEADER */
    ZC_FRAME_BAD_MAGIC, /* the bytes so far cannot start a frame */
    ZC_FRAME_BAD_LENGTH /* length 0 or above ZC_FRAME_BODY_MAX */
};

/* Looks at the first frame in data[0..len). Magic is judged from the first byte on. */
enum zc_frame_status zc_frame_peek(const uint8_t *data, size_t len, size_t *ret_size);
/* Writes the 8 header bytes. body_len is 1..ZC_FRAME_BODY_MAX. */
void zc_frame_header(uint8_t ret_header[ZC_FRAME_HEADER], size_t body_len);

#endif
