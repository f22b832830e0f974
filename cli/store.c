/* store: verifies, exports, imports and compacts the log of a durable hub that is not running. */
#include "store.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "say.h"
#include "table.h"
#include "verbs.h"

static const struct {
    const char *name;
    int (*run)(struct zc_store *s);
} actions[] = {{"check", zc_store_check},
               {"export", zc_store_export},
               {"import", zc_store_import},
               {"compact", zc_store_compact}};

int zc_store_fail(struct zc_store *s, int err, const char *why)
{
    bool path = err == ZC_EEXIST || err == ZC_ENOENT || err == ZC_EACCES || err == ZC_EINVAL;
    zc_progress_end(&s->progress, s->log.bytes_read, s->contents.messages);
    return zc_say_fail(path ? 78 : 1, s->title, s->path, why);
}

uint64_t zc_store_damaged(const struct zc_store *s)
{
    struct zc_log_status st;
    zc_log_status(s->log.log, &st);
    return st.damaged + s->contents.unreadable;
}

int zc_store_load(struct zc_store *s, enum zc_offline_mode mode)
{
    struct zc_log_event ev;
    enum zc_log_sync sync = ZC_LOG_SYNC_ALWAYS;
    int r = zc_offline_open(&s->log, s->path, mode, 0, sync);
    s->open = true;
    if (r != 0)
        return zc_store_fail(s, r, s->log.why);
    zc_progress_init(&s->progress, s->title, s->path, "messages", s->log.bytes);
    if (mode == ZC_OFFLINE_WRITE)
        s->contents.log = s->log.log;
    while ((r = zc_offline_event(&s->log, &ev)) == 1) {
        if (ev.kind == ZC_LOG_READY)
            break;
        if (ev.kind == ZC_LOG_RECORD && zc_contents_record(&s->contents, &ev) != 0)
            return zc_store_fail(s, ZC_ENOMEM, "out of memory");
        zc_progress_show(&s->progress, s->log.bytes_read, s->contents.messages);
    }
    if (r < 0)
        return zc_store_fail(s, r == ZC_EINVAL ? r : ZC_EIO, s->log.why);
    return 0;
}

int zc_store_print(struct zc_store *s, struct zc_buf *json)
{
    struct zc_out out;
    zc_out_init(&out, NULL);
    int err = zc_json_put_raw(json, "}\n");
    if (err != 0)
        out.short_of_memory = true;
    else if (s->args->json)
        zc_out_raw(&out, json->data, json->len);
    else if (!zc_table_print(&out, json->data, json->len))
        out.short_of_memory = true;
    int status = zc_out_flush(&out);
    zc_out_done(&out);
    zc_buf_done(json);
    return status;
}

int zc_store_run(const struct zc_args *args)
{
    struct zc_store s = {.args = args, .action = args->rest[0]};
    size_t i = 0;
    while (i < ZC_ARRAY_LEN(actions) && strcmp(s.action, actions[i].name) != 0)
        i++;
    if (i == ZC_ARRAY_LEN(actions))
        return zc_say_usage(args->verb, "say `check`, `export`, `import` or `compact`");
    if (args->rest_count < 2)
        return zc_say_usage(args->verb, "missing path: the directory given to --mailbox");
    s.path = args->rest[1];
    snprintf(s.title, sizeof s.title, "%s %s", args->verb, actions[i].name);
    int status = actions[i].name[0] == 'i' ? 0 : zc_out_usable();
    if (status == 0)
        status = actions[i].run(&s);
    if (s.open)
        zc_offline_done(&s.log);
    zc_contents_done(&s.contents);
    return status;
}
