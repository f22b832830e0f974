/* Dispatch of operations and what they share, see op.h. */
#include "zmqc/op.h"

#include <string.h>

#include "zmqc/reply.h"
#include "zmqc/scope.h"

/* Keys, numbers and tokens of a delivery, the hub's part of its id included. */
#define HUB_FIELDS 1024

struct zc_slice zc_op_from(const struct zc_session *s, const struct zc_msg *m)
{
    if (m->from.len > 0)
        return m->from;
    if (s->name.len > 0)
        return zc_slice(s->name.data, s->name.len);
    return zc_slice_str(s->default_name);
}

bool zc_op_filter(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                  struct zc_filter **ret_filter)
{
    struct zc_slice self =
        s->name.len > 0 ? zc_slice(s->name.data, s->name.len) : zc_slice_str(s->default_name);
    if ((m->has & ZC_MSG_HAS_FILTER_OBJECT) != 0) {
        zc_reply_err(b, s, m->id, "invalid", "filter: must be a comma list of names");
        return false;
    }
    int err = zc_filter_new(b->key, m->filter, self, ret_filter);
    if (err == ZC_EINVAL)
        zc_reply_err(b, s, m->id, "invalid", "filter: more than 1,024 names");
    else if (err != 0)
        zc_reply_err(b, s, m->id, "unavailable", ZC_OP_NO_MEMORY);
    return err == 0;
}

/* False: an err was sent. */
static bool take_scope(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    const char *why = NULL;
    if (m->scope.len == 0)
        return true;
    if (s->scope != NULL && s->owner != zc_scope_number(s->identity, m->scope))
        why = "scope: this session has another one already";
    else if (s->scope == NULL && s->has_put)
        why = "scope: must be given before the first put";
    if (why != NULL)
        zc_reply_err(b, s, m->id, "invalid", why);
    else if (s->scope == NULL && !zc_scope_join(b, s, m->scope))
        zc_reply_err(b, s, m->id, "unavailable", why = ZC_OP_NO_MEMORY);
    return why == NULL;
}

static void hello(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (!take_scope(b, s, m))
        return;
    s->name.len = 0;
    if (zc_buf_append(&s->name, m->from.data, m->from.len) != 0) {
        zc_broker_kill(b, s, "out of memory: session ended");
        return;
    }
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("ok");
    out->id = m->id;
    out->from = zc_op_from(s, m);
    out->epoch = zc_slice_str(b->epoch);
    zc_reply_send(b, s, out, 0);
}

static void ping(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("pong");
    out->id = m->id;
    out->epoch = zc_slice_str(b->epoch);
    zc_reply_now(b, s, out);
}

static void pong(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    (void)b;
    (void)s;
    (void)m; /* any frame proves life */
}

#define DRAINING "this hub is being drained: it takes nothing new: try again once it was restarted"

#define OP(name, run, adds)                                                                        \
    {                                                                                              \
        {(const uint8_t *)name, sizeof(name) - 1}, run, adds                                       \
    }

static const struct {
    struct zc_slice name;
    void (*run)(struct zc_broker *, struct zc_session *, struct zc_msg *);
    bool adds; /* brings something new in: refused while the hub is drained */
} ops[] = {
    OP("put", zc_op_put, true),
    OP("take", zc_op_take, false),
    OP("reserve", zc_op_reserve, false),
    OP("ready", zc_op_ready, false),
    OP("ack", zc_op_ack, false),
    OP("nack", zc_op_nack, false),
    OP("req", zc_op_req, true),
    OP("rep", zc_op_rep, false),
    OP("pub", zc_op_pub, true),
    OP("sub", zc_op_sub, false),
    OP("unsub", zc_op_unsub, false),
    OP("hello", hello, false),
    OP("ping", ping, false),
    OP("pong", pong, false),
    OP("touch", zc_op_touch, false),
    OP("stat", zc_op_stat, false),
    OP("list", zc_op_list, false),
    OP("info", zc_op_info, false),
    OP("peek", zc_op_peek, false),
    OP("purge", zc_op_purge, false),
    OP("move", zc_op_move, true),
    OP("bind", zc_op_bind, true),
    OP("unbind", zc_op_unbind, false),
};

static void unknown(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    char text[16 + ZC_MSG_OP_MAX];
    size_t n = strlen("unknown op ");
    memcpy(text, "unknown op ", n);
    if (m->op.len > 0)
        memcpy(text + n, m->op.data, m->op.len);
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("err");
    out->id = m->id;
    out->error = zc_slice(text, n + m->op.len);
    out->code = zc_slice_str("unknown_op");
    zc_reply_send(b, s, out, 0);
}

void zc_op_run(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (m->invalid != NULL) {
        zc_reply_err(b, s, m->id_bad ? zc_slice(NULL, 0) : m->id, "invalid", m->invalid);
        return;
    }
    if (s->control) {
        if (!zc_op_control(b, s, m))
            unknown(b, s, m);
        return;
    }
    for (size_t i = 0; i < ZC_ARRAY_LEN(ops); i++) {
        if (!zc_slice_eq(m->op, ops[i].name))
            continue;
        if (ops[i].adds && b->draining)
            zc_reply_err(b, s, m->id, "unavailable", DRAINING);
        else
            ops[i].run(b, s, m);
        return;
    }
    unknown(b, s, m);
}

static bool reserved_header(struct zc_slice key)
{
    return zc_slice_starts(key, zc_slice_str("x-dead-")) ||
           zc_slice_starts(key, zc_slice_str("x-zmqcat-"));
}

bool zc_op_check_headers(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    const char *why = NULL;
    if (m->headers_count > b->limits.headers_max)
        why = "headers: more than --headers-max of the hub";
    else if (m->headers_bytes > b->limits.headers_bytes)
        why = "headers: names and values exceed --headers-bytes of the hub";
    for (uint32_t i = 0; why == NULL && i < m->headers_count; i++) {
        if (reserved_header(m->headers[i].key))
            why = "headers: names that begin with x-dead- or x-zmqcat- are the hub's own";
    }
    if (why != NULL)
        zc_reply_err(b, s, m->id, "invalid", why);
    return why == NULL;
}

bool zc_op_fits(size_t payload, size_t strings, size_t headers)
{
    return (payload + 2) / 3 * 4 + 6 * strings + 8 * headers + HUB_FIELDS <= ZC_FRAME_BODY_MAX;
}

/* With the limits as they come it always is. */
static bool deliverable(const struct zc_session *s, const struct zc_msg *m)
{
    size_t strings =
        m->headers_bytes + m->name.len + m->id.len + zc_op_from(s, m).len + strlen(s->identity);
    return zc_op_fits(zc_msg_payload(m).len, strings, m->headers_count);
}

bool zc_op_check_message(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    if (m->name.len == 0)
        zc_reply_err(b, s, m->id, "empty_name", "mailbox: empty name");
    else if (m->name.data[0] == '$')
        zc_reply_err(b, s, m->id, "denied", "name is reserved");
    else if (zc_msg_payload(m).len > b->limits.payload_max || !deliverable(s, m))
        zc_reply_err(b, s, m->id, "too_large", "mailbox: payload too large");
    else
        return zc_op_check_headers(b, s, m);
    return false;
}

bool zc_op_lifetime(const struct zc_broker *b, const struct zc_msg *m, struct zc_mono *ret_expires,
                    int64_t *ret_expires_ms)
{
    *ret_expires = ZC_NEVER;
    *ret_expires_ms = 0;
    int64_t ms = INT64_MAX;
    if ((m->has & ZC_MSG_HAS_TTL) != 0)
        ms = m->ttl_ms;
    if ((m->has & ZC_MSG_HAS_EXPIRES) != 0) {
        /* a wall time far back must not wrap */
        int64_t left = m->expires <= b->now.wall.ms ? 0 : m->expires - b->now.wall.ms;
        ms = left < ms ? left : ms;
    }
    if (ms == INT64_MAX)
        return true;
    if (ms > ZC_MSG_SECONDS_MAX * 1000)
        ms = ZC_MSG_SECONDS_MAX * 1000;
    *ret_expires = zc_mono_add_ms(b->now.mono, ms);
    *ret_expires_ms = b->now.wall.ms + ms;
    return ms > 0;
}

void zc_op_result(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                  struct zc_slice json)
{
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("ok");
    out->id = m->id;
    out->result = json;
    zc_reply_now(b, s, out);
}
