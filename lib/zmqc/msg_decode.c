/*
 * Decoding of one message (docs/man/zmqc.5). Two kinds of fault: structural ones end the session
 * and are returned; unsound values leave the session alive and are noted in the message. Scanning
 * goes on after the second kind, because a later structural fault wins. Everything happens in the
 * frame's own bytes.
 */
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "zmqc/msg_field.h"

/* How nearly all frames begin: its member need not be read. */
#define USUAL "{\"v\":1"
#define MEMBERS_MAX 256 /* of the frame's object; bounds the search for duplicates */

/* Keys met so far. */
struct seen {
    uint32_t count;
    uint64_t hashes[MEMBERS_MAX];
    struct zc_slice keys[MEMBERS_MAX];
};

/* Short keys are their own hash. Long ones get SipHash, not to hide from the sender (the key is
 * known), but because nobody can make many keys with one hash, each compared to its end. */
static uint64_t seen_hash(struct zc_slice key)
{
    static const uint8_t sip_key[16];
    uint64_t hash = 0;
    if (key.len > sizeof(hash))
        return zc_map_hash(sip_key, key);
    if (key.len > 0)
        memcpy(&hash, key.data, key.len);
    return hash;
}

/* False when the key was there before. Call at most MEMBERS_MAX times. */
static bool seen_add(struct seen *s, struct zc_slice key)
{
    uint64_t hash = seen_hash(key);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->hashes[i] == hash && zc_slice_eq(s->keys[i], key))
            return false;
    }
    s->hashes[s->count] = hash;
    s->keys[s->count++] = key;
    return true;
}

static void unsound(struct zc_msg *m, const struct zc_msg_field *f, const char *why)
{
    if (m->invalid == NULL)
        m->invalid = why;
    if (f->offset == offsetof(struct zc_msg, id))
        m->id_bad = true;
}

/* The next functions take one value into m; what they return is a structural fault, or NULL. */

static const char *take_string(struct zc_msg *m, const struct zc_msg_field *f,
                               struct zc_slice *ret_to, const struct zc_json_value *v)
{
    if (v->type != ZC_JSON_STRING)
        return f->bad;
    if (v->utf8_bad)
        unsound(m, f, f->utf8);
    else if (f->most > 0 && v->text.len > f->most)
        unsound(m, f, f->range);
    else
        *ret_to = v->text;
    return NULL;
}

static const char *take_body(struct zc_msg *m, const struct zc_msg_field *f,
                             const struct zc_json_value *v)
{
    size_t len;
    uint8_t *data = (uint8_t *)(uintptr_t)v->text.data;
    if (v->type != ZC_JSON_STRING || v->utf8_bad || !zc_text_base64_decode(v->text, data, &len))
        return f->bad;
    m->body = zc_slice(data, len);
    return NULL;
}

static const char *take_number(struct zc_msg *m, const struct zc_msg_field *f, int64_t *ret_to,
                               const struct zc_json_value *v)
{
    int64_t n;
    if (v->type != ZC_JSON_NUMBER)
        return f->bad;
    if (f->kind == ZC_MSG_KIND_SECONDS) {
        if (!zc_json_seconds_ms(v->text, ZC_MSG_SECONDS_MAX, &n)) {
            unsound(m, f, f->range);
            return NULL;
        }
    } else if (!zc_json_int(v->text, &n)) {
        return f->bad;
    }
    if (f->kind == ZC_MSG_KIND_VERSION)
        return n == 0 || n == 1 ? NULL : f->bad;
    if (f->kind == ZC_MSG_KIND_MAX && (n < 1 || n > ZC_MSG_MAX_MAX)) {
        unsound(m, f, f->range);
        return NULL;
    }
    *ret_to = n;
    m->has |= f->has;
    return NULL;
}

static const char *take_bool(struct zc_msg *m, const struct zc_msg_field *f, bool *ret_to,
                             const struct zc_json_value *v)
{
    if (v->type != ZC_JSON_BOOL)
        return f->bad;
    *ret_to = v->boolean;
    m->has |= f->has;
    return NULL;
}

static const char *take_header(struct zc_msg *m, const struct zc_msg_field *f, struct seen *seen,
                               struct zc_slice key, bool key_utf8_bad,
                               const struct zc_json_value *v)
{
    if (v->type != ZC_JSON_STRING)
        return f->bad;
    if (key_utf8_bad || v->utf8_bad) {
        unsound(m, f, f->utf8);
        return NULL;
    }
    /* Past the cap the message is refused anyway; looking for duplicates there could cost too much.
     */
    if (m->headers_count == ZC_MSG_HEADERS_CAP) {
        unsound(m, f, f->range);
        return NULL;
    }
    if (!seen_add(seen, key))
        return "a header stands twice";
    m->headers[m->headers_count++] = (struct zc_header){key, v->text};
    m->headers_bytes += key.len + v->text.len;
    return NULL;
}

_Static_assert(ZC_MSG_HEADERS_CAP <= MEMBERS_MAX, "seen_add is called once for each kept header");

static const char *take_headers(struct zc_msg *m, const struct zc_msg_field *f,
                                const struct zc_json_value *v)
{
    struct seen seen;
    struct zc_json j;
    struct zc_json_value value;
    struct zc_slice key;
    bool first = true, key_utf8_bad;
    const char *fault = NULL;
    if (v->type != ZC_JSON_OBJECT)
        return f->bad;
    seen.count = 0;
    zc_json_init(&j, (uint8_t *)(uintptr_t)v->text.data, v->text.len);
    zc_json_eat(&j, '{');
    while (fault == NULL && zc_json_member(&j, &first, 2, &key, &key_utf8_bad, &value))
        fault = take_header(m, f, &seen, key, key_utf8_bad, &value);
    return fault;
}

static const char *take_strings(struct zc_msg *m, const struct zc_msg_field *f,
                                struct zc_slice *ret_to, uint32_t *ret_count,
                                const struct zc_json_value *v)
{
    struct zc_json j;
    struct zc_json_value value;
    bool first = true;
    if (v->type != ZC_JSON_ARRAY)
        return f->bad;
    zc_json_init(&j, (uint8_t *)(uintptr_t)v->text.data, v->text.len);
    zc_json_eat(&j, '[');
    while (zc_json_element(&j, &first, 2, &value)) {
        if (value.type != ZC_JSON_STRING)
            return f->bad;
        if (value.utf8_bad)
            unsound(m, f, f->utf8);
        else if (*ret_count == ZC_MSG_DELIVERIES_MAX)
            unsound(m, f, f->range);
        else
            ret_to[(*ret_count)++] = value.text;
    }
    m->has |= f->has;
    return NULL;
}

static const char *take_object(struct zc_msg *m, const struct zc_msg_field *f,
                               struct zc_slice *ret_to, const struct zc_json_value *v)
{
    bool fits =
        v->type == ZC_JSON_OBJECT || (f->kind == ZC_MSG_KIND_FILTER && v->type == ZC_JSON_STRING);
    if (!fits)
        return f->bad;
    if (v->utf8_bad)
        unsound(m, f, f->utf8);
    else
        *ret_to = v->text;
    return NULL;
}

static const char *take(struct zc_msg *m, const struct zc_msg_field *f,
                        const struct zc_json_value *v)
{
    void *to = (char *)m + f->offset;
    if (v->type == ZC_JSON_NULL)
        return NULL;
    switch ((enum zc_msg_kind)f->kind) {
    case ZC_MSG_KIND_STRING:
        return take_string(m, f, to, v);
    case ZC_MSG_KIND_BODY:
        return take_body(m, f, v);
    case ZC_MSG_KIND_VERSION:
    case ZC_MSG_KIND_INT:
    case ZC_MSG_KIND_MAX:
    case ZC_MSG_KIND_SECONDS:
        return take_number(m, f, to, v);
    case ZC_MSG_KIND_BOOL:
        return take_bool(m, f, to, v);
    case ZC_MSG_KIND_HEADERS:
        return take_headers(m, f, v);
    case ZC_MSG_KIND_STRINGS:
        return take_strings(m, f, to, f->has == 0 ? &m->failed_count : &m->deliveries_count, v);
    case ZC_MSG_KIND_RESULT:
        return take_object(m, f, &m->result, v);
    case ZC_MSG_KIND_FILTER:
        m->has |= v->type == ZC_JSON_OBJECT ? f->has : 0;
        return take_object(m, f, &m->filter, v);
    }
    return NULL;
}

/* A client's own id is shorter than one that the hub scoped: that comes in msg, rep and answers. */
static void judge_id(struct zc_msg *m)
{
    if (m->id.len <= ZC_MSG_STRING_MAX || zc_slice_is(m->op, "msg") || zc_slice_is(m->op, "rep") ||
        zc_slice_is(m->op, "ok") || zc_slice_is(m->op, "err"))
        return;
    m->id = zc_slice(NULL, 0);
    m->id_bad = true;
    if (m->invalid == NULL)
        m->invalid = ZC_MSG_ID_LONG;
}

int zc_msg_decode(struct zc_msg *m, uint8_t *data, size_t len, const char **ret_reason)
{
    struct zc_json j;
    struct zc_json_value value;
    struct zc_slice key;
    struct seen unknown;
    bool first = true, key_utf8_bad;
    uint64_t known = 0; /* a bit for each field that was there */
    uint32_t members = 0;
    const char *fault = NULL;

    zc_msg_clear(m);
    unknown.count = 0;
    zc_json_init(&j, data, len);
    if (len > sizeof(USUAL) && memcmp(data, USUAL ",", sizeof(USUAL)) == 0) {
        j.pos = sizeof(USUAL) - 1;
        first = false;
        known = UINT64_C(1) << ZC_MSG_FIELD_V;
        members = 1;
    } else if (!zc_json_eat(&j, '{')) {
        fault = "not a JSON object";
    }
    while (fault == NULL && zc_json_member(&j, &first, 1, &key, &key_utf8_bad, &value)) {
        unsigned i = key_utf8_bad ? 0 : zc_msg_field_find(key);
        if (++members > MEMBERS_MAX)
            fault = "more than 256 members";
        else if (i != 0)
            fault = known >> i & 1 ? "a key stands twice" : take(m, &zc_msg_field_table[i], &value);
        else if (key_utf8_bad)
            fault = "a key is not valid UTF-8";
        else if (zc_msg_field_odd_case(key))
            fault = "a key is not in lower case";
        else if (!seen_add(&unknown, key))
            fault = "a key stands twice";
        known |= UINT64_C(1) << i;
    }
    if (fault == NULL)
        fault = j.error;
    if (fault == NULL && !zc_json_at_end(&j))
        fault = "bytes after the JSON object";
    if (fault == NULL) {
        judge_id(m);
        return 0;
    }
    *ret_reason = fault;
    return ZC_EBADMSG;
}
