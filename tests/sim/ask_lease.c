/* What clients say about deliveries: ack, nack, touch, rep; mostly of their own, at times of
 * others. */
#include <stdio.h>
#include <string.h>

#include "model.h"

/* A delivery of c that it may still hold; 0: none found. Takes count for replies only. */
static uint32_t own_delivery(struct world *w, const struct conn *c, bool takes)
{
    uint32_t from = w->deliveries_len > 300 ? w->deliveries_len - 300 : 1;
    uint32_t found = 0, n = 0;
    for (uint32_t i = from; i < w->deliveries_len; i++) {
        const struct delivery *d = &w->deliveries[i];
        bool old = d->over && !rnd_one_in(&w->rnd, 20);
        if (d->conn == c->number && !old && (takes || !d->take) && rnd_one_in(&w->rnd, ++n))
            found = i;
    }
    return found;
}

/* ack, nack, touch */
void ask_lease(struct world *w, struct conn *c, enum op op, const char *name)
{
    struct want want = ask_begin(w, c, op, name);
    want.target = own_delivery(w, c, false);
    if (want.target == 0 || rnd_one_in(&w->rnd, 30))
        want.target = (uint32_t)rnd_below(&w->rnd, w->deliveries_len);
    if (w->deliveries[want.target].take)
        want.target = 0;
    want.list = rnd_one_in(&w->rnd, 4);
    while (want.list && want.more_count < 3) {
        uint32_t more = own_delivery(w, c, false);
        bool twice = more == 0 || more == want.target;
        for (int i = 0; i < want.more_count; i++)
            twice |= want.more[i] == more;
        if (twice)
            break;
        want.more[want.more_count++] = more;
    }
    if (want.list) {
        want.more[want.more_count++] = want.target;
        for (int i = 0; i < want.more_count; i++)
            w->made.deliveries[i] = zc_slice_str(w->deliveries[want.more[i]].name);
        w->made.deliveries_count = (uint32_t)want.more_count;
        w->made.has |= ZC_MSG_HAS_DELIVERIES;
    } else {
        w->made.delivery = zc_slice_str(want.target == 0 ? "ffffffffffffffffffffffff"
                                                         : w->deliveries[want.target].name);
    }
    if (op == OP_NACK && rnd_one_in(&w->rnd, 3)) {
        want.delay_ms = rnd_range(&w->rnd, 0, 2000);
        w->made.has |= ZC_MSG_HAS_DELAY;
        w->made.delay_ms = want.delay_ms;
    }
    if (op == OP_TOUCH) {
        want.lease_ms = rnd_range(&w->rnd, 1, 8) * 1000;
        w->made.has |= ZC_MSG_HAS_LEASE;
        w->made.lease = want.lease_ms / 1000;
    }
    ask_send(w, c, &want);
}

void ask_rep(struct world *w, struct conn *c)
{
    struct want want = ask_begin(w, c, OP_REP, "rep");
    char text[40];
    const struct message *m;
    want.target = own_delivery(w, c, true);
    if (want.target == 0 && w->deliveries_len > 1) /* somebody else's */
        want.target = 1 + (uint32_t)rnd_below(&w->rnd, w->deliveries_len - 1);
    if (want.target == 0)
        return;
    m = &w->messages[w->deliveries[want.target].message];
    if (w->deliveries[want.target].take || (m->wire_id[0] != 0 && rnd_one_in(&w->rnd, 2)))
        snprintf(want.id, sizeof want.id, "%s", m->wire_id);
    else
        w->made.delivery = zc_slice_str(w->deliveries[want.target].name);
    if (w->made.delivery.len > 0)
        want.id[0] = 0;
    snprintf(text, sizeof text, "a%u.%u", w->deliveries[want.target].message, c->number);
    w->made.text = zc_slice_str(text);
    ask_send(w, c, &want);
}
