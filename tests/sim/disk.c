/*
 * The simulated disk: requests, their time and their faults. Crashes are in disk_crash.c.
 * Deliberately absent: a model of sectors that damage their neighbours, and of reads that are slow.
 */
#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"

void disk_init(struct disk *d, uint64_t seed)
{
    memset(d, 0, sizeof *d);
    d->rnd.state = seed;
    d->capacity = UINT64_MAX;
    d->latency_ns[0] = 50000;
    d->latency_ns[1] = 2000000;
}

void disk_file_forget_dirty(struct disk_file *f)
{
    while (f->dirty != NULL) {
        struct disk_write *w = f->dirty;
        f->dirty = w->next;
        free(w);
    }
    f->dirty_tail = &f->dirty;
}

static void file_done(struct disk_file *f)
{
    disk_file_forget_dirty(f);
    free(f->cache);
    free(f->platter);
    memset(f, 0, sizeof *f);
}

void disk_file_delete(struct disk *d, struct disk_file *f)
{
    file_done(f);
    *f = d->files[--d->files_len];
    if (f->dirty == NULL)
        f->dirty_tail = &f->dirty;
}

void disk_done(struct disk *d)
{
    for (size_t i = 0; i < d->files_len; i++)
        file_done(&d->files[i]);
    memset(d, 0, sizeof *d);
}

struct disk_file *disk_find(struct disk *d, uint32_t segment)
{
    for (size_t i = 0; i < d->files_len; i++)
        if (d->files[i].present && d->files[i].segment == segment)
            return &d->files[i];
    return NULL;
}

void disk_file_reserve(struct disk_file *f, size_t size)
{
    if (size <= f->room)
        return;
    f->cache = realloc(f->cache, size);
    f->platter = realloc(f->platter, size);
    ZC_ASSERT(f->cache != NULL && f->platter != NULL);
    memset(f->cache + f->room, 0, size - f->room);
    memset(f->platter + f->room, 0, size - f->room);
    f->room = size;
}

void disk_file_persist(struct disk_file *f, uint64_t offset, const uint8_t *data, size_t len)
{
    disk_file_reserve(f, offset + len);
    memcpy(f->platter + offset, data, len);
    if (offset + len > f->platter_size)
        f->platter_size = offset + len;
}

void disk_file_write(struct disk_file *f, uint64_t offset, const uint8_t *data, size_t len)
{
    struct disk_write *w;
    if (len == 0)
        return;
    w = malloc(sizeof *w + len);
    ZC_ASSERT(w != NULL);
    w->next = NULL;
    w->offset = offset;
    w->len = len;
    memcpy(w->data, data, len);
    disk_file_reserve(f, offset + len);
    memcpy(f->cache + offset, data, len);
    if (offset + len > f->size)
        f->size = offset + len;
    *f->dirty_tail = w;
    f->dirty_tail = &w->next;
}

uint64_t disk_bytes(const struct disk *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->files_len; i++)
        if (d->files[i].present)
            sum += d->files[i].size;
    return sum;
}

static enum disk_fate choose_fate(struct disk *d, const struct zc_disk_op *op)
{
    const struct disk_faults *f = &d->faults;
    if (op->kind == ZC_DISK_CREATE)
        return rnd_ppm(&d->rnd, f->create_eio_ppm) ? DISK_FATE_EIO : DISK_FATE_OK;
    if (op->kind == ZC_DISK_READ)
        return rnd_ppm(&d->rnd, f->read_eio_ppm) ? DISK_FATE_EIO : DISK_FATE_OK;
    if (op->kind != ZC_DISK_WRITE)
        return DISK_FATE_OK;
    if (rnd_ppm(&d->rnd, f->write_eio_ppm))
        return DISK_FATE_EIO;
    if (rnd_ppm(&d->rnd, f->write_full_ppm))
        return DISK_FATE_FULL;
    if (op->len > 1 && rnd_ppm(&d->rnd, f->write_short_ppm))
        return DISK_FATE_SHORT;
    if (op->sync && rnd_ppm(&d->rnd, f->sync_fail_ppm))
        return DISK_FATE_SYNC_FAILS;
    return DISK_FATE_OK;
}

void disk_submit(struct disk *d, int64_t now_ns, const struct zc_disk_op *op)
{
    struct disk_pending *p;
    int64_t took = rnd_range(&d->rnd, d->latency_ns[0], d->latency_ns[1]);
    if (d->pending_len == DISK_PENDING_MAX) {
        d->overloaded = true;
        return;
    }
    if (op->sync && rnd_ppm(&d->rnd, d->faults.sync_slow_ppm))
        took += rnd_range(&d->rnd, 500, 3000) * 1000000;
    p = &d->pending[d->pending_len++];
    p->op = *op;
    p->at_ns = now_ns + took;
    p->fate = choose_fate(d, op);
    if (p->fate != DISK_FATE_OK)
        d->faults_done++;
}

int64_t disk_next(const struct disk *d)
{
    int64_t at = DISK_FOREVER;
    for (size_t i = 0; i < d->pending_len; i++)
        if (d->pending[i].at_ns < at)
            at = d->pending[i].at_ns;
    return at;
}

bool disk_complete(struct disk *d, int64_t now_ns, struct zc_disk_completion *ret_done)
{
    size_t best = d->pending_len;
    struct disk_pending p;
    for (size_t i = 0; i < d->pending_len; i++)
        if (d->pending[i].at_ns <= now_ns &&
            (best == d->pending_len || d->pending[i].at_ns < d->pending[best].at_ns))
            best = i;
    if (best == d->pending_len)
        return false;
    p = d->pending[best];
    d->pending[best] = d->pending[--d->pending_len];
    ret_done->id = p.op.id;
    ret_done->result = disk_do(d, &p.op, p.fate);
    return true;
}
