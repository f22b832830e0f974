/*
 * A log without a hub: opened, read and written by one thread that waits for the disk. Calls block.
 *
 * READ changes nothing, works where nothing can be written, and reads every byte of every segment
 * (no index is believed). It ends when all records were given; what opening would repair stays as
 * it is. A hub that has the directory open refuses it, and none can start meanwhile.
 */
#ifndef ZC_HOST_OFFLINE_H
#define ZC_HOST_OFFLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "host/disk_dir.h"
#include "store/log.h"

#define ZC_OFFLINE_FILES 4

enum zc_offline_mode { ZC_OFFLINE_READ, ZC_OFFLINE_WRITE };

struct zc_offline {
    enum zc_offline_mode mode;
    struct zc_disk_dir dir;
    struct zc_log *log;
    struct zc_rng rng;
    struct zc_offline_file {
        uint32_t segment; /* 0: none */
        int fd;
    } files[ZC_OFFLINE_FILES];
    uint32_t files_next;
    uint64_t bytes;              /* of all segments when opened */
    uint64_t smallest;           /* of them, or 0 */
    uint64_t bytes_read;         /* of segments, by the log */
    uint64_t aside, aside_bytes; /* files that were set aside */
    bool all_read;               /* READ: the log would write now */
    char why[ZC_WHY_MAX];        /* of the last failure: what, why, what to do */
};

/*
 * Opens the directory at path. WRITE makes it when it is missing, and takes its lock. sync and
 * segment_bytes: as the hub's; 0: as large as the segments that are there, else 8 MiB. 0; ZC_EBUSY:
 * a hub has it; ZC_EEXIST, ZC_ENOENT, ZC_EACCES: not a path of a log; or another error. In any case
 * zc_offline_done.
 */
ZC_MUST_CHECK int zc_offline_open(struct zc_offline *o, const char *path, enum zc_offline_mode mode,
                                  uint64_t segment_bytes, enum zc_log_sync sync);
/* The next event of the log. 1: there is one; 0: nothing more happens until something is appended
 * or the clock goes on; negative: it failed for good. */
ZC_MUST_CHECK int zc_offline_event(struct zc_offline *o, struct zc_log_event *ret_event);
/* Waits until the clock has gone on as far as the log wants, but not long. */
void zc_offline_wait(struct zc_offline *o);
/* Reads the whole record of a body of len bytes at place and checks it. 0 and the body, which lasts
 * until *buf is used again; ZC_EBADMSG: it is damaged. */
ZC_MUST_CHECK int zc_offline_read(struct zc_offline *o, uint64_t place, size_t len,
                                  struct zc_buf *buf, struct zc_slice *ret_body);
/* WRITE: everything that was appended is on disk, or negative. Nothing can be appended after it;
 * the lock is held until zc_offline_done. */
ZC_MUST_CHECK int zc_offline_finish(struct zc_offline *o);
void zc_offline_done(struct zc_offline *o);

#endif
