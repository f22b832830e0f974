/* What the model expects of a hub after a crash, a stop, a start. */
#include "model.h"

/* Takes that may have had a message assigned when the hub died. */
static uint32_t takes_under_way(const struct world *w, int box)
{
    uint32_t n = w->boxes[box].returning + w->boxes[box].failed_takes;
    for (size_t i = 0; i < w->live_len; i++) {
        const struct conn *c = w->conns[w->live[i]];
        if (model_frames_unseen(w, c))
            n += wants_waiting(c, box, true);
    }
    return n;
}

static void message_crash(struct world *w, struct message *m, bool power_loss)
{
    if (!w->p.hub.durable) {
        m->gone = YES;
        return;
    }
    if (m->put == PUT_STORAGE)
        m->put = PUT_OPEN;
    if (m->half_acked && m->gone == NO)
        m->gone = MAYBE;
    m->held = false;
    w->deliveries[m->delivery].over = true;
    w->deliveries[m->delivery].acks = 0;
    m->due_at = m->submit_at + m->delay_ms * MS; /* a nack's delay may be forgotten */
    m->crossed = true;
    m->rep_due = false;
    m->power_lost |= power_loss || w->disk.faults_done > 0;
    m->over_late_at = m->over_late_at == NEVER ? NEVER : m->over_late_at + SECOND;
}

/* What was done since is not promised: it may be there or not. */
static void forget_since(struct world *w, int64_t since)
{
    for (uint32_t uid = 1; uid < w->messages_len; uid++) {
        struct message *m = &w->messages[uid];
        if (m->submit_idx == 0 || m->put == PUT_REFUSED)
            continue;
        if (m->gone == YES && m->gone_at >= since) {
            m->gone = MAYBE;
            queue_add(w, uid);
        }
        if (m->put == PUT_OK && m->ok_at >= since)
            m->put = PUT_OPEN;
        if (m->vouched && m->submit_at >= since)
            m->vouched = false;
    }
}

/* A weaker sync than `always` meets a power loss. */
static void weak_power_loss(struct world *w)
{
    int64_t margin = w->p.faults.sync_slow_ppm > 0 ? 5 * SECOND : SECOND / 2;
    for (int b = 0; b < BOXES_MAX; b++)
        queue_compact(w, b);
    if (w->p.hub.log.sync == ZC_LOG_SYNC_BATCH)
        forget_since(w, world_ns(w) - margin);
    if (w->p.hub.log.sync == ZC_LOG_SYNC_NEVER)
        forget_since(w, 0);
}

void model_rot(struct world *w)
{
    for (int b = 0; b < BOXES_MAX; b++)
        queue_compact(w, b);
    w->rots++;
    losses_allow(w, -1, 1); /* the damaged record was a put */
    for (uint32_t uid = 1; uid < w->messages_len; uid++) {
        struct message *m = &w->messages[uid];
        m->power_lost = true; /* or it held an attempt */
        if (m->gone != YES || m->submit_idx == 0 || m->put == PUT_REFUSED)
            continue;
        m->gone = MAYBE; /* or a removal */
        queue_add(w, uid);
    }
}

void model_crash(struct world *w, bool power_loss, bool clean)
{
    bool keep = clean && !w->stopped_in_error;
    w->idx++;
    for (int b = 0; b < BOXES_MAX; b++) {
        struct box *box = &w->boxes[b];
        uint32_t budget = takes_under_way(w, b);
        queue_compact(w, b);
        if (w->p.hub.durable)
            losses_allow(w, b, keep ? box->failed_takes : budget);
        box->returning = box->failed_takes = 0;
        box->disturbed = true;
    }
    if (power_loss)
        weak_power_loss(w);
    w->state = HUB_DOWN; /* from here on the hub is not told of anything */
    while (w->live_len > 0)
        conn_end(w, w->conns[w->live[0]]);
    hold_crash(w);
    w->sweep_ended_at = 0; /* nothing is on its way any more */
    for (int b = 0; b < BOXES_MAX; b++) {
        for (size_t i = 0; i < w->boxes[b].live_len; i++)
            message_crash(w, &w->messages[w->boxes[b].live[i]], power_loss);
        queue_compact(w, b);
    }
}

void model_ready(struct world *w)
{
    struct zc_hub_stats stats;
    uint64_t least = 0, most = 0, lost = 0, have;
    for (int b = 0; b < BOXES_MAX; b++)
        for (size_t i = 0; i < w->boxes[b].live_len; i++) {
            struct message *m = &w->messages[w->boxes[b].live[i]];
            if (m->avail_at < world_ns(w))
                m->avail_at = world_ns(w);
            least += queue_required(w, m) && !m->has_over;
            most += queue_possible(m);
        }
    for (size_t i = 0; i < w->groups_len; i++)
        lost += w->groups[i].budget;
    zc_hub_stats(w->hub, &stats);
    if (w->p.kind == PROFILE_OPERATE)
        return; /* counted at the end */
    have = stats.queued + stats.delayed + stats.leased;
    for (size_t i = 0; i < w->groups_len && have == most; i++)
        w->groups[i].budget = 0;
    world_trace(w, "ready with %llu messages, model has %llu to %llu", (unsigned long long)have,
                (unsigned long long)least, (unsigned long long)most);
    if (stats.leased > 0)
        world_fail(w, "%llu leases lived through a restart", (unsigned long long)stats.leased);
    if (have + lost < least)
        world_fail(w, "after the restart %llu messages are there, at least %llu should",
                   (unsigned long long)have, (unsigned long long)(least - lost));
    if (have > most)
        world_fail(w, "after the restart %llu messages are there, at most %llu can be",
                   (unsigned long long)have, (unsigned long long)most);
}
