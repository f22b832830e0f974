/* Frames from a relay: cut out of the stream and judged; see derp.h. */
#include <string.h>

#include "base/check.h"
#include "tunnel/derp_priv.h"

struct derp_frame {
    uint8_t type;
    uint8_t *data;
    size_t len;
};

static uint32_t frame_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The rest of a frame that is too long to keep; false: more of it is to come. */
static bool frame_skipped(struct zc_derp *d)
{
    size_t have = d->rx_len - d->rx_pos;
    size_t n = d->skip < have ? d->skip : have;
    d->rx_pos += n;
    d->skip -= n;
    return d->skip == 0;
}

/* The next whole frame; false: none yet, or the connection is closed now. */
static bool frame_next(struct zc_derp *d, struct derp_frame *ret_frame)
{
    for (;;) {
        if (!frame_skipped(d) || d->rx_len - d->rx_pos < ZC_DERP_HEAD)
            return false;
        uint8_t *head = d->rx + d->rx_pos;
        uint32_t len = frame_u32(head + 1);
        if (d->state == ZC_DERP_KEY && head[0] != ZC_DERP_SERVER_KEY) {
            zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay did not begin with its key");
            return false;
        }
        if (len > ZC_DERP_FRAME_MAX || (d->state == ZC_DERP_KEY && len > 1024)) {
            zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay sent a frame longer than allowed");
            return false;
        }
        if (len <= ZC_DERP_KEY_LEN + ZC_DERP_PACKET_MAX) {
            if (d->rx_len - d->rx_pos - ZC_DERP_HEAD < len)
                return false;
            *ret_frame = (struct derp_frame){head[0], head + ZC_DERP_HEAD, len};
            d->rx_pos += ZC_DERP_HEAD + len;
            return true;
        }
        d->rx_pos += ZC_DERP_HEAD;
        d->skip = len;
        d->status.skipped++;
    }
}

static bool frame_packet(struct zc_derp *d, const struct derp_frame *f, struct zc_derp_event *ev)
{
    *ev = (struct zc_derp_event){.kind = ZC_DERP_EVENT_PACKET,
                                 .data = f->data + ZC_DERP_KEY_LEN,
                                 .len = f->len - ZC_DERP_KEY_LEN};
    memcpy(ev->key.b, f->data, ZC_DERP_KEY_LEN);
    d->status.packets_in++;
    d->status.bytes_in += ev->len;
    return true;
}

static bool frame_peer_gone(const struct derp_frame *f, struct zc_derp_event *ev)
{
    *ev = (struct zc_derp_event){.kind = ZC_DERP_EVENT_PEER_GONE};
    memcpy(ev->key.b, f->data, ZC_DERP_KEY_LEN);
    ev->was_here = f->len == ZC_DERP_KEY_LEN || f->data[ZC_DERP_KEY_LEN] == 0;
    return true;
}

static bool frame_health(struct zc_derp *d, const struct derp_frame *f, struct zc_derp_event *ev)
{
    size_t n = f->len < sizeof(d->text) - 1 ? f->len : sizeof(d->text) - 1;
    memcpy(d->text, f->data, n);
    d->text[n] = '\0';
    *ev = (struct zc_derp_event){.kind = ZC_DERP_EVENT_HEALTH, .text = d->text};
    return true;
}

static bool frame_info(struct zc_derp *d, struct zc_now now, const struct derp_frame *f,
                       struct zc_derp_event *ev)
{
    bool first = d->state == ZC_DERP_LOGIN;
    zc_derp_login_info(d, now, zc_slice(f->data, f->len));
    if (d->state == ZC_DERP_CLOSED || !first)
        return false;
    d->state = ZC_DERP_UP;
    *ev = (struct zc_derp_event){.kind = ZC_DERP_EVENT_UP};
    return true;
}

static void frame_pong(struct zc_derp *d, struct zc_now now, const struct derp_frame *f)
{
    if (d->pinged_at.ns == ZC_NEVER.ns || memcmp(f->data, d->ping, sizeof(d->ping)) != 0)
        return;
    d->status.rtt_us = (now.mono.ns - d->pinged_at.ns) / 1000;
    d->pinged_at = ZC_NEVER;
}

/* Least payload of a type; what is shorter is skipped. */
static size_t frame_least(uint8_t type)
{
    switch (type) {
    case ZC_DERP_RECV_PACKET:
    case ZC_DERP_PEER_GONE:
        return ZC_DERP_KEY_LEN;
    case ZC_DERP_PING:
    case ZC_DERP_PONG:
    case ZC_DERP_RESTARTING:
        return 8;
    default:
        return 0;
    }
}

/* True: it is an event. */
static bool frame_take(struct zc_derp *d, struct zc_now now, const struct derp_frame *f,
                       struct zc_derp_event *ev)
{
    if (f->len < frame_least(f->type)) {
        d->status.skipped++;
        return false;
    }
    switch (f->type) {
    case ZC_DERP_SERVER_INFO:
        return frame_info(d, now, f, ev);
    case ZC_DERP_RECV_PACKET:
        return frame_packet(d, f, ev);
    case ZC_DERP_PEER_GONE:
        return frame_peer_gone(f, ev);
    case ZC_DERP_HEALTH:
        return frame_health(d, f, ev);
    case ZC_DERP_RESTARTING:
        *ev = (struct zc_derp_event){.kind = ZC_DERP_EVENT_RESTARTING,
                                     .in_ms = frame_u32(f->data),
                                     .for_ms = frame_u32(f->data + 4)};
        return true;
    case ZC_DERP_PING:
        zc_derp_control(d, ZC_DERP_PONG, zc_slice(f->data, 8));
        return false;
    case ZC_DERP_PONG:
        frame_pong(d, now, f);
        return false;
    case ZC_DERP_KEEP_ALIVE:
        return false;
    default:
        d->status.skipped++;
        return false;
    }
}

bool zc_derp_frame(struct zc_derp *d, struct zc_now now, struct zc_rng *rng,
                   struct zc_derp_event *ret_event)
{
    struct derp_frame f;
    while (frame_next(d, &f)) {
        if (d->state == ZC_DERP_KEY)
            zc_derp_login_key(d, rng, zc_slice(f.data, f.len));
        else if (frame_take(d, now, &f, ret_event))
            return true;
        if (d->state == ZC_DERP_CLOSED)
            return false;
    }
    return false;
}
