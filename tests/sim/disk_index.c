/* Indexes of segments on the simulated disk. They are never synced, so a power loss leaves anything
 * of them: nothing may depend on it. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "disk.h"

static struct disk_index *find(struct disk *d, uint32_t segment)
{
    for (size_t i = 0; i < d->indexes_len; i++)
        if (d->indexes[i].segment == segment)
            return &d->indexes[i];
    return NULL;
}

void disk_index_remove(struct disk *d, uint32_t segment)
{
    struct disk_index *x = find(d, segment);
    if (x == NULL)
        return;
    free(x->data);
    *x = d->indexes[--d->indexes_len];
}

int64_t disk_index_write(struct disk *d, const struct zc_disk_op *op, bool fails)
{
    disk_index_remove(d, op->segment);
    if (d->indexes_len == DISK_FILES_MAX)
        return ZC_ENOSPC;
    struct disk_index *x = &d->indexes[d->indexes_len++];
    /* A part of it is there after a failure. */
    size_t len = fails ? rnd_below(&d->rnd, op->len + 1) : op->len;
    *x = (struct disk_index){.segment = op->segment, .data = malloc(op->len + 1), .len = len};
    if (x->data == NULL)
        abort();
    memcpy(x->data, op->data, len);
    d->indexes_written++;
    return fails ? ZC_EIO : (int64_t)op->len;
}

int64_t disk_index_read(struct disk *d, const struct zc_disk_op *op)
{
    const struct disk_index *x = find(d, op->segment);
    if (x == NULL)
        return ZC_ENOENT;
    if (op->offset >= x->len)
        return 0;
    size_t n = x->len - op->offset < op->len ? x->len - op->offset : op->len;
    memcpy(op->data, x->data + op->offset, n);
    return (int64_t)n;
}

void disk_index_power_loss(struct disk *d)
{
    for (size_t i = 0; i < d->indexes_len; i++) {
        struct disk_index *x = &d->indexes[i];
        uint64_t pick = rnd_below(&d->rnd, 4);
        if (pick == 0)
            x->len = rnd_below(&d->rnd, x->len + 1);
        if (pick == 1 && x->len > 0)
            x->data[rnd_below(&d->rnd, x->len)] ^= (uint8_t)(1 << rnd_below(&d->rnd, 8));
    }
}

void disk_index_done(struct disk *d)
{
    while (d->indexes_len > 0)
        disk_index_remove(d, d->indexes[0].segment);
}
