/*
 * The disk under the log: a directory of segment files, held by one process at a time. Carries out
 * the requests of store/disk.h with real files, on libuv's thread pool, or on the loop where that
 * is allowed and the disk has shown to be fast, so that a slow disk stops nobody who does not wait
 * for it.
 *
 * In the directory: 00000001.zlog ... (segments), 00000001.zidx ... (their indexes), lock (held by
 * the running hub, with its process number for the reader), 00000001.damaged ... (segments that
 * held damage, kept when the log was done with them).
 */
#ifndef ZC_HOST_DISK_H
#define ZC_HOST_DISK_H

#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "host/why.h"
#include "store/disk.h"

struct zc_disk;

/* Called on the loop, maybe before zc_disk_submit returns. */
typedef void (*zc_disk_done_fn)(void *arg, const struct zc_disk_completion *done);

/*
 * Opens the directory at path, made with mode 0700 when it is missing (its parent must be there),
 * and takes its lock. *ret_segments (owned by the disk) are the numbers of the segments found.
 * Fails with ret_why (what is wrong and what to do, without the path): ZC_EBUSY: another hub holds
 * it; ZC_EEXIST: it is a regular file, or a directory of something else; ZC_EACCES, ZC_ENOENT,
 * ZC_EMFILE, ZC_ENOMEM, ZC_ENOSPC, ZC_EIO as they say. Blocks; for the start of the program.
 */
ZC_MUST_CHECK int zc_disk_open(const char *path, struct zc_disk **ret_disk,
                               const uint32_t **ret_segments, uint32_t *ret_count,
                               char ret_why[ZC_WHY_MAX]);
/* Completions come on this loop from now on. Once, before the first zc_disk_submit. */
void zc_disk_start(struct zc_disk *disk, uv_loop_t *loop);
/* Carries out a copy of op; op->data must stay until done was called. done is always called. */
void zc_disk_submit(struct zc_disk *disk, const struct zc_disk_op *op, zc_disk_done_fn done,
                    void *arg);
/* Tells, as completions, which writes with the disk have only their sync left. Cheap: for each turn
 * of the loop. NULL is fine. */
void zc_disk_poll(struct zc_disk *disk);
/* Gives the lock back. Requests still with the disk (after a loop that was cut short) keep their
 * memory, and the lock, until the process ends. NULL is fine. */
void zc_disk_close(struct zc_disk *disk);

#endif
