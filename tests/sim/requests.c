/* Requests and their replies: to the requester alone, once, from a session that was given it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static bool was_given(const struct world *w, uint32_t uid, uint32_t worker)
{
    for (uint32_t i = 1; i < w->deliveries_len; i++)
        if (w->deliveries[i].message == uid && w->deliveries[i].conn == worker)
            return true;
    return false;
}

/* Another request with the same id: which of the two is meant is not judged. */
static bool has_twin(const struct world *w, uint32_t uid)
{
    const struct message *m = &w->messages[uid];
    for (uint32_t i = 1; i < w->messages_len; i++) {
        const struct message *other = &w->messages[i];
        if (i != uid && other->is_req && other->conn == m->conn && other->submit_idx > 0 &&
            strcmp(other->id, m->id) == 0)
            return true;
    }
    return false;
}

void requests_rep(struct world *w, struct conn *c, const struct zc_msg *f)
{
    struct want *want = wants_by_id(w, &c->wants, f->id, zc_slice(NULL, 0));
    struct zc_slice p = zc_msg_payload(f);
    unsigned uid = 0, worker = 0;
    char text[32] = {0};
    struct message *m;
    memcpy(text, p.data, p.len < 31 ? p.len : 31);
    if (sscanf(text, "a%u.%u", &uid, &worker) != 2 || uid == 0 || uid >= w->messages_len) {
        world_fail(w, "c%u: a reply nobody made", c->number);
        return;
    }
    m = &w->messages[uid];
    if (want == NULL || want->op != OP_REQ)
        world_fail(w, "c%u: a reply to %.*s, which does not wait", c->number, (int)f->id.len,
                   (const char *)f->id.data);
    else if (!m->is_req || m->conn != c->number || !zc_slice_is(f->id, m->id))
        world_fail(w, "c%u: the reply to message %u went to the wrong request", c->number, uid);
    else if (m->reps_got++ > 0 && !has_twin(w, uid))
        world_fail(w, "c%u: a second reply to message %u", c->number, uid);
    else if (!was_given(w, uid, worker) && !m->guessed && !has_twin(w, uid))
        world_fail(w, "c%u: a reply to message %u from c%u, which never had it", c->number, uid,
                   worker);
    if (want != NULL)
        wants_remove(&c->wants, want);
}

void requests_settled(struct world *w)
{
    for (uint32_t i = 1; i < w->messages_len && !w->failed; i++) {
        struct message *m = &w->messages[i];
        const struct conn *c = w->conns[m->conn];
        if (!m->rep_due || m->reps_got > 0)
            continue;
        m->rep_due = false;
        if (c->session == NULL || c->cause != 0 || c->given_up || has_twin(w, i) ||
            world_ns(w) - m->submit_at > 500 * SECOND)
            continue;
        world_fail(w, "c%u: the reply to message %u never came, though its worker was told ok",
                   c->number, i);
    }
}
