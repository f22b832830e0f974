/* store check: reads and verifies all of a log and changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/json.h"
#include "say.h"
#include "store.h"

static int by_name(const void *pa, const void *pb)
{
    const struct zc_contents_box *a = *(struct zc_contents_box *const *)pa;
    const struct zc_contents_box *b = *(struct zc_contents_box *const *)pb;
    return zc_slice_cmp(zc_slice(a->name, a->len), zc_slice(b->name, b->len));
}

/* The counts of mailboxes that hold something, by name. */
static int add_boxes(struct zc_store *s, struct zc_buf *json)
{
    struct zc_contents *c = &s->contents;
    bool first = true;
    if (c->boxes_len > 0)
        qsort(c->boxes, c->boxes_len, sizeof(struct zc_contents_box *), by_name);
    int err = zc_json_put_raw(json, ",\"mailboxes\":{");
    for (uint32_t i = 0; err == 0 && i < c->boxes_len; i++) {
        const struct zc_contents_box *box = c->boxes[i];
        if (box->messages == 0)
            continue;
        if (!first)
            err = zc_json_put_raw(json, ",");
        first = false;
        if (err == 0)
            err = zc_json_put_string(json, zc_slice(box->name, box->len));
        if (err == 0)
            err = zc_json_put_raw(json, ":");
        if (err == 0)
            err = zc_json_put_int(json, (int64_t)box->messages);
    }
    return err == 0 ? zc_json_put_raw(json, "}") : err;
}

static int report(struct zc_store *s, const struct zc_log_status *st, uint64_t damaged)
{
    struct zc_buf json = {0};
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"segments", st->segments},
                {"bytes", s->log.bytes},
                {"live_bytes", st->live_bytes},
                {"messages", s->contents.messages},
                {"bindings", s->contents.bindings},
                {"remembered", s->contents.seen},
                {"damaged", damaged},
                {"damaged_bytes", st->damaged_bytes},
                {"torn_bytes", st->torn_bytes},
                {"set_aside", s->log.aside},
                {"set_aside_bytes", s->log.aside_bytes}};
    int err = zc_json_put_raw(&json, damaged == 0 ? "{\"clean\":true" : "{\"clean\":false");
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(&json, rows[i].key, (int64_t)rows[i].value);
    if (err == 0)
        err = add_boxes(s, &json);
    if (err == 0)
        return zc_store_print(s, &json);
    zc_buf_done(&json);
    return zc_store_fail(s, err, "out of memory");
}

int zc_store_check(struct zc_store *s)
{
    struct zc_log_status st;
    char why[120];
    int status = zc_store_load(s, ZC_OFFLINE_READ);
    if (status != 0)
        return status;
    zc_progress_end(&s->progress, s->log.bytes, s->contents.messages);
    zc_log_status(s->log.log, &st);
    uint64_t damaged = zc_store_damaged(s);
    status = report(s, &st, damaged);
    if (status != 0 || damaged == 0)
        return status;
    snprintf(why, sizeof why, "damaged: %" PRIu64 " record%s, about %" PRIu64 " bytes", damaged,
             damaged == 1 ? "" : "s", st.damaged_bytes);
    zc_say_fail(1, s->title, s->path, why);
    zc_say_hint("a hub leaves these out, keeps their files aside, and serves the rest; "
                "check the disk");
    return 1;
}
