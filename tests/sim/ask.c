/* What clients say: sound requests with seeded fields. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

#define QUEUED_BYTES_MAX (256 << 10) /* a client with so much unsent says nothing new */

size_t ask_payload(const struct message *m, uint32_t uid, uint8_t *ret_data)
{
    size_t n = (size_t)sprintf((char *)ret_data, "m%u.", uid);
    for (uint32_t i = (uint32_t)n; i < m->size; i++)
        ret_data[n++] = m->binary ? (uint8_t)(uid * 31 + i * 7) : (uint8_t)('a' + (uid + i) % 26);
    return n;
}

void ask_send(struct world *w, struct conn *c, struct want *want)
{
    int err = 0;
    struct zc_block *frame;
    w->made.id = zc_slice_str(want->id);
    liar_request(w, c, want);
    frame = zc_msg_encode(&w->made, &err);
    ZC_ASSERT(frame != NULL);
    err = zc_buf_append(&c->in, frame->data, frame->len);
    ZC_ASSERT(err == 0);
    c->made += frame->len;
    want->end = c->made;
    zc_block_unref(frame);
    wants_push(&c->plans, want);
}

struct want ask_begin(struct world *w, struct conn *c, enum op op, const char *name)
{
    struct want want = {.op = op, .wait_ms = -1};
    zc_msg_clear(&w->made);
    w->made.op = zc_slice_str(name);
    snprintf(want.id, sizeof want.id, "r%u", ++w->clients[c->client].serial);
    return want;
}

void ask_put(struct world *w, struct conn *c, bool req)
{
    static uint8_t payload[1 << 16];
    struct want want = ask_begin(w, c, req ? OP_REQ : OP_PUT, req ? "req" : "put");
    struct message *m = &w->messages[w->messages_len];
    char key[16];
    if (w->messages_len == MESSAGES_MAX)
        return;
    want.uid = w->messages_len++;
    want.box = (int)rnd_below(&w->rnd, (uint64_t)w->p.boxes);
    memset(m, 0, sizeof *m);
    m->box = (uint8_t)want.box;
    m->is_req = req;
    m->size = (uint32_t)rnd_below(&w->rnd, rnd_one_in(&w->rnd, 4) ? w->p.payload_max : 64);
    m->binary = rnd_one_in(&w->rnd, 4);
    m->header = rnd_one_in(&w->rnd, 6);
    m->ttl_ms = -1;
    m->sender = c->sender;
    if (rnd_one_in(&w->rnd, 10)) {
        m->sender = sender_any(w);
        w->made.from = sender_name(m->sender);
    }
    snprintf(m->id, sizeof m->id, "%c%d.%u", req ? 'q' : 'p', want.box,
             rnd_one_in(&w->rnd, 5) ? (unsigned)rnd_below(&w->rnd, 4)
                                    : 100 + w->clients[c->client].serial);
    snprintf(want.id, sizeof want.id, "%s", m->id);
    if (!req && rnd_one_in(&w->rnd, 8)) {
        m->delay_ms = rnd_range(&w->rnd, 0, 3000);
        w->made.has |= ZC_MSG_HAS_DELAY;
        w->made.delay_ms = m->delay_ms;
    }
    if (!req && rnd_one_in(&w->rnd, 6)) {
        m->wants_consumer = true;
        w->made.condition = zc_slice_str("consumer");
    }
    if (rnd_one_in(&w->rnd, 12)) {
        m->ttl_ms = rnd_range(&w->rnd, 0, 8000);
        w->made.has |= ZC_MSG_HAS_TTL;
        w->made.ttl_ms = m->ttl_ms;
    }
    w->made.name = zc_slice_str(w->boxes[want.box].name);
    w->made.body = zc_slice(payload, ask_payload(m, want.uid, payload));
    if (!m->binary && rnd_one_in(&w->rnd, 2)) {
        w->made.text = w->made.body;
        w->made.body = zc_slice(NULL, 0);
    }
    if (m->header) {
        snprintf(key, sizeof key, "%u", want.uid);
        w->made.headers[0] = (struct zc_header){zc_slice_str("uid"), zc_slice_str(key)};
        w->made.headers_count = 1;
        w->made.headers_bytes = 3 + strlen(key);
    }
    ask_send(w, c, &want);
}

static void choose_wait(struct world *w, struct want *want)
{
    uint64_t dice = rnd_below(&w->rnd, 10);
    if (dice < 5)
        return;
    want->wait_ms = dice < 7 ? 0 : rnd_range(&w->rnd, 1, 3000);
    w->made.has |= ZC_MSG_HAS_WAIT;
    w->made.wait_ms = want->wait_ms;
}

static void send_waiter(struct world *w, struct conn *c, struct want *want)
{
    want->box = (int)rnd_below(&w->rnd, (uint64_t)w->p.boxes);
    w->made.name = zc_slice_str(w->boxes[want->box].name);
    choose_wait(w, want);
    want->lease_ms = 60000;
    if (want->op != OP_TAKE && !rnd_one_in(&w->rnd, 5)) {
        want->lease_ms = rnd_range(&w->rnd, 1, 6) * 1000;
        w->made.has |= ZC_MSG_HAS_LEASE;
        w->made.lease = want->lease_ms / 1000;
    }
    if (want->op != OP_TAKE && rnd_one_in(&w->rnd, 3))
        w->made.filter = sender_filter(w, c, &want->excluded);
    if (want->op != OP_TAKE && rnd_one_in(&w->rnd, 4)) {
        want->max = (int)rnd_range(&w->rnd, 1, 8);
        w->made.has |= ZC_MSG_HAS_MAX;
        w->made.max = want->max;
    }
    /* Without an id an err cannot be told from that to another request without one. */
    if (want->op == OP_RESERVE && want->wait_ms < 0 && w->p.kind != PROFILE_FAULTS &&
        w->p.kind != PROFILE_TINY && rnd_one_in(&w->rnd, 4))
        want->id[0] = 0;
    ask_send(w, c, want);
}

void ask_take(struct world *w, struct conn *c, int box, int64_t wait_ms)
{
    struct want want = ask_begin(w, c, OP_TAKE, "take");
    want.box = box;
    want.wait_ms = wait_ms;
    want.lease_ms = 60000;
    w->made.name = zc_slice_str(w->boxes[box].name);
    w->made.has |= ZC_MSG_HAS_WAIT;
    w->made.wait_ms = wait_ms;
    ask_send(w, c, &want);
}

static void ask_topic(struct world *w, struct conn *c, enum op op, const char *name)
{
    struct want want = ask_begin(w, c, op, name);
    char text[16], topic[8];
    if (op == OP_PUB && w->pubs_len == PUBS_MAX)
        return;
    want.box = (int)rnd_below(&w->rnd, TOPICS);
    snprintf(topic, sizeof topic, "t%d", want.box);
    if (op == OP_SUB && rnd_one_in(&w->rnd, 3)) {
        want.box = rnd_one_in(&w->rnd, 2) ? -1 : -2;
        topic[want.box == -1 ? 1 : 0] = 0;
    }
    w->made.name = op == OP_UNSUB ? zc_slice(NULL, 0) : zc_slice_str(topic);
    if (op == OP_SUB && rnd_one_in(&w->rnd, 3))
        w->made.filter = zc_slice_str("!nobody");
    if (op == OP_PUB) {
        want.uid = w->pubs_len++;
        w->pubs[want.uid] = (struct pub){.topic = (uint8_t)want.box, .client = c->client};
        snprintf(text, sizeof text, "u%u", want.uid);
        w->made.text = zc_slice_str(text);
    }
    ask_send(w, c, &want);
}

static void ask_plain(struct world *w, struct conn *c, enum op op)
{
    static const char *const info[] = {"info", "stat", "list", "stat"};
    uint64_t which = rnd_below(&w->rnd, 4);
    struct want want = ask_begin(w, c, op,
                                 op == OP_PING    ? "ping"
                                 : op == OP_HELLO ? "hello"
                                                  : info[which]);
    if (op == OP_HELLO) {
        want.sender = c->sender = sender_any(w);
        w->made.from = sender_name(want.sender);
    }
    if (op == OP_INFO && which == 3)
        w->made.name = zc_slice_str("box0");
    ask_send(w, c, &want);
}

void ask_pong(struct world *w, struct conn *c, struct zc_slice id)
{
    struct want want = ask_begin(w, c, OP_PONG, "pong");
    if (c->given_up || id.len >= sizeof want.id)
        return;
    snprintf(want.id, sizeof want.id, "%.*s", (int)id.len, id.len > 0 ? (const char *)id.data : "");
    ask_send(w, c, &want);
}

static int choose(struct world *w)
{
    uint64_t sum = 0, dice;
    for (int i = 0; i < PROFILE_OPS; i++)
        sum += w->p.weights[i];
    dice = rnd_below(&w->rnd, sum);
    for (int i = 0; i < PROFILE_OPS; i++) {
        if (dice < w->p.weights[i])
            return i;
        dice -= w->p.weights[i];
    }
    return OP_PING;
}

static void ask_waiter(struct world *w, struct conn *c, enum op op)
{
    static const char *const names[] = {
        [OP_TAKE] = "take", [OP_RESERVE] = "reserve", [OP_READY] = "ready"};
    struct want want = ask_begin(w, c, op, names[op]);
    send_waiter(w, c, &want);
}

void ask_something(struct world *w, struct conn *c)
{
    int op = choose(w);
    if (c->in.len > QUEUED_BYTES_MAX || c->wants.len + c->plans.len > 60)
        return;
    if (w->p.kind == PROFILE_OPERATE) {
        if (c->wants.len + c->plans.len < 10)
            operate_ask(w, c);
        return;
    }
    if (c->made == 0 && !rnd_one_in(&w->rnd, 3))
        op = OP_HELLO;
    switch (op) {
    case OP_PUT:
    case OP_REQ:
        ask_put(w, c, op == OP_REQ);
        break;
    case OP_TAKE:
    case OP_RESERVE:
    case OP_READY:
        ask_waiter(w, c, (enum op)op);
        break;
    case OP_ACK:
        ask_lease(w, c, OP_ACK, "ack");
        break;
    case OP_NACK:
        ask_lease(w, c, OP_NACK, "nack");
        break;
    case OP_TOUCH:
        ask_lease(w, c, OP_TOUCH, "touch");
        break;
    case OP_REP:
        ask_rep(w, c);
        break;
    case OP_PUB:
        ask_topic(w, c, OP_PUB, "pub");
        break;
    case OP_SUB:
        ask_topic(w, c, OP_SUB, "sub");
        break;
    case OP_UNSUB:
        ask_topic(w, c, OP_UNSUB, "unsub");
        break;
    case OP_PING:
    case OP_HELLO:
    case OP_INFO:
        ask_plain(w, c, (enum op)op);
        break;
    default:
        ask_wrong(w, c, op == OP_GARBAGE);
        break;
    }
}
