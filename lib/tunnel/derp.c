/* The relay client: life of a connection, buffers and timers; see derp.h. */
#include "tunnel/derp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crypto/x25519.h"
#include "tunnel/derp_priv.h"

/*
 * The relay sends a keep-alive every 60 to 65 s. We do not wait that long for a dead one to show:
 * after 45 s without a byte, or 10 s when packets went out meanwhile, we ping.
 */
#define IDLE_PING_MS 45000
#define BUSY_PING_MS 10000
#define ANSWER_MS 20000
/* So long can only be after a suspend: no need to ask. */
#define DEAD_MS 120000

struct zc_derp *zc_derp_new(const struct zc_derp_config *config)
{
    struct zc_derp *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->config = *config;
    d->state = ZC_DERP_CLOSED;
    d->status.rtt_us = -1;
    zc_x25519_public(&config->private_key, &d->own_key);
    return d;
}

void zc_derp_free(struct zc_derp *d)
{
    if (d == NULL)
        return;
    zc_derp_queue_done(&d->queue);
    zc_secret_done(&d->config.private_key);
    zc_secret_done(&d->shared);
    free(d);
}

void zc_derp_start(struct zc_derp *d, struct zc_now now, const char *host, uint16_t port)
{
    bool dropped;
    d->state = ZC_DERP_HTTP;
    d->closed_due = false;
    d->started_at = d->heard_at = now.mono;
    d->unheard_at = d->answer_till = d->pinged_at = ZC_NEVER;
    d->begun = 0;
    d->http.len = 0;
    d->http.complete = false;
    d->http.error = NULL;
    d->bucket.rate = 0;
    d->control_len = d->skip = d->rx_pos = d->rx_len = 0;
    d->status.rtt_us = -1;
    zc_derp_queue_rewind(&d->queue, &dropped);
    d->status.dropped_queue += dropped;
    zc_derp_login_request(d, host, port);
}

void zc_derp_close(struct zc_derp *d, enum zc_derp_why why, const char *text)
{
    if (d->state == ZC_DERP_CLOSED)
        return;
    d->state = ZC_DERP_CLOSED;
    d->closed_due = true;
    d->why = why;
    d->control_len = 0;
    if (text != NULL)
        snprintf(d->text, sizeof(d->text), "%s", text);
    zc_secret_done(&d->shared);
}

void zc_derp_lost(struct zc_derp *d, struct zc_now now, const char *text)
{
    (void)now;
    zc_derp_close(d, ZC_DERP_WHY_STREAM, text != NULL ? text : "the relay closed the connection");
}

size_t zc_derp_input(struct zc_derp *d, struct zc_now now, const uint8_t *data, size_t len)
{
    if (len == 0 || d->state == ZC_DERP_CLOSED)
        return len;
    d->heard_at = now.mono;
    d->unheard_at = d->answer_till = ZC_NEVER;
    if (d->rx_pos == d->rx_len)
        d->rx_pos = d->rx_len = 0;
    if (len > ZC_DERP_RX_CAP - d->rx_len && d->rx_pos > 0) {
        memmove(d->rx, d->rx + d->rx_pos, d->rx_len - d->rx_pos);
        d->rx_len -= d->rx_pos;
        d->rx_pos = 0;
    }
    if (len > ZC_DERP_RX_CAP - d->rx_len)
        len = ZC_DERP_RX_CAP - d->rx_len;
    memcpy(d->rx + d->rx_len, data, len);
    d->rx_len += len;
    return len;
}

bool zc_derp_event(struct zc_derp *d, struct zc_now now, struct zc_rng *rng,
                   struct zc_derp_event *ret_event)
{
    if (d->state == ZC_DERP_HTTP) {
        d->rx_pos += zc_http1_input(&d->http, d->rx + d->rx_pos, d->rx_len - d->rx_pos);
        if (d->http.complete || d->http.error != NULL)
            zc_derp_login_upgraded(d);
    }
    if (d->state != ZC_DERP_HTTP && d->state != ZC_DERP_CLOSED &&
        zc_derp_frame(d, now, rng, ret_event))
        return true;
    if (!d->closed_due)
        return false;
    d->closed_due = false;
    *ret_event =
        (struct zc_derp_event){.kind = ZC_DERP_EVENT_CLOSED, .why = d->why, .text = d->text};
    return true;
}

void zc_derp_control(struct zc_derp *d, enum zc_derp_type type, struct zc_slice payload)
{
    if (payload.len + ZC_DERP_HEAD > sizeof(d->control) - d->control_len)
        return;
    uint8_t *out = d->control + d->control_len;
    out[0] = (uint8_t)type;
    out[1] = 0;
    out[2] = 0;
    out[3] = (uint8_t)(payload.len >> 8);
    out[4] = (uint8_t)payload.len;
    memcpy(out + ZC_DERP_HEAD, payload.data, payload.len);
    d->control_len += ZC_DERP_HEAD + payload.len;
}

static size_t derp_take_control(struct zc_derp *d, uint8_t *out, size_t cap)
{
    size_t n = d->control_len < cap ? d->control_len : cap;
    memcpy(out, d->control, n);
    d->control_len -= n;
    memmove(d->control, d->control + n, d->control_len);
    return n;
}

size_t zc_derp_output(struct zc_derp *d, struct zc_now now, uint8_t *ret_data, size_t cap)
{
    if (d->state == ZC_DERP_CLOSED)
        return 0;
    /* Control frames go first, but not into the middle of a packet. */
    size_t rest = zc_derp_queue_rest(&d->queue);
    size_t n = zc_derp_queue_take(&d->queue, ret_data, rest < cap ? rest : cap);
    n += derp_take_control(d, ret_data + n, cap - n);
    if (d->control_len > 0 || (d->state != ZC_DERP_LOGIN && d->state != ZC_DERP_UP))
        return n;
    size_t packets = zc_derp_queue_take(&d->queue, ret_data + n, cap - n);
    if (packets > 0 && d->unheard_at.ns == ZC_NEVER.ns)
        d->unheard_at = now.mono;
    return n + packets;
}

void zc_derp_ping(struct zc_derp *d, struct zc_now now, struct zc_rng *rng, int64_t limit_ms)
{
    zc_rng_bytes(rng, d->ping, sizeof(d->ping));
    d->pinged_at = now.mono;
    d->answer_till = zc_mono_min(d->answer_till, zc_mono_add_ms(now.mono, limit_ms));
    zc_derp_control(d, ZC_DERP_PING, zc_slice(d->ping, sizeof(d->ping)));
}

/* When the relay is asked whether it is still there. */
static struct zc_mono derp_ping_due(const struct zc_derp *d)
{
    struct zc_mono idle = zc_mono_add_ms(d->heard_at, IDLE_PING_MS);
    if (d->unheard_at.ns == ZC_NEVER.ns)
        return idle;
    return zc_mono_min(idle, zc_mono_add_ms(d->unheard_at, BUSY_PING_MS));
}

void zc_derp_tick(struct zc_derp *d, struct zc_now now, struct zc_rng *rng)
{
    if (d->state == ZC_DERP_CLOSED)
        return;
    if (d->state != ZC_DERP_UP) {
        if (zc_mono_diff_ms(d->started_at, now.mono) >= ZC_DERP_LOGIN_MS)
            zc_derp_close(d, ZC_DERP_WHY_LOGIN, "the relay did not finish the login within 10 s");
        return;
    }
    if (now.mono.ns >= d->answer_till.ns || zc_mono_diff_ms(d->heard_at, now.mono) >= DEAD_MS)
        zc_derp_close(d, ZC_DERP_WHY_SILENT, "the relay sends nothing, not even to a ping");
    else if (d->answer_till.ns == ZC_NEVER.ns && now.mono.ns >= derp_ping_due(d).ns)
        zc_derp_ping(d, now, rng, ANSWER_MS);
}

struct zc_mono zc_derp_deadline(const struct zc_derp *d)
{
    if (d->state == ZC_DERP_CLOSED)
        return ZC_NEVER;
    if (d->state != ZC_DERP_UP)
        return zc_mono_add_ms(d->started_at, ZC_DERP_LOGIN_MS);
    struct zc_mono due = d->answer_till.ns == ZC_NEVER.ns ? derp_ping_due(d) : d->answer_till;
    return zc_mono_min(due, zc_mono_add_ms(d->heard_at, DEAD_MS));
}

void zc_derp_probe(struct zc_derp *d, struct zc_now now, struct zc_rng *rng, int64_t limit_ms)
{
    if (d->state == ZC_DERP_UP)
        zc_derp_ping(d, now, rng, limit_ms);
}

void zc_derp_status(const struct zc_derp *d, struct zc_derp_status *ret_status)
{
    *ret_status = d->status;
    ret_status->state = d->state;
}
