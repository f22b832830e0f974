/*
 * A log written anew beside its place: PATH.new is filled and synced, then takes the place of PATH
 * in one step of the file system. Until then PATH is as it was, whatever fails; a PATH.new that was
 * left behind is made anew.
 */
#ifndef ZC_HOST_REBUILD_H
#define ZC_HOST_REBUILD_H

#include <limits.h>

#include "host/offline.h"

struct zc_rebuild {
    const char *path;
    char new_path[PATH_MAX];
    struct zc_offline log; /* at new_path */
    uint64_t seq;          /* highest that was used */
    bool open;             /* PATH.new is removed by done() */
    char why[ZC_WHY_MAX];  /* of the last failure, after a path; empty: none */
};

/* Makes an empty PATH.new and locks it. Negative: r->why; ZC_EBUSY: somebody else is at it. */
ZC_MUST_CHECK int zc_rebuild_begin(struct zc_rebuild *r, const char *path, uint64_t segment_bytes);
/* Appends a message (body: a stored item); `state`: with attempt and due time, which count more
 * than its own. */
ZC_MUST_CHECK int zc_rebuild_put(struct zc_rebuild *r, uint64_t seq, struct zc_slice body,
                                 bool state, uint32_t attempt, int64_t due_ms);
/* Appends a BIND or SEEN record. */
ZC_MUST_CHECK int zc_rebuild_add(struct zc_rebuild *r, enum zc_record_type type, uint64_t seq,
                                 struct zc_slice body);
/* Everything is on disk at PATH.new, which stays locked. `whole`: PATH.new says so, for somebody
 * who finds it when this process is gone. */
ZC_MUST_CHECK int zc_rebuild_sync(struct zc_rebuild *r, bool whole);
/* After it: PATH.new becomes PATH, where nothing is (replace: where another log is, which is
 * removed but for what was set aside in it). */
ZC_MUST_CHECK int zc_rebuild_place(struct zc_rebuild *r, bool replace);
/* Gives the lock back; what was not placed is removed. */
void zc_rebuild_done(struct zc_rebuild *r);

/* PATH.new is there and says that it is whole. */
bool zc_rebuild_whole(const char *new_path);
/* The log at path, which has its place, says nothing of having been made anew. */
void zc_rebuild_unmark(const char *path);
/* The directory at path is empty. */
bool zc_rebuild_empty(const char *path);

#endif
