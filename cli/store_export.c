/* store export: all that lives in a log as lines of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/clock.h"
#include "node/dump.h"
#include "print.h"
#include "say.h"
#include "store.h"

#define FLUSH 65536

/* One export. */
struct export
{
    struct zc_store *s;
    struct zc_out out;
    struct zc_buf record, line;
    uint64_t lines;
    uint64_t lost; /* records that became unreadable meanwhile */
};

/* Appends the line of one entry to x->line. */
static int add(struct export *x, const struct zc_contents_entry *e)
{
    struct zc_slice body;
    struct zc_item item;
    int err = zc_offline_read(&x->s->log, e->place, e->len, &x->record, &body);
    if (err != 0)
        return err;
    if (e->type == ZC_RECORD_BIND)
        return zc_dump_bind(&x->line, e->key, body);
    if (e->type == ZC_RECORD_SEEN)
        return zc_dump_seen(&x->line, body);
    err = zc_item_decode(body, &item);
    int64_t due_ms = e->has_state ? e->due_ms : item.due_ms;
    return err != 0 ? err : zc_dump_message(&x->line, e->key, e->attempt, due_ms, &item);
}

static int flush(struct export *x, size_t least)
{
    if (x->line.len < least)
        return 0;
    zc_print_json_text(&x->out, (const char *)x->line.data, x->line.len);
    x->line.len = 0;
    return zc_out_flush(&x->out);
}

static int write_all(struct export *x, struct zc_contents_entry **all)
{
    struct zc_store *s = x->s;
    int err = zc_dump_head(&x->line), status = 0;
    zc_progress_init(&s->progress, s->title, s->path, "lines", s->contents.live);
    for (uint32_t i = 0; err == 0 && status == 0 && i < s->contents.live; i++) {
        err = add(x, all[i]);
        x->lines += err == 0;
        x->lost += err == ZC_EBADMSG;
        err = err == ZC_EBADMSG ? 0 : err;
        status = err == 0 ? flush(x, FLUSH) : 0;
        if (!x->out.terminal)
            zc_progress_show(&s->progress, i + 1, i + 1);
    }
    if (err == 0 && status == 0)
        err = zc_dump_end(&x->line, x->lines);
    if (err == 0 && status == 0)
        status = flush(x, 0);
    zc_progress_end(&s->progress, s->contents.live, x->lines);
    return err != 0 ? zc_store_fail(s, err, err == ZC_ENOMEM ? "out of memory" : s->log.why)
                    : status;
}

int zc_store_export(struct zc_store *s)
{
    struct export x = {.s = s};
    char why[100];
    int status = zc_store_load(s, ZC_OFFLINE_READ);
    if (status != 0)
        return status;
    zc_progress_end(&s->progress, s->log.bytes, s->contents.messages);
    zc_contents_expire(&s->contents, zc_clock_now().wall.ms);
    struct zc_contents_entry **all = zc_contents_sorted(&s->contents);
    if (all == NULL)
        return zc_store_fail(s, ZC_ENOMEM, "out of memory");
    zc_out_init(&x.out, NULL);
    status = write_all(&x, all);
    free(all);
    zc_out_done(&x.out);
    zc_buf_done(&x.record);
    zc_buf_done(&x.line);
    uint64_t damaged = zc_store_damaged(s) + x.lost;
    if (status != 0 || damaged == 0)
        return status;
    snprintf(why, sizeof why, "%" PRIu64 " damaged records are left out; all others were written",
             damaged);
    return zc_say_fail(1, s->title, s->path, why);
}
