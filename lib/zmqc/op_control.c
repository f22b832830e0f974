/* The administrator's socket: status, trace and drain, and what the node around it answers; see
 * op.h. */
#include "base/json.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"

static int put_storage(struct zc_broker *b, struct zc_buf *j)
{
    if (b->journal != NULL)
        return b->journal->status(b->journal->arg, j);
    return zc_json_put_raw(j, "{\"state\":\"memory\",\"path\":null,\"bytes\":0,\"segments\":0,"
                              "\"set_aside\":0}");
}

static int build_status(struct zc_broker *b, struct zc_buf *j)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
        {"uptime", (uint64_t)((b->now.mono.ns - b->started.ns) / ZC_NS_PER_S)},
        {"sessions", b->bus_sessions},
        {"mailboxes", b->mailboxes.len},
        {"queued", b->count.queued},
        {"leased", b->count.leased},
        {"delayed", b->count.delayed},
        {"waiting", b->waiters_count},
        {"topics", b->topics.by_name.len},
        {"puts", b->count.puts},
        {"redelivered", b->count.redelivered},
        {"dropped", b->count.dropped},
        {"dropped_deliveries", b->count.dropped_subs},
    };
    int err = zc_json_put_raw(j, "{\"version\":");
    if (err == 0)
        err = zc_json_put_string(j, zc_slice_str(b->version));
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(j, rows[i].key, (int64_t)rows[i].value);
    if (err == 0)
        err = zc_json_put_raw(j, b->draining ? ",\"draining\":true" : ",\"draining\":false");
    if (err == 0)
        err = zc_json_put_raw(j, b->trace ? ",\"trace\":true" : ",\"trace\":false");
    if (err == 0)
        err = zc_json_put_raw(j, ",\"storage\":");
    if (err == 0)
        err = put_storage(b, j);
    if (err == 0)
        err = zc_json_put_raw(j, ",\"tunnel\":");
    if (err == 0)
        err = b->admin != NULL ? b->admin->tunnel(b->admin->arg, j) : zc_json_put_raw(j, "null");
    return err != 0 ? err : zc_json_put_raw(j, "}");
}

static void status(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    b->scratch.len = 0;
    if (build_status(b, &b->scratch) != 0)
        zc_broker_kill(b, s, "out of memory: session ended");
    else
        zc_op_result(b, s, m, zc_slice(b->scratch.data, b->scratch.len));
}

static void trace(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    if ((m->has & ZC_MSG_HAS_ON) == 0) {
        zc_reply_err(b, s, m->id, "invalid", "trace: `on` must be true or false");
        return;
    }
    b->trace = m->on;
    zc_op_result(b, s, m, zc_slice_str("{}"));
}

static void drain(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    if (!b->draining)
        zc_broker_log(b, 5, NULL, "drain: nothing new is let in until the next start");
    b->draining = true;
    zc_op_result(b, s, m, zc_slice_str("{}"));
}

bool zc_op_control(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (zc_slice_is(m->op, "status"))
        status(b, s, m);
    else if (zc_slice_is(m->op, "trace"))
        trace(b, s, m);
    else if (zc_slice_is(m->op, "drain"))
        drain(b, s, m);
    else if (b->admin == NULL && zc_slice_is(m->op, "reload"))
        zc_op_result(b, s, m, zc_slice_str("{}")); /* there are no files */
    else if (b->admin == NULL || !b->admin->verb(b->admin->arg, s, m))
        return zc_slice_is(m->op, "pong"); /* the answer to a heartbeat */
    return true;
}
