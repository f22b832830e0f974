/* Writing the lines of dump.h. What is empty or 0 is left out where reading gives it back. */
#include "node/dump.h"

#include "base/json.h"
#include "base/text.h"

/* A line that is being written; the first failure stays. */
struct line {
    struct zc_buf *b;
    int err;
};

static void raw(struct line *l, const char *text)
{
    if (l->err == 0)
        l->err = zc_json_put_raw(l->b, text);
}

static void string(struct line *l, const char *before, struct zc_slice s)
{
    raw(l, before);
    if (l->err == 0)
        l->err = zc_json_put_string(l->b, s);
}

static void number(struct line *l, const char *before, int64_t v)
{
    raw(l, before);
    if (l->err == 0)
        l->err = zc_json_put_int(l->b, v);
}

static void some(struct line *l, const char *before, int64_t v)
{
    if (v != 0)
        number(l, before, v);
}

static void payload(struct line *l, struct zc_slice s)
{
    if (zc_text_utf8_valid(s)) {
        string(l, ",\"text\":", s);
        return;
    }
    raw(l, ",\"body\":\"");
    if (l->err == 0)
        l->err = zc_buf_reserve(l->b, zc_text_base64_len(s.len));
    if (l->err == 0)
        l->b->len = (size_t)(zc_text_base64_encode(l->b->data + l->b->len, s) - l->b->data);
    raw(l, "\"");
}

static void headers(struct line *l, const struct zc_item *item)
{
    struct zc_header all[ZC_MSG_HEADERS_CAP];
    if (item->headers_count == 0)
        return;
    zc_item_headers(item, all);
    for (uint32_t i = 0; i < item->headers_count; i++) {
        string(l, i == 0 ? ",\"headers\":{" : ",", all[i].key);
        string(l, ":", all[i].value);
    }
    raw(l, "}");
}

int zc_dump_head(struct zc_buf *b)
{
    return zc_json_put_raw(b, "{\"zmqcat\":\"export\",\"version\":1}\n");
}

int zc_dump_message(struct zc_buf *b, uint64_t seq, uint32_t attempt, int64_t due_ms,
                    const struct zc_item *item)
{
    struct line l = {b, 0};
    string(&l, "{\"mailbox\":", item->name);
    number(&l, ",\"seq\":", (int64_t)seq);
    string(&l, ",\"id\":", item->id);
    string(&l, ",\"from\":", item->from);
    if (item->by.len > 0)
        string(&l, ",\"by\":", item->by);
    some(&l, ",\"at\":", item->at_ms);
    some(&l, ",\"expires\":", item->expires_ms);
    some(&l, ",\"due\":", due_ms);
    some(&l, ",\"attempt\":", attempt);
    if (item->request)
        raw(&l, ",\"request\":true");
    headers(&l, item);
    payload(&l, item->payload);
    raw(&l, "}\n");
    return l.err;
}

int zc_dump_bind(struct zc_buf *b, uint64_t seq, struct zc_slice body)
{
    struct line l = {b, 0};
    struct zc_stored_bind bind;
    if (zc_stored_bind_decode(body, &bind) != 0)
        return ZC_EBADMSG;
    string(&l, "{\"bind\":", bind.name);
    string(&l, ",\"topic\":", bind.topic);
    number(&l, ",\"seq\":", (int64_t)seq);
    raw(&l, "}\n");
    return l.err;
}

/* A hash: sixteen digits, the most significant first. */
static void hash(struct line *l, const char *before, uint64_t v)
{
    uint8_t bytes[8];
    char hex[17] = "";
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> (56 - 8 * i));
    zc_text_hex(hex, zc_slice(bytes, 8));
    string(l, before, zc_slice(hex, 16));
}

int zc_dump_seen(struct zc_buf *b, struct zc_slice body)
{
    struct line l = {b, 0};
    struct zc_stored_seen seen;
    if (zc_stored_seen_decode(body, &seen) != 0)
        return ZC_EBADMSG;
    hash(&l, "{\"seen\":", seen.id);
    hash(&l, ",\"of\":", seen.name);
    number(&l, ",\"until\":", seen.until_ms);
    raw(&l, "}\n");
    return l.err;
}

int zc_dump_end(struct zc_buf *b, uint64_t count)
{
    struct line l = {b, 0};
    number(&l, "{\"end\":", (int64_t)count);
    raw(&l, "}\n");
    return l.err;
}

struct zc_slice zc_dump_body(const struct zc_dump_line *line, uint8_t ret_body[ZC_DUMP_BODY_MAX])
{
    return line->kind == ZC_DUMP_SEEN ? zc_stored_seen_encode(&line->seen, ret_body)
                                      : zc_stored_bind_encode(&line->bind, ret_body);
}
