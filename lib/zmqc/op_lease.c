/* take, reserve, ready, ack, nack and touch, see op.h. */
#include <stdlib.h>

#include "zmqc/gift.h"
#include "zmqc/lease.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"

static void wait_on(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                    enum zc_gift op)
{
    if (m->name.len == 0) {
        zc_reply_err(b, s, m->id, "empty_name", "mailbox: empty name");
        return;
    }
    const char *code = NULL, *text = NULL;
    struct zc_filter *filter = NULL;
    if (op != ZC_GIFT_TAKE && !zc_op_filter(b, s, m, &filter))
        return;
    struct zc_mailbox *mb = zc_broker_mailbox(b, m->name, true, &code, &text);
    if (mb == NULL) {
        free(filter);
        zc_reply_err(b, s, m->id, code, text);
        return;
    }
    mb->waiting++; /* the mailbox stays while we work on it */
    zc_gift_wait(b, s, mb, m, filter, op);
    mb->waiting--;
    zc_broker_reap(b, mb);
}

void zc_op_take(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    wait_on(b, s, m, ZC_GIFT_TAKE);
}

void zc_op_reserve(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    wait_on(b, s, m, ZC_GIFT_RESERVE);
}

void zc_op_ready(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    wait_on(b, s, m, ZC_GIFT_READY);
}

/* The deliveries that m names. */
struct named {
    struct zc_delivery *found[ZC_MSG_DELIVERIES_MAX];
    uint32_t count;
    struct zc_slice failed[ZC_MSG_DELIVERIES_MAX];
    uint32_t failed_count;
    bool single;
};

static bool has(const struct named *n, const struct zc_delivery *d)
{
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->found[i] == d)
            return true;
    }
    return false;
}

/* False: an err was sent. */
static bool find_named(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                       struct named *n)
{
    bool list = (m->has & ZC_MSG_HAS_DELIVERIES) != 0;
    n->count = n->failed_count = 0;
    n->single = !list;
    if (list && m->delivery.len > 0) {
        zc_reply_err(b, s, m->id, "invalid", "delivery and deliveries: give one of them");
        return false;
    }
    for (uint32_t i = 0; i < (list ? m->deliveries_count : 1); i++) {
        struct zc_slice token = list ? m->deliveries[i] : m->delivery;
        struct zc_delivery *d = zc_lease_find(b, s, token);
        if (d != NULL && !has(n, d))
            n->found[n->count++] = d;
        else
            n->failed[n->failed_count++] = token;
    }
    if (n->single && n->count == 0) {
        zc_reply_err(b, s, m->id, "no_delivery", "mailbox: delivery not found");
        return false;
    }
    return true;
}

static void fill_ok(struct zc_broker *b, const struct zc_msg *m, const struct named *n)
{
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("ok");
    out->id = m->id;
    out->failed_count = n->single ? 0 : n->failed_count;
    for (uint32_t i = 0; i < out->failed_count; i++)
        out->failed[i] = n->failed[i];
}

void zc_op_ack(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct named n;
    if (!find_named(b, s, m, &n))
        return;
    int64_t ticket = n.count > 0 ? zc_lease_ack(b, n.found, n.count) : 0;
    if (ticket < 0) {
        zc_reply_storage(b, s, m->id, (int)ticket);
        return;
    }
    fill_ok(b, m, &n);
    zc_reply_send(b, s, &b->out, (uint64_t)ticket);
}

void zc_op_nack(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct named n;
    if (!find_named(b, s, m, &n))
        return;
    fill_ok(b, m, &n);
    zc_reply_send(b, s, &b->out, 0);
    /* The highest first: each then enters before the one above it. */
    for (uint32_t i = n.count; i > 0; i--)
        zc_lease_return(b, n.found[i - 1], (m->has & ZC_MSG_HAS_DELAY) != 0 ? m->delay_ms : 0);
}

void zc_op_touch(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct named n;
    if (!find_named(b, s, m, &n))
        return;
    int64_t lease = 0;
    for (uint32_t i = 0; i < n.count; i++)
        lease = zc_lease_extend(b, n.found[i], m->lease);
    fill_ok(b, m, &n);
    b->out.lease = lease;
    zc_reply_send(b, s, &b->out, 0);
}
