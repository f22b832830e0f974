/* Packets that a WireGuard device receives: see wg.h. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "crypto/aead.h"
#include "crypto/x25519.h"
#include "tunnel/wg.h"
#include "tunnel/wgpeer.h"

#define IP6_HEADER 40
#define IP6_SOURCE 8

static uint64_t get_little(const uint8_t *p, int len)
{
    uint64_t value = 0;
    for (int i = len - 1; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

static struct zc_wgpeer_index *find_index(const struct zc_wg *wg, const uint8_t *p)
{
    if (wg->indices.len == 0)
        return NULL;
    struct zc_map_node *n = zc_map_first(&wg->indices, get_little(p, 4));
    return n != NULL ? ZC_CONTAINER(n, struct zc_wgpeer_index, node) : NULL;
}

static struct zc_wgpeer_session *session_new(struct zc_wgpeer *p, uint32_t remote_index,
                                             bool initiator)
{
    struct zc_wgpeer_session *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->index.peer = p;
    s->index.session = s;
    s->remote_index = remote_index;
    s->initiator = initiator;
    return s;
}

/* Answers an initiation that proved right. False when memory is refused. */
static bool answer(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now, struct zc_noise *n)
{
    struct zc_secret ephemeral;
    struct zc_wgpeer_session *s = session_new(p, n->remote_index, false);
    if (s == NULL || zc_wgpeer_index_add(wg, &s->index) != 0) {
        free(s);
        return false;
    }
    zc_x25519_generate(wg->rng, &ephemeral);
    int err = zc_noise_create_response(n, &p->noise, &ephemeral, zc_wgpeer_index_value(&s->index),
                                       p->response);
    zc_secret_done(&ephemeral);
    if (err != 0) {
        zc_wgpeer_session_free(wg, s);
        return false;
    }
    zc_cookie_sign(&p->cookie, &p->noise.cookie_keys, now, p->response, sizeof(p->response));
    zc_noise_keys(n, false, &s->send, &s->receive);
    zc_wgpeer_session_answered(wg, p, now, s);
    return true;
}

static bool is_new_stamp(const struct zc_wgpeer *p, struct zc_now now, const uint8_t *stamp)
{
    struct zc_mono next = zc_mono_add_ms(p->seen_at, ZC_WG_INITIATION_GAP_MS);
    return memcmp(stamp, p->stamp_seen, sizeof(p->stamp_seen)) > 0 &&
           (!p->seen || zc_wgpeer_due(next, now));
}

static bool initiation(struct zc_wg *wg, struct zc_now now, const uint8_t *msg)
{
    struct zc_noise n;
    struct zc_key who;
    uint8_t stamp[ZC_NOISE_STAMP_BYTES];
    bool good = false;
    if (!zc_cookie_check(&wg->self.cookie_keys, msg, ZC_NOISE_INITIATION_BYTES) ||
        zc_noise_read_static(&n, &wg->self, msg, &who) != 0)
        return false;
    struct zc_wgpeer *p = zc_wg_find(wg, &who);
    if (p == NULL || zc_noise_read_stamp(&n, &p->noise, msg, stamp) != 0) {
        zc_noise_done(&n);
        return false;
    }
    if (memcmp(stamp, p->stamp_seen, sizeof(stamp)) < 0 && !p->late) {
        p->late = true;
        p->late_at = now.mono;
    }
    if (is_new_stamp(p, now, stamp) && answer(wg, p, now, &n)) {
        good = true;
        p->late = false;
        memcpy(p->stamp_seen, stamp, sizeof(stamp));
        p->seen = true;
        p->seen_at = now.mono;
        p->rx_bytes += ZC_NOISE_INITIATION_BYTES;
        zc_wgpeer_heard(p, now, false);
        zc_wgpeer_arm(wg, p);
    }
    zc_noise_done(&n);
    return good;
}

static bool response(struct zc_wg *wg, struct zc_now now, const uint8_t *msg)
{
    struct zc_wgpeer_index *e = find_index(wg, msg + 8);
    if (e == NULL || e->session != NULL || !e->peer->under_way ||
        !zc_cookie_check(&wg->self.cookie_keys, msg, ZC_NOISE_RESPONSE_BYTES))
        return false;
    struct zc_wgpeer *p = e->peer;
    if (zc_noise_consume_response(&p->handshake, &wg->self, &p->noise, msg) != 0) {
        if (!p->bad_told) {
            p->bad_told = p->bad_response = true;
            zc_wgpeer_tell(wg, p);
        }
        return false;
    }
    struct zc_wgpeer_session *s = session_new(p, p->handshake.remote_index, true);
    if (s == NULL || zc_map_insert(&wg->indices, &s->index.node, e->node.hash) != 0) {
        /* The response is used up: the retry makes another. */
        free(s);
        zc_map_remove(&wg->indices, &p->index.node);
        zc_noise_done(&p->handshake);
        p->under_way = false;
        return false;
    }
    zc_noise_keys(&p->handshake, true, &s->send, &s->receive);
    p->rx_bytes += ZC_NOISE_RESPONSE_BYTES;
    zc_wgpeer_heard(p, now, false);
    zc_wgpeer_session_initiated(wg, p, now, s);
    zc_wgpeer_arm(wg, p);
    return true;
}

static bool cookie_reply(struct zc_wg *wg, struct zc_now now, const uint8_t *msg)
{
    struct zc_wgpeer_index *e = find_index(wg, msg + 4);
    return e != NULL && zc_cookie_consume(&e->peer->cookie, &e->peer->noise.cookie_keys, now, msg);
}

/* The inner packet without padding: version, length and source are right. */
static bool inner(const struct zc_wgpeer *p, const uint8_t *data, size_t len,
                  struct zc_slice *ret_packet)
{
    if (len < IP6_HEADER || data[0] >> 4 != 6)
        return false;
    size_t want = IP6_HEADER + ((size_t)data[4] << 8 | data[5]);
    if (want > len ||
        (!p->any_source && memcmp(data + IP6_SOURCE, p->address, sizeof(p->address)) != 0))
        return false;
    *ret_packet = zc_slice(data, want);
    return true;
}

/* An old session of ours that only receives is renewed before it ends. */
static void refresh(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now)
{
    const struct zc_wgpeer_session *s = p->current;
    if (s == NULL || !s->initiator || p->refreshed ||
        !zc_wgpeer_due(zc_mono_add_ms(s->created, ZC_WG_REFRESH_AFTER_MS), now))
        return;
    p->refreshed = true;
    zc_wgpeer_want(wg, p, now);
}

static bool settled(const struct zc_wgpeer_session *s, struct zc_now now)
{
    return zc_wgpeer_alive(s, now) && s->used &&
           zc_wgpeer_due(zc_mono_add_ms(s->used_at, ZC_TWIN_SETTLED_MS), now);
}

static void sign_of_peer(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now)
{
    if (!zc_twin_sign(&p->twins, now))
        return;
    p->twin_of_peer = true;
    zc_wgpeer_tell(wg, p);
}

/* Something genuine came under s. Signs of two processes at the other end: this is not the session
 * that has been in use, or it is while another process asked for one in vain. */
static void compare(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                    const struct zc_wgpeer_session *s)
{
    bool older = s == p->previous && settled(p->current, now);
    bool late = p->late && s == p->current &&
                zc_wgpeer_due(zc_mono_add_ms(p->late_at, ZC_TWIN_SETTLED_MS), now);
    if (late)
        p->late = false;
    if (older || late)
        sign_of_peer(wg, p, now);
}

/* Whether a session of this index was ours not long ago. */
static bool was_ours(const struct zc_wgpeer *p, uint64_t index)
{
    for (uint32_t i = 0; i < ZC_WGPEER_OLD && i < p->old_next; i++)
        if (p->old[i] == index)
            return true;
    return false;
}

void zc_wg_stray(struct zc_wg *wg, struct zc_now now, struct zc_wgpeer *p, const uint8_t *data,
                 size_t len)
{
    if (len < ZC_WG_OVERHEAD || get_little(data, 4) != 4 || find_index(wg, data + 4) != NULL ||
        !settled(p->current, now))
        return;
    if (was_ours(p, get_little(data + 4, 4)))
        sign_of_peer(wg, p, now);
    else if (zc_twin_sign(&p->twins_of_ours, now)) {
        p->twin_of_ours = true;
        zc_wgpeer_tell(wg, p);
    }
}

static bool transport(struct zc_wg *wg, struct zc_now now, uint8_t *data, size_t len)
{
    struct zc_wgpeer_index *e = find_index(wg, data + 4);
    if (e == NULL || e->session == NULL)
        return false;
    struct zc_wgpeer *p = e->peer;
    struct zc_wgpeer_session *s = e->session;
    uint64_t counter = get_little(data + 8, 8);
    if (zc_wgpeer_due(zc_mono_add_ms(s->created, ZC_WG_REJECT_AFTER_MS), now) ||
        zc_aead_open(&s->receive, counter, zc_slice(NULL, 0), data + ZC_WG_HEADER,
                     len - ZC_WG_HEADER) != 0 ||
        !zc_replay_accept(&s->replay, counter, ZC_WG_REJECT_AFTER_MESSAGES))
        return false;
    size_t text_len = len - ZC_WG_OVERHEAD;
    p->rx_bytes += len;
    if (!s->used) {
        s->used = true;
        s->used_at = now.mono;
    }
    zc_wgpeer_session_used(wg, p, now, s);
    compare(wg, p, now, s);
    refresh(wg, p, now);
    zc_wgpeer_heard(p, now, text_len > 0);
    zc_wgpeer_arm(wg, p);
    if (text_len == 0)
        return true; /* a keepalive */
    if (!inner(p, data + ZC_WG_HEADER, text_len, &wg->data))
        return false;
    wg->data_peer = p;
    return true;
}

void zc_wg_input(struct zc_wg *wg, struct zc_now now, uint8_t *data, size_t len)
{
    ZC_ASSERT(wg->data_peer == NULL);
    bool good = false;
    uint32_t type = len >= ZC_WG_OVERHEAD ? (uint32_t)get_little(data, 4) : 0;
    if (type == 1 && len == ZC_NOISE_INITIATION_BYTES)
        good = initiation(wg, now, data);
    else if (type == 2 && len == ZC_NOISE_RESPONSE_BYTES)
        good = response(wg, now, data);
    else if (type == 3 && len == ZC_COOKIE_REPLY_BYTES)
        good = cookie_reply(wg, now, data);
    else if (type == 4)
        good = transport(wg, now, data, len);
    if (!good)
        wg->dropped_packets++;
}
