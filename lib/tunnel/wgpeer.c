/* Timers and kept packets of a peer: see wgpeer.h. */
#include "tunnel/wgpeer.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

bool zc_wgpeer_alive(const struct zc_wgpeer_session *s, struct zc_now now)
{
    return s != NULL && s->counter < ZC_WG_REJECT_AFTER_MESSAGES &&
           !zc_wgpeer_due(zc_mono_add_ms(s->created, ZC_WG_REJECT_AFTER_MS), now);
}

void zc_wgpeer_mark(struct zc_wg *wg, struct zc_wgpeer *p)
{
    if (!zc_list_linked(&p->dirty))
        zc_list_push(&wg->dirty, &p->dirty);
}

void zc_wgpeer_tell(struct zc_wg *wg, struct zc_wgpeer *p)
{
    if (!zc_list_linked(&p->told))
        zc_list_push(&wg->told, &p->told);
}

static struct zc_mono earliest(const struct zc_wgpeer *p)
{
    struct zc_mono at = zc_mono_min(p->retry_at, p->start_at);
    at = zc_mono_min(at, zc_mono_min(p->keepalive_at, p->renew_at));
    return zc_mono_min(at, p->erase_at);
}

static void set_timer(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_mono at)
{
    /* It is in the heap from the peer's beginning on, so that moving it cannot fail. */
    int err = zc_heap_set(&wg->timers, &p->timer, at);
    ZC_ASSERT(err == 0);
}

void zc_wgpeer_arm(struct zc_wg *wg, struct zc_wgpeer *p)
{
    /* Most packets only put instants off: the timer then rings early, once, and is set anew. */
    struct zc_mono at = earliest(p);
    if (at.ns < p->timer.deadline.ns)
        set_timer(wg, p, at);
}

static struct zc_mono with_jitter(struct zc_wg *wg, struct zc_now now, int64_t ms)
{
    return zc_mono_add_ms(now.mono, ms + (int64_t)(zc_rng_u64(wg->rng) % ZC_WG_JITTER_MS));
}

void zc_wgpeer_want(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now)
{
    if (p->initiation_due || p->retry_at.ns != ZC_NEVER.ns)
        return;
    struct zc_mono earliest_start = zc_mono_add_ms(p->sent_at, ZC_WG_REKEY_TIMEOUT_MS);
    if (p->sent && !zc_wgpeer_due(earliest_start, now)) {
        p->start_at = zc_mono_min(p->start_at, earliest_start);
        zc_wgpeer_arm(wg, p);
        return;
    }
    p->start_at = ZC_NEVER;
    p->initiation_due = true;
    zc_wgpeer_mark(wg, p);
}

void zc_wgpeer_heard(struct zc_wgpeer *p, struct zc_now now, bool data)
{
    p->renew_at = ZC_NEVER;
    if (data && p->keepalive_at.ns == ZC_NEVER.ns)
        p->keepalive_at = zc_mono_add_ms(now.mono, ZC_WG_KEEPALIVE_MS);
}

void zc_wgpeer_spoke(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now, bool data)
{
    p->keepalive_at = ZC_NEVER;
    if (data && p->renew_at.ns == ZC_NEVER.ns)
        p->renew_at = with_jitter(wg, now, ZC_WG_NEW_HANDSHAKE_MS);
}

static void give_up(struct zc_wg *wg, struct zc_wgpeer *p)
{
    zc_wgpeer_abandon(wg, p);
    zc_wgpeer_flush(wg, p);
    p->keepalive_at = ZC_NEVER;
    p->tries = 0;
    p->gave_up = true;
    p->unanswered = false;
    zc_wgpeer_tell(wg, p);
}

static void retry_due(struct zc_wg *wg, struct zc_wgpeer *p)
{
    p->retry_at = ZC_NEVER;
    if (p->tries >= ZC_WG_TRIES) {
        give_up(wg, p);
        return;
    }
    /* The one under way may still be answered until the next one is made. */
    p->initiation_due = true;
    p->unanswered = true;
    zc_wgpeer_mark(wg, p);
    zc_wgpeer_tell(wg, p);
}

static void start_due(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now)
{
    bool wanted = p->start_asked || !zc_wgpeer_alive(p->current, now);
    p->start_at = ZC_NEVER;
    p->start_asked = false;
    if (wanted && !p->initiation_due) {
        p->initiation_due = true;
        zc_wgpeer_mark(wg, p);
    }
}

static void keepalive_due(struct zc_wg *wg, struct zc_wgpeer *p)
{
    p->keepalive_at = ZC_NEVER;
    p->keepalive_due = true;
    zc_wgpeer_mark(wg, p);
}

/* The keys of all sessions, and with them the peer's last stamp: a peer whose clock went back while
 * it was away is heard again. */
static void erase_due(struct zc_wg *wg, struct zc_wgpeer *p)
{
    zc_wgpeer_session_free(wg, p->previous);
    zc_wgpeer_session_free(wg, p->current);
    zc_wgpeer_session_free(wg, p->next);
    p->previous = p->current = p->next = NULL;
    memset(p->stamp_seen, 0, sizeof(p->stamp_seen));
    p->erase_at = ZC_NEVER;
    p->response_due = p->keepalive_due = false;
    p->erased = true;
    zc_wgpeer_tell(wg, p);
}

void zc_wgpeer_tick(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now)
{
    if (zc_wgpeer_due(p->erase_at, now))
        erase_due(wg, p);
    if (zc_wgpeer_due(p->retry_at, now))
        retry_due(wg, p);
    if (zc_wgpeer_due(p->start_at, now))
        start_due(wg, p, now);
    if (zc_wgpeer_due(p->keepalive_at, now))
        keepalive_due(wg, p);
    if (zc_wgpeer_due(p->renew_at, now)) {
        p->renew_at = ZC_NEVER;
        zc_wgpeer_want(wg, p, now);
    }
    set_timer(wg, p, earliest(p));
}

struct zc_wgpeer_packet *zc_wgpeer_staged(const struct zc_wgpeer *p)
{
    struct zc_list *first = zc_list_first(&p->staged);
    return first != NULL ? ZC_CONTAINER(first, struct zc_wgpeer_packet, link) : NULL;
}

void zc_wgpeer_unstage(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_wgpeer_packet *packet)
{
    zc_list_remove(&packet->link);
    free(packet);
    p->staged_count--;
    wg->staged--;
}

void zc_wgpeer_stage(struct zc_wg *wg, struct zc_wgpeer *p, const uint8_t *data, size_t len)
{
    if (p->staged_count >= ZC_WG_STAGED_MAX || wg->staged >= ZC_WG_STAGED_ALL_MAX) {
        wg->dropped_packets++;
        if (p->staged_count == 0)
            return;
        zc_wgpeer_unstage(wg, p, zc_wgpeer_staged(p));
    }
    struct zc_wgpeer_packet *packet = malloc(sizeof(*packet) + len);
    if (packet == NULL) {
        wg->dropped_packets++;
        return;
    }
    packet->len = (uint32_t)len;
    memcpy(packet->data, data, len);
    zc_list_push(&p->staged, &packet->link);
    p->staged_count++;
    wg->staged++;
}

void zc_wgpeer_flush(struct zc_wg *wg, struct zc_wgpeer *p)
{
    wg->dropped_packets += p->staged_count;
    while (p->staged_count > 0)
        zc_wgpeer_unstage(wg, p, zc_wgpeer_staged(p));
}
