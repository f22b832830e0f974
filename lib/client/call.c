/*
 * Requests and their answers. An answer is known by its id, so that one which comes after its
 * request was given up is dropped and never taken for the next one. take and ready are answered
 * under the id of the message: they end by what the hub was told to wait, and when even that does
 * not come the connection ends, because a message that came later would be lost.
 */
#include "client/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/kept.h"
#include "client/wire.h"

#define KEPT 1 /* beside the enum zmqcat_error, of next_frame only */

int zc_call_fail(struct zmqcat *bus, int rc, const char *why)
{
    snprintf(bus->why, sizeof bus->why, "%s", why);
    return rc;
}

void zc_call_begin(struct zmqcat *bus, const char *op, const char *id, struct zc_slice name)
{
    bus->why[0] = bus->code[0] = '\0';
    zc_msg_clear(&bus->out);
    bus->out.op = zc_slice_str(op);
    bus->out.name = name;
    snprintf(bus->id, sizeof bus->id, "%s-%" PRIu64, bus->id_prefix, ++bus->id_last);
    bus->out.id = zc_slice_str(id != NULL ? id : bus->id);
}

void zc_call_payload(struct zmqcat *bus, const void *payload, size_t len)
{
    bus->out.body = zc_slice(payload, len);
}

/* The err frame in bus->msg as an error. */
static int hub_error(struct zmqcat *bus)
{
    static const struct {
        const char *code, *text;
        int rc;
    } known[] = {
        {"full", "mailbox: queue full", ZMQCAT_REFUSED},
        {"denied", NULL, ZMQCAT_REFUSED},
        {"unroutable", NULL, ZMQCAT_REFUSED},
        {"empty", "mailbox: empty", ZMQCAT_TIMEOUT},
        {"closed", "mailbox: closed", ZMQCAT_CLOSED},
        {"too_large", "mailbox: payload too large", ZMQCAT_ERR},
    };
    const struct zc_msg *m = &bus->msg;
    zc_text_escape(bus->why, sizeof bus->why, m->error);
    zc_text_escape(bus->code, sizeof bus->code, m->code);
    for (size_t i = 0; i < ZC_ARRAY_LEN(known); i++) {
        /* A hub of the first protocol sends the text only. */
        bool same = m->code.len > 0 ? zc_slice_is(m->code, known[i].code)
                                    : known[i].text != NULL && zc_slice_is(m->error, known[i].text);
        if (!same)
            continue;
        snprintf(bus->code, sizeof bus->code, "%s", known[i].code);
        return known[i].rc;
    }
    return ZMQCAT_ERR;
}

/* Answers a heartbeat. */
static int pong(struct zmqcat *bus)
{
    struct zc_msg *m = &bus->out;
    zc_msg_clear(m);
    m->op = zc_slice_str("pong");
    m->id = bus->msg.id;
    int err;
    struct zc_block *b = zc_msg_encode(m, &err);
    if (b == NULL)
        return zc_call_fail(bus, ZMQCAT_FAILED, zc_err_text(err));
    int rc = zc_wire_send(bus, zc_block_slice(b), zc_wire_deadline(ZC_BUS_ANSWER_MS));
    zc_block_unref(b);
    return rc == ZMQCAT_TIMEOUT ? ZMQCAT_FAILED : rc; /* not the time of the call that reads */
}

static int broken(struct zmqcat *bus, const char *why)
{
    zc_wire_close(bus);
    snprintf(bus->why, sizeof bus->why, "the hub sent a frame that breaks the protocol: %s", why);
    return ZMQCAT_PROTOCOL;
}

static int decode(struct zmqcat *bus, uint8_t *json, size_t len)
{
    const char *why;
    if (zc_msg_decode(&bus->msg, json, len, &why) != 0)
        return broken(bus, why);
    if (bus->msg.invalid != NULL)
        return broken(bus, bus->msg.invalid);
    return ZMQCAT_OK;
}

/* The outcome of a zmqcat_ask. */
static bool is_outcome(const struct zmqcat *bus)
{
    const struct zc_msg *m = &bus->msg;
    size_t len = strlen(bus->id_prefix), mark = strlen(ZC_CALL_ASK_MARK);
    if (zc_slice_is(m->op, "msg"))
        return true;
    return zc_slice_is(m->op, "err") && m->id.len > len + mark &&
           memcmp(m->id.data, bus->id_prefix, len) == 0 &&
           memcmp(m->id.data + len, ZC_CALL_ASK_MARK, mark) == 0;
}

static bool is_delivery(const struct zmqcat *bus)
{
    if (bus->msg.peek)
        return false;
    if (bus->asked > 0)
        return is_outcome(bus);
    return bus->subscribed && zc_slice_is(bus->msg.op, "msg") && bus->msg.delivery.len == 0;
}

/* The next frame that is no heartbeat. With keeping, a delivery of a subscription is put aside and
 * KEPT is returned. */
static int next_frame(struct zmqcat *bus, bool keeping, int64_t deadline_ms)
{
    for (;;) {
        uint8_t *json;
        size_t len;
        struct zc_bus_kept *copy = NULL;
        int rc = zc_wire_frame(bus, deadline_ms, &json, &len);
        if (rc != ZMQCAT_OK)
            return rc;
        bool copying = keeping && (bus->subscribed || bus->asked > 0);
        if (copying && (copy = zc_kept_copy(json, len)) == NULL)
            return zc_call_fail(bus, ZMQCAT_FAILED, zc_err_text(ZC_ENOMEM));
        rc = decode(bus, json, len);
        if (rc == ZMQCAT_OK && copy != NULL && is_delivery(bus)) {
            zc_kept_push(bus, copy);
            return KEPT;
        }
        free(copy);
        if (rc != ZMQCAT_OK || !zc_slice_is(bus->msg.op, "ping"))
            return rc;
        rc = pong(bus);
        if (rc != ZMQCAT_OK)
            return rc;
    }
}

static bool matches(const struct zmqcat *bus, enum zc_call_answer want)
{
    static const struct {
        const char *op;
        bool by_id, delivery;
    } answers[] = {
        [ZC_CALL_OK] = {"ok", true, false},       [ZC_CALL_HELLO] = {"ok", true, false},
        [ZC_CALL_PONG] = {"pong", true, false},   [ZC_CALL_REP] = {"rep", true, false},
        [ZC_CALL_RESERVED] = {"msg", true, true}, [ZC_CALL_READY] = {"msg", false, true},
        [ZC_CALL_TAKEN] = {"msg", false, false},  [ZC_CALL_PEEKED] = {"msg", true, false},
    };
    const struct zc_msg *m = &bus->msg;
    return zc_slice_is(m->op, answers[want].op) && m->peek == (want == ZC_CALL_PEEKED) &&
           (m->delivery.len > 0) == answers[want].delivery &&
           (!answers[want].by_id || zc_slice_eq(m->id, zc_slice(bus->want, bus->want_len)));
}

static int wait_answer(struct zmqcat *bus, enum zc_call_answer want, int64_t deadline_ms)
{
    for (;;) {
        int rc = next_frame(bus, true, deadline_ms);
        if (rc == KEPT)
            continue;
        if (rc != ZMQCAT_OK)
            return rc;
        if (matches(bus, want))
            return ZMQCAT_OK;
        /* An err without an id is about the session, or about a request whose id was unusable. */
        if (zc_slice_is(bus->msg.op, "err") &&
            (bus->msg.id.len == 0 || zc_slice_eq(bus->msg.id, zc_slice(bus->want, bus->want_len))))
            return hub_error(bus);
    }
}

/* What comes late of it would be lost. */
static bool carries_message(enum zc_call_answer want)
{
    return want == ZC_CALL_TAKEN || want == ZC_CALL_RESERVED || want == ZC_CALL_READY;
}

/* The hub should have ended the wait itself. */
static int no_answer(struct zmqcat *bus, enum zc_call_answer want)
{
    if (want == ZC_CALL_REP)
        return zc_call_fail(bus, ZMQCAT_TIMEOUT, "no reply in time");
    if (want == ZC_CALL_HELLO)
        return zc_call_fail(bus, ZMQCAT_TIMEOUT,
                            "the hub takes the connection and does not answer: the log of its "
                            "service says why");
    if (want == ZC_CALL_PONG)
        return zc_call_fail(bus, ZMQCAT_TIMEOUT, "no answer in time");
    if (carries_message(want))
        zc_wire_close(bus);
    return zc_call_fail(bus, ZMQCAT_FAILED,
                        "the hub did not answer in time; it may have done what was asked: see "
                        "the log of its service");
}

int zc_call_run_frame(struct zmqcat *bus, struct zc_slice frame, enum zc_call_answer want,
                      int64_t timeout_ms)
{
    int64_t deadline_ms = zc_wire_deadline(timeout_ms);
    int rc = zc_wire_send(bus, frame, deadline_ms);
    if (rc == ZMQCAT_OK)
        rc = wait_answer(bus, want, deadline_ms);
    if (rc == ZMQCAT_STOPPED && carries_message(want))
        zc_wire_close(bus);
    /* An err `mailbox: empty` has a code, our own clock has none. */
    if (rc == ZMQCAT_TIMEOUT && bus->code[0] == '\0')
        return no_answer(bus, want);
    return rc;
}

/* What the encoder would replace or the hub could not answer. */
static const char *unusable(const struct zc_msg *m)
{
    if (m->id.len > ZC_MSG_STRING_MAX)
        return "the id is too long: at most 1,024 bytes";
    if (!zc_text_utf8_valid(m->id))
        return "the id is not valid UTF-8";
    if (!zc_text_utf8_valid(m->name))
        return "the name is not valid UTF-8";
    if (!zc_text_utf8_valid(m->from))
        return "the name of the sender is not valid UTF-8";
    if (!zc_text_utf8_valid(m->topic) || !zc_text_utf8_valid(m->to) ||
        !zc_text_utf8_valid(m->scope) || !zc_text_utf8_valid(m->filter))
        return "a name, scope or filter is not valid UTF-8";
    for (uint32_t i = 0; i < m->headers_count; i++)
        if (!zc_text_utf8_valid(m->headers[i].key) || !zc_text_utf8_valid(m->headers[i].value))
            return "a header is not valid UTF-8";
    return NULL;
}

/* bus->out as a frame; its id becomes bus->want. */
static int encode(struct zmqcat *bus, struct zc_block **ret_frame)
{
    int err;
    struct zc_slice id = bus->out.id;
    const char *why = unusable(&bus->out);
    if (why != NULL)
        return zc_call_fail(bus, ZMQCAT_USAGE, why);
    if (id.len > 0)
        memcpy(bus->want, id.data, id.len);
    bus->want_len = id.len;
    /* The arguments may point into the last message: they are read before anything is received. */
    struct zc_block *b = zc_msg_encode(&bus->out, &err);
    if (b == NULL && err == ZC_ELIMIT) {
        snprintf(bus->code, sizeof bus->code, "too_large");
        return zc_call_fail(bus, ZMQCAT_ERR,
                            "payload too large: it does not fit a frame of 2 MiB (1.5 MiB of "
                            "payload)");
    }
    if (b == NULL)
        return zc_call_fail(bus, ZMQCAT_FAILED, zc_err_text(err));
    *ret_frame = b;
    return ZMQCAT_OK;
}

int zc_call_send(struct zmqcat *bus)
{
    struct zc_block *b;
    int rc = encode(bus, &b);
    if (rc != ZMQCAT_OK)
        return rc;
    rc = zc_wire_send(bus, zc_block_slice(b), zc_wire_deadline(ZC_BUS_ANSWER_MS));
    zc_block_unref(b);
    return rc == ZMQCAT_TIMEOUT ? ZMQCAT_FAILED : rc;
}

int zc_call_wait(struct zmqcat *bus, enum zc_call_answer want, int64_t timeout_ms)
{
    return wait_answer(bus, want, zc_wire_deadline(timeout_ms));
}

int zc_call_run(struct zmqcat *bus, enum zc_call_answer want, int64_t timeout_ms)
{
    struct zc_block *b;
    if (bus->asked > 0 && carries_message(want))
        return zc_call_fail(bus, ZMQCAT_USAGE,
                            "messages were asked for already: zmqcat_next gives them");
    int rc = encode(bus, &b);
    if (rc != ZMQCAT_OK)
        return rc;
    rc = zc_call_run_frame(bus, zc_block_slice(b), want, timeout_ms);
    zc_block_unref(b);
    return rc;
}

/* bus->msg is what zmqcat_next gives. */
static int given(struct zmqcat *bus)
{
    if (bus->asked > 0)
        bus->asked--;
    return zc_slice_is(bus->msg.op, "err") ? hub_error(bus) : ZMQCAT_OK;
}

int zc_call_next(struct zmqcat *bus, int64_t wait_ms)
{
    bus->why[0] = bus->code[0] = '\0';
    if (!zc_list_empty(&bus->kept)) {
        struct zc_bus_kept *k = zc_kept_pop(bus);
        int rc = decode(bus, k->data, k->len);
        return rc == ZMQCAT_OK ? given(bus) : rc;
    }
    int64_t deadline_ms = zc_wire_deadline(wait_ms);
    for (;;) {
        int rc = next_frame(bus, false, deadline_ms);
        if (rc != ZMQCAT_OK)
            return rc;
        if (is_delivery(bus))
            return given(bus);
        if (zc_slice_is(bus->msg.op, "err") && bus->msg.id.len == 0)
            return hub_error(bus);
    }
}

int zc_call_poll(struct zmqcat *bus)
{
    bus->why[0] = bus->code[0] = '\0';
    while (!zc_kept_full(bus)) {
        int rc = next_frame(bus, true, 0);
        if (rc == KEPT)
            continue;
        if (rc == ZMQCAT_TIMEOUT)
            return ZMQCAT_OK;
        if (rc != ZMQCAT_OK)
            return rc;
        if (zc_slice_is(bus->msg.op, "err") && bus->msg.id.len == 0)
            return hub_error(bus);
    }
    return zc_call_fail(bus, ZMQCAT_FULL, "no more deliveries can be kept: call zmqcat_next");
}

void zc_call_message(struct zmqcat *bus, struct zmqcat_msg *ret_msg)
{
    const struct zc_msg *m = &bus->msg;
    struct zc_slice payload = zc_msg_payload(m);
    for (uint32_t i = 0; i < m->headers_count; i++) {
        const struct zc_header *h = &m->headers[i];
        bus->headers[i] = (struct zmqcat_header){(const char *)h->key.data, h->key.len,
                                                 (const char *)h->value.data, h->value.len};
    }
    *ret_msg = (struct zmqcat_msg){
        .op = (const char *)m->op.data,
        .op_len = m->op.len,
        .id = (const char *)m->id.data,
        .id_len = m->id.len,
        .name = (const char *)m->name.data,
        .name_len = m->name.len,
        .from = (const char *)m->from.data,
        .from_len = m->from.len,
        .by = (const char *)m->by.data,
        .by_len = m->by.len,
        .payload = payload.data,
        .payload_len = payload.len,
        .delivery = (const char *)m->delivery.data,
        .delivery_len = m->delivery.len,
        .lease = m->lease,
        .attempt = m->attempt,
        .at_ms = m->at,
        .end = m->end,
        .peek = m->peek,
        .headers = bus->headers,
        .headers_count = m->headers_count,
    };
}
