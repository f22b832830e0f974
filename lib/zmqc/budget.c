/* The bound of all output together, see budget.h. */
#include "zmqc/budget.h"

#include <stddef.h>

#include "zmqc/gift.h"
#include "zmqc/reply.h"

void zc_budget_rose(struct zc_broker *b)
{
    if (b->out_short || b->out_bytes <= b->limits.output_bytes)
        return;
    b->out_short = true;
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        if (!zc_reply_over_bound(b, s))
            continue;
        zc_gift_park(s);
        zc_broker_touch(b, s); /* whoever reads from it looks again whether to */
    }
}

void zc_budget_fell(struct zc_broker *b)
{
    if (!b->out_short || b->out_bytes > b->limits.output_bytes / 4 * 3)
        return;
    b->out_short = false;
    /* Each may use it up again: then the others wait for the next time. */
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        if (zc_session_waiting(s) == 0)
            continue;
        zc_reply_replay(b, s);
        zc_broker_resume(b, s);
        zc_broker_touch(b, s);
    }
}

#define SLOWEST 64 /* found in one look at all sessions */

/* It may be ended for its output; what came just now could not move yet. */
static bool stands_still(const struct zc_broker *b, const struct zc_session *s)
{
    return s->state != ZC_SESSION_CLOSED && zc_session_out_bytes(s) > ZC_BUDGET_SHARE &&
           s->progress.ns < b->now.mono.ns;
}

/* The sessions whose output has not moved for the longest time, the slowest first. */
static uint32_t slowest(const struct zc_broker *b, struct zc_session *ret_found[SLOWEST])
{
    uint32_t n = 0;
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        if (!stands_still(b, s) ||
            (n == SLOWEST && s->progress.ns >= ret_found[n - 1]->progress.ns))
            continue;
        uint32_t i = n < SLOWEST ? n++ : n - 1;
        for (; i > 0 && ret_found[i - 1]->progress.ns > s->progress.ns; i--)
            ret_found[i] = ret_found[i - 1];
        ret_found[i] = s;
    }
    return n;
}

static bool twice_over(const struct zc_broker *b)
{
    return b->out_bytes > 2 * b->limits.output_bytes + b->out_ending;
}

void zc_budget_enforce(struct zc_broker *b)
{
    struct zc_session *found[SLOWEST];
    uint32_t n;
    while (twice_over(b) && (n = slowest(b, found)) > 0) {
        for (uint32_t i = 0; i < n && twice_over(b); i++)
            zc_broker_kill(b, found[i],
                           "reads too slowly while all sessions have too much output: ended");
    }
}
