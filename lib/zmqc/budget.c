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

/* The session whose output has not moved for the longest time; what came just now could not yet. */
static struct zc_session *slowest(const struct zc_broker *b)
{
    struct zc_session *found = NULL;
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        if (s->state != ZC_SESSION_CLOSED && zc_session_out_bytes(s) > ZC_BUDGET_SHARE &&
            s->progress.ns < b->now.mono.ns &&
            (found == NULL || s->progress.ns < found->progress.ns))
            found = s;
    }
    return found;
}

void zc_budget_enforce(struct zc_broker *b)
{
    struct zc_session *s;
    while (b->out_bytes > 2 * b->limits.output_bytes + b->out_ending && (s = slowest(b)) != NULL)
        zc_broker_kill(b, s, "reads too slowly while all sessions have too much output: ended");
}
