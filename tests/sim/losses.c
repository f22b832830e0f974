/* Messages that a crash may cost: those that were on their way to takes (at most once), and those
 * whose record the disk damaged. A missing message must find a place in the budget of such a crash.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

/* Any `budget` of the required messages in the box may be lost from now on. */
void losses_allow(struct world *w, int box, uint32_t budget)
{
    struct group *g;
    size_t most = 0;
    for (int b = 0; b < BOXES_MAX; b++)
        most += box < 0 || b == box ? w->boxes[b].live_len : 0;
    if (budget == 0 || most == 0)
        return;
    if (w->groups_len == GROUPS_MAX) {
        world_fail(w, "the simulator has no room for more crashes");
        return;
    }
    g = &w->groups[w->groups_len];
    g->idx = w->idx;
    g->len = 0;
    g->members = calloc(most, sizeof *g->members);
    ZC_ASSERT(g->members != NULL);
    for (int b = 0; b < BOXES_MAX; b++)
        for (size_t i = 0; (box < 0 || b == box) && i < w->boxes[b].live_len; i++)
            if (queue_required(w, &w->messages[w->boxes[b].live[i]]))
                g->members[g->len++] = w->boxes[b].live[i];
    for (size_t i = 0; i < g->len; i++)
        w->messages[g->members[i]].maybe_lost = true;
    g->budget = budget < g->len ? budget : (uint32_t)g->len;
    w->groups_len++;
    w->losses_allowed += g->budget;
    world_trace(w, "%u of box %d may be lost", g->budget, box);
}

/* Gives the missing message a place in the budget of a crash, moving others (Kuhn's matching). */
static bool excuse(struct world *w, uint32_t uid, uint32_t *used, const uint32_t *missing,
                   uint32_t *of, size_t n, bool *seen)
{
    uint64_t last_seen = w->deliveries[w->messages[uid].delivery].idx;
    for (size_t g = 0; g < w->groups_len; g++) {
        bool member = false;
        for (size_t i = 0; i < w->groups[g].len; i++)
            member |= w->groups[g].members[i] == uid;
        if (!member || seen[g] || last_seen > w->groups[g].idx)
            continue;
        seen[g] = true;
        if (used[g] < w->groups[g].budget) {
            used[g]++;
            for (size_t i = 0; i < n; i++)
                if (missing[i] == uid)
                    of[i] = (uint32_t)g + 1;
            return true;
        }
        for (size_t i = 0; i < n; i++) {
            if (of[i] != g + 1 || !excuse(w, missing[i], used, missing, of, n, seen))
                continue;
            for (size_t k = 0; k < n; k++)
                if (missing[k] == uid)
                    of[k] = (uint32_t)g + 1;
            return true;
        }
    }
    return false;
}

void losses_judge(struct world *w)
{
    static uint32_t missing[MESSAGES_MAX], of[MESSAGES_MAX];
    uint32_t used[GROUPS_MAX] = {0};
    size_t n = 0;
    for (uint32_t uid = 1; uid < w->messages_len; uid++)
        if (w->messages[uid].submit_idx > 0 && queue_required(w, &w->messages[uid]))
            missing[n++] = uid;
    memset(of, 0, sizeof of);
    for (size_t i = 0; i < n; i++)
        world_trace(w, "missing: message %u of box %d", missing[i], w->messages[missing[i]].box);
    for (size_t i = 0; i < n && !w->failed; i++) {
        bool seen[GROUPS_MAX] = {false};
        const struct message *m = &w->messages[missing[i]];
        if (!excuse(w, missing[i], used, missing, of, n, seen))
            world_fail(w, "message %u of %s, put by c%u as %s, is lost (%zu missing)", missing[i],
                       w->boxes[m->box].name, m->conn, m->id, n);
    }
}
