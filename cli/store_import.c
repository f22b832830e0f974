/*
 * store import: standard input becomes a log, or is added to one. The log is written anew beside
 * its place and takes it in one step, so that all is imported or nothing.
 */
#include "store_import.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/json.h"
#include "say.h"

/* What is at the path. */
enum place { NOTHING, EMPTY, LOG };

static int look(struct zc_store *s, enum place *ret_place)
{
    struct stat st;
    *ret_place = NOTHING;
    if (lstat(s->path, &st) != 0)
        return errno == ENOENT ? 0 : zc_store_fail(s, ZC_EACCES, "cannot be looked at");
    if (S_ISREG(st.st_mode))
        return zc_store_fail(s, ZC_EEXIST,
                             "is a file: name a directory, and give the file as standard input");
    if (!S_ISDIR(st.st_mode))
        return zc_store_fail(s, ZC_EEXIST, "is not a directory");
    *ret_place = zc_rebuild_empty(s->path) ? EMPTY : LOG;
    return 0;
}

/* Takes over all that lives in the log that is there. */
static int keep_old(struct zc_store_import *im)
{
    struct zc_store *s = im->s;
    struct zc_buf buf = {0};
    struct zc_slice body;

    int err = 0;
    struct zc_contents_entry **all = zc_contents_sorted(&s->contents);
    if (all == NULL)
        return zc_store_fail(s, ZC_ENOMEM, "out of memory");
    for (uint32_t i = 0; err == 0 && i < s->contents.live; i++) {
        const struct zc_contents_entry *e = all[i];
        uint64_t seq = e->type == ZC_RECORD_SEEN ? im->made.seq + 1 : e->key;
        err = zc_offline_read(&s->log, e->place, e->len, &buf, &body);

        if (err == 0 && e->type == ZC_RECORD_PUT)
            err = zc_rebuild_put(&im->made, seq, body, e->has_state, e->attempt, e->due_ms);
        else if (err == 0)
            err = zc_rebuild_add(&im->made, (enum zc_record_type)e->type, seq, body);
    }
    free(all);
    zc_buf_done(&buf);
    return err == 0 ? 0
                    : zc_store_fail(s, err == ZC_ENOMEM ? err : ZC_EIO,
                                    im->made.why[0] != '\0' ? im->made.why : s->log.why);
}

static int report(struct zc_store_import *im)
{
    struct zc_buf json = {0};
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"bindings", im->bindings}, {"remembered", im->remembered}};
    int err = zc_json_put_raw(&json, "{\"messages\":");
    if (err == 0)
        err = zc_json_put_int(&json, (int64_t)im->messages);
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(&json, rows[i].key, (int64_t)rows[i].value);
    if (err == 0)
        return zc_store_print(im->s, &json);
    zc_buf_done(&json);
    return zc_store_fail(im->s, err, "out of memory");
}

/* Everything between the new log's begin and its done. */
static int build(struct zc_store_import *im, enum place place)
{
    struct zc_store *s = im->s;
    int status = place == LOG ? keep_old(im) : 0;
    if (status != 0)
        return status;
    int err = zc_store_import_lines(im);
    if (err != 0) {
        status = zc_store_fail(s, ZC_EIO, im->why);
        zc_say_hint("nothing was imported");
        return status;
    }
    err = zc_rebuild_sync(&im->made, false);
    if (err == 0)
        err = zc_rebuild_place(&im->made, place == LOG);
    zc_progress_end(&s->progress, im->bytes, im->lines);
    return err == 0 ? report(im) : zc_store_fail(s, err, im->made.why);
}

int zc_store_import(struct zc_store *s)
{
    struct zc_store_import *im = calloc(1, sizeof *im);
    enum place place;
    if (im == NULL)
        return zc_store_fail(s, ZC_ENOMEM, "out of memory");
    im->s = s;
    int status = look(s, &place);
    if (status == 0 && place == LOG)
        status = zc_store_load(s, ZC_OFFLINE_READ);
    if (status == 0 && place == LOG && zc_store_damaged(s) > 0)
        status = zc_store_fail(s, ZC_EIO,
                               "has damaged records: start a hub on it once, which keeps "
                               "them aside, or name a new directory");
    if (status == 0) {
        int err = zc_rebuild_begin(&im->made, s->path, s->log.smallest);
        status = err == 0 ? build(im, place) : zc_store_fail(s, err, im->made.why);
        zc_rebuild_done(&im->made);
    }
    zc_buf_done(&im->in);
    free(im);
    return status;
}
