/* Packets to a relay: the queue and the rate that the relay allows; see derp.h. */
#include <string.h>

#include "base/check.h"
#include "tunnel/derp_priv.h"

/* Bytes of a frame with a packet of len bytes. */
static size_t send_frame_len(size_t len)
{
    return ZC_DERP_HEAD + ZC_DERP_KEY_LEN + len;
}

static void send_refill(struct zc_derp_bucket *b, struct zc_mono now)
{
    b->tokens += b->rate * (double)(now.ns - b->at.ns) / (double)ZC_NS_PER_S;
    if (b->tokens > b->burst)
        b->tokens = b->burst;
    b->at = now;
}

uint8_t *zc_derp_begin(struct zc_derp *d, struct zc_now now, const struct zc_key *key, size_t len)
{
    bool dropped = false;
    d->begun = 0;
    if (len > ZC_DERP_PACKET_MAX)
        return NULL;
    if (d->bucket.rate > 0) {
        send_refill(&d->bucket, now.mono);
        if (d->bucket.tokens < (double)send_frame_len(len)) {
            d->status.dropped_rate++;
            return NULL;
        }
    }
    uint8_t *frame = zc_derp_queue_tail(&d->queue, send_frame_len(len), &dropped);
    d->status.dropped_queue += dropped;
    if (frame == NULL)
        return NULL;
    memcpy(frame + ZC_DERP_HEAD, key->b, ZC_DERP_KEY_LEN);
    d->begun = send_frame_len(len);
    return frame + ZC_DERP_HEAD + ZC_DERP_KEY_LEN;
}

void zc_derp_commit(struct zc_derp *d, struct zc_now now, size_t len)
{
    bool dropped;
    size_t payload = ZC_DERP_KEY_LEN + len;
    (void)now;
    ZC_ASSERT(d->begun > 0 && send_frame_len(len) <= d->begun);
    /* The tail that begin gave: asking again moves nothing. */
    uint8_t *frame = zc_derp_queue_tail(&d->queue, d->begun, &dropped);
    ZC_ASSERT(frame != NULL && !dropped);
    frame[0] = ZC_DERP_SEND_PACKET;
    frame[1] = 0;
    frame[2] = (uint8_t)(payload >> 16);
    frame[3] = (uint8_t)(payload >> 8);
    frame[4] = (uint8_t)payload;
    zc_derp_queue_push(&d->queue, send_frame_len(len));
    d->begun = 0;
    if (d->bucket.rate > 0)
        d->bucket.tokens -= (double)send_frame_len(len);
    d->status.packets_out++;
    d->status.bytes_out += len;
}

bool zc_derp_send(struct zc_derp *d, struct zc_now now, const struct zc_key *key,
                  struct zc_slice packet)
{
    uint8_t *out = zc_derp_begin(d, now, key, packet.len);
    if (out == NULL)
        return false;
    if (packet.len > 0)
        memcpy(out, packet.data, packet.len);
    zc_derp_commit(d, now, packet.len);
    return true;
}

uint32_t zc_derp_room(const struct zc_derp *d)
{
    return zc_derp_queue_room(&d->queue);
}
