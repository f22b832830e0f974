/*
 * What a killed process or a power loss leaves on the simulated disk. Every write that was not
 * synced is kept, dropped, torn at a boundary of 512 or 8 bytes, or garbled, each for itself: any
 * subset may survive, in any order. Synced bytes are never touched.
 */
#include "disk.h"

#include <string.h>

/* The part of w from `from` to `to` reaches the platter. */
static void persist_part(struct disk_file *f, const struct disk_write *w, size_t from, size_t to)
{
    if (to > w->len)
        to = w->len;
    if (from < to)
        disk_file_persist(f, w->offset + from, w->data + from, to - from);
}

/* Sectors survive each for itself. */
static void persist_sectors(struct disk *d, struct disk_file *f, const struct disk_write *w)
{
    uint64_t end = w->offset + w->len;
    for (uint64_t at = w->offset; at < end;) {
        uint64_t next = (at / 512 + 1) * 512;
        if (rnd_one_in(&d->rnd, 2))
            persist_part(f, w, at - w->offset, next - w->offset);
        at = next;
    }
}

static void persist_garbled(struct disk *d, struct disk_file *f, struct disk_write *w)
{
    size_t from = rnd_below(&d->rnd, w->len);
    size_t len = 1 + rnd_below(&d->rnd, w->len - from);
    for (size_t i = from; i < from + len; i++)
        w->data[i] = (uint8_t)rnd_u64(&d->rnd);
    persist_part(f, w, 0, w->len);
}

static void persist_some(struct disk *d, struct disk_file *f, struct disk_write *w)
{
    switch (rnd_below(&d->rnd, 6)) {
    case 0:
    case 1:
        persist_part(f, w, 0, w->len);
        break;
    case 2:
        break;
    case 3:
        persist_sectors(d, f, w);
        break;
    case 4:
        persist_part(f, w, 0, rnd_below(&d->rnd, w->len + 1) / 8 * 8);
        break;
    default:
        persist_garbled(d, f, w);
        break;
    }
}

/* Requests under way: a create may leave a file of any size, a write any prefix of its bytes. */
static void finish_pending(struct disk *d)
{
    for (size_t i = 0; i < d->pending_len; i++) {
        struct zc_disk_op op = d->pending[i].op;
        struct disk_file *f = disk_find(d, op.segment);
        if (d->pending[i].syncing || rnd_one_in(&d->rnd, 2))
            continue; /* its bytes are in the cache already, or it did not happen */
        if (op.kind == ZC_DISK_REMOVE && f != NULL)
            f->present = false;
        if (op.kind == ZC_DISK_WRITE && f != NULL)
            disk_file_write(d, f, op.offset, op.data,
                            rnd_one_in(&d->rnd, 2) ? op.len : rnd_below(&d->rnd, op.len + 1));
        if (op.kind == ZC_DISK_CREATE && f == NULL && d->files_len < DISK_FILES_MAX) {
            f = &d->files[d->files_len++];
            memset(f, 0, sizeof *f);
            f->segment = op.segment;
            f->present = true;
            f->dirty_tail = &f->dirty;
            if (rnd_one_in(&d->rnd, 2)) {
                uint8_t zero[512] = {0};
                disk_file_write(d, f, 0, zero, rnd_below(&d->rnd, sizeof zero));
            }
        }
    }
    d->pending_len = 0;
}

/* A page that a failed sync called clean may be evicted at any time. */
static void evict_some(struct disk *d, struct disk_file *f)
{
    if (rnd_one_in(&d->rnd, 2))
        return;
    memcpy(f->cache, f->platter, f->platter_size < f->size ? f->platter_size : f->size);
    for (struct disk_write *w = f->dirty; w != NULL; w = w->next)
        memcpy(f->cache + w->offset, w->data, w->len);
}

void disk_kill(struct disk *d)
{
    finish_pending(d);
    for (size_t i = 0; i < d->files_len; i++)
        if (d->files[i].room > 0)
            evict_some(d, &d->files[i]);
}

static bool name_taken(const struct disk *d, size_t except)
{
    for (size_t i = 0; i < d->files_len; i++)
        if (i != except && d->files[i].present && d->files[i].segment == d->files[except].segment)
            return true;
    return false;
}

/* New entries may vanish, removed ones may come back. */
static void settle_directory(struct disk *d)
{
    for (size_t i = 0; i < d->files_len; i++) {
        struct disk_file *f = &d->files[i];
        if (f->present && !f->on_entry && rnd_one_in(&d->rnd, 2))
            f->present = false;
        else if (!f->present && f->on_entry && rnd_one_in(&d->rnd, 2) && !name_taken(d, i))
            f->present = true;
    }
    for (size_t i = 0; i < d->files_len;) {
        struct disk_file *f = &d->files[i];
        if (f->present) {
            f->on_entry = true;
            i++;
            continue;
        }
        disk_file_delete(d, f);
    }
}

void disk_power_loss(struct disk *d)
{
    disk_index_power_loss(d);
    finish_pending(d);
    settle_directory(d);
    for (size_t i = 0; i < d->files_len; i++) {
        struct disk_file *f = &d->files[i];
        for (struct disk_write *w = f->dirty; w != NULL; w = w->next)
            persist_some(d, f, w);
        disk_file_forget_dirty(f, UINT64_MAX);
        f->size = f->platter_size;
        if (f->size > 0)
            memcpy(f->cache, f->platter, f->size);
    }
}

size_t disk_segments(struct disk *d, uint32_t ret_segments[DISK_FILES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < d->files_len; i++) {
        size_t at;
        if (!d->files[i].present)
            continue;
        at = rnd_below(&d->rnd, n + 1);
        ret_segments[n++] = ret_segments[at];
        ret_segments[at] = d->files[i].segment;
    }
    return n;
}

/* Bytes at the start of a file that describe it (zmqcat-log.5). */
#define DISK_HEAD 128

static size_t written_len(const struct disk_file *f)
{
    size_t len = f->size;
    while (len > 0 && f->cache[len - 1] == 0)
        len--;
    return len;
}

uint32_t disk_rot(struct disk *d, uint64_t *ret_offset)
{
    struct disk_file *found = NULL;
    uint64_t n = 0, at;
    for (size_t i = 0; i < d->files_len; i++)
        if (d->files[i].present && written_len(&d->files[i]) > 0 && rnd_one_in(&d->rnd, ++n))
            found = &d->files[i];
    if (found == NULL)
        return 0;
    at = rnd_below(&d->rnd, written_len(found));
    if (at < DISK_HEAD && found->head_hit)
        return 0; /* the head is there twice, not three times */
    found->head_hit |= at < DISK_HEAD;
    found->cache[at] ^= (uint8_t)(1u << rnd_below(&d->rnd, 8));
    found->platter[at] = found->cache[at];
    *ret_offset = at;
    return found->segment;
}
