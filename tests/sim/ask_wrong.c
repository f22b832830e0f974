/* What clients should not say: sound frames that get an err, and bytes that end the session. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

static void send_bytes(struct conn *c, struct want *want, const void *data, size_t len)
{
    int err = zc_buf_append(&c->in, data, len);
    ZC_ASSERT(err == 0);
    c->made += len;
    want->end = c->made;
    wants_push(&c->plans, want);
}

static void send_json(struct conn *c, struct want *want, const char *json)
{
    uint8_t frame[600];
    size_t len = strlen(json);
    ZC_ASSERT(len + ZC_FRAME_HEADER <= sizeof frame);
    zc_frame_header(frame, len);
    memcpy(frame + ZC_FRAME_HEADER, json, len);
    send_bytes(c, want, frame, ZC_FRAME_HEADER + len);
}

static void ask_refused(struct world *w, struct conn *c)
{
    static const struct {
        const char *code, *rest;
    } cases[] = {
        {"unknown_op", "\"op\":\"frobnicate\""},
        {"empty_name", "\"op\":\"put\",\"text\":\"m1.\""},
        {"empty_name", "\"op\":\"take\""},
        {"invalid", "\"op\":\"put\",\"name\":\"box0\",\"text\":\"m1.\",\"delay\":-1"},
        {"invalid", "\"op\":\"put\",\"name\":\"box0\",\"text\":\"m1.\",\"ttl\":1e99"},
        {"invalid", "\"op\":\"put\",\"name\":\"box0\",\"text\":\"\\ud800\""},
        {"invalid", "\"op\":\"put\",\"name\":\"box0\",\"headers\":{\"x-dead-from\":\"a\"}"},
        {"invalid", "\"op\":\"ack\",\"delivery\":\"a\",\"deliveries\":[\"b\"]"},
        {"invalid", "\"op\":\"ready\",\"name\":\"box0\",\"max\":0"},
        {"invalid", "\"op\":\"ready\",\"name\":\"box0\",\"max\":1025"},
        {"denied", "\"op\":\"put\",\"name\":\"$mine\",\"text\":\"m1.\""},
        {"denied", "\"op\":\"pub\",\"name\":\"$mine\",\"text\":\"m1.\""},
        {"no_delivery", "\"op\":\"ack\",\"delivery\":\"nobody\""},
        {"unroutable", "\"op\":\"put\",\"name\":\"nobody\",\"text\":\"m1.\",\"if\":\"consumer\""},
        {"invalid", "\"op\":\"put\",\"name\":\"nobody\",\"text\":\"m1.\",\"if\":\"any\""},
        {"invalid", "\"op\":\"ready\",\"name\":\"box0\",\"filter\":{}"},
        {"invalid", "\"op\":\"move\",\"name\":\"nobody\",\"to\":\"nobody\""},
        {"denied", "\"op\":\"move\",\"name\":\"nobody\",\"to\":\"$mine\""},
        {"empty", "\"op\":\"peek\",\"name\":\"nobody\""},
        {"denied", "\"op\":\"bind\",\"name\":\"$mine\",\"topic\":\"t\""},
    };
    struct want want = {.op = OP_WRONG, .wait_ms = -1};
    char json[300];
    size_t i = rnd_below(&w->rnd, ZC_ARRAY_LEN(cases));
    snprintf(want.id, sizeof want.id, "r%u", ++w->clients[c->client].serial);
    want.want_code = cases[i].code;
    snprintf(json, sizeof json, "{\"v\":1,\"id\":\"%s\",%s}", want.id, cases[i].rest);
    send_json(c, &want, json);
}

static void ask_too_large(struct world *w, struct conn *c)
{
    static uint8_t big[1 << 16];
    struct want want = {.op = OP_WRONG, .wait_ms = -1, .want_code = "too_large"};
    ZC_ASSERT(w->p.hub.payload_max < sizeof big);
    zc_msg_clear(&w->made);
    snprintf(want.id, sizeof want.id, "r%u", ++w->clients[c->client].serial);
    w->made.op = zc_slice_str("put");
    w->made.name = zc_slice_str("box0");
    w->made.body = zc_slice(big, w->p.hub.payload_max + 1);
    ask_send(w, c, &want);
}

static void garbage(struct world *w, struct conn *c)
{
    static const char *const texts[] = {
        "{\"v\":2,\"op\":\"ping\"}",
        "{\"op\":\"ping\",\"op\":\"ping\"}",
        "{\"op\":7}",
        "[1]",
        "{\"op\":\"ping\"} x",
        "{\"op\":\"put\",\"name\":\"box0\",\"body\":\"****\"}",
        "{\"op\":\"reserve\",\"name\":\"box0\",\"lease\":0.5}",
        "{\"op\":\"ping\"",
        "{\"op\":\"put\",\"name\":\"box0\",\"headers\":{\"a\":\"1\",\"a\":\"2\"}}",
    };
    struct want want = {.op = OP_GARBAGE, .wait_ms = -1};
    uint8_t raw[16];
    uint64_t which = rnd_below(&w->rnd, ZC_ARRAY_LEN(texts) + 3);
    if (which < ZC_ARRAY_LEN(texts)) {
        send_json(c, &want, texts[which]);
        return;
    }
    memcpy(raw, "ZMQC\0\0\0\0GET / HT", 16);
    if (which == ZC_ARRAY_LEN(texts)) /* 4 GiB frame */
        memset(raw + 4, 0xff, 4);
    if (which == ZC_ARRAY_LEN(texts) + 1)
        raw[rnd_below(&w->rnd, 4)] ^= (uint8_t)rnd_range(&w->rnd, 1, 255);
    send_bytes(c, &want, raw, sizeof raw);
    c->plans.list[c->plans.len - 1].end -= sizeof raw - 1; /* the first byte may be enough */
}

void ask_wrong(struct world *w, struct conn *c, bool fatal)
{
    if (fatal)
        garbage(w, c);
    else if (rnd_one_in(&w->rnd, 8))
        ask_too_large(w, c);
    else
        ask_refused(w, c);
}
