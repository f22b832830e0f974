/*
 * A simulated disk under the log: the requests of store/disk.h over files in memory.
 *
 * Each file has two images. `cache` is what a read sees; `platter` is what survives a power loss. A
 * write changes the cache and stays on the list of dirty writes until a sync of that file copies it
 * to the platter. A failed sync forgets the list, as Linux does: later syncs succeed although some
 * of the bytes never reached the platter. Directory entries have the same two states. Requests take
 * seeded time and complete in any order.
 */
#ifndef ZC_TESTS_SIM_DISK_H
#define ZC_TESTS_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rnd.h"
#include "store/disk.h"

#define DISK_PENDING_MAX 256
#define DISK_FILES_MAX 256
#define DISK_FOREVER INT64_MAX

/* Chances in a million for each request of that kind. */
struct disk_faults {
    uint32_t write_eio_ppm;
    uint32_t write_short_ppm;
    uint32_t write_full_ppm; /* ENOSPC inside preallocated space, as copy-on-write systems do */
    uint32_t sync_fail_ppm;
    uint32_t sync_slow_ppm; /* a sync of seconds */
    uint32_t create_eio_ppm;
    uint32_t read_eio_ppm;
};

struct disk_write {
    struct disk_write *next;
    uint64_t number; /* writes are numbered in the order in which they reach the cache */
    uint64_t offset;
    size_t len;
    uint8_t data[];
};

struct disk_file {
    uint32_t segment;
    bool present;  /* the process sees it */
    bool head_hit; /* a bit of its first bytes turned over */
    bool on_entry; /* the directory on the platter has it */
    uint8_t *cache, *platter;
    size_t size, platter_size, room; /* room: bytes allocated for both images */
    struct disk_write *dirty;
    struct disk_write **dirty_tail;
};

struct disk_index {
    uint32_t segment;
    uint8_t *data;
    size_t len;
};

enum disk_fate {
    DISK_FATE_OK,
    DISK_FATE_EIO,
    DISK_FATE_FULL,
    DISK_FATE_SHORT,
    DISK_FATE_SYNC_FAILS,
};

struct disk_pending {
    struct zc_disk_op op;
    int64_t at_ns;    /* it is complete */
    int64_t write_ns; /* of a write with sync: the bytes reach the cache and the sync begins */
    bool syncing;     /* that has happened */
    bool tells;       /* and is told */
    uint64_t mark;    /* the sync covers writes up to this number */
    enum disk_fate fate;
};

struct disk {
    struct rnd rnd;
    struct disk_faults faults;
    uint64_t capacity;     /* bytes that all files together may take */
    int64_t latency_ns[2]; /* least and most time of a request */
    bool lying;            /* syncs answer ok and do nothing: for the self-test */
    struct disk_file files[DISK_FILES_MAX];
    size_t files_len;
    struct disk_index indexes[DISK_FILES_MAX];
    size_t indexes_len;
    uint64_t indexes_written;
    struct disk_pending pending[DISK_PENDING_MAX];
    size_t pending_len;
    uint64_t faults_done; /* injected so far */
    uint64_t writes, syncs, set_aside;
    bool overloaded; /* more requests at once, or more files, than the model has room for */
};

void disk_init(struct disk *d, uint64_t seed);
void disk_done(struct disk *d);
/* Takes the request; op.data must stay valid until its completion or a crash. */
void disk_submit(struct disk *d, int64_t now_ns, const struct zc_disk_op *op);
/* Instant of the next completion, DISK_FOREVER when none is pending. */
int64_t disk_next(const struct disk *d);
/* Does one request that is due, or its first half, and gives its completion or the news of it. */
bool disk_complete(struct disk *d, int64_t now_ns, struct zc_disk_completion *ret_done);
/* Numbers of the files in the directory, in seeded order. Returns the count. */
size_t disk_segments(struct disk *d, uint32_t ret_segments[DISK_FILES_MAX]);
/* Bytes of all present files. */
uint64_t disk_bytes(const struct disk *d);

/* The process was killed: requests under way happen, half happen or do not; the cache survives. */
void disk_kill(struct disk *d);
/* The machine lost power: only the platter survives, and of what was not synced any part. */
void disk_power_loss(struct disk *d);

/* One bit of what is written somewhere turns over. Returns its segment, 0 when nothing is written.
 */
uint32_t disk_rot(struct disk *d, uint64_t *ret_offset);

/* disk_index.c */
int64_t disk_index_write(struct disk *d, const struct zc_disk_op *op, bool fails);
int64_t disk_index_read(struct disk *d, const struct zc_disk_op *op);
void disk_index_remove(struct disk *d, uint32_t segment);
void disk_index_power_loss(struct disk *d);
void disk_index_done(struct disk *d);

/* Shared with disk_do.c and disk_crash.c. */
int64_t disk_do(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate);
/* The second half of a write with sync: what was written up to number `mark` is durable. */
int64_t disk_do_sync(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate,
                     uint64_t mark);
void disk_file_reserve(struct disk_file *f, size_t size);
struct disk_file *disk_find(struct disk *d, uint32_t segment);
/* Frees f and moves the last file into its slot. */
void disk_file_delete(struct disk *d, struct disk_file *f);
/* Cache write plus a dirty entry. */
void disk_file_write(struct disk *d, struct disk_file *f, uint64_t offset, const uint8_t *data,
                     size_t len);
/* Copies to the platter, extending it. */
void disk_file_persist(struct disk_file *f, uint64_t offset, const uint8_t *data, size_t len);
/* Drops dirty entries up to number `mark`. */
void disk_file_forget_dirty(struct disk_file *f, uint64_t mark);

#endif
