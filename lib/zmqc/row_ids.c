/* Rows by message id, see row_ids.h. */
#include "zmqc/row_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "zmqc/rows.h"

#define CAP_MIN 64
#define CAP_LARGE (UINT32_C(1) << 18)
#define FAR 31 /* distance + 1, at most */
/* A table of that size of which less than a quarter is in use is large enough: ids that still find
 * no place collide, and would in any. */
#define CAP_SPARSE 1024

/* Where a key would like to stand, from bits that `kind` does not use. */
static uint32_t home(uint64_t hash, uint32_t cap)
{
    return (uint32_t)((hash >> 32) * cap >> 32);
}

static uint8_t kind(uint64_t hash)
{
    return hash & 7;
}

static uint32_t away(uint8_t mark)
{
    return mark >> 3;
}

static uint8_t mark_of(uint32_t far, uint8_t bits)
{
    return (uint8_t)(far << 3 | bits);
}

static uint32_t next(uint32_t pos, uint32_t cap)
{
    return pos + 1 < cap ? pos + 1 : 0;
}

static uint32_t ref_of(const struct zc_row *row)
{
    return zc_row_chunk(row)->number * ZC_ROWS_CHUNK + row->index;
}

static struct zc_row *row_of(const struct zc_row_ids *ids, uint32_t ref)
{
    return &ids->chunks[ref / ZC_ROWS_CHUNK]->rows[ref % ZC_ROWS_CHUNK];
}

int zc_row_ids_enter(struct zc_row_ids *ids, struct zc_row_chunk *c)
{
    if (ids->chunks_free != 0) {
        c->number = ids->chunks_free - 1;
        ids->chunks_free = (uint32_t)((uintptr_t)ids->chunks[c->number] >> 1);
        ids->chunks[c->number] = c;
        ids->chunks_used++;
        return 0;
    }
    if (ids->chunks_len == UINT32_MAX / ZC_ROWS_CHUNK)
        return ZC_ENOMEM;
    if (ids->chunks_len == ids->chunks_cap) {
        uint32_t cap = ids->chunks_cap == 0 ? 16 : ids->chunks_cap * 2;
        struct zc_row_chunk **chunks = realloc(ids->chunks, cap * sizeof(struct zc_row_chunk *));
        if (chunks == NULL)
            return ZC_ENOMEM;
        ids->chunks = chunks;
        ids->chunks_cap = cap;
    }
    c->number = ids->chunks_len;
    ids->chunks[ids->chunks_len++] = c;
    ids->chunks_used++;
    return 0;
}

void zc_row_ids_leave(struct zc_row_ids *ids, struct zc_row_chunk *c)
{
    ZC_ASSERT(ids->chunks[c->number] == c);
    ids->chunks[c->number] = (struct zc_row_chunk *)((uintptr_t)ids->chunks_free << 1 | 1);
    ids->chunks_free = c->number + 1;
    if (--ids->chunks_used > 0)
        return;
    free(ids->chunks);
    ids->chunks = NULL;
    ids->chunks_len = ids->chunks_cap = ids->chunks_free = 0;
}

/* There is a place for that hash, with nobody too far from home. */
static bool has_place(const struct zc_row_ids *ids, uint64_t hash)
{
    uint32_t pos = ids->cap > 0 ? home(hash, ids->cap) : 0, far = 1;
    if (ids->len + 1 >= ids->cap)
        return false;
    for (; far <= FAR; far++, pos = next(pos, ids->cap)) {
        uint32_t there = away(ids->marks[pos]);
        if (there == 0)
            return true;
        far = there < far ? there : far; /* who stands nearer would have to go on */
    }
    return false;
}

/* has_place is true for it. */
static void place(struct zc_row_ids *ids, uint64_t hash, uint32_t ref)
{
    uint32_t pos = home(hash, ids->cap), far = 1;
    uint8_t bits = kind(hash);
    for (; ids->marks[pos] != 0; far++, pos = next(pos, ids->cap)) {
        uint8_t mark = ids->marks[pos];
        if (away(mark) >= far)
            continue;
        uint32_t other = ids->refs[pos];
        ids->refs[pos] = ref;
        ids->marks[pos] = mark_of(far, bits);
        ref = other;
        far = away(mark);
        bits = mark & 7;
    }
    ids->refs[pos] = ref;
    ids->marks[pos] = mark_of(far, bits);
    ids->len++;
}

/* Enters all rows with an id. False: not all have a place. */
static bool fill(struct zc_row_ids *ids)
{
    for (uint32_t i = 0; i < ids->chunks_len; i++) {
        const struct zc_row_chunk *c = ids->chunks[i];
        if (((uintptr_t)c & 1) != 0)
            continue;
        for (uint32_t k = 0; k < c->len; k++) {
            if (!c->rows[k].deduped)
                continue;
            if (!has_place(ids, c->rows[k].key))
                return false;
            place(ids, c->rows[k].key, ref_of(&c->rows[k]));
        }
    }
    return true;
}

/* Into a table of cap entries. False: there is no such, and nothing changed. */
static bool resize(struct zc_row_ids *ids, uint32_t cap)
{
    struct zc_row_ids made = *ids;
    made.refs = malloc(cap * sizeof(made.refs[0]));
    made.marks = calloc(cap, 1);
    made.cap = cap;
    made.len = 0;
    if (made.refs == NULL || made.marks == NULL || !fill(&made)) {
        free(made.refs);
        free(made.marks);
        return false;
    }
    free(ids->refs);
    free(ids->marks);
    *ids = made;
    return true;
}

/* Where its size matters, more than two thirds of the table are in use. */
static uint32_t larger(uint32_t cap)
{
    if (cap < CAP_MIN)
        return CAP_MIN;
    uint32_t more = cap < CAP_LARGE ? cap : cap / 4;
    return cap < UINT32_MAX - more ? cap + more : UINT32_MAX;
}

int zc_row_ids_add(struct zc_row_ids *ids, struct zc_row *row, const uint64_t key[2])
{
    bool roomy = (uint64_t)ids->len * 20 < (uint64_t)ids->cap * 17;
    for (int i = 0; i < 2 && (!roomy || !has_place(ids, key[0])); i++) {
        if (ids->cap >= CAP_SPARSE && ids->len < ids->cap / 4)
            return ZC_ENOMEM;
        bool grown = resize(ids, larger(ids->cap));
        if (!grown && !has_place(ids, key[0]))
            return ZC_ENOMEM;
        roomy = true;
    }
    if (!has_place(ids, key[0]))
        return ZC_ENOMEM;
    row->key = key[0];
    row->tag = (uint16_t)key[1];
    row->deduped = 1;
    place(ids, key[0], ref_of(row));
    return 0;
}

static void clear(struct zc_row_ids *ids)
{
    free(ids->refs);
    free(ids->marks);
    ids->refs = NULL;
    ids->marks = NULL;
    ids->cap = ids->len = 0;
}

void zc_row_ids_drop(struct zc_row_ids *ids, struct zc_row *row)
{
    if (!row->deduped)
        return;
    uint32_t pos = home(row->key, ids->cap), ref = ref_of(row);
    while (ids->marks[pos] == 0 || ids->refs[pos] != ref) {
        ZC_ASSERT(ids->marks[pos] != 0);
        pos = next(pos, ids->cap);
    }
    /* Who stands behind, away from home, moves up. */
    for (uint32_t k = next(pos, ids->cap); away(ids->marks[k]) > 1; k = next(k, ids->cap)) {
        ids->refs[pos] = ids->refs[k];
        ids->marks[pos] = (uint8_t)(ids->marks[k] - (1 << 3));
        pos = k;
    }
    ids->marks[pos] = 0;
    ids->len--;
    row->deduped = 0;
    if (ids->len == 0)
        clear(ids);
    else if (ids->cap > CAP_MIN && ids->len < ids->cap / 3)
        (void)resize(ids, ids->cap / 2 < CAP_MIN ? CAP_MIN : ids->cap / 2); /* else it stays */
}

struct zc_row *zc_row_ids_find(const struct zc_row_ids *ids, const uint64_t key[2])
{
    if (ids->cap == 0)
        return NULL;
    uint32_t pos = home(key[0], ids->cap);
    for (uint32_t far = 1; away(ids->marks[pos]) >= far; far++, pos = next(pos, ids->cap)) {
        if (ids->marks[pos] != mark_of(far, kind(key[0])))
            continue;
        struct zc_row *row = row_of(ids, ids->refs[pos]);
        if (row->key == key[0] && row->tag == (uint16_t)key[1])
            return row;
    }
    return NULL;
}

void zc_row_ids_done(struct zc_row_ids *ids)
{
    clear(ids);
    free(ids->chunks);
    *ids = (struct zc_row_ids){0};
}
