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

void disk_file_forget_dirty(struct disk_file *f, uint64_t mark)
{
    while (f->dirty != NULL && f->dirty->number <= mark) {
        struct disk_write *w = f->dirty;
        f->dirty = w->next;
        free(w);
    }
    if (f->dirty == NULL)
        f->dirty_tail = &f->dirty;
}

static void file_done(struct disk_file *f)
{
    disk_file_forget_dirty(f, UINT64_MAX);
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
    disk_index_done(d);
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

void disk_file_write(struct disk *d, struct disk_file *f, uint64_t offset, const uint8_t *data,
                     size_t len)
{
    struct disk_write *w;
    if (len == 0)
        return;
    w = malloc(sizeof *w + len);
    ZC_ASSERT(w != NULL);
    w->next = NULL;
    w->number = ++d->writes;
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
    p->write_ns = now_ns + rnd_range(&d->rnd, 0, took < 1000000 ? took : 1000000);
    p->syncing = false;
    p->tells = rnd_one_in(&d->rnd, 2);
    p->fate = choose_fate(d, op);
    if (p->fate != DISK_FATE_OK)
        d->faults_done++;
}

/* When something happens to it. */
static int64_t next_of(const struct disk_pending *p)
{
    return p->op.kind == ZC_DISK_WRITE && p->op.sync && !p->syncing ? p->write_ns : p->at_ns;
}

int64_t disk_next(const struct disk *d)
{
    int64_t at = DISK_FOREVER;
    for (size_t i = 0; i < d->pending_len; i++)
        if (next_of(&d->pending[i]) < at)
            at = next_of(&d->pending[i]);
    return at;
}

static void finish(struct disk *d, size_t i)
{
    d->pending[i] = d->pending[--d->pending_len];
}

/* The bytes of a write with sync reach the cache. True: there is something to tell. */
static bool begin_sync(struct disk *d, size_t i, struct zc_disk_completion *ret_done)
{
    struct disk_pending *p = &d->pending[i];
    int64_t result = disk_do(d, &p->op, p->fate);
    *ret_done = (struct zc_disk_completion){.id = p->op.id, .result = result};
    if (result < 0 || (size_t)result < p->op.len) {
        finish(d, i);
        return true;
    }
    p->syncing = true;
    p->mark = d->writes;
    ret_done->written = true;
    return p->tells;
}

bool disk_complete(struct disk *d, int64_t now_ns, struct zc_disk_completion *ret_done)
{
    for (;;) {
        size_t best = d->pending_len;
        struct disk_pending *p;
        for (size_t i = 0; i < d->pending_len; i++)
            if (next_of(&d->pending[i]) <= now_ns &&
                (best == d->pending_len || next_of(&d->pending[i]) < next_of(&d->pending[best])))
                best = i;
        if (best == d->pending_len)
            return false;
        p = &d->pending[best];
        if (p->op.kind == ZC_DISK_WRITE && p->op.sync && !p->syncing) {
            if (begin_sync(d, best, ret_done))
                return true;
            continue;
        }
        *ret_done = (struct zc_disk_completion){.id = p->op.id};
        ret_done->result =
            p->syncing ? disk_do_sync(d, &p->op, p->fate, p->mark) : disk_do(d, &p->op, p->fate);
        finish(d, best);
        return true;
    }
}
