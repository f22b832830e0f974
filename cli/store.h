/* The log of a durable hub, off line: what the actions of `store` share. */
#ifndef ZC_CLI_STORE_H
#define ZC_CLI_STORE_H

#include "args.h"
#include "host/offline.h"
#include "node/contents.h"
#include "out.h"
#include "progress.h"

struct zc_store {
    const struct zc_args *args;
    const char *action, *path;
    char title[32]; /* `store ACTION` */
    struct zc_offline log;
    bool open;
    struct zc_contents contents;
    struct zc_progress progress;
};

/* Each returns the exit status. */
int zc_store_check(struct zc_store *s);
int zc_store_export(struct zc_store *s);
int zc_store_import(struct zc_store *s);
int zc_store_compact(struct zc_store *s);

/* Says what failed with the log; err chooses the status: 78 for a path that cannot be one. */
int zc_store_fail(struct zc_store *s, int err, const char *why);
/* Opens the log at s->path and reads all that lives into s->contents, with a progress of what was
 * read. 0 or the exit status. */
int zc_store_load(struct zc_store *s, enum zc_offline_mode mode);
/* Damaged records, what cannot be understood included. */
uint64_t zc_store_damaged(const struct zc_store *s);
/* One JSON object in `json`: as it is with --json, else as lines. Frees it. */
int zc_store_print(struct zc_store *s, struct zc_buf *json);

#endif
