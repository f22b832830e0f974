/* What each disk request does to the two images, when its time has come. */
#include <string.h>

#include "base/err.h"
#include "disk.h"

static void file_sync(struct disk *d, struct disk_file *f, uint64_t mark)
{
    d->syncs++;
    if (d->lying)
        return;
    for (struct disk_write *w = f->dirty; w != NULL && w->number <= mark; w = w->next)
        disk_file_persist(f, w->offset, w->data, w->len);
    disk_file_forget_dirty(f, mark);
}

/* The kernel reports the failure once and calls the pages clean. */
static void file_sync_fails(struct disk *d, struct disk_file *f, uint64_t mark)
{
    for (struct disk_write *w = f->dirty; w != NULL && w->number <= mark; w = w->next)
        if (rnd_one_in(&d->rnd, 2))
            disk_file_persist(f, w->offset, w->data, rnd_below(&d->rnd, w->len + 1));
    disk_file_forget_dirty(f, mark);
}

static void dir_sync(struct disk *d)
{
    if (d->lying)
        return;
    for (size_t i = 0; i < d->files_len;) {
        struct disk_file *f = &d->files[i];
        f->on_entry = f->present;
        if (!f->present) {
            disk_file_delete(d, f);
            continue;
        }
        i++;
    }
}

static int64_t do_create(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate)
{
    struct disk_file *f;
    if (disk_find(d, op->segment) != NULL)
        return ZC_EEXIST;
    if (fate == DISK_FATE_EIO)
        return ZC_EIO;
    if (disk_bytes(d) + op->size > d->capacity)
        return ZC_ENOSPC;
    if (d->files_len == DISK_FILES_MAX) {
        d->overloaded = true;
        return ZC_EIO;
    }
    f = &d->files[d->files_len++];
    memset(f, 0, sizeof *f);
    f->segment = op->segment;
    f->present = true;
    f->dirty_tail = &f->dirty;
    disk_file_reserve(f, op->size);
    f->size = f->platter_size = op->size;
    return 0;
}

static int64_t do_write(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate)
{
    struct disk_file *f = disk_find(d, op->segment);
    uint64_t grows;
    if (f == NULL)
        return ZC_ENOENT;
    grows = op->offset + op->len > f->size ? op->offset + op->len - f->size : 0;
    if (grows > 0 && disk_bytes(d) + grows > d->capacity)
        fate = DISK_FATE_FULL;
    if (fate == DISK_FATE_EIO || fate == DISK_FATE_FULL) {
        disk_file_write(d, f, op->offset, op->data, rnd_below(&d->rnd, op->len));
        return fate == DISK_FATE_EIO ? ZC_EIO : ZC_ENOSPC;
    }
    if (fate == DISK_FATE_SHORT) {
        size_t len = rnd_below(&d->rnd, op->len);
        disk_file_write(d, f, op->offset, op->data, len);
        return (int64_t)len;
    }
    disk_file_write(d, f, op->offset, op->data, op->len);
    return (int64_t)op->len;
}

int64_t disk_do_sync(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate,
                     uint64_t mark)
{
    struct disk_file *f = disk_find(d, op->segment);
    if (f == NULL)
        return ZC_ENOENT;
    if (fate == DISK_FATE_SYNC_FAILS) {
        file_sync_fails(d, f, mark);
        return ZC_EIO;
    }
    file_sync(d, f, mark);
    if (op->sync_dir)
        dir_sync(d);
    return (int64_t)op->len;
}

/* Clean pages of the range come from the platter again; dirty ones stay. */
static void drop_cache(struct disk_file *f, uint64_t offset, size_t len)
{
    memcpy(f->cache + offset, f->platter + offset, len);
    for (struct disk_write *w = f->dirty; w != NULL; w = w->next)
        memcpy(f->cache + w->offset, w->data, w->len);
}

static int64_t do_read(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate)
{
    struct disk_file *f = disk_find(d, op->segment);
    size_t len;
    if (f == NULL)
        return ZC_ENOENT;
    if (fate == DISK_FATE_EIO)
        return ZC_EIO;
    if (op->offset >= f->size)
        return 0;
    len = f->size - op->offset < op->len ? f->size - op->offset : op->len;
    if (op->uncached)
        drop_cache(f, op->offset, len);
    memcpy(op->data, f->cache + op->offset, len);
    return (int64_t)len;
}

static int64_t do_remove(struct disk *d, const struct zc_disk_op *op)
{
    struct disk_file *f = disk_find(d, op->segment);
    if (f == NULL)
        return ZC_ENOENT;
    f->present = false;
    disk_index_remove(d, op->segment);
    if (op->aside)
        d->set_aside++;
    if (op->sync_dir)
        dir_sync(d);
    return 0;
}

int64_t disk_do(struct disk *d, const struct zc_disk_op *op, enum disk_fate fate)
{
    switch (op->kind) {
    case ZC_DISK_CREATE:
        return do_create(d, op, fate);
    case ZC_DISK_WRITE:
        return do_write(d, op, fate);
    case ZC_DISK_READ:
        return do_read(d, op, fate);
    case ZC_DISK_REMOVE:
        break;
    case ZC_DISK_INDEX_WRITE:
        return disk_index_write(d, op, fate != DISK_FATE_OK);
    case ZC_DISK_INDEX_READ:
        return fate != DISK_FATE_OK ? ZC_EIO : disk_index_read(d, op);
    }
    return do_remove(d, op);
}
