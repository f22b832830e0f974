/* A message arrives: may this one, here, now, with these fields? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* Its frames carry the id of the request, not of the message. */
static bool by_request_id(const struct want *want)
{
    return want->id[0] != 0 && (want->op == OP_RESERVE || (want->op == OP_READY && want->max > 0));
}

/* The waiter that this frame with that message answers, or NULL: of those that a frame does not
 * name, the first who wants it. */
static struct want *find_waiter(struct world *w, struct conn *c, const struct zc_msg *m,
                                uint32_t uid)
{
    bool leased = m->delivery.len > 0;
    struct want *found =
        leased && m->id.len > 0 ? wants_by_id(w, &c->wants, m->id, zc_slice(NULL, 0)) : NULL;
    if (found != NULL && by_request_id(found))
        return found;
    for (size_t i = 0; i < c->wants.len; i++) {
        struct want *want = &c->wants.list[i];
        bool plain = (want->op == OP_READY || want->op == OP_RESERVE) && !by_request_id(want);
        if ((leased ? plain : want->op == OP_TAKE) && sender_passes(want, &w->messages[uid]) &&
            zc_slice_is(m->name, w->boxes[want->box].name))
            return want;
    }
    return NULL;
}

/* The number in the payload, checked against the bytes that were put. */
static uint32_t payload_uid(struct world *w, struct conn *c, const struct zc_msg *m)
{
    static uint8_t want[1 << 16];
    struct zc_slice p = zc_msg_payload(m);
    char number[12] = {0};
    uint32_t uid;
    if (p.len < 2 || p.data[0] != 'm') {
        world_fail(w, "c%u: a payload nobody put", c->number);
        return 0;
    }
    memcpy(number, p.data + 1, p.len - 1 < 11 ? p.len - 1 : 11);
    uid = (uint32_t)strtoul(number, NULL, 10);
    if (uid == 0 || uid >= w->messages_len ||
        !zc_slice_eq(p, zc_slice(want, ask_payload(&w->messages[uid], uid, want)))) {
        world_fail(w, "c%u: payload of message %u is not what was put", c->number, uid);
        return 0;
    }
    return uid;
}

static void check_presence(struct world *w, struct conn *c, struct message *m, uint32_t uid)
{
    if (m->submit_idx == 0)
        world_fail(w, "c%u: message %u was never put", c->number, uid);
    else if (m->put == PUT_REFUSED)
        world_fail(w, "c%u: message %u was refused, yet here it is", c->number, uid);
    else if (m->put == PUT_STORAGE)
        world_fail(w, "c%u: message %u was answered err storage, yet here it is", c->number, uid);
    else if (m->gone == YES)
        world_fail(w, "c%u: message %u is back after it was taken, acked or lost with memory",
                   c->number, uid);
    else if (m->dup == YES)
        world_fail(w, "c%u: message %u is a duplicate of %u that was there", c->number, uid,
                   m->dup_of);
    /* The reply to an operation precedes what it causes. */
    if (m->put == PUT_OPEN && !m->is_req && m->conn == c->number)
        world_fail(w, "c%u: message %u came before the ok to its put", c->number, uid);
    if (m->put == PUT_OPEN && m->crossed)
        m->vouched = true;
    if (m->dup == MAYBE)
        m->dup = NO;
    if (m->gone == MAYBE)
        m->gone = NO;
}

/* False: a stale frame that changes nothing. */
static bool check_holder(struct world *w, struct conn *c, struct message *m, uint32_t uid,
                         bool doubtful)
{
    struct delivery *d = &w->deliveries[m->delivery];
    struct conn *holder = w->conns[d->conn];
    if (!m->held || d->over)
        return true;
    conn_note_causes(w, holder);
    if (d->acks > 0 && w->disk.faults_done > 0) {
        /* Its ack failed with the store; the err has not arrived yet. */
        m->half_acked = true;
        return true;
    }
    if (d->releasing || holder->cause != 0 || world_ns(w) >= d->lease_min)
        return true;
    if (doubtful)
        return false;
    world_fail(w, "c%u: message %u is still held by c%u for %lld ms", c->number, uid,
               holder->number, (long long)((d->lease_min - world_ns(w)) / MS));
    return true;
}

/* Waiters elsewhere that may have had the message in a frame that never left. */
static uint32_t unseen_hands(struct world *w, int box)
{
    uint32_t n = 0;
    for (size_t i = 0; i < w->live_len; i++)
        n += wants_waiting(w->conns[w->live[i]], box, false);
    return n;
}

static void check_attempt(struct world *w, struct conn *c, struct message *m, uint32_t uid,
                          const struct zc_msg *f)
{
    uint32_t most = m->seen + m->unseen + 1;
    bool sure = w->boxes[m->box].disturbed_at <= m->submit_at && !w->boxes[m->box].disturbed;
    if (!(f->has & ZC_MSG_HAS_ATTEMPT) || f->attempt < 1)
        world_fail(w, "c%u: message %u without attempt", c->number, uid);
    else if (f->attempt <= m->attempt && !m->power_lost)
        world_fail(w, "c%u: message %u has attempt %lld after %lld", c->number, uid,
                   (long long)f->attempt, (long long)m->attempt);
    else if (f->attempt > most + (sure ? 0 : unseen_hands(w, m->box)))
        world_fail(w, "c%u: message %u has attempt %lld, but was handed out at most %u times",
                   c->number, uid, (long long)f->attempt, most - 1);
}

static void check_time(struct world *w, struct conn *c, const struct message *m, uint32_t uid)
{
    int64_t now = world_ns(w);
    int64_t slack = m->crossed ? SECOND : MS;
    if (m->crossed && w->wall_moved > 0)
        return;
    if (now < m->due_at - slack)
        world_fail(w, "c%u: message %u came %lld ms before its delay was over", c->number, uid,
                   (long long)((m->due_at - now) / MS));
    if (m->has_over && m->over_late_at != NEVER && !c->blocked && c->blocked_at < m->over_at &&
        !w->boxes[m->box].disturbed && w->boxes[m->box].disturbed_at < m->over_at &&
        now > m->over_late_at + slack + SECOND)
        world_fail(w, "c%u: message %u came %lld ms after its ttl", c->number, uid,
                   (long long)((now - m->over_late_at) / MS));
}

static void check_fields(struct world *w, struct conn *c, struct message *m, uint32_t uid,
                         const struct want *want, const struct zc_msg *f)
{
    struct conn *putter = w->conns[m->conn];
    char by[32], key[16];
    snprintf(by, sizeof by, "sim:%d", putter->client);
    snprintf(key, sizeof key, "%u", uid);
    if (!zc_slice_is(f->by, by) || !(f->has & ZC_MSG_HAS_AT))
        world_fail(w, "c%u: message %u has the wrong by, or no at", c->number, uid);
    if (!zc_slice_eq(f->from, sender_name(m->sender)))
        world_fail(w, "c%u: message %u has the wrong from", c->number, uid);
    if (!sender_passes(want, m))
        world_fail(w, "c%u: message %u came to a filter that keeps out its sender", c->number, uid);
    if (f->headers_count != (m->header ? 1u : 0u) ||
        (m->header &&
         (!zc_slice_is(f->headers[0].key, "uid") || !zc_slice_is(f->headers[0].value, key))))
        world_fail(w, "c%u: message %u has the wrong headers", c->number, uid);
    if (by_request_id(want))
        return;
    if (f->id.len == 0 || f->id.len >= sizeof m->wire_id) {
        world_fail(w, "c%u: message %u has an odd id", c->number, uid);
        return;
    }
    if (m->wire_id[0] != 0 && !zc_slice_is(f->id, m->wire_id))
        world_fail(w, "c%u: message %u changed its id", c->number, uid);
    memcpy(m->wire_id, f->id.data, f->id.len);
    m->wire_id[f->id.len] = 0;
    if (m->id[0] != 0 && (f->id.len < strlen(m->id) + 3 || f->id.data[0] != 's' ||
                          strcmp(strchr(m->wire_id, ':') + 1, m->id) != 0))
        world_fail(w, "c%u: message %u has id %s", c->number, uid, m->wire_id);
}

static void check_lease(struct world *w, struct conn *c, const struct want *want,
                        const struct delivery *d, const struct zc_msg *f)
{
    int64_t early = w->now.wall.ms - (d->at - d->from_at) / MS;
    if (w->wall_moved == 0 && !d->doubtful &&
        (f->lease * 1000 < early + want->lease_ms - 1500 ||
         f->lease * 1000 > w->now.wall.ms + want->lease_ms + 1500))
        world_fail(w, "c%u: lease %lld is not now + %lld ms", c->number, (long long)f->lease,
                   (long long)want->lease_ms);
}

/* Counts the frame for its waiter, and forgets the waiter when it is served. */
static void serve(struct world *w, struct conn *c, struct want *want, const struct zc_msg *f)
{
    want->got++;
    if ((want->max == 0 && f->end) || (want->max > 0 && (f->end != (want->got == want->max)) &&
                                       (!f->end || want->got > want->max)))
        world_fail(w, "c%u: frame %d of at most %d %s end", c->number, want->got, want->max,
                   f->end ? "has" : "lacks");
    if (want->max == 0 || f->end)
        wants_remove(&c->wants, want);
}

static uint32_t record(struct world *w, struct conn *c, uint32_t uid, const struct want *want,
                       const struct zc_msg *f)
{
    struct message *m = &w->messages[uid];
    uint32_t n = w->deliveries_len;
    struct delivery *d = &w->deliveries[n];
    if (n == DELIVERIES_MAX) {
        world_fail(w, "the simulator has no room for more deliveries");
        return 0;
    }
    w->deliveries_len++;
    world_trace(w, "delivery %u is message %u", n, uid);
    d->message = uid;
    d->conn = c->number;
    d->idx = w->idx;
    d->at = world_ns(w);
    d->from_at = want->at > m->submit_at ? want->at : m->submit_at;
    d->take = f->delivery.len == 0;
    d->excluded = want->excluded;
    d->lease_min = d->from_at + want->lease_ms * MS;
    d->lease_max = d->at + want->lease_ms * MS;
    d->doubtful = d->lease_min <= d->at;
    snprintf(d->name, sizeof d->name, "%.*s", (int)f->delivery.len, (const char *)f->delivery.data);
    return n;
}

/* A rep by message id went out before the frame was seen: the hub may have taken it for this one.
 */
static bool rep_under_way(const struct conn *c, const struct message *m)
{
    for (size_t i = 0; i < c->wants.len; i++)
        if (c->wants.list[i].op == OP_REP && c->wants.list[i].id[0] != 0 &&
            strcmp(c->wants.list[i].id, m->wire_id) == 0)
            return true;
    return false;
}

void deliver_message(struct world *w, struct conn *c, const struct zc_msg *f)
{
    uint32_t uid = payload_uid(w, c, f);
    struct want *want = find_waiter(w, c, f, uid);
    struct message *m = &w->messages[uid];
    bool known_return = !m->held || w->deliveries[m->delivery].over;
    struct delivery *d;
    uint32_t n;
    if (uid == 0)
        return;
    if (want == NULL || want->box != m->box) {
        world_fail(w, "c%u: message %u from %s was not asked for", c->number, uid,
                   w->boxes[m->box].name);
        return;
    }
    check_presence(w, c, m, uid);
    check_attempt(w, c, m, uid, f);
    check_time(w, c, m, uid);
    check_fields(w, c, m, uid, want, f);
    n = record(w, c, uid, want, f);
    d = &w->deliveries[n];
    if (!d->take)
        check_lease(w, c, want, d, f);
    if (known_return && !d->doubtful)
        order_fifo(w, c, m, d->take);
    order_waiters(w, want, uid);
    m->seen++;
    if (f->attempt > m->attempt || m->power_lost)
        m->attempt = f->attempt;
    m->power_lost = m->maybe_lost = false;
    if (!check_holder(w, c, m, uid, d->doubtful)) {
        d->over = true;
    } else {
        w->deliveries[m->delivery].over = true;
        m->delivery = n;
        m->held = true;
        m->gone = NO;
        if (d->take)
            queue_gone(w, m);
        else if (rep_under_way(c, m)) {
            m->gone = MAYBE;
            d->releasing = true;
        }
    }
    serve(w, c, want, f);
}
