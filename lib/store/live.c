/* The wanted records of one segment, see live.h. */
#include "store/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define CAP_MIN 16

static int resize(struct zc_live *t, uint32_t cap)
{
    struct zc_live_item *items = realloc(t->items, (size_t)cap * sizeof(*items));
    if (items == NULL)
        return ZC_ENOMEM;
    t->items = items;
    t->cap = cap;
    return 0;
}

void zc_live_reserve(struct zc_live *t, uint32_t n)
{
    if (n > t->cap - t->len && n <= UINT32_MAX - t->len)
        (void)!resize(t, t->len + n);
}

int zc_live_add(struct zc_live *t, uint64_t offset, uint32_t size, uint64_t *owner, bool coming)
{
    ZC_ASSERT(offset % 8 == 0 && offset >> 3 < UINT32_C(1) << 28);
    ZC_ASSERT(t->len == 0 || zc_live_offset(&t->items[t->len - 1]) < offset);
    /* Half as much again: with doubling a third of the memory would stand empty. */
    if (t->len == t->cap && resize(t, t->cap < CAP_MIN ? CAP_MIN : t->cap + t->cap / 2) != 0)
        return ZC_ENOMEM;
    t->items[t->len++] = (struct zc_live_item){
        .owner = owner, .at8 = (uint32_t)(offset >> 3), .size = size, .coming = coming};
    return 0;
}

static uint32_t lower_bound(const struct zc_live *t, uint64_t offset)
{
    uint32_t low = 0, high = t->len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (zc_live_offset(&t->items[mid]) < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct zc_live_item *zc_live_find(const struct zc_live *t, uint64_t offset)
{
    /* While a log opens it is mostly the last. */
    bool last = t->len > 0 && zc_live_offset(&t->items[t->len - 1]) == offset;
    uint32_t i = last ? t->len - 1 : lower_bound(t, offset);
    if (i == t->len || zc_live_offset(&t->items[i]) != offset || t->items[i].gone)
        return NULL;
    return &t->items[i];
}

struct zc_live_item *zc_live_from(const struct zc_live *t, uint64_t offset)
{
    uint32_t i = lower_bound(t, offset);
    while (i < t->len && t->items[i].gone)
        i++;
    return i < t->len ? &t->items[i] : NULL;
}

static void squeeze(struct zc_live *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->len; i++)
        if (!t->items[i].gone)
            t->items[n++] = t->items[i];
    t->len = n;
    t->gone = 0;
    if (t->cap > CAP_MIN && n < t->cap / 2)
        (void)!resize(t, n < CAP_MIN ? CAP_MIN : n); /* refused: the large array stays */
}

void zc_live_drop(struct zc_live *t, struct zc_live_item *item)
{
    ZC_ASSERT(!item->gone);
    item->gone = true;
    t->gone++;
    if (t->gone == t->len)
        zc_live_done(t);
    else if (t->gone >= CAP_MIN && t->gone > t->len / 2)
        squeeze(t);
}

void zc_live_trim(struct zc_live *t)
{
    if (t->len > 0 && t->len < t->cap)
        (void)!resize(t, t->len); /* refused: the large array stays */
}

void zc_live_done(struct zc_live *t)
{
    free(t->items);
    *t = (struct zc_live){0};
}
