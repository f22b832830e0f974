/*
 * Encoding of one message (docs/man/zmqc.5) as a frame. A frame that is certainly small is written
 * at once. For others the same walk over the fields is done twice, once to count and once to write,
 * so that a frame is one allocation of its exact size.
 */
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "zmqc/msg.h"

/* Where the walk writes; p NULL: it only counts. */
struct out {
    uint8_t *p;
    size_t n;
};

#define INLINE static inline __attribute__((always_inline))

INLINE void put_bytes(struct out *o, const void *data, size_t len)
{
    if (o->p != NULL)
        memcpy(o->p + o->n, data, len);
    o->n += len;
}

/* A literal, without its NUL. */
#define PUT(o, literal) put_bytes(o, literal, sizeof(literal) - 1)

INLINE void put_escaped(struct out *o, struct zc_slice s)
{
    if (o->p != NULL)
        o->n = (size_t)(zc_json_escape(o->p + o->n, s) - o->p);
    else
        o->n += zc_json_escaped_len(s);
}

INLINE void put_base64(struct out *o, struct zc_slice s)
{
    if (o->p != NULL)
        zc_text_base64_encode(o->p + o->n, s);
    o->n += zc_text_base64_len(s.len);
}

static void put_int(struct out *o, int64_t v)
{
    char digits[ZC_TEXT_INT_MAX];
    put_bytes(o, digits, zc_text_int(digits, v));
}

/* Milliseconds as seconds, with as many decimals as they need. */
static void put_seconds(struct out *o, int64_t ms)
{
    int64_t s = ms / 1000, rest = ms % 1000;
    put_int(o, s);
    if (rest == 0)
        return;
    char decimals[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                       (char)('0' + rest % 10)};
    put_bytes(o, decimals, rest % 100 == 0 ? 2 : rest % 10 == 0 ? 3 : 4);
}

#define PUT_STRING(o, name, slice)                                                                 \
    do {                                                                                           \
        if ((slice).len > 0) {                                                                     \
            PUT(o, ",\"" name "\":\"");                                                            \
            put_escaped(o, slice);                                                                 \
            PUT(o, "\"");                                                                          \
        }                                                                                          \
    } while (0)

#define PUT_IF(o, cond, name, put)                                                                 \
    do {                                                                                           \
        if (cond) {                                                                                \
            PUT(o, ",\"" name "\":");                                                              \
            put;                                                                                   \
        }                                                                                          \
    } while (0)

static void put_headers(struct out *o, const struct zc_msg *m)
{
    for (uint32_t i = 0; i < m->headers_count; i++) {
        put_bytes(o, i == 0 ? "{\"" : ",\"", 2);
        put_escaped(o, m->headers[i].key);
        PUT(o, "\":\"");
        put_escaped(o, m->headers[i].value);
        PUT(o, "\"");
    }
    PUT(o, "}");
}

static void put_strings(struct out *o, const struct zc_slice *strings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        put_bytes(o, i == 0 ? "[\"" : ",\"", 2);
        put_escaped(o, strings[i]);
        PUT(o, "\"");
    }
    PUT(o, "]");
}

/* Fields that only requests carry; no order is promised for them. */
static void put_request(struct out *o, const struct zc_msg *m)
{
    PUT_IF(o, m->has & ZC_MSG_HAS_DELAY, "delay", put_seconds(o, m->delay_ms));
    PUT_IF(o, m->has & ZC_MSG_HAS_TTL, "ttl", put_seconds(o, m->ttl_ms));
    PUT_IF(o, m->has & ZC_MSG_HAS_EXPIRES, "expires", put_int(o, m->expires));
    PUT_IF(o, m->has & ZC_MSG_HAS_WAIT, "wait", put_seconds(o, m->wait_ms));
    PUT_IF(o, m->has & ZC_MSG_HAS_MAX, "max", put_int(o, m->max));
    PUT_IF(o, m->deliveries_count > 0, "deliveries",
           put_strings(o, m->deliveries, m->deliveries_count));
    PUT_STRING(o, "topic", m->topic);
    PUT_STRING(o, "to", m->to);
    PUT_STRING(o, "scope", m->scope);
    PUT_STRING(o, "if", m->condition);
    if (m->has & ZC_MSG_HAS_FILTER_OBJECT)
        PUT_IF(o, true, "filter", put_bytes(o, m->filter.data, m->filter.len));
    else
        PUT_STRING(o, "filter", m->filter);
    PUT_STRING(o, "after", m->after);
    PUT_IF(o, (m->has & ZC_MSG_HAS_ON) && m->on, "on", PUT(o, "true"));
    PUT_IF(o, (m->has & ZC_MSG_HAS_ON) && !m->on, "on", PUT(o, "false"));
}

/* Fields of which a common frame has none. */
static void put_additions(struct out *o, const struct zc_msg *m)
{
    PUT_IF(o, m->headers_count > 0, "headers", put_headers(o, m));
    PUT_IF(o, m->has & ZC_MSG_HAS_ATTEMPT, "attempt", put_int(o, m->attempt));
    PUT_IF(o, m->has & ZC_MSG_HAS_AT, "at", put_int(o, m->at));
    PUT_STRING(o, "by", m->by);
    PUT_IF(o, m->end, "end", PUT(o, "true"));
    PUT_IF(o, m->peek, "peek", PUT(o, "true"));
    PUT_IF(o, m->has & ZC_MSG_HAS_SUBS, "subs", put_int(o, m->subs));
    PUT_STRING(o, "epoch", m->epoch);
    PUT_IF(o, m->has & ZC_MSG_HAS_COUNT, "count", put_int(o, m->count));
    PUT_IF(o, m->failed_count > 0, "failed", put_strings(o, m->failed, m->failed_count));
    PUT_STRING(o, "code", m->code);
    PUT_IF(o, m->result.len > 0, "result", put_bytes(o, m->result.data, m->result.len));
    put_request(o, m);
}

INLINE void put_msg(struct out *o, const struct zc_msg *m)
{
    PUT(o, "{\"v\":1");
    PUT_STRING(o, "op", m->op);
    PUT_STRING(o, "id", m->id);
    PUT_STRING(o, "name", m->name);
    PUT_STRING(o, "from", m->from);
    PUT_STRING(o, "text", m->text);
    PUT_IF(o, m->body.len > 0, "body", PUT(o, "\""); put_base64(o, m->body); PUT(o, "\""));
    PUT_STRING(o, "error", m->error);
    PUT_IF(o, m->lease != 0, "lease", put_int(o, m->lease));
    PUT_STRING(o, "delivery", m->delivery);
    put_additions(o, m);
    PUT(o, "}");
}

/* Bytes of the JSON. */
static size_t msg_size(const struct zc_msg *m)
{
    struct out count = {NULL, 0};
    put_msg(&count, m);
    return count.n;
}

/* Names of all fields, punctuation, and numbers at their longest. */
#define FIXED_MAX 768

/* What the JSON takes at most; SIZE_MAX when that would need a walk. No character takes more than
 * six bytes. */
static size_t size_bound(const struct zc_msg *m)
{
    if (m->headers_count > 0 || m->failed_count > 0 || m->deliveries_count > 0)
        return SIZE_MAX;
    size_t strings = m->op.len + m->id.len + m->name.len + m->from.len + m->text.len +
                     m->error.len + m->delivery.len + m->by.len + m->epoch.len + m->code.len +
                     m->topic.len + m->to.len + m->scope.len + m->condition.len + m->filter.len +
                     m->after.len;
    return FIXED_MAX + 6 * strings + zc_text_base64_len(m->body.len) + m->result.len;
}

/* Writes the frame, whose bytes it counts. */
__attribute__((nonnull)) static size_t write_frame(uint8_t *p, const struct zc_msg *m)
{
    struct out out = {p, ZC_FRAME_HEADER};
    put_msg(&out, m);
    zc_frame_header(p, out.n - ZC_FRAME_HEADER);
    return out.n;
}

size_t zc_msg_encode_small(const struct zc_msg *m, uint8_t ret_frame[ZC_MSG_SMALL_MAX])
{
    if (size_bound(m) > ZC_MSG_SMALL_MAX - ZC_FRAME_HEADER)
        return 0;
    return write_frame(ret_frame, m);
}

size_t zc_msg_encode_ok(struct zc_slice id, struct zc_slice name, int64_t subs,
                        uint8_t ret_frame[ZC_MSG_SMALL_MAX])
{
    struct out out = {ret_frame, ZC_FRAME_HEADER}, *o = &out;
    if (6 * (id.len + name.len) > ZC_MSG_SMALL_MAX - ZC_FRAME_HEADER - FIXED_MAX)
        return 0;
    PUT(o, "{\"v\":1,\"op\":\"ok\"");
    PUT_STRING(o, "id", id);
    PUT_STRING(o, "name", name);
    PUT_IF(o, subs >= 0, "subs", put_int(o, subs));
    PUT(o, "}");
    zc_frame_header(ret_frame, out.n - ZC_FRAME_HEADER);
    return out.n;
}

struct zc_block *zc_msg_encode(const struct zc_msg *m, int *ret_err)
{
    uint8_t small[ZC_MSG_SMALL_MAX];
    size_t len = zc_msg_encode_small(m, small);
    if (len > 0) {
        *ret_err = ZC_ENOMEM;
        return zc_block_copy(zc_slice(small, len));
    }
    size_t size = msg_size(m);
    if (size > ZC_FRAME_BODY_MAX) {
        *ret_err = ZC_ELIMIT;
        return NULL;
    }
    struct zc_block *b = zc_block_new(ZC_FRAME_HEADER + size);
    if (b == NULL) {
        *ret_err = ZC_ENOMEM;
        return NULL;
    }
    len = write_frame(b->data, m);
    ZC_ASSERT(len == b->len);
    return b;
}

static void set_payload(struct zc_msg *m, struct zc_slice payload, bool valid)
{
    static const size_t frame = sizeof(",\"text\":\"\"") - 1;
    m->body = payload;
    m->text = (struct zc_slice){NULL, 0};
    if (payload.len == 0)
        return;
    size_t bound = size_bound(m);
    /* Most are small and need not be counted. */
    if (bound > ZC_FRAME_BODY_MAX / 2 || payload.len > ZC_FRAME_BODY_MAX / 2 / 6) {
        size_t size = msg_size(m) + frame;
        if (size > ZC_FRAME_BODY_MAX || zc_json_escaped_len(payload) > ZC_FRAME_BODY_MAX - size)
            return;
    }
    if (valid || zc_text_utf8_valid(payload))
        m->text = payload;
}

void zc_msg_set_payload(struct zc_msg *m, struct zc_slice payload)
{
    set_payload(m, payload, false);
}

void zc_msg_set_text(struct zc_msg *m, struct zc_slice payload)
{
    set_payload(m, payload, true);
}
