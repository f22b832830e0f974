/*
 * Copies on their way from the oldest segments to the head. They wait in the order of their places,
 * which is that of their tickets. When a sync has covered one, its place is the record's, and the
 * record in the old segment is useless. When its write fails, nothing has changed.
 *
 * A record may be forgotten meanwhile: its copy is useless then as well, for the REMOVE was
 * appended behind it.
 */
#include <stdlib.h>

#include "base/check.h"
#include "store/log_priv.h"

int zc_log_moves_room(struct zc_log *log, size_t size)
{
    struct zc_log_clean *c = &log->clean;
    ZC_ASSERT(c->told != 0);
    if (size > zc_log_clean_room(log))
        return ZC_ENOSPC;
    if (c->moves_first + c->moves_len < c->moves_cap)
        return 0;
    uint32_t cap = c->moves_cap == 0 ? 64 : c->moves_cap * 2;
    struct zc_log_move *moves = realloc(c->moves, cap * sizeof(*moves));
    if (moves == NULL)
        return ZC_ENOMEM;
    c->moves = moves;
    c->moves_cap = cap;
    return 0;
}

void zc_log_moves_add(struct zc_log *log, uint64_t ticket)
{
    struct zc_log_clean *c = &log->clean;
    struct zc_segment *s = zc_segment_find(&log->segments, (uint32_t)(c->told >> 32));
    struct zc_live_item *item = s == NULL ? NULL : zc_live_find(&s->table, (uint32_t)c->told);
    ZC_ASSERT(item != NULL && !item->moving);
    item->moving = true;
    c->moves[c->moves_first + c->moves_len++] =
        (struct zc_log_move){.from = c->told, .ticket = ticket};
    c->left -= c->told_size < c->left ? c->told_size : c->left;
    c->told = 0;
}

/* The copy that is appended with this ticket, or that of this place, or NULL. */
static struct zc_log_move *move_find(struct zc_log_clean *c, uint64_t ticket, uint64_t from)
{
    uint32_t low = c->moves_first, high = c->moves_first + c->moves_len, stop = high;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct zc_log_move *m = &c->moves[mid];
        if (ticket != 0 ? m->ticket < ticket : m->from < from)
            low = mid + 1;
        else
            high = mid;
    }
    struct zc_log_move *m = low < stop ? &c->moves[low] : NULL;
    return m != NULL && (ticket != 0 ? m->ticket == ticket : m->from == from) ? m : NULL;
}

void zc_log_moves_written(struct zc_log *log, uint64_t ticket, uint64_t place, uint32_t size)
{
    struct zc_log_move *m = move_find(&log->clean, ticket, 0);
    if (m == NULL)
        return; /* given up: it is useless */
    m->to = place;
    zc_log_list(log, zc_log_current(log), (uint32_t)place, size, NULL, true);
}

void zc_log_moves_gone(struct zc_log *log, uint64_t place)
{
    struct zc_log_move *m = move_find(&log->clean, 0, place);
    ZC_ASSERT(m != NULL);
    m->gone = true;
}

/* The item of the record or the copy at place; *ret_s its segment. */
static struct zc_live_item *item_at(struct zc_log *log, uint64_t place, struct zc_segment **ret_s)
{
    *ret_s = zc_segment_find(&log->segments, (uint32_t)(place >> 32));
    return *ret_s == NULL ? NULL : zc_live_find(&(*ret_s)->table, (uint32_t)place);
}

/* The copy does not count. */
static void move_drop(struct zc_log *log, const struct zc_log_move *m)
{
    struct zc_segment *s;
    struct zc_live_item *item;
    if (m->to != 0) {
        item = item_at(log, m->to, &s);
        zc_log_unlist(log, s, item);
    }
    if (!m->gone && (item = item_at(log, m->from, &s)) != NULL)
        item->moving = false;
}

/* The copy is on disk: the record is where it is. */
static void move_settle(struct zc_log *log, const struct zc_log_move *m)
{
    struct zc_segment *s, *before;
    if (m->gone) {
        move_drop(log, m);
        return;
    }
    struct zc_live_item *item = item_at(log, m->to, &s), *old = item_at(log, m->from, &before);
    ZC_ASSERT(old != NULL);
    if (old->owner != NULL)
        *old->owner = m->to;
    if (item != NULL) {
        item->owner = old->owner;
        item->coming = false;
    }
    log->counts.moved++;
    log->counts.moved_bytes += old->size;
    zc_log_unlist(log, before, old);
}

void zc_log_moves_synced(struct zc_log *log)
{
    struct zc_log_clean *c = &log->clean;
    while (c->moves_len > 0 && c->moves[c->moves_first].to != 0 &&
           c->moves[c->moves_first].ticket <= log->hard) {
        move_settle(log, &c->moves[c->moves_first]);
        c->moves_first++;
        c->moves_len--;
    }
    if (c->moves_len > 0)
        return;
    c->moves_first = 0;
    if (c->phase == ZC_CLEAN_SYNC)
        zc_log_clean_end(log);
}

void zc_log_moves_failed(struct zc_log *log, uint64_t ticket)
{
    struct zc_log_clean *c = &log->clean;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->moves_len; i++) {
        struct zc_log_move *m = &c->moves[c->moves_first + i];
        if (m->to != 0 || m->ticket > ticket)
            move_drop(log, m);
        else
            c->moves[c->moves_first + n++] = *m;
    }
    c->moves_len = n;
    if (n == 0)
        c->moves_first = 0;
    /* What was given up is tried again, from the start: in another round, so that `moves` stays in
     * order. */
    c->at = ZC_SEGMENT_HEAD;
    c->left = 0;
    if (c->phase == ZC_CLEAN_SYNC && n == 0)
        zc_log_clean_end(log);
    else if (c->phase == ZC_CLEAN_TELL || c->phase == ZC_CLEAN_WANT)
        zc_log_clean_end(log);
}
