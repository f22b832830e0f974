/*
 * Where publications for many sessions lie one behind the other, so that what a session gets in one
 * turn is one piece of shared bytes: nothing is copied for each of them, and few system calls carry
 * it.
 *
 * A slow reader keeps whole blocks of ZC_FAN_BLOCK bytes alive, at most one for each delivery that
 * its buffer may hold.
 */
#ifndef ZC_ZMQC_FAN_H
#define ZC_ZMQC_FAN_H

#include <stdint.h>

#include "base/buf.h"

#define ZC_FAN_BLOCK 16384
/* Frames up to this size are put together; larger ones are worth a block of their own. */
#define ZC_FAN_FRAME_MAX 2048

/* All zero: empty. */
struct zc_fan {
    struct zc_block *block;
    uint32_t used;
};

struct zc_fan_part {
    struct zc_block *block; /* the fan's until the next zc_fan_add; NULL: send the frame itself */
    uint32_t start, len;
};

struct zc_fan_part zc_fan_add(struct zc_fan *f, const struct zc_block *frame);
void zc_fan_done(struct zc_fan *f);

#endif
