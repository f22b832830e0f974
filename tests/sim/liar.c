/*
 * The self-test: worlds that lie, so that every checker is seen to fail. A lie changes what the
 * model sees of the hub's frames, what the hub is asked, or what the disk does; each must be found
 * within some seeds.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

static const struct {
    const char *name;
    uint32_t one_in; /* of the frames it fits */
} lies[] = {
    {"fsync", 0},         /* the disk answers syncs and does nothing */
    {"lose-message", 40}, /* a message leaves and never arrives */
    {"lose-reply", 100},  /* an ok to a put never arrives */
    {"twice", 40},        /* a message arrives twice */
    {"attempt", 10},      /* attempt is always 1 */
    {"end", 10},          /* the flag of the last of several is turned */
    {"wrong-full", 100},  /* an ok to a put becomes err full */
    {"wrong-ok", 5},      /* an err no_delivery becomes ok */
    {"old-value", 20},    /* a publication comes again later */
    {"lose-value", 10},   /* a publication never arrives */
    {"lose-rep", 2},      /* a reply never arrives */
    {"rep-twice", 2},     /* a reply arrives twice */
    {"swap", 20},         /* two messages change places */
    {"late-tick", 0},     /* the hub is not told the time */
    {"no-filter", 0},     /* the hub is not told of filters */
    {"no-if", 0},         /* the hub is not told of if */
    {"unroutable", 20},   /* an ok to a put that wants a consumer becomes err unroutable */
    {"wide-purge", 0},    /* a purge empties the other mailbox as well */
    {"lossy-move", 0},    /* a move may lose the first message */
    {"short-lease", 0},   /* leases of operators last a second, whatever was asked */
    {"early-nack", 0},    /* what operators give back is not delayed */
    {"lose-nack", 0},     /* what operators give back is acknowledged */
    {"hard-filter", 0},   /* the hub takes every filter for one that lets nobody pass */
};

size_t liar_count(void)
{
    return sizeof lies / sizeof lies[0];
}

const char *liar_name(size_t i)
{
    return lies[i].name;
}

static bool is(const struct world *w, const char *lie)
{
    return strcmp(w->liar, lie) == 0;
}

/* The hub is asked this as well, before the request that is being made; liar_frame hides the
 * answer. */
static void ask_secretly(struct conn *c, const char *op, const char *name)
{
    struct zc_msg hidden = {.op = zc_slice_str(op),
                            .id = zc_slice_str("lie"),
                            .name = zc_slice_str(name),
                            .has = ZC_MSG_HAS_WAIT};
    int err = 0;
    struct zc_block *frame = zc_msg_encode(&hidden, &err);
    ZC_ASSERT(frame != NULL);
    err = zc_buf_append(&c->in, frame->data, frame->len);
    ZC_ASSERT(err == 0);
    c->made += frame->len;
    zc_block_unref(frame);
}

void liar_request(struct world *w, struct conn *c, const struct want *want)
{
    if (w->liar == NULL)
        return;
    if (is(w, "wide-purge") && want->op == OP_OPERATE && want->target == DO_PURGE)
        ask_secretly(c, "purge", operate_box(1 - want->box));
    if (is(w, "lossy-move") && want->op == OP_OPERATE && want->target == DO_MOVE)
        ask_secretly(c, "take", operate_box(want->box));
    if (is(w, "short-lease") && want->op == OP_OPERATE && want->lease_ms > 0)
        w->made.lease = 1;
    if (is(w, "early-nack") && want->op == OP_OPERATE && want->target == DO_NACK)
        w->made.has &= ~(uint32_t)ZC_MSG_HAS_DELAY;
    if (is(w, "lose-nack") && want->op == OP_OPERATE && want->target == DO_NACK) {
        w->made.op = zc_slice_str("ack");
        w->made.has &= ~(uint32_t)ZC_MSG_HAS_DELAY;
    }
    if (is(w, "no-filter"))
        w->made.filter = zc_slice(NULL, 0);
    if (is(w, "no-if"))
        w->made.condition = zc_slice(NULL, 0);
    if (is(w, "hard-filter") && w->made.filter.len > 0)
        w->made.filter = zc_slice_str("nobody");
}

static void twice(struct world *w, struct conn *c, const struct zc_msg *m)
{
    model_message(w, c, m);
    if (!w->failed)
        model_message(w, c, m);
}

static bool fits(struct world *w, struct conn *c, const struct zc_msg *m)
{
    bool msg = zc_slice_is(m->op, "msg");
    bool box = msg && zc_slice_starts(m->name, zc_slice_str("box"));
    bool put_ok = zc_slice_is(m->op, "ok") && m->id.len > 0 && m->id.data[0] == 'p';
    if (is(w, "lose-message") || is(w, "twice") || is(w, "attempt") || is(w, "swap"))
        return box && (!is(w, "attempt") || m->attempt > 1);
    if (is(w, "end"))
        return box && m->delivery.len > 0;
    if (is(w, "lose-reply") || is(w, "wrong-full"))
        return put_ok;
    if (is(w, "unroutable")) {
        const struct want *put = put_ok ? wants_by_id(w, &c->wants, m->id, m->name) : NULL;
        return put != NULL && w->messages[put->uid].wants_consumer;
    }
    if (is(w, "wrong-ok"))
        return zc_slice_is(m->code, "no_delivery") && m->id.len > 0;
    if (is(w, "old-value") || is(w, "lose-value"))
        return msg && !box;
    if (is(w, "lose-rep") || is(w, "rep-twice"))
        return zc_slice_is(m->op, "rep");
    return false;
}

static uint32_t odds(const struct world *w)
{
    for (size_t i = 0; i < liar_count(); i++)
        if (is(w, lies[i].name))
            return lies[i].one_in;
    return 0;
}

/* Keeps a frame back until the next message of the same session came. */
static void hold_back(struct world *w, struct conn *c, const uint8_t *json, size_t len)
{
    w->held_back = malloc(len);
    ZC_ASSERT(w->held_back != NULL);
    memcpy(w->held_back, json, len);
    w->held_back_len = len;
    w->held_back_conn = c->number;
}

static void show_held_back(struct world *w, struct conn *c, const struct zc_msg *m)
{
    const char *reason;
    model_message(w, c, m);
    if (zc_msg_decode(&w->msg, w->held_back, w->held_back_len, &reason) == 0 && !w->failed)
        model_message(w, c, &w->msg);
    free(w->held_back);
    w->held_back = NULL;
}

static void lie(struct world *w, struct conn *c, struct zc_msg *m, const uint8_t *json, size_t len)
{
    w->lies++;
    world_trace(w, "a lie about the next frame of c%u", c->number);
    if (is(w, "twice") || is(w, "rep-twice") || is(w, "old-value")) {
        twice(w, c, m);
        return;
    }
    if (is(w, "swap")) {
        hold_back(w, c, json, len);
        return;
    }
    if (is(w, "attempt"))
        m->attempt = 1;
    else if (is(w, "end"))
        m->end = !m->end;
    else if (is(w, "wrong-full")) {
        m->op = zc_slice_str("err");
        m->error = m->code = zc_slice_str("full");
    } else if (is(w, "unroutable")) {
        m->op = zc_slice_str("err");
        m->error = m->code = zc_slice_str("unroutable");
    } else if (is(w, "wrong-ok")) {
        m->op = zc_slice_str("ok");
    } else {
        return; /* it is lost */
    }
    model_message(w, c, m);
}

/* The answer to what was asked secretly. */
static bool is_secret(const struct world *w, const struct conn *c, const struct zc_msg *m)
{
    bool taken = is(w, "lossy-move") && zc_slice_is(m->op, "msg") && m->delivery.len == 0 &&
                 !m->peek && zc_slice_starts(m->name, zc_slice_str("mv"));
    for (size_t i = 0; taken && i < c->wants.len; i++)
        taken = c->wants.list[i].op != OP_TAKE; /* the drain */
    return taken || zc_slice_is(m->id, "lie");
}

void liar_frame(struct world *w, struct conn *c, struct zc_msg *m, const uint8_t *json, size_t len)
{
    bool fit = fits(w, c, m);
    if (is_secret(w, c, m))
        return;
    if (fit && w->held_back != NULL && w->held_back_conn == c->number)
        show_held_back(w, c, m);
    else if (fit && w->held_back == NULL && rnd_one_in(&w->rnd, odds(w)))
        lie(w, c, m, json, len);
    else
        model_message(w, c, m);
}
