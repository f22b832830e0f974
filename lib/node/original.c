/*
 * Reading the Go program's mailbox file, see original.h. "boxes" and "inflight" are found first and
 * judged as JSON without being changed; then each message is decoded once, in place: those in
 * flight at once, the queued ones when it is their turn.
 */
#include "node/original.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

static int fail(struct zc_original *o, const char *error, const uint8_t *at)
{
    if (o->error == NULL) {
        o->error = error;
        o->error_at = (size_t)(at - o->data);
    }
    return ZC_EBADMSG;
}

static int fail_json(struct zc_original *o, const struct zc_json *j)
{
    return fail(o, j->error, j->data + j->pos);
}

/* A cursor inside an array or object that was scanned raw; ok, which is '{' or '[', is eaten. */
static bool inside(struct zc_json *j, const struct zc_original *o, struct zc_slice raw, char open)
{
    zc_json_init(j, o->data + (raw.data - o->data), raw.len);
    return zc_json_eat(j, open);
}

/* One text of a message, at most max bytes. */
static int take_text(struct zc_original *o, const struct zc_json_value *v, size_t max,
                     const struct zc_json *j, const char *error, struct zc_slice *ret_text)
{
    if (v->type != ZC_JSON_STRING || v->utf8_bad || v->text.len > max)
        return fail(o, error, j->data + j->pos);
    *ret_text = v->text;
    return 0;
}

static int take_body(struct zc_original *o, const struct zc_json_value *v, const struct zc_json *j,
                     struct zc_slice *ret_body)
{
    static const char bad[] = "a Body is not base64 of at most 1 MiB";
    struct zc_slice text;
    size_t len;
    int err = take_text(o, v, (size_t)ZC_ORIGINAL_PAYLOAD_MAX * 2, j, bad, &text);
    if (err != 0)
        return err;
    uint8_t *at = o->data + (text.data - o->data);
    if (!zc_text_base64_decode(text, at, &len) || len > ZC_ORIGINAL_PAYLOAD_MAX)
        return fail(o, bad, at);
    *ret_body = zc_slice(at, len);
    return 0;
}

enum field { F_ID = 1, F_NAME = 2, F_FROM = 4, F_BODY = 8, F_AT = 16 };

static unsigned field_of(struct zc_slice key)
{
    static const char *const names[] = {"ID", "Name", "From", "Body", "At"};
    for (size_t i = 0; i < ZC_ARRAY_LEN(names); i++)
        if (zc_slice_is(key, names[i]))
            return 1u << i;
    return 0;
}

static int take_field(struct zc_original *o, unsigned field, const struct zc_json_value *v,
                      const struct zc_json *j, struct zc_original_message *m)
{
    struct zc_slice text;
    int err;
    switch (field) {
    case F_ID:
        return take_text(o, v, ZC_MSG_STRING_MAX, j, "an ID is no text of at most 1,024 bytes",
                         &m->id);
    case F_NAME:
        return take_text(o, v, ZC_MSG_STRING_MAX, j, "a Name is no text of at most 1,024 bytes",
                         &m->box);
    case F_FROM:
        return take_text(o, v, ZC_MSG_STRING_MAX, j, "a From is no text of at most 1,024 bytes",
                         &m->from);
    case F_BODY:
        return take_body(o, v, j, &m->body);
    case F_AT:
        err = take_text(o, v, 64, j, "an At is no time of RFC 3339", &text);
        if (err == 0 && !zc_original_time(text, &m->at))
            err = fail(o, "an At is no time of RFC 3339", text.data);
        return err;
    default:
        return 0;
    }
}

/* A MESSAGE; raw is all of it. */
static int take_message(struct zc_original *o, struct zc_slice raw, struct zc_original_message *m)
{
    struct zc_json j;
    struct zc_json_value v;
    struct zc_slice key;
    bool first = true, bad;
    unsigned seen = 0;
    *m = (struct zc_original_message){0};
    if (!inside(&j, o, raw, '{'))
        return fail(o, "a message is no object", raw.data);
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        unsigned field = field_of(key);
        if ((seen & field) != 0)
            return fail(o, "a message has a member twice", key.data);
        seen |= field;
        int err = v.type == ZC_JSON_NULL ? 0 : take_field(o, field, &v, &j, m);
        if (err != 0)
            return err;
    }
    return j.error != NULL ? fail_json(o, &j) : 0;
}

static int held_add(struct zc_original *o, const struct zc_original_message *m)
{
    if (o->held_len == o->held_cap) {
        size_t cap = o->held_cap == 0 ? 16 : o->held_cap * 2;
        struct zc_original_message *held = realloc(o->held, cap * sizeof(*held));
        if (held == NULL) {
            fail(o, "not enough memory", o->data);
            return ZC_ENOMEM;
        }
        o->held = held;
        o->held_cap = cap;
    }
    o->held[o->held_len] = *m;
    o->held[o->held_len].index = (uint32_t)o->held_len;
    o->held_len++;
    return 0;
}

/* One delivery of "inflight". */
static int take_delivery(struct zc_original *o, struct zc_slice raw)
{
    struct zc_json j;
    struct zc_json_value v;
    struct zc_slice key;
    struct zc_original_message m;
    bool first = true, bad, found = false;
    if (!inside(&j, o, raw, '{'))
        return fail(o, "a delivery is no object", raw.data);
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        if (!zc_slice_is(key, "Msg"))
            continue;
        if (found || v.type != ZC_JSON_OBJECT)
            return fail(o, "a delivery does not hold one message", key.data);
        found = true;
        int err = take_message(o, v.text, &m);
        if (err != 0)
            return err;
    }
    if (j.error != NULL)
        return fail_json(o, &j);
    if (!found || m.box.len == 0)
        return fail(o, "a delivery holds no message, or one without Name", raw.data);
    return held_add(o, &m);
}

static int compare_time(const struct zc_original_time *a, const struct zc_original_time *b)
{
    if (a->s != b->s)
        return a->s < b->s ? -1 : 1;
    return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int by_box_and_time(const void *pa, const void *pb)
{
    const struct zc_original_message *a = pa, *b = pb;
    int c = zc_slice_cmp(a->box, b->box);
    c = c != 0 ? c : compare_time(&a->at, &b->at);
    return c != 0 ? c : a->index < b->index ? -1 : 1;
}

static int take_inflight(struct zc_original *o, struct zc_slice raw)
{
    struct zc_json j;
    struct zc_json_value v;
    struct zc_slice key;
    bool first = true, bad;
    inside(&j, o, raw, '{');
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        int err = v.type == ZC_JSON_OBJECT ? take_delivery(o, v.text)
                                           : fail(o, "a delivery is no object", key.data);
        if (err != 0)
            return err;
    }
    if (o->held_len > 0)
        qsort(o->held, o->held_len, sizeof(*o->held), by_box_and_time);
    return 0;
}

int zc_original_open(struct zc_original *o, uint8_t *data, size_t len)
{
    struct zc_json j;
    struct zc_json_value v;
    struct zc_slice key, part[2] = {{0}};
    bool first = true, bad, seen[2] = {0};
    *o = (struct zc_original){.data = data, .boxes_first = true, .boxes_over = true};
    zc_json_init(&j, data, len);
    if (!zc_json_eat(&j, '{'))
        return fail(o, "does not begin with {", data);
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        int which = zc_slice_is(key, "boxes") ? 0 : zc_slice_is(key, "inflight") ? 1 : -1;
        if (which < 0 || seen[which])
            return fail(o, "another member than one boxes and one inflight", key.data);
        seen[which] = true;
        if (v.type != ZC_JSON_OBJECT && v.type != ZC_JSON_NULL)
            return fail(o, "boxes or inflight is no object", key.data);
        part[which] = v.type == ZC_JSON_OBJECT ? v.text : zc_slice(NULL, 0);
    }
    if (j.error != NULL)
        return fail_json(o, &j);
    if (!zc_json_at_end(&j))
        return fail(o, "something stands behind the closing }", data + j.pos);
    if (!seen[0])
        return fail(o, "there are no boxes", data);
    o->boxes_over = part[0].len == 0 || !inside(&o->boxes, o, part[0], '{');
    return part[1].len > 0 ? take_inflight(o, part[1]) : 0;
}

/* The first message in flight of the box at work. */
static void held_seek(struct zc_original *o)
{
    size_t low = 0, high = o->held_len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (zc_slice_cmp(o->held[mid].box, o->box) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    o->held_next = low;
}

/* The next message in flight of the box at work, or NULL. */
static struct zc_original_message *held_at(struct zc_original *o)
{
    while (o->held_next < o->held_len && zc_slice_eq(o->held[o->held_next].box, o->box)) {
        if (!o->held[o->held_next].given)
            return &o->held[o->held_next];
        o->held_next++;
    }
    return NULL;
}

/* The next box. 1, 0 when there is none, or negative. */
static int box_next(struct zc_original *o)
{
    struct zc_json_value v;
    bool bad;
    if (!zc_json_member(&o->boxes, &o->boxes_first, 1, &o->box, &bad, &v))
        return o->boxes.error != NULL ? fail_json(o, &o->boxes) : 0;
    if (bad || o->box.len == 0 || o->box.len > ZC_MSG_STRING_MAX)
        return fail(o, "a mailbox has no name of at most 1,024 bytes", o->box.data);
    if (v.type != ZC_JSON_ARRAY && v.type != ZC_JSON_NULL)
        return fail(o, "a mailbox is no array", o->box.data);
    o->list_open = v.type == ZC_JSON_ARRAY && inside(&o->list, o, v.text, '[');
    o->list_first = true;
    held_seek(o);
    return 1;
}

/* Reads the next queued message of the box ahead, if there is one. */
static int look_ahead(struct zc_original *o)
{
    struct zc_json_value v;
    if (o->has_ahead || !o->list_open)
        return 0;
    if (!zc_json_element(&o->list, &o->list_first, 1, &v)) {
        o->list_open = false;
        return o->list.error != NULL ? fail_json(o, &o->list) : 0;
    }
    if (v.type != ZC_JSON_OBJECT)
        return fail(o, "a message is no object", o->list.data + o->list.pos);
    int err = take_message(o, v.text, &o->ahead);
    o->ahead.box = o->box;
    o->has_ahead = err == 0;
    return err;
}

static int give(const struct zc_original_message *m, struct zc_item *ret_item)
{
    *ret_item = (struct zc_item){.name = m->box, .id = m->id, .from = m->from, .payload = m->body};
    if (m->at.s > 0)
        ret_item->at_ms = m->at.s * 1000 + m->at.ns / 1000000;
    return 1;
}

/* What is in flight of mailboxes with nothing queued. */
static int give_rest(struct zc_original *o, struct zc_item *ret_item)
{
    for (; o->held_next < o->held_len; o->held_next++) {
        struct zc_original_message *m = &o->held[o->held_next];
        if (!m->given) {
            m->given = true;
            return give(m, ret_item);
        }
    }
    return 0;
}

int zc_original_next(struct zc_original *o, struct zc_item *ret_item)
{
    while (!o->boxes_over) {
        int r = look_ahead(o);
        if (r < 0)
            return r;
        struct zc_original_message *m = o->box.len > 0 ? held_at(o) : NULL;
        if (m != NULL && (!o->has_ahead || compare_time(&m->at, &o->ahead.at) < 0)) {
            m->given = true;
            return give(m, ret_item);
        }
        if (o->has_ahead) {
            o->has_ahead = false;
            return give(&o->ahead, ret_item);
        }
        r = box_next(o);
        if (r < 0)
            return r;
        if (r == 0) {
            o->boxes_over = true;
            o->held_next = 0;
        }
    }
    return give_rest(o, ret_item);
}

void zc_original_done(struct zc_original *o)
{
    free(o->held);
    o->held = NULL;
    o->held_len = o->held_cap = 0;
}
