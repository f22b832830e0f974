/*
 * A disk in memory for the tests of the log: files with a page cache over stable sectors, faults by
 * script or by chance, and crashes that keep any part of what was not synced. Requests are carried
 * out when the test says so; a WRITE with sync also in two steps, between which others may write to
 * the file. Its sync is for what was written when it began; the disk picks freely what it does to
 * the rest.
 */
#ifndef ZC_TESTS_UNIT_STORE_DISK_H
#define ZC_TESTS_UNIT_STORE_DISK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/err.h"
#include "store/disk.h"

#define FD_SECTOR 512
#define FD_FILES 512
#define FD_QUEUE 64

struct fd_file {
    uint32_t number;
    bool durable; /* its directory entry was synced */
    size_t size, cap;
    uint8_t *cache, *stable, *dirty; /* dirty: one byte a sector */
    uint8_t *snap, *snap_dirty;      /* when the sync under way began, or NULL */
    size_t snap_cap;
};

struct fd {
    struct fd_file files[FD_FILES];
    int count;
    struct zc_disk_op queue[FD_QUEUE];
    bool begun[FD_QUEUE];    /* written, the sync is under way */
    uint32_t sums[FD_QUEUE]; /* of the bytes to write */
    int queued;
    uint64_t seed;
    uint64_t capacity; /* bytes of all files, 0: no limit */
    uint64_t asides, indexes;
    /* counters */
    uint64_t ops, writes, syncs, creates, removes, reads;
    /* faults: the op with this number (from 1) fails; rates are per 1000 */
    uint64_t fail_at;
    int fail_err;
    int fail_rate;
    bool fail_writes;  /* every WRITE */
    bool fail_syncs;   /* every WRITE with sync: the data is dropped */
    bool fail_creates; /* every CREATE, with fail_err */
    bool fail_indexes; /* every INDEX_WRITE: no space */
    bool fail_reads;   /* every READ at or above fail_from */
    uint64_t fail_from, fail_to;
    bool fail_removes;
    bool spare_reads; /* the rate is not for READ: to a log that opens, a failing block is damage */
};

static inline uint64_t fd_rand(struct fd *d)
{
    d->seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = d->seed;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline struct fd_file *fd_find(struct fd *d, uint32_t number)
{
    for (int i = 0; i < d->count; i++)
        if (d->files[i].number == number)
            return &d->files[i];
    return NULL;
}

static inline void fd_size(struct fd_file *f, size_t size)
{
    size_t cap = (size + FD_SECTOR - 1) / FD_SECTOR * FD_SECTOR;
    if (cap > f->cap) {
        f->cache = realloc(f->cache, cap);
        f->stable = realloc(f->stable, cap);
        f->dirty = realloc(f->dirty, cap / FD_SECTOR);
        memset(f->cache + f->cap, 0, cap - f->cap);
        memset(f->stable + f->cap, 0, cap - f->cap);
        memset(f->dirty + f->cap / FD_SECTOR, 0, (cap - f->cap) / FD_SECTOR);
        f->cap = cap;
    }
    if (size > f->size)
        f->size = size;
}

static inline struct fd_file *fd_add(struct fd *d, uint32_t number, size_t size)
{
    struct fd_file *f = &d->files[d->count++];
    if (d->count > FD_FILES)
        abort();
    *f = (struct fd_file){.number = number};
    fd_size(f, size);
    return f;
}

static inline void fd_snap_drop(struct fd_file *f)
{
    free(f->snap);
    free(f->snap_dirty);
    f->snap = f->snap_dirty = NULL;
    f->snap_cap = 0;
}

static inline void fd_drop(struct fd *d, struct fd_file *f)
{
    fd_snap_drop(f);
    free(f->cache);
    free(f->stable);
    free(f->dirty);
    *f = d->files[--d->count];
}

static inline void fd_done(struct fd *d)
{
    while (d->count > 0)
        fd_drop(d, &d->files[0]);
}

/* The process is gone; the kernel goes on. */
static inline void fd_kill(struct fd *d)
{
    for (int i = 0; i < d->count; i++)
        fd_snap_drop(&d->files[i]);
    d->queued = 0;
}

static inline uint64_t fd_bytes(struct fd *d)
{
    uint64_t sum = 0;
    for (int i = 0; i < d->count; i++)
        sum += d->files[i].size;
    return sum;
}

/* Puts bytes straight into a file, stable. */
static inline void fd_poke(struct fd_file *f, uint64_t offset, const void *data, size_t len)
{
    fd_size(f, offset + len);
    if (len == 0)
        return;
    memcpy(f->cache + offset, data, len);
    memcpy(f->stable + offset, data, len);
}

/* One bit turns over on the disk. */
static inline void fd_flip(struct fd_file *f, uint64_t bit)
{
    f->cache[bit / 8] ^= (uint8_t)(1 << bit % 8);
    f->stable[bit / 8] = f->cache[bit / 8];
}

static inline void fd_flush(struct fd_file *f)
{
    for (size_t s = 0; s < f->cap / FD_SECTOR; s++) {
        if (f->dirty[s])
            memcpy(f->stable + s * FD_SECTOR, f->cache + s * FD_SECTOR, FD_SECTOR);
        f->dirty[s] = 0;
    }
}

/* An fsync of the directory covers all its entries. */
static inline void fd_sync_dir(struct fd *d)
{
    for (int i = 0; i < d->count; i++)
        d->files[i].durable = true;
}

static inline void fd_store(struct fd_file *f, uint64_t offset, const uint8_t *data, size_t len)
{
    if (len == 0)
        return;
    memcpy(f->cache + offset, data, len);
    for (size_t s = offset / FD_SECTOR; s <= (offset + len - 1) / FD_SECTOR; s++)
        f->dirty[s] = 1;
}

/* The first step of a WRITE with sync. False: it has one step only. */
static inline bool fd_begin(struct fd *d, const struct zc_disk_op *op)
{
    struct fd_file *f = fd_find(d, op->segment);
    if (f == NULL || op->kind != ZC_DISK_WRITE || !op->sync || d->fail_writes || f->snap != NULL ||
        op->offset + op->len > f->size)
        return false;
    fd_store(f, op->offset, op->data, op->len);
    f->snap_cap = f->cap;
    f->snap = malloc(f->cap);
    f->snap_dirty = malloc(f->cap / FD_SECTOR);
    memcpy(f->snap, f->cache, f->cap);
    memcpy(f->snap_dirty, f->dirty, f->cap / FD_SECTOR);
    return true;
}

/* The second step: each sector as it was at the first, or as it is now. After a failure some of
 * them, and the others pass for clean. */
static inline int64_t fd_end(struct fd *d, const struct zc_disk_op *op, int fault)
{
    struct fd_file *f = fd_find(d, op->segment);
    bool bad = fault != 0 || d->fail_syncs;
    if (f == NULL || f->snap == NULL)
        return ZC_ENOENT;
    d->writes++;
    for (size_t s = 0; s < f->cap / FD_SECTOR; s++) {
        uint8_t *stable = f->stable + s * FD_SECTOR, *now = f->cache + s * FD_SECTOR;
        bool mine = s < f->snap_cap / FD_SECTOR && f->snap_dirty[s];
        if (!f->dirty[s] || (bad ? fd_rand(d) % 2 == 0 : !mine && fd_rand(d) % 4 != 0)) {
            f->dirty[s] = f->dirty[s] && !(bad && (mine || fd_rand(d) % 2 == 0));
            continue;
        }
        if (mine && fd_rand(d) % 2 == 0)
            memcpy(stable, f->snap + s * FD_SECTOR, FD_SECTOR);
        else
            memcpy(stable, now, FD_SECTOR);
        f->dirty[s] = !bad && memcmp(stable, now, FD_SECTOR) != 0;
    }
    fd_snap_drop(f);
    if (bad)
        return fault != 0 ? fault : ZC_EIO;
    d->syncs++;
    if (op->sync_dir)
        fd_sync_dir(d);
    return (int64_t)op->len;
}

static inline int64_t fd_write(struct fd *d, const struct zc_disk_op *op, int fault)
{
    struct fd_file *f = fd_find(d, op->segment);
    if (f == NULL)
        return ZC_ENOENT;
    size_t len = op->len;
    d->writes++;
    if (d->fail_writes || (fault != 0 && (!op->sync || fd_rand(d) % 2 == 0))) {
        /* Part of it may have been written. */
        len = len > 0 ? fd_rand(d) % len : 0;
        fault = fault != 0 ? fault : ZC_EIO;
    }
    if (op->offset + len > f->size) {
        if (d->capacity != 0 && fd_bytes(d) + op->offset + len - f->size > d->capacity)
            return ZC_ENOSPC;
        fd_size(f, op->offset + len);
    }
    fd_store(f, op->offset, op->data, len);
    if (op->sync && (fault != 0 || d->fail_syncs)) {
        /* Linux after a failed fsync: some pages made it, the others are marked clean. */
        for (size_t s = 0; s < f->cap / FD_SECTOR; s++) {
            if (f->dirty[s] && fd_rand(d) % 2 == 0)
                memcpy(f->stable + s * FD_SECTOR, f->cache + s * FD_SECTOR, FD_SECTOR);
            f->dirty[s] = 0;
        }
        return fault != 0 ? fault : ZC_EIO;
    }
    if (op->sync) {
        fd_flush(f);
        d->syncs++;
        if (op->sync_dir)
            fd_sync_dir(d);
    }
    return fault != 0 ? fault : (int64_t)op->len;
}

static inline int64_t fd_read(struct fd *d, const struct zc_disk_op *op)
{
    struct fd_file *f = fd_find(d, op->segment);
    if (f == NULL)
        return ZC_ENOENT;
    d->reads++;
    if (d->fail_reads && op->offset + op->len > d->fail_from && op->offset < d->fail_to)
        return ZC_EIO;
    if (op->uncached)
        for (size_t s = 0; s < f->cap / FD_SECTOR; s++)
            if (!f->dirty[s])
                memcpy(f->cache + s * FD_SECTOR, f->stable + s * FD_SECTOR, FD_SECTOR);
    if (op->offset >= f->size)
        return 0;
    size_t n = f->size - op->offset < op->len ? f->size - op->offset : op->len;
    memcpy(op->data, f->cache + op->offset, n);
    return (int64_t)n;
}

static inline int64_t fd_create(struct fd *d, const struct zc_disk_op *op, int fault)
{
    if (fault != 0 || d->fail_creates)
        return fault != 0 ? fault : d->fail_err;
    if (fd_find(d, op->segment) != NULL)
        return ZC_EEXIST;
    if (d->capacity != 0 && fd_bytes(d) + op->size > d->capacity)
        return ZC_ENOSPC;
    d->creates++;
    fd_add(d, op->segment, op->size);
    return 0;
}

#define FD_INDEX (UINT32_C(1) << 31)

/* The index of a segment is a file with a number beyond all segments. */
static inline int64_t fd_index(struct fd *d, const struct zc_disk_op *op, int fault)
{
    struct zc_disk_op file = *op;
    struct fd_file *f = fd_find(d, op->segment | FD_INDEX);
    file.segment |= FD_INDEX;
    if (op->kind == ZC_DISK_INDEX_READ)
        return fault != 0 ? fault : fd_read(d, &file);
    if (f != NULL)
        fd_drop(d, f);
    if (d->fail_indexes)
        return ZC_ENOSPC;
    fd_add(d, file.segment, 0);
    d->indexes++;
    return fd_write(d, &file, fault);
}

/* Carries one request out, or the rest of one that has begun. */
static inline int64_t fd_do(struct fd *d, const struct zc_disk_op *op, bool begun)
{
    int fault = 0;
    d->ops++;
    if (d->ops == d->fail_at || (d->fail_rate > 0 && (int)(fd_rand(d) % 1000) < d->fail_rate &&
                                 !(d->spare_reads && op->kind == ZC_DISK_READ)))
        fault = d->fail_err != 0 ? d->fail_err : ZC_EIO;
    switch (op->kind) {
    case ZC_DISK_CREATE:
        return fd_create(d, op, fault);
    case ZC_DISK_WRITE:
        return begun ? fd_end(d, op, fault) : fd_write(d, op, fault);
    case ZC_DISK_READ:
        return fault != 0 ? fault : fd_read(d, op);
    case ZC_DISK_REMOVE: {
        struct fd_file *f = fd_find(d, op->segment);
        if (fault != 0 || d->fail_removes)
            return fault != 0 ? fault : ZC_EIO;
        if (f == NULL)
            return ZC_ENOENT;
        d->removes++;
        d->asides += op->aside;
        fd_drop(d, f);
        f = fd_find(d, op->segment | FD_INDEX);
        if (f != NULL)
            fd_drop(d, f);
        if (op->sync_dir)
            fd_sync_dir(d);
        return 0;
    }
    case ZC_DISK_INDEX_READ:
    case ZC_DISK_INDEX_WRITE:
        return fd_index(d, op, fault);
    }
    return ZC_EINVAL;
}

/* Power loss: of each sector that was not synced the old, the new or half of both is found. */
static inline void fd_crash(struct fd *d)
{
    for (int i = 0; i < d->count; i++) {
        struct fd_file *f = &d->files[i];
        fd_snap_drop(f);
        if (!f->durable && fd_rand(d) % 2 == 0) {
            fd_drop(d, f);
            i--;
            continue;
        }
        f->durable = true;
        for (size_t s = 0; s < f->cap / FD_SECTOR; s++) {
            uint8_t *old = f->stable + s * FD_SECTOR, *now = f->cache + s * FD_SECTOR;
            uint64_t pick = f->dirty[s] ? fd_rand(d) % 4 : 0;
            f->dirty[s] = 0;
            if (pick == 1)
                memcpy(old, now, FD_SECTOR);
            if (pick == 2)
                memcpy(old, now, fd_rand(d) % FD_SECTOR);
            if (pick == 3) {
                size_t from = fd_rand(d) % FD_SECTOR;
                memcpy(old + from, now + from, FD_SECTOR - from);
            }
            memcpy(now, old, FD_SECTOR);
        }
    }
    d->queued = 0;
}

static inline int fd_segments(struct fd *d)
{
    int n = 0;
    for (int i = 0; i < d->count; i++)
        n += (d->files[i].number & FD_INDEX) == 0;
    return n;
}

/* The numbers of all segments; how many there are. */
static inline uint32_t fd_list(struct fd *d, uint32_t *ret_numbers)
{
    uint32_t n = 0;
    for (int i = 0; i < d->count; i++)
        if ((d->files[i].number & FD_INDEX) == 0)
            ret_numbers[n++] = d->files[i].number;
    return n;
}

#endif
