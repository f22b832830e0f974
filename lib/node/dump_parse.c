/* Reading the lines of dump.h: strict, each member once, none that is not known. */
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "node/dump.h"

enum field {
    F_ZMQCAT,
    F_VERSION,
    F_MAILBOX,
    F_SEQ,
    F_ID,
    F_FROM,
    F_BY,
    F_AT,
    F_EXPIRES,
    F_DUE,
    F_ATTEMPT,
    F_REQUEST,
    F_HEADERS,
    F_TEXT,
    F_BODY,
    F_BIND,
    F_TOPIC,
    F_SEEN,
    F_OF,
    F_UNTIL,
    F_END,
    F_COUNT
};

#define BIT(f) (1u << (f))

static const struct {
    const char *name;
    enum zc_json_type type;
    int64_t max; /* bytes of a string, or the largest number */
    const char *bad;
} fields[F_COUNT] = {
    [F_ZMQCAT] = {"zmqcat", ZC_JSON_STRING, 6, "zmqcat is not \"export\""},
    [F_VERSION] = {"version", ZC_JSON_NUMBER, 1, "version is not 1: a newer zmqcat wrote it"},
    [F_MAILBOX] = {"mailbox", ZC_JSON_STRING, ZC_MSG_STRING_MAX, "mailbox is no name"},
    [F_SEQ] = {"seq", ZC_JSON_NUMBER, INT64_MAX - 1, "seq is no number from 1"},
    [F_ID] = {"id", ZC_JSON_STRING, ZC_MSG_MESSAGE_ID_MAX, "id is no text of at most 1,056 bytes"},
    [F_FROM] = {"from", ZC_JSON_STRING, ZC_MSG_STRING_MAX,
                "from is no text of at most 1,024 bytes"},
    [F_BY] = {"by", ZC_JSON_STRING, ZC_MSG_STRING_MAX, "by is no text of at most 1,024 bytes"},
    [F_AT] = {"at", ZC_JSON_NUMBER, INT64_MAX, "at is no time in unix milliseconds"},
    [F_EXPIRES] = {"expires", ZC_JSON_NUMBER, INT64_MAX, "expires is no time in unix milliseconds"},
    [F_DUE] = {"due", ZC_JSON_NUMBER, INT64_MAX, "due is no time in unix milliseconds"},
    [F_ATTEMPT] = {"attempt", ZC_JSON_NUMBER, UINT32_MAX, "attempt is no number up to 2^32-1"},
    [F_REQUEST] = {"request", ZC_JSON_BOOL, 0, "request is neither true nor false"},
    [F_HEADERS] = {"headers", ZC_JSON_OBJECT, 0, "headers is no object"},
    [F_TEXT] = {"text", ZC_JSON_STRING, ZC_DUMP_PAYLOAD_MAX,
                "text is no UTF-8 string of at most 1400k"},
    [F_BODY] = {"body", ZC_JSON_STRING, INT64_MAX, "body is no base64"},
    [F_BIND] = {"bind", ZC_JSON_STRING, ZC_MSG_STRING_MAX, "bind is no name"},
    [F_TOPIC] = {"topic", ZC_JSON_STRING, ZC_MSG_STRING_MAX, "topic is no name"},
    [F_SEEN] = {"seen", ZC_JSON_STRING, 16, "seen is no hash of 16 digits"},
    [F_OF] = {"of", ZC_JSON_STRING, 16, "of is no hash of 16 digits"},
    [F_UNTIL] = {"until", ZC_JSON_NUMBER, INT64_MAX, "until is no time in unix milliseconds"},
    [F_END] = {"end", ZC_JSON_NUMBER, INT64_MAX, "end is no number"},
};

/* What each kind must have and may have. */
static const struct {
    uint32_t must, may;
} kinds[] = {
    [ZC_DUMP_HEAD] = {BIT(F_ZMQCAT) | BIT(F_VERSION), 0},
    [ZC_DUMP_MESSAGE] = {BIT(F_MAILBOX), BIT(F_SEQ) | BIT(F_ID) | BIT(F_FROM) | BIT(F_BY) |
                                             BIT(F_AT) | BIT(F_EXPIRES) | BIT(F_DUE) |
                                             BIT(F_ATTEMPT) | BIT(F_REQUEST) | BIT(F_HEADERS) |
                                             BIT(F_TEXT) | BIT(F_BODY)},
    [ZC_DUMP_BIND] = {BIT(F_BIND) | BIT(F_TOPIC), BIT(F_SEQ)},
    [ZC_DUMP_SEEN] = {BIT(F_SEEN) | BIT(F_OF) | BIT(F_UNTIL), 0},
    [ZC_DUMP_END] = {BIT(F_END), 0},
};

static bool hash(struct zc_slice text, uint64_t *ret_hash)
{
    uint64_t v = 0;
    if (text.len != 16)
        return false;
    for (size_t i = 0; i < 16; i++) {
        uint8_t c = text.data[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        v = v << 4 | (uint64_t)digit;
    }
    *ret_hash = v;
    return true;
}

static bool headers(struct zc_slice raw, struct zc_dump_line *line, const char **ret_why)
{
    struct zc_json j;
    struct zc_json_value v;
    bool first = true, bad;
    struct zc_item *item = &line->item;
    zc_json_init(&j, (uint8_t *)(uintptr_t)raw.data, raw.len);
    zc_json_eat(&j, '{');
    item->headers_count = 0;
    while (item->headers_count < ZC_MSG_HEADERS_CAP &&
           zc_json_member(&j, &first, 1, &line->headers[item->headers_count].key, &bad, &v)) {
        if (v.type != ZC_JSON_STRING || v.utf8_bad || bad) {
            *ret_why = "a header is no text";
            return false;
        }
        line->headers[item->headers_count++].value = v.text;
    }
    if (j.error == NULL && zc_json_at_end(&j))
        return true;
    *ret_why = "more than 256 headers";
    return false;
}

static bool body(struct zc_slice text, struct zc_slice *ret_payload)
{
    uint8_t *at = (uint8_t *)(uintptr_t)text.data;
    size_t len;
    if (!zc_text_base64_decode(text, at, &len) || len > ZC_DUMP_PAYLOAD_MAX)
        return false;
    *ret_payload = zc_slice(at, len);
    return true;
}

static bool take_string(int f, struct zc_slice s, struct zc_dump_line *line)
{
    switch (f) {
    case F_ZMQCAT:
        return zc_slice_is(s, "export");
    case F_MAILBOX:
        line->item.name = s;
        return s.len > 0;
    case F_ID:
        line->item.id = s;
        return true;
    case F_FROM:
        line->item.from = s;
        return true;
    case F_BY:
        line->item.by = s;
        return true;
    case F_TEXT:
        line->item.payload = s;
        return true;
    case F_BODY:
        return body(s, &line->item.payload);
    case F_BIND:
        line->bind.name = s;
        return s.len > 0;
    case F_TOPIC:
        line->bind.topic = s;
        return true;
    case F_SEEN:
        return hash(s, &line->seen.id);
    default:
        return hash(s, &line->seen.name);
    }
}

static bool take_number(int f, int64_t v, struct zc_dump_line *line)
{
    switch (f) {
    case F_VERSION:
        return v == 1;
    case F_SEQ:
        line->seq = (uint64_t)v;
        return v > 0;
    case F_AT:
        line->item.at_ms = v;
        return true;
    case F_EXPIRES:
        line->item.expires_ms = v;
        return true;
    case F_DUE:
        line->item.due_ms = v;
        return true;
    case F_ATTEMPT:
        line->attempt = (uint32_t)v;
        return true;
    case F_UNTIL:
        line->seen.until_ms = v;
        return true;
    default:
        line->count = (uint64_t)v;
        return true;
    }
}

static bool take(int f, const struct zc_json_value *v, struct zc_dump_line *line,
                 const char **ret_why)
{
    int64_t n;
    *ret_why = fields[f].bad;
    if (v->type != fields[f].type)
        return false;
    switch (v->type) {
    case ZC_JSON_STRING:
        return !v->utf8_bad && (int64_t)v->text.len <= fields[f].max &&
               take_string(f, v->text, line);
    case ZC_JSON_NUMBER:
        return zc_json_int(v->text, &n) && n >= 0 && n <= fields[f].max && take_number(f, n, line);
    case ZC_JSON_BOOL:
        line->item.request = v->boolean;
        return true;
    default:
        return headers(v->text, line, ret_why);
    }
}

static int field_of(struct zc_slice key)
{
    int f = 0;
    while (f < F_COUNT && !zc_slice_is(key, fields[f].name))
        f++;
    return f;
}

static int refuse(const char *why, const char **ret_why)
{
    *ret_why = why;
    return ZC_EBADMSG;
}

int zc_dump_parse(uint8_t *data, size_t len, struct zc_dump_line *ret_line, const char **ret_why)
{
    struct zc_json j;
    struct zc_json_value v;
    struct zc_slice key;
    bool first = true, bad;
    uint32_t seen = 0;
    ret_line->seq = ret_line->count = 0;
    ret_line->attempt = 0;
    ret_line->item = (struct zc_item){0};
    zc_json_init(&j, data, len);
    if (!zc_json_eat(&j, '{'))
        return refuse("it is no JSON object", ret_why);
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        int f = field_of(key);
        if (f == F_COUNT)
            return refuse("it has a member that is not known", ret_why);
        if ((seen & BIT(f)) != 0)
            return refuse("it has a member twice", ret_why);
        seen |= BIT(f);
        if (!take(f, &v, ret_line, ret_why))
            return ZC_EBADMSG;
    }
    if (j.error != NULL || !zc_json_at_end(&j))
        return refuse(j.error != NULL ? j.error : "something stands behind it", ret_why);
    for (size_t k = 0; k < ZC_ARRAY_LEN(kinds); k++) {
        if ((seen & kinds[k].must) != kinds[k].must ||
            (seen & ~(kinds[k].must | kinds[k].may)) != 0)
            continue;
        ret_line->kind = (enum zc_dump_kind)k;
        uint32_t payloads = seen & (BIT(F_TEXT) | BIT(F_BODY));
        if (k == ZC_DUMP_MESSAGE && (payloads & (payloads - 1)) != 0)
            return refuse("it has a text and a body", ret_why);
        return 0;
    }
    return refuse("it is no message, binding or remembered id", ret_why);
}
