/*
 * The calls on topics and requests, and the questions to a hub.
 */
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "client/call.h"
#include "client/kept.h"

static int subscribe(struct zmqcat *bus, struct zc_slice prefix, const char *after)
{
    zc_call_begin(bus, "sub", NULL, prefix);
    if (bus->asked > 0)
        return zc_call_fail(bus, ZMQCAT_USAGE,
                            "a subscription on a connection that asked for messages: use a second "
                            "connection");
    if (after != NULL)
        bus->out.after = zc_slice_str(after);
    if (bus->filter != NULL)
        bus->out.filter = zc_slice_str(bus->filter);
    bool before = bus->subscribed;
    bus->subscribed = true; /* last values may follow the ok in the same read */
    int rc = zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
    if (rc != ZMQCAT_OK)
        bus->subscribed = before;
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_sub(struct zmqcat *bus, const char *prefix, size_t prefix_len)
{
    return subscribe(bus, zc_slice(prefix, prefix_len), NULL);
}

ZMQCAT_PUBLIC int zmqcat_sub_new(struct zmqcat *bus, const char *prefix, size_t prefix_len)
{
    return subscribe(bus, zc_slice(prefix, prefix_len), "now");
}

ZMQCAT_PUBLIC int zmqcat_unsub(struct zmqcat *bus)
{
    zc_call_begin(bus, "unsub", NULL, zc_slice(NULL, 0));
    int rc = zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
    if (rc == ZMQCAT_OK) {
        bus->subscribed = false;
        zc_kept_clear(bus);
    }
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_next(struct zmqcat *bus, int64_t wait_ms, struct zmqcat_msg *ret_msg)
{
    int rc = zc_call_next(bus, wait_ms);
    if (rc == ZMQCAT_OK)
        zc_call_message(bus, ret_msg);
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_req(struct zmqcat *bus, const char *id, const char *name, size_t name_len,
                             const void *payload, size_t len, int64_t timeout_ms,
                             struct zmqcat_msg *ret_msg)
{
    zc_call_begin(bus, "req", id, zc_slice(name, name_len));
    zc_call_payload(bus, payload, len);
    int rc = zc_call_run(bus, ZC_CALL_REP, timeout_ms);
    if (rc == ZMQCAT_OK)
        zc_call_message(bus, ret_msg);
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_rep(struct zmqcat *bus, const char *id, size_t id_len, const char *name,
                             size_t name_len, const void *payload, size_t len)
{
    zc_call_begin(bus, "rep", NULL, zc_slice(name, name_len));
    bus->out.id = zc_slice(id, id_len);
    zc_call_payload(bus, payload, len);
    return zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
}

ZMQCAT_PUBLIC int zmqcat_ping(struct zmqcat *bus, int64_t wait_ms)
{
    zc_call_begin(bus, "ping", NULL, zc_slice(NULL, 0));
    return zc_call_run(bus, ZC_CALL_PONG, wait_ms);
}

/* The JSON of a question; its extra members have no place in struct zc_msg. */
static int question(struct zmqcat *bus, struct zc_slice name, const char *extra, struct zc_buf *b)
{
    static const uint8_t room[ZC_FRAME_HEADER];
    if (!zc_text_utf8_valid(name))
        return zc_call_fail(bus, ZMQCAT_USAGE, "the name is not valid UTF-8");
    int rc = zc_buf_append(b, room, sizeof room);
    if (rc == 0)
        rc = zc_json_put_raw(b, "{\"v\":1,\"op\":");
    if (rc == 0)
        rc = zc_json_put_string(b, bus->out.op);
    if (rc == 0)
        rc = zc_json_put_raw(b, ",\"id\":");
    if (rc == 0)
        rc = zc_json_put_string(b, bus->out.id);
    if (rc == 0 && name.len > 0)
        rc = zc_json_put_raw(b, ",\"name\":");
    if (rc == 0 && name.len > 0)
        rc = zc_json_put_string(b, name);
    if (rc == 0 && extra != NULL)
        rc = zc_json_put_raw(b, ",");
    if (rc == 0 && extra != NULL)
        rc = zc_json_put_raw(b, extra);
    if (rc == 0)
        rc = zc_json_put_raw(b, "}");
    if (rc != 0)
        return zc_call_fail(bus, ZMQCAT_FAILED, zc_err_text(rc));
    if (b->len - ZC_FRAME_HEADER > ZC_FRAME_BODY_MAX)
        return zc_call_fail(bus, ZMQCAT_USAGE, "the question does not fit a frame of 2 MiB");
    zc_frame_header(b->data, b->len - ZC_FRAME_HEADER);
    memcpy(bus->want, bus->id, strlen(bus->id));
    bus->want_len = strlen(bus->id);
    return ZMQCAT_OK;
}

ZMQCAT_PUBLIC int zmqcat_query(struct zmqcat *bus, const char *op, const char *name,
                               size_t name_len, const char *extra, const char **ret_json,
                               size_t *ret_len)
{
    /* Asked to find out whether somebody is there, who would answer it at once. */
    bool status = strcmp(op, "status") == 0;
    struct zc_buf b = {0};
    zc_call_begin(bus, op, NULL, zc_slice(NULL, 0));
    int rc = question(bus, zc_slice(name, name != NULL ? name_len : 0), extra, &b);
    if (rc == ZMQCAT_OK)
        rc = zc_call_run_frame(bus, zc_slice(b.data, b.len), status ? ZC_CALL_HELLO : ZC_CALL_OK,
                               status ? ZC_BUS_STATUS_MS : ZC_BUS_ANSWER_MS);
    zc_buf_done(&b);
    if (status && rc == ZMQCAT_TIMEOUT)
        rc = ZMQCAT_FAILED;
    if (rc != ZMQCAT_OK)
        return rc;
    bool none = bus->msg.result.len == 0;
    *ret_json = none ? "{}" : (const char *)bus->msg.result.data;
    *ret_len = none ? 2 : bus->msg.result.len;
    return ZMQCAT_OK;
}
