/*
 * Opening a segment by its index: only one that a later segment has sealed, at the end that the
 * index names, in a file as long as it says. Anything else and the segment itself is read.
 *
 *   READ -> SIZE -> GIVE -> NONE       (NONE: the segment is to be read)
 */
#include "base/check.h"
#include "store/log_priv.h"

/* Mostly all of one, since each request waits for a thread. */
#define PIECE (6u << 20)

void zc_log_load_start(struct zc_log *log, const struct zc_segment *s)
{
    struct zc_log_load *l = &log->load;
    bool may = s->head_ok && s->limit != 0;
    l->file.len = 0;
    l->phase = may ? ZC_LOAD_READ : ZC_LOAD_NONE;
}

bool zc_log_load_op(struct zc_log *log, const struct zc_segment *s, struct zc_disk_op *ret_op)
{
    struct zc_log_load *l = &log->load;
    if (l->phase == ZC_LOAD_SIZE) {
        *ret_op = (struct zc_disk_op){.kind = ZC_DISK_READ,
                                      .segment = s->number,
                                      .offset = l->index.size - 8,
                                      .data = l->tail,
                                      .len = sizeof(l->tail)};
        return true;
    }
    if (l->phase != ZC_LOAD_READ)
        return false;
    if (zc_buf_reserve(&l->file, PIECE) != 0) {
        l->phase = ZC_LOAD_NONE;
        return false;
    }
    *ret_op = (struct zc_disk_op){.kind = ZC_DISK_INDEX_READ,
                                  .segment = s->number,
                                  .offset = l->file.len,
                                  .data = l->file.data + l->file.len,
                                  .len = PIECE};
    return true;
}

void zc_log_load_input(struct zc_log *log, struct zc_segment *s,
                       const struct zc_disk_completion *done)
{
    struct zc_log_load *l = &log->load;
    if (l->phase == ZC_LOAD_SIZE) {
        bool fits = done->result == 8;
        l->phase = fits ? ZC_LOAD_GIVE : ZC_LOAD_NONE;
        l->pos = ZC_INDEX_HEAD;
        if (fits)
            zc_live_reserve(&s->table, l->index.kept);
        return;
    }
    if (done->result < 0) {
        l->phase = ZC_LOAD_NONE;
        return;
    }
    ZC_ASSERT((uint64_t)done->result <= PIECE);
    l->file.len += (size_t)done->result;
    if (l->file.len > ZC_INDEX_MAX)
        l->phase = ZC_LOAD_NONE;
    else if ((uint64_t)done->result < PIECE)
        l->phase = zc_index_open(zc_slice(l->file.data, l->file.len), s, &l->index) == 0
                       ? ZC_LOAD_SIZE
                       : ZC_LOAD_NONE;
}

bool zc_log_load_next(struct zc_log *log, struct zc_segment *s, struct zc_index_entry *ret_entry)
{
    struct zc_log_load *l = &log->load;
    ZC_ASSERT(l->phase == ZC_LOAD_GIVE);
    if (zc_index_next(zc_slice(l->file.data, l->file.len), &l->pos, ret_entry))
        return true;
    s->end = s->dirty = s->limit;
    s->size = l->index.size;
    s->indexed = true;
    /* It was reported when it was found. */
    s->damaged = l->index.damaged > 0;
    zc_log_seq_note(log, l->index.seq_max);
    log->counts.indexed++;
    l->phase = ZC_LOAD_NONE;
    return false;
}

void zc_log_load_done(struct zc_log *log)
{
    zc_buf_done(&log->load.file);
}
