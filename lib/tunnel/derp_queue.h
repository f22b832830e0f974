/*
 * Packets that wait to be sent through a relay: a ring of frames, each built in place. Full, it
 * drops the oldest, except one that is partly sent. Buffers keep their size, so a steady stream
 * allocates nothing.
 */
#ifndef ZC_TUNNEL_DERP_QUEUE_H
#define ZC_TUNNEL_DERP_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_DERP_QUEUE_SLOTS 33 /* one that is partly sent, and those that wait */

struct zc_derp_queue {
    struct zc_buf slots[ZC_DERP_QUEUE_SLOTS]; /* whole frames */
    uint32_t first;
    uint32_t count;
    size_t sent; /* bytes of the first that are out */
};

/* Room for a frame of len bytes at the tail, after dropping the oldest if there must be room
 * (ret_dropped). NULL: memory is refused. Not part of the queue before push. */
uint8_t *zc_derp_queue_tail(struct zc_derp_queue *q, size_t len, bool *ret_dropped);
/* Adds the frame that tail gave, of len bytes. */
void zc_derp_queue_push(struct zc_derp_queue *q, size_t len);
/* Copies at most cap bytes of the oldest frames. */
size_t zc_derp_queue_take(struct zc_derp_queue *q, uint8_t *ret_data, size_t cap);
/* Bytes that are missing of a frame that is partly sent. */
size_t zc_derp_queue_rest(const struct zc_derp_queue *q);
/* The connection is gone: what was partly sent is sent again from its start. ret_dropped: with too
 * many waiting then, the oldest was dropped. */
void zc_derp_queue_rewind(struct zc_derp_queue *q, bool *ret_dropped);
/* Frames that fit without a drop. */
uint32_t zc_derp_queue_room(const struct zc_derp_queue *q);
void zc_derp_queue_done(struct zc_derp_queue *q);

#endif
