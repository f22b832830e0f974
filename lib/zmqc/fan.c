/* Publications side by side, see fan.h. */
#include "zmqc/fan.h"

#include <string.h>

struct zc_fan_part zc_fan_add(struct zc_fan *f, const struct zc_block *frame)
{
    struct zc_fan_part part = {NULL, 0, 0};
    if (frame->len > ZC_FAN_FRAME_MAX)
        return part;
    if (f->block != NULL && f->block->refs == 1)
        f->used = 0; /* everybody has read it */
    if (f->block == NULL || ZC_FAN_BLOCK - f->used < frame->len) {
        struct zc_block *block = zc_block_new(ZC_FAN_BLOCK);
        if (block == NULL)
            return part;
        zc_fan_done(f);
        f->block = block;
    }
    part = (struct zc_fan_part){f->block, f->used, frame->len};
    memcpy(f->block->data + f->used, frame->data, frame->len);
    f->used += frame->len;
    return part;
}

void zc_fan_done(struct zc_fan *f)
{
    zc_block_unref(f->block);
    *f = (struct zc_fan){0};
}
