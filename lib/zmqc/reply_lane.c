/* What waits in the two lanes of a session, and its way out; see reply.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "zmqc/budget.h"
#include "zmqc/gift.h"
#include "zmqc/reply.h"

struct zc_held *zc_reply_held_new(struct zc_slice id)
{
    struct zc_held *h = zc_alloc_zeroed(sizeof(*h) + id.len);
    if (h == NULL)
        return NULL;
    zc_list_init(&h->link);
    h->id_len = (uint16_t)id.len;
    if (id.len > 0)
        memcpy(h->id, id.data, id.len);
    return h;
}

static uint64_t held_bytes(const struct zc_held *h)
{
    return h->frame != NULL ? h->frame->len : h->message != NULL ? h->message->body_len : 0;
}

/* What h holds waits for the session, or does so no longer: its frame or its message changes. */
void zc_reply_charge(struct zc_session *s, struct zc_held *h)
{
    s->held_bytes += held_bytes(h);
    if (h->frame != NULL)
        zc_session_charge(s, h->frame);
    else
        zc_session_charge_bytes(s, held_bytes(h));
}

void zc_reply_discharge(struct zc_session *s, struct zc_held *h)
{
    s->held_bytes -= held_bytes(h);
    if (h->frame != NULL)
        zc_session_discharge(s, h->frame);
    else
        zc_session_discharge_bytes(s, held_bytes(h));
}

void zc_reply_hold(struct zc_broker *b, struct zc_session *s, struct zc_held *h)
{
    zc_list_push(h->gift ? &s->gifts : &s->replies, &h->link);
    s->held_count++;
    s->held_subs += h->sub;
    zc_reply_charge(s, h);
    zc_budget_rose(b);
    if (zc_reply_over_bound(b, s))
        zc_gift_park(s);
    if (!zc_list_linked(&s->stalled))
        zc_list_push(&b->stalled, &s->stalled);
}

static void unlink_held(struct zc_session *s, struct zc_held *h)
{
    zc_list_remove(&h->link);
    s->held_count--;
    s->held_subs -= h->sub;
    zc_reply_discharge(s, h);
}

void zc_reply_held_free(struct zc_session *s, struct zc_held *h)
{
    if (zc_list_linked(&h->link))
        unlink_held(s, h);
    zc_block_unref(h->frame);
    free(h);
}

static bool ready(const struct zc_broker *b, const struct zc_held *h)
{
    if (h->ticket > (h->written_only ? b->written : b->synced))
        return false;
    return h->message == NULL || h->message->body != NULL;
}

static void release_lane(struct zc_broker *b, struct zc_session *s, struct zc_list *lane)
{
    while (!zc_list_empty(lane)) {
        struct zc_held *h = ZC_CONTAINER(lane->next, struct zc_held, link);
        if (!ready(b, h))
            break;
        unlink_held(s, h);
        if (h->message != NULL)
            zc_gift_emit(b, s, h);
        else if (h->frame != NULL)
            zc_reply_write(b, s, h->frame, h->sub);
        zc_reply_held_free(s, h);
    }
}

void zc_reply_release(struct zc_broker *b, struct zc_session *s)
{
    release_lane(b, s, &s->replies);
    release_lane(b, s, &s->gifts);
    if (!zc_list_empty(&s->replies) || !zc_list_empty(&s->gifts))
        return;
    zc_list_remove(&s->stalled);
    if (s->state == ZC_SESSION_ENDING)
        zc_broker_touch(b, s);
}

void zc_reply_release_all(struct zc_broker *b)
{
    /* Work on a list of its own: releasing may take any session off, or put it back on. */
    struct zc_list work;
    zc_list_take_all(&b->stalled, &work);
    while (!zc_list_empty(&work)) {
        struct zc_list *l = work.next;
        zc_list_remove(l);
        zc_list_push(&b->stalled, l);
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, stalled);
        zc_reply_release(b, s);
        zc_reply_replay(b, s);
        zc_broker_resume(b, s);
    }
}
