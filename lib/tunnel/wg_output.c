/* Packets that a WireGuard device sends: see wg.h. */
#include <string.h>

#include "base/check.h"
#include "crypto/aead.h"
#include "crypto/x25519.h"
#include "tunnel/wg.h"
#include "tunnel/wgpeer.h"

static void put_little(uint8_t *p, uint64_t value, int len)
{
    for (int i = 0; i < len; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

/* Seals buf[16..16+len) under the current session, which is alive. */
static size_t seal(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now, uint8_t *buf,
                   size_t len)
{
    struct zc_wgpeer_session *s = p->current;
    size_t padded = (len + 15) & ~(size_t)15;
    if (padded > ZC_WG_MTU)
        padded = ZC_WG_MTU;
    memset(buf + ZC_WG_HEADER + len, 0, padded - len);
    put_little(buf, 4, 4);
    put_little(buf + 4, s->remote_index, 4);
    put_little(buf + 8, s->counter, 8);
    zc_aead_seal(&s->send, s->counter, zc_slice(NULL, 0), buf + ZC_WG_HEADER, padded);
    s->counter++;
    p->tx_bytes += padded + ZC_WG_OVERHEAD;
    p->keepalive_due = false;
    zc_wgpeer_spoke(wg, p, now, len > 0);
    if (s->counter > ZC_WG_REKEY_AFTER_MESSAGES ||
        (s->initiator && zc_wgpeer_due(zc_mono_add_ms(s->created, ZC_WG_REKEY_AFTER_MS), now)))
        zc_wgpeer_want(wg, p, now);
    zc_wgpeer_arm(wg, p);
    return padded + ZC_WG_OVERHEAD;
}

size_t zc_wg_send(struct zc_wg *wg, struct zc_now now, struct zc_wgpeer *p, uint8_t *buf,
                  size_t len)
{
    ZC_ASSERT(len > 0 && len <= ZC_WG_MTU);
    bool alive = zc_wgpeer_alive(p->current, now);
    /* What waits goes first. */
    if (alive && p->staged_count == 0)
        return seal(wg, p, now, buf, len);
    zc_wgpeer_stage(wg, p, buf + ZC_WG_HEADER, len);
    if (alive)
        zc_wgpeer_mark(wg, p);
    else
        zc_wgpeer_want(wg, p, now);
    return 0;
}

/* Makes the initiation that is due. */
static size_t initiate(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now, uint8_t *buf)
{
    struct zc_secret ephemeral;
    uint32_t tries = p->tries;
    zc_wgpeer_abandon(wg, p);
    int64_t jitter = (int64_t)(zc_rng_u64(wg->rng) % ZC_WG_JITTER_MS);
    p->retry_at = zc_mono_add_ms(now.mono, ZC_WG_REKEY_TIMEOUT_MS + jitter);
    p->tries = tries + 1;
    p->sent = true;
    p->sent_at = now.mono;
    p->bad_told = false;
    zc_x25519_generate(wg->rng, &ephemeral);
    size_t len = 0;
    if (zc_stamps_next(&wg->stamps, now.wall, p->stamp_sent) &&
        zc_wgpeer_index_add(wg, &p->index) == 0) {
        if (zc_noise_create_initiation(&p->handshake, &wg->self, &p->noise, &ephemeral,
                                       zc_wgpeer_index_value(&p->index), p->stamp_sent, buf) == 0) {
            zc_cookie_sign(&p->cookie, &p->noise.cookie_keys, now, buf, ZC_NOISE_INITIATION_BYTES);
            p->under_way = true;
            len = ZC_NOISE_INITIATION_BYTES;
            zc_wgpeer_spoke(wg, p, now, false);
        } else {
            zc_map_remove(&wg->indices, &p->index.node);
        }
    }
    /* Without memory, or a stamp, the retry comes all the same. */
    p->tx_bytes += len;
    zc_secret_done(&ephemeral);
    zc_wgpeer_arm(wg, p);
    return len;
}

static size_t respond(struct zc_wgpeer *p, uint8_t *buf)
{
    memcpy(buf, p->response, sizeof(p->response));
    p->response_due = false;
    p->tx_bytes += sizeof(p->response);
    return sizeof(p->response);
}

/* The next packet of a peer, or 0. */
static size_t next_packet(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now, uint8_t *buf)
{
    if (p->response_due)
        return respond(p, buf);
    if (p->initiation_due) {
        size_t len = initiate(wg, p, now, buf);
        if (len > 0)
            return len;
    }
    struct zc_wgpeer_packet *packet = zc_wgpeer_staged(p);
    if (!zc_wgpeer_alive(p->current, now)) {
        /* A keepalive without a session is of no use: the peer asks for a new one itself. */
        p->keepalive_due = false;
        if (packet != NULL)
            zc_wgpeer_want(wg, p, now);
        return p->initiation_due ? initiate(wg, p, now, buf) : 0;
    }
    if (packet != NULL) {
        size_t len = packet->len;
        memcpy(buf + ZC_WG_HEADER, packet->data, len);
        zc_wgpeer_unstage(wg, p, packet);
        return seal(wg, p, now, buf, len);
    }
    return p->keepalive_due ? seal(wg, p, now, buf, 0) : 0;
}

size_t zc_wg_output(struct zc_wg *wg, struct zc_now now, uint8_t *buf, struct zc_wgpeer **ret_peer)
{
    struct zc_list *first;
    while ((first = zc_list_first(&wg->dirty)) != NULL) {
        struct zc_wgpeer *p = ZC_CONTAINER(first, struct zc_wgpeer, dirty);
        size_t len = next_packet(wg, p, now, buf);
        zc_list_remove(first);
        if (len > 0) {
            /* Behind the others; asked once too often when this was its last. */
            zc_list_push(&wg->dirty, first);
            *ret_peer = p;
            return len;
        }
    }
    return 0;
}
