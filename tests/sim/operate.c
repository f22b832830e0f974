/*
 * Operators and careful clients in a profile of their own: puts with ids of a scope that are
 * repeated after reconnects and crashes, publications through a binding, moves between two
 * mailboxes, purges and peeks. In half of the seeds they reserve as well (hold.c) and delay what
 * they put; in some the wall clock steps. The judge is simple: no item that was taken comes again,
 * none that was refused, the order of acceptance in each mailbox, at the end all that was promised
 * and not purged, and of a purge what where.c says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static const char *const boxes[] = {"mv0", "mv1"};

static const char *const op_names[] = {"put",  "put",    "pub",     "move",  "purge", "peek",
                                       "bind", "unbind", "reserve", "ready", "ack",   "nack"};

const char *operate_box(int box)
{
    return boxes[box];
}

/* A younger item of the same client, to be put once more; 0: none. */
static uint32_t old_item(struct world *w, const struct conn *c)
{
    uint32_t found = 0, n = 0;
    for (uint32_t i = w->items_len > 40 ? w->items_len - 40 : 1; i < w->items_len; i++) {
        const struct item *item = &w->items[i];
        if (item->client == c->client && !item->published && item->submit_idx > 0 &&
            world_ns(w) - item->submit_at < 300 * SECOND && item->wall_moved == w->wall_moved &&
            rnd_one_in(&w->rnd, ++n))
            found = i;
    }
    return found;
}

static uint32_t new_item(struct world *w, const struct conn *c, bool published)
{
    if (w->items_len == ITEMS_MAX)
        return 0;
    w->items[w->items_len] = (struct item){
        .client = c->client, .box = (uint8_t)rnd_below(&w->rnd, 2), .published = published};
    if (w->p.leases && !published && rnd_one_in(&w->rnd, 6))
        w->items[w->items_len].delay_ms = rnd_range(&w->rnd, 1, 4000);
    return w->items_len++;
}

static void send_hello(struct world *w, struct conn *c)
{
    struct want hello = ask_begin(w, c, OP_HELLO, "hello");
    char scope[16];
    snprintf(scope, sizeof scope, "c%d", c->client);
    hello.sender = sender_any(w);
    w->made.from = sender_name(hello.sender);
    w->made.scope = zc_slice_str(scope);
    c->scoped = true;
    ask_send(w, c, &hello);
}

static uint32_t choose(struct world *w)
{
    uint64_t dice = rnd_below(&w->rnd, 100);
    if (w->p.leases && rnd_one_in(&w->rnd, 4)) {
        dice = rnd_below(&w->rnd, 10);
        return dice < 2 ? DO_RESERVE : dice < 4 ? DO_READY : dice < 7 ? DO_ACK : DO_NACK;
    }
    return dice < 35   ? DO_PUT
           : dice < 50 ? DO_AGAIN
           : dice < 60 ? DO_PUB
           : dice < 80 ? (w->p.rare_moves && !rnd_one_in(&w->rnd, 20) ? DO_PUT : DO_MOVE)
           : dice < 81 ? (w->p.rare_purges && !rnd_one_in(&w->rnd, 20) ? DO_PEEK : DO_PURGE)
           : dice < 92 ? DO_PEEK
           : dice < 97 ? DO_BIND
                       : DO_UNBIND;
}

void operate_ask(struct world *w, struct conn *c)
{
    char text[48];
    uint32_t kind = choose(w);
    struct want want;
    if (!c->scoped)
        send_hello(w, c);
    want = ask_begin(w, c, OP_OPERATE, op_names[kind]);
    want.target = kind;
    want.box = (int)rnd_below(&w->rnd, 2);
    if (kind == DO_PUT || kind == DO_AGAIN || kind == DO_PUB) {
        want.uid = kind == DO_AGAIN ? old_item(w, c) : new_item(w, c, kind == DO_PUB);
        if (want.uid == 0)
            return;
        if (kind != DO_PUB) {
            want.box = w->items[want.uid].box;
            snprintf(want.id, sizeof want.id, "o%u", want.uid);
            w->made.delay_ms = w->items[want.uid].delay_ms;
            w->made.has |= w->made.delay_ms > 0 ? ZC_MSG_HAS_DELAY : 0;
        }
        snprintf(text, sizeof text, "o%u.%.*s", want.uid, (int)rnd_below(&w->rnd, 30),
                 "abcdefghijklmnopqrstuvwxyzabcd");
        w->made.text = zc_slice_str(text);
    }
    w->made.name = zc_slice_str(kind == DO_PUB ? "op.x" : boxes[want.box]);
    if (kind >= DO_RESERVE && !hold_ask(w, c, &want))
        return;
    if (kind == DO_BIND || kind == DO_UNBIND) {
        w->made.name = zc_slice_str(boxes[0]);
        w->made.topic = zc_slice_str("op.");
    }
    if (kind == DO_MOVE)
        w->made.to = zc_slice_str(boxes[1 - want.box]);
    if (kind == DO_PEEK || (kind == DO_MOVE && rnd_one_in(&w->rnd, 2))) {
        want.max = (int)rnd_range(&w->rnd, 1, kind == DO_PEEK ? 1024 : 40);
        w->made.has |= ZC_MSG_HAS_MAX;
        w->made.max = want.max;
    }
    ask_send(w, c, &want);
}

void operate_submit(struct world *w, struct want *want)
{
    struct item *item = &w->items[want->uid];
    if (want->target >= DO_RESERVE) {
        hold_submit(w, want);
        return;
    }
    want->puts_before = w->bind_changes;
    want->sure_before = w->bind_state;
    if (want->uid > 0 && item->submit_idx == 0) {
        item->submit_idx = want->idx;
        item->submit_at = want->at;
        item->wall_moved = w->wall_moved;
        item->loose = item->delay_ms > 0;
        item->due_at = want->at + item->delay_ms * MS;
        item->due_life = w->lives;
        item->due_idx = want->idx;
    }
    where_submit(w, want);
    if (want->target == DO_BIND || want->target == DO_UNBIND) {
        w->bind_changes++;
        w->bind_state = MAYBE;
    }
}

void operate_ok(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m)
{
    struct item *item = &w->items[want->uid];
    bool quiet = want->puts_before == w->bind_changes && want->sure_before == w->bind_state;
    if (want->target >= DO_RESERVE) {
        hold_ok(w, c, want);
        return;
    }
    switch (want->target) {
    case DO_PUT:
    case DO_AGAIN:
        item->sure = true;
        break;
    case DO_PUB:
        item->sure |= quiet && w->bind_state == YES;
        item->never |= quiet && w->bind_state == NO;
        break;
    case DO_BIND:
    case DO_UNBIND: /* the only change since it was asked for is itself */
        if (want->puts_before + 1 == w->bind_changes)
            w->bind_state = want->target == DO_BIND ? YES : NO;
        break;
    }
    if (item->ok_idx == 0)
        item->ok_idx = w->idx;
    where_ok(w, c, want, m->count);
    if ((want->target == DO_MOVE || want->target == DO_PURGE) && (m->has & ZC_MSG_HAS_COUNT) == 0)
        world_fail(w, "c%u: %s without count", c->number, want->id);
    if (want->target == DO_MOVE && want->max > 0 && m->count > want->max)
        world_fail(w, "c%u: moved %lld of at most %d", c->number, (long long)m->count, want->max);
}

void operate_err(struct world *w, struct conn *c, struct want *want, struct zc_slice code)
{
    if (want->target >= DO_RESERVE)
        hold_err(w, c, want, code);
    else
        where_lost(w, want);
    bool mine = want->target >= DO_RESERVE && hold_allows(want, code);
    bool empty = want->target == DO_PEEK && want->got == 0 && zc_slice_is(code, "empty");
    bool storage = zc_slice_is(code, "storage") && (w->disk.faults_done > 0 || w->p.capacity > 0);
    if (!mine && !empty && !storage && !zc_slice_is(code, "closed"))
        world_fail(w, "c%u: %s (%s) got err %.*s", c->number, want->id, op_names[want->target],
                   (int)code.len, (const char *)code.data);
}

static uint32_t item_of(struct world *w, struct conn *c, const struct zc_msg *m)
{
    struct zc_slice p = zc_msg_payload(m);
    char number[12] = {0};
    uint32_t uid = 0;
    if (p.len > 2 && p.data[0] == 'o') {
        memcpy(number, p.data + 1, p.len - 1 < 11 ? p.len - 1 : 11);
        uid = (uint32_t)strtoul(number, NULL, 10);
    }
    if (uid == 0 || uid >= w->items_len || w->items[uid].submit_idx == 0) {
        world_fail(w, "c%u: an item nobody put", c->number);
        return 0;
    }
    if (w->items[uid].never)
        world_fail(w, "c%u: item %u was published to no mailbox, yet here it is", c->number, uid);
    return uid;
}

static struct want *peek_of(struct world *w, struct conn *c, const struct zc_msg *m)
{
    struct want *want = wants_by_id(w, &c->wants, m->id, zc_slice(NULL, 0));
    return want != NULL && want->op == OP_OPERATE && want->target == DO_PEEK ? want : NULL;
}

static void peeked(struct world *w, struct conn *c, const struct zc_msg *m)
{
    struct want *want = peek_of(w, c, m);
    uint32_t uid = item_of(w, c, m);
    if (want == NULL || uid == 0) {
        world_fail(w, "c%u: a peek nobody asked for", c->number);
        return;
    }
    if (!zc_slice_is(m->name, boxes[want->box]))
        world_fail(w, "c%u: a peek at the wrong mailbox", c->number);
    if (w->items[uid].gone && w->items[uid].gone_idx < want->idx)
        world_fail(w, "c%u: item %u was purged, yet a peek shows it", c->number, uid);
    if (want->uid == uid)
        world_fail(w, "c%u: item %u twice in one peek", c->number, uid);
    hold_peeked(w, c, want, uid);
    if (want->uid != 0 && !w->items[uid].loose && !w->items[want->uid].loose &&
        w->items[uid].ok_idx != 0 && w->items[uid].ok_idx < w->items[want->uid].submit_idx)
        world_fail(w, "c%u: item %u is behind %u, which was put later", c->number, uid, want->uid);
    want->uid = uid;
    want->got++;
    if (m->end != (want->got == want->max) && !(m->end && want->got < want->max))
        world_fail(w, "c%u: frame %d of a peek of %d %s end", c->number, want->got, want->max,
                   m->end ? "has" : "lacks");
    if (m->end)
        wants_remove(&c->wants, want);
}

void operate_message(struct world *w, struct conn *c, const struct zc_msg *m)
{
    if (m->peek) {
        peeked(w, c, m);
        return;
    }
    uint32_t uid = item_of(w, c, m);
    if (uid == 0)
        return;
    if (w->items[uid].taken)
        world_fail(w, "c%u: item %u came twice", c->number, uid);
    if (w->items[uid].gone)
        world_fail(w, "c%u: item %u was purged, yet here it is", c->number, uid);
    if (m->delivery.len > 0) {
        hold_message(w, c, uid, m);
        return;
    }
    hold_check(w, c, uid);
    w->items[uid].taken = true;
    w->items[uid].taken_idx = w->idx;
    for (size_t i = 0; i < c->wants.len; i++)
        if (c->wants.list[i].op == OP_TAKE && c->wants.list[i].box < 0) {
            c->wants.list[i].got++;
            wants_remove(&c->wants, &c->wants.list[i]);
            return;
        }
    world_fail(w, "c%u: item %u was not asked for", c->number, uid);
}

void operate_drain(struct world *w, struct conn *c)
{
    for (int box = 0; box < 2 && !w->failed; box++) {
        bool more = true;
        while (more && !w->failed) {
            struct want want = ask_begin(w, c, OP_TAKE, "take");
            want.box = -1 - box;
            want.wait_ms = 0;
            w->made.name = zc_slice_str(boxes[box]);
            w->made.has |= ZC_MSG_HAS_WAIT;
            uint64_t before = w->items_empty;
            ask_send(w, c, &want);
            run_calm(w, 100 * MS);
            more = w->items_empty == before;
        }
    }
}

void operate_judge(struct world *w)
{
    for (uint32_t i = 1; i < w->items_len && !w->failed; i++)
        if (w->items[i].sure && !w->items[i].taken && !w->items[i].maybe_gone &&
            w->items[i].purge_at == 0)
            world_fail(w, "item %u was acknowledged and is lost", i);
    w->items_len = 1; /* all is told */
}
