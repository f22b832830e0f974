/* The three session slots of a peer and the table of indices: see wgpeer.h. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/wgpeer.h"

int zc_wgpeer_index_add(struct zc_wg *wg, struct zc_wgpeer_index *e)
{
    uint32_t value;
    do {
        zc_rng_bytes(wg->rng, &value, sizeof(value));
    } while (wg->indices.len > 0 && zc_map_first(&wg->indices, value) != NULL);
    return zc_map_insert(&wg->indices, &e->node, value);
}

static void index_remove(struct zc_wg *wg, struct zc_wgpeer_index *e)
{
    if (e->node.link != NULL)
        zc_map_remove(&wg->indices, &e->node);
}

void zc_wgpeer_session_free(struct zc_wg *wg, struct zc_wgpeer_session *s)
{
    if (s == NULL)
        return;
    struct zc_wgpeer *p = s->index.peer;
    if (s->index.node.link != NULL)
        p->old[p->old_next++ % ZC_WGPEER_OLD] = zc_wgpeer_index_value(&s->index);
    index_remove(wg, &s->index);
    zc_secret_wipe(s, sizeof(*s));
    free(s);
}

void zc_wgpeer_abandon(struct zc_wg *wg, struct zc_wgpeer *p)
{
    index_remove(wg, &p->index);
    zc_noise_done(&p->handshake);
    p->under_way = false;
    p->initiation_due = false;
    p->retry_at = ZC_NEVER;
    p->start_at = ZC_NEVER;
    p->start_asked = false;
}

/* There is a confirmed session. */
static void complete(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now)
{
    zc_wgpeer_abandon(wg, p);
    p->tries = 0;
    p->refreshed = false;
    p->have_handshake = true;
    p->last_handshake = now.mono;
    p->done = true;
    p->unanswered = p->gave_up = p->bad_response = p->erased = false;
    zc_wgpeer_tell(wg, p);
    if (p->staged_count > 0)
        zc_wgpeer_mark(wg, p);
}

/* Both ends of a handshake set the clock of erasure. */
static void derived(struct zc_wgpeer *p, struct zc_now now, struct zc_wgpeer_session *s)
{
    s->created = now.mono;
    p->erase_at = zc_mono_add_ms(now.mono, ZC_WG_ERASE_MS);
}

void zc_wgpeer_session_initiated(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                                 struct zc_wgpeer_session *s)
{
    derived(p, now, s);
    zc_wgpeer_session_free(wg, p->previous);
    if (p->next != NULL) {
        /* The peer may already send under the one that we answered with. */
        zc_wgpeer_session_free(wg, p->current);
        p->previous = p->next;
        p->next = NULL;
    } else {
        p->previous = p->current;
    }
    p->current = s;
    complete(wg, p, now);
    /* The peer may not send before it heard from us. */
    p->keepalive_due = p->staged_count == 0;
    zc_wgpeer_mark(wg, p);
}

void zc_wgpeer_session_answered(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                                struct zc_wgpeer_session *s)
{
    derived(p, now, s);
    zc_wgpeer_session_free(wg, p->next);
    p->next = s;
    p->response_due = true;
    p->sent = true;
    p->sent_at = now.mono;
    zc_wgpeer_spoke(wg, p, now, false);
    zc_wgpeer_mark(wg, p);
}

void zc_wgpeer_session_used(struct zc_wg *wg, struct zc_wgpeer *p, struct zc_now now,
                            struct zc_wgpeer_session *s)
{
    if (s != p->next)
        return;
    zc_wgpeer_session_free(wg, p->previous);
    p->previous = p->current;
    p->current = s;
    p->next = NULL;
    complete(wg, p, now);
}
