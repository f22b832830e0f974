/*
 * Publications. Each carries its number; one publisher's numbers rise, so a subscriber must see
 * them rise, topic by topic, and may miss one only when its buffer was full.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

/* want->box of a sub: a topic's number, or -1 for "t" and -2 for "". */
static bool matches(const struct want *want, int topic)
{
    return want->box < 0 || want->box == topic;
}

static void expect(struct conn *c, uint32_t pub)
{
    if (c->expected_len == c->expected_cap) {
        c->expected_cap = c->expected_cap == 0 ? 16 : 2 * c->expected_cap;
        c->expected = realloc(c->expected, c->expected_cap * sizeof *c->expected);
        ZC_ASSERT(c->expected != NULL);
    }
    c->expected[c->expected_len++] = (struct expected){.pub = pub, .taken = c->delivered};
}

static void pub_submit(struct world *w, struct conn *c, struct want *want)
{
    struct pub *p = &w->pubs[want->uid];
    p->submit_idx = want->idx;
    p->conn = c->number;
    want->sure_before = 0;
    want->maybe_before = 0;
    want->puts_before = w->subs_asked;
    for (size_t i = 0; i < w->live_len; i++) {
        struct conn *sub = w->conns[w->live[i]];
        if (sub->sub_maybe[want->box] == 0)
            continue;
        want->maybe_before++;
        sub->matched++;
        if (sub->sub_sure[want->box] > 0 && sub->cause == 0)
            expect(sub, want->uid);
    }
}

void topics_submit(struct world *w, struct conn *c, struct want *want)
{
    if (want->op == OP_PUB) {
        pub_submit(w, c, want);
        return;
    }
    if (want->op == OP_UNSUB) {
        memset(c->sub_sure, 0, sizeof c->sub_sure);
        c->expected_len = 0;
        return;
    }
    w->subs_asked++;
    for (int t = 0; t < TOPICS; t++) {
        if (!matches(want, t))
            continue;
        if (c->sub_maybe[t] == 0)
            c->sub_maybe[t] = want->idx;
        c->sub_idx[t][c->sub_count[t]++ % 8] = want->idx;
        c->replays++;
    }
}

static bool unsub_under_way(const struct conn *c)
{
    for (size_t i = 0; i < c->wants.len; i++)
        if (c->wants.list[i].op == OP_UNSUB)
            return true;
    return false;
}

static bool sub_under_way(const struct conn *c)
{
    for (size_t i = 0; i < c->wants.len; i++)
        if (c->wants.list[i].op == OP_SUB)
            return true;
    return false;
}

static void pub_ok(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m)
{
    uint64_t least = 0, most = want->maybe_before + (w->subs_asked - want->puts_before);
    w->pubs[want->uid].ok_idx = w->idx;
    for (size_t i = 0; i < w->live_len; i++) {
        struct conn *sub = w->conns[w->live[i]];
        conn_note_causes(w, sub);
        least +=
            sub->sub_sure[want->box] > 0 && sub->sub_sure[want->box] < want->idx && sub->cause == 0;
        for (size_t k = 0; k < sub->expected_len; k++)
            if (sub->expected[k].pub == want->uid && !sub->expected[k].known) {
                sub->expected[k].known = true;
                sub->expected[k].tight =
                    w->p.kind == PROFILE_TINY && (sub->blocked || sub->blocked_at >= want->at);
                sub->expected[k].room = sub->matched - sub->expected[k].taken + sub->replays;
            }
    }
    if (!(m->has & ZC_MSG_HAS_SUBS) || m->subs < (int64_t)least || m->subs > (int64_t)most)
        world_fail(w, "c%u: pub to t%d says %lld subscribers, between %llu and %llu match",
                   c->number, want->box, (long long)m->subs, (unsigned long long)least,
                   (unsigned long long)most);
}

void topics_ok(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m)
{
    if (want->op == OP_PUB) {
        pub_ok(w, c, want, m);
        return;
    }
    for (int t = 0; t < TOPICS; t++) {
        if (want->op == OP_SUB && matches(want, t) && !unsub_under_way(c) && c->sub_sure[t] == 0)
            c->sub_sure[t] = w->idx;
        if (want->op == OP_UNSUB && !sub_under_way(c))
            c->sub_maybe[t] = 0;
    }
    if (want->op == OP_UNSUB && !sub_under_way(c))
        c->matched = c->delivered = c->replays = 0;
}

/* A publication that was answered ok did not come: that needs a buffer that was full. */
static void dropped(struct world *w, struct conn *c, const struct expected *e)
{
    if (e->known && !e->tight && e->room < w->p.hub.sub_buffer)
        world_fail(w, "c%u: publication %u is lost with at most %u of %llu in the buffer",
                   c->number, e->pub, e->room, (unsigned long long)w->p.hub.sub_buffer);
}

/* pub came: what the same publisher sent to the same topic before it will not come any more. */
static void forget_older(struct world *w, struct conn *c, uint32_t pub)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->expected_len; i++) {
        const struct expected *e = &c->expected[i];
        const struct pub *p = &w->pubs[e->pub];
        if (e->pub == pub)
            continue;
        if (p->topic == w->pubs[pub].topic && p->client == w->pubs[pub].client && e->pub < pub) {
            dropped(w, c, e);
            c->delivered++;
            continue;
        }
        c->expected[kept++] = *e;
    }
    c->expected_len = kept;
}

/* Copies that are fine: one, and one more for each sub since. */
static uint32_t copies_allowed(const struct world *w, const struct conn *c, uint32_t pub)
{
    const struct pub *p = &w->pubs[pub];
    uint32_t n = 1;
    for (int i = 0; i < 8; i++)
        n += c->sub_idx[p->topic][i] > p->submit_idx;
    return n;
}

static void judge(struct world *w, struct conn *c, uint32_t pub)
{
    const struct pub *p = &w->pubs[pub];
    uint32_t *last = &c->last_pub[p->topic][p->client];
    uint32_t *copies = &c->last_copies[p->topic][p->client];
    if (p->submit_idx == 0 || pub <= w->pubs_dead)
        world_fail(w, "c%u: publication %u was never made, or to an earlier hub", c->number, pub);
    if (c->sub_maybe[p->topic] == 0)
        world_fail(w, "c%u: publication %u without a subscription", c->number, pub);
    if (p->conn == c->number && p->ok_idx == 0)
        world_fail(w, "c%u: its own publication %u came before its ok", c->number, pub);
    if (pub < *last)
        world_fail(w, "c%u: t%d goes back from %u to %u", c->number, p->topic, *last, pub);
    *copies = pub == *last ? *copies + 1 : 1;
    *last = pub;
    if (*copies > copies_allowed(w, c, pub))
        world_fail(w, "c%u: copy %u of publication %u", c->number, *copies, pub);
}

void topics_message(struct world *w, struct conn *c, const struct zc_msg *m)
{
    struct zc_slice payload = zc_msg_payload(m);
    char text[16] = {0}, name[8];
    uint32_t pub;
    const struct pub *p;
    if (payload.len < 2 || payload.len > 12 || payload.data[0] != 'u') {
        world_fail(w, "c%u: a publication nobody made", c->number);
        return;
    }
    memcpy(text, payload.data + 1, payload.len - 1);
    pub = (uint32_t)strtoul(text, NULL, 10);
    if (pub == 0 || pub >= w->pubs_len) {
        world_fail(w, "c%u: a publication nobody made", c->number);
        return;
    }
    p = &w->pubs[pub];
    snprintf(name, sizeof name, "t%d", p->topic);
    if (!zc_slice_is(m->name, name))
        world_fail(w, "c%u: publication %u came with the wrong topic", c->number, pub);
    judge(w, c, pub);
    forget_older(w, c, pub);
    if (p->submit_idx > c->sub_maybe[p->topic])
        c->delivered++;
    else if (c->replays > 0)
        c->replays--;
}

void topics_settled(struct world *w, struct conn *c)
{
    for (size_t i = 0; i < c->expected_len && !w->failed; i++)
        dropped(w, c, &c->expected[i]);
    c->expected_len = 0;
    c->replays = 0;
    c->matched = c->delivered = 0;
}
