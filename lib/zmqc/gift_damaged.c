/* A message whose body cannot be read: it is lost, counted, and whoever was to get it is told. */
#include <stddef.h>

#include "zmqc/gift.h"
#include "zmqc/lease.h"
#include "zmqc/message.h"
#include "zmqc/reply.h"

/* The lane entry that waits for m, in any session. */
static struct zc_held *find_held(struct zc_broker *b, const struct zc_message *m,
                                 struct zc_session **ret_session)
{
    for (struct zc_list *l = b->stalled.next; l != &b->stalled; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, stalled);
        for (struct zc_list *g = s->gifts.next; g != &s->gifts; g = g->next) {
            struct zc_held *h = ZC_CONTAINER(g, struct zc_held, link);
            if (h->message == m) {
                *ret_session = s;
                return h;
            }
        }
    }
    return NULL;
}

void zc_gift_damaged(struct zc_broker *b, struct zc_message *m)
{
    zc_broker_log(b, 3, NULL, "a stored message is damaged and was set aside");
    b->count.damaged++;
    b->count.dropped++;
    m->mailbox->dropped++;
    struct zc_session *s = NULL;
    struct zc_held *h = find_held(b, m, &s);
    if (h != NULL) {
        struct zc_msg *out = &b->out;
        zc_msg_clear(out);
        out->op = zc_slice_str("err");
        out->id = zc_slice(h->id, h->id_len);
        out->error = zc_slice_str("storage: the message is damaged and was set aside");
        out->code = zc_slice_str("storage");
        out->end = h->end; /* of a batch: nothing more comes */
        zc_reply_discharge(s, h);
        if (m->delivery != NULL)
            m->delivery->held = NULL;
        h->message = NULL;
        h->ticket = 0;
        /* In the middle of a batch nobody waits for this one: the others are the answer. */
        h->frame = h->batch && !h->end ? NULL : zc_reply_encode(b, s, out);
        zc_reply_charge(s, h);
    }
    if (m->delivery != NULL)
        zc_lease_free(b, m->delivery);
    bool settling = m->state == ZC_MESSAGE_REMOVING && !m->settled;
    m->taken = false;
    b->orphans -= m->orphan;
    m->orphan = false;
    if (!settling) /* else it goes when its removal is settled */
        zc_message_discard(b, m);
    if (s != NULL)
        zc_reply_release(b, s);
}
