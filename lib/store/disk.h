/*
 * What the log asks of a disk. Requests go out of the core, completions come in; the host does them
 * with real files, the simulator with faults. Segments are named by number; the host maps number n
 * to the file name that zc_disk_name gives.
 */
#ifndef ZC_STORE_DISK_H
#define ZC_STORE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zc_disk_kind {
    /* Makes segment `segment` of `size` bytes, all zero and preallocated; fails with ZC_EEXIST when
     * it is there. The file is synced; the directory is not. */
    ZC_DISK_CREATE,
    /* Writes data[0..len) at offset; with `sync`, completes only after fdatasync (and, when
     * `sync_dir` too, an fsync of the directory). Past the end it extends the file. len may be 0:
     * only the sync. */
    ZC_DISK_WRITE,
    /* Reads up to len bytes at offset into data; completion `result` is the count, less than len
     * only at the end of the file. With `uncached` the page cache is dropped for the range first.
     */
    ZC_DISK_READ,
    /* Removes the segment; with `sync_dir`, completes only after an fsync of the directory. */
    ZC_DISK_REMOVE,
    /* The index of the segment, a file beside it that may be missing: a disk without them fails
     * these. INDEX_WRITE replaces all of it, and syncs nothing; INDEX_READ as READ. REMOVE removes
     * it as well. */
    ZC_DISK_INDEX_WRITE,
    ZC_DISK_INDEX_READ,
};

/* One request. Memory in data stays valid until its completion came back. */
struct zc_disk_op {
    enum zc_disk_kind kind;
    uint64_t id;      /* chosen by the log, given back in the completion */
    uint32_t segment; /* 1.. */
    uint64_t offset;
    uint8_t *data;
    size_t len;
    uint64_t size;  /* CREATE */
    bool sync;      /* WRITE */
    bool sync_dir;  /* WRITE, REMOVE: the directory entry must be durable as well */
    bool inline_ok; /* at most one client waits: doing it on the loop saves a thread hop */
    bool uncached;  /* READ */
    bool aside;     /* REMOVE: damaged, keep the bytes under a name that is no segment's */
};

struct zc_disk_completion {
    uint64_t id;
    int64_t result; /* bytes (READ, WRITE), 0, or a negative zc_err */
    /* Not the end of a WRITE with `sync`, but news of it, at most once and before its completion:
     * the bytes are written, the sync has begun or will now. A disk need not tell. */
    bool written;
};

#define ZC_DISK_NAME_MAX 32
/* Higher numbers are not ours: one after them could wrap. */
#define ZC_DISK_SEGMENT_MAX UINT64_C(4000000000)
/* "00000001.zlog" */
void zc_disk_name(uint32_t segment, char ret_name[ZC_DISK_NAME_MAX]);
/* "00000001.zidx" */
void zc_disk_index_name(uint32_t segment, char ret_name[ZC_DISK_NAME_MAX]);
/* The number in such a name, or 0. */
uint32_t zc_disk_number(const char *name);

#endif
