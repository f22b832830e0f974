/* Messages as payload, line or JSON. */
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

void zc_print_payload(struct zc_out *out, const struct zmqcat_msg *m, bool raw)
{
    const char *p = m->payload;
    zc_out_payload(out, p, m->payload_len);
    if (!raw && (m->payload_len == 0 || p[m->payload_len - 1] != '\n'))
        zc_out_str(out, "\n");
}

void zc_print_delivery(struct zc_out *out, const struct zmqcat_msg *m)
{
    zc_out_name(out, m->name, m->name_len);
    zc_out_str(out, "\t");
    zc_out_name(out, m->from, m->from_len);
    zc_out_str(out, "\t");
    zc_out_payload(out, m->payload, m->payload_len);
    zc_out_str(out, "\n");
}

/* The code point that starts at p, for the few ranges that matter here: DEL, C1 controls and the
 * directional marks. *ret_len is its length; 0: none of these. */
static unsigned unsafe(const unsigned char *p, size_t left, size_t *ret_len)
{
    *ret_len = 0;
    if (p[0] == 0x7f) {
        *ret_len = 1;
        return p[0];
    }
    if (left >= 2 && p[0] == 0xc2 && p[1] < 0xa0) {
        *ret_len = 2;
        return p[1];
    }
    if (left < 3 || p[0] != 0xe2)
        return 0;
    unsigned c = 0x2000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    if ((c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
        (c >= 0x2066 && c <= 0x2069))
        *ret_len = 3;
    return c;
}

void zc_print_json_text(struct zc_out *out, const char *json, size_t len)
{
    const unsigned char *p = (const unsigned char *)json, *end = p + len, *from = p;
    while (p < end) {
        size_t n;
        unsigned c = unsafe(p, (size_t)(end - p), &n);
        if (n == 0) {
            p++;
            continue;
        }
        char escape[8];
        snprintf(escape, sizeof escape, "\\u%04x", c);
        zc_out_raw(out, from, (size_t)(p - from));
        zc_out_str(out, escape);
        p += n;
        from = p;
    }
    zc_out_raw(out, from, (size_t)(end - from));
}

static void add_string(struct zc_buf *b, bool *failed, const void *data, size_t len)
{
    if (zc_json_put_string(b, zc_slice(data, len)) != 0)
        *failed = true;
}

static void add_raw(struct zc_buf *b, bool *failed, const char *text)
{
    if (zc_json_put_raw(b, text) != 0)
        *failed = true;
}

static void add_int(struct zc_buf *b, bool *failed, const char *key, int64_t value)
{
    add_raw(b, failed, key);
    if (zc_json_put_int(b, value) != 0)
        *failed = true;
}

static void add_payload(struct zc_buf *b, bool *failed, const struct zmqcat_msg *m)
{
    struct zc_slice payload = zc_slice(m->payload, m->payload_len);
    if (zc_text_utf8_valid(payload)) {
        add_raw(b, failed, ",\"text\":");
        add_string(b, failed, m->payload, m->payload_len);
    }
    add_raw(b, failed, ",\"body\":\"");
    if (zc_buf_reserve(b, zc_text_base64_len(payload.len)) != 0)
        *failed = true;
    else
        b->len = (size_t)(zc_text_base64_encode(b->data + b->len, payload) - b->data);
    add_raw(b, failed, "\",\"headers\":{");
    for (size_t i = 0; i < m->headers_count; i++) {
        add_raw(b, failed, i > 0 ? "," : "");
        add_string(b, failed, m->headers[i].key, m->headers[i].key_len);
        add_raw(b, failed, ":");
        add_string(b, failed, m->headers[i].value, m->headers[i].value_len);
    }
    add_raw(b, failed, "}");
}

void zc_print_json(struct zc_out *out, const struct zmqcat_msg *m)
{
    struct zc_buf b = {0};
    bool failed = false;
    add_raw(&b, &failed, "{\"id\":");
    add_string(&b, &failed, m->id, m->id_len);
    add_raw(&b, &failed, ",\"name\":");
    add_string(&b, &failed, m->name, m->name_len);
    add_raw(&b, &failed, ",\"from\":");
    add_string(&b, &failed, m->from, m->from_len);
    add_payload(&b, &failed, m);
    add_int(&b, &failed, ",\"attempt\":", m->attempt);
    add_int(&b, &failed, ",\"at\":", m->at_ms);
    add_raw(&b, &failed, ",\"by\":");
    add_string(&b, &failed, m->by, m->by_len);
    if (m->delivery_len > 0) {
        add_raw(&b, &failed, ",\"delivery\":");
        add_string(&b, &failed, m->delivery, m->delivery_len);
    }
    add_raw(&b, &failed, "}\n");
    if (failed)
        out->short_of_memory = true;
    else
        zc_print_json_text(out, (const char *)b.data, b.len);
    zc_buf_done(&b);
}

void zc_print_message(struct zc_out *out, const struct zc_args *args, const struct zmqcat_msg *m)
{
    if (args->json)
        zc_print_json(out, m);
    else
        zc_print_payload(out, m, args->raw);
}
