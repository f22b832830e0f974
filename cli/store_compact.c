/* store compact: what lives in a log is written anew, and all older segments go. */
#include <stdio.h>

#include "base/check.h"
#include "base/json.h"
#include "host/clock.h"
#include "say.h"
#include "store.h"

static int rewrite(struct zc_store *s)
{
    struct zc_log_event ev;
    struct zc_log_status st;
    int r;
    zc_contents_expire(&s->contents, zc_clock_now().wall.ms);
    zc_progress_init(&s->progress, s->title, s->path, "records", s->contents.live);
    zc_log_compact(s->log.log);
    while ((r = zc_offline_event(&s->log, &ev)) == 1 || (r == 0 && zc_log_compacting(s->log.log))) {
        if (r == 0)
            zc_offline_wait(&s->log);
        else if (ev.kind == ZC_LOG_MOVE)
            zc_contents_move(&s->contents, &ev);
        zc_log_status(s->log.log, &st);
        zc_progress_show(&s->progress, st.moved, st.moved);
    }
    if (r == 0)
        r = zc_offline_finish(&s->log);
    zc_log_status(s->log.log, &st);
    zc_progress_end(&s->progress, st.moved, st.moved);
    return r == 0 ? 0 : zc_store_fail(s, ZC_EIO, s->log.why);
}

/* Opening to write would make a log at a path that was mistyped. 0 or the exit status; a log in use
 * is there. */
static int must_be_there(struct zc_store *s)
{
    int err = zc_offline_open(&s->log, s->path, ZC_OFFLINE_READ, 0, ZC_LOG_SYNC_ALWAYS);
    int status = err == 0 || err == ZC_EBUSY ? 0 : zc_store_fail(s, err, s->log.why);
    zc_offline_done(&s->log);
    return status;
}

int zc_store_compact(struct zc_store *s)
{
    struct zc_buf json = {0};
    struct zc_log_status st;
    int status = must_be_there(s);
    if (status == 0)
        status = zc_store_load(s, ZC_OFFLINE_WRITE);
    if (status != 0)
        return status;
    zc_progress_end(&s->progress, s->log.bytes_read, s->contents.messages);
    status = rewrite(s);
    if (status != 0)
        return status;
    zc_log_status(s->log.log, &st);
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"bytes_before", s->log.bytes},
                {"bytes", st.bytes},
                {"segments", st.segments},
                {"messages", s->contents.messages},
                {"damaged", zc_store_damaged(s)}};
    int err = zc_json_put_raw(&json, "{\"compacted\":true");
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(&json, rows[i].key, (int64_t)rows[i].value);
    if (err == 0)
        return zc_store_print(s, &json);
    zc_buf_done(&json);
    return zc_store_fail(s, err, "out of memory");
}
