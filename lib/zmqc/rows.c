/* Messages that merely wait, see rows.h. */
#include "zmqc/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "zmqc/row_ids.h"

#define BYTES_MAX (64u << 10) /* of the bodies of a chunk, about */

/* Chunks that are nearly empty: not many more than the rows are worth. */
#define FEW_MAX 4

_Static_assert(sizeof(struct zc_row) == 32, "the size of a row is what matters");

static struct zc_row_chunk *at(const struct zc_rows *rows, uint32_t i)
{
    return rows->chunks[rows->first + i];
}

static struct zc_row_chunk *last(const struct zc_rows *rows)
{
    return rows->len > 0 ? at(rows, rows->len - 1) : NULL;
}

/* Room for one chunk more in the array. */
static bool make_room(struct zc_rows *rows)
{
    if (rows->first + rows->len < rows->cap)
        return true;
    if (rows->first > rows->len) {
        memmove(rows->chunks, rows->chunks + rows->first, rows->len * sizeof(*rows->chunks));
        rows->first = 0;
        return true;
    }
    uint32_t cap = rows->cap == 0 ? 4 : rows->cap * 2;
    struct zc_row_chunk **chunks = realloc(rows->chunks, cap * sizeof(struct zc_row_chunk *));
    if (chunks == NULL)
        return false;
    rows->chunks = chunks;
    rows->cap = cap;
    return true;
}

/* A mailbox with few messages has small chunks, and so have large bodies. */
static uint16_t cap_of(const struct zc_rows *rows, const struct zc_row_like *like)
{
    uint32_t cap = rows->count < 8 ? 8 : rows->count < 128 ? 64 : ZC_ROWS_CHUNK;
    if (like->bytes && like->body_len > 0 && cap > BYTES_MAX / like->body_len)
        cap = BYTES_MAX / like->body_len;
    return (uint16_t)(cap < 8 ? 8 : cap);
}

static struct zc_row_chunk *chunk_new(struct zc_rows *rows, struct zc_row_ids *ids,
                                      struct zc_mailbox *mb, const struct zc_row_like *like)
{
    uint16_t cap = cap_of(rows, like);
    struct zc_row_chunk *before = last(rows), *c = NULL;
    if (make_room(rows))
        c = malloc(sizeof(*c) + cap * sizeof(c->rows[0]));
    if (c == NULL)
        return NULL;
    *c = (struct zc_row_chunk){
        .mailbox = mb, .seq = like->seq, .from = like->from, .packed = like->bytes, .cap = cap};
    /* In the middle, since a clock may be put back. */
    c->at_ms = like->at_ms - (int64_t)(ZC_ROW_SPAN / 2);
    if (zc_row_ids_enter(ids, c) != 0) {
        free(c);
        return NULL;
    }
    if (before != NULL && before->bytes.len > 0 && before->bytes.cap > before->bytes.len) {
        uint8_t *data = realloc(before->bytes.data, before->bytes.len);
        if (data != NULL) {
            before->bytes.data = data;
            before->bytes.cap = before->bytes.len;
        }
    }
    rows->chunks[rows->first + rows->len++] = c;
    return c;
}

static void chunk_free(struct zc_row_chunk *c)
{
    zc_buf_done(&c->bytes);
    free(c->froms);
    free(c->scopes);
    free(c);
}

/* Where chunk c stands in the array. */
static uint32_t position(const struct zc_rows *rows, uint64_t seq)
{
    uint32_t low = 0, high = rows->len;
    /* The last whose first number is not above. */
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (at(rows, mid)->seq <= seq)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static void chunk_drop(struct zc_rows *rows, struct zc_row_ids *ids, struct zc_row_chunk *c)
{
    uint32_t i = position(rows, c->seq);
    ZC_ASSERT(at(rows, i) == c);
    if (i == 0) {
        rows->first++;
    } else {
        struct zc_row_chunk **p = rows->chunks + rows->first + i;
        memmove(p, p + 1, (rows->len - i - 1) * sizeof(*p));
    }
    rows->len--;
    zc_row_ids_leave(ids, c);
    chunk_free(c);
    if (rows->len == 0)
        zc_rows_done(rows);
}

static bool fits(const struct zc_row_chunk *c, const struct zc_row_like *like)
{
    bool bytes = !like->bytes || c->len < c->cap / 4 || c->bytes.len + like->body_len <= BYTES_MAX;
    return c->len < c->cap && like->seq - c->seq < ZC_ROW_SPAN && like->at_ms >= c->at_ms &&
           (uint64_t)(like->at_ms - c->at_ms) < ZC_ROW_SPAN && bytes;
}

/* The sender of the next row is another one: each has its own from now on. */
static bool tell_apart(struct zc_row_chunk *c)
{
    if (c->froms != NULL)
        return true;
    c->froms = malloc(c->cap * sizeof(c->froms[0]));
    for (uint16_t i = 0; c->froms != NULL && i < c->len; i++)
        c->froms[i] = c->from;
    return c->froms != NULL;
}

struct zc_row *zc_rows_push(struct zc_rows *rows, struct zc_row_ids *ids, struct zc_mailbox *mb,
                            const struct zc_row_like *like)
{
    struct zc_row_chunk *c = last(rows);
    ZC_ASSERT(like->payload_len <= like->body_len);
    ZC_ASSERT(c == NULL || c->packed == like->bytes);
    if (like->body_len >= ZC_ROW_BODY_END || like->at_ms < 0 || like->at_ms > INT64_MAX / 2 ||
        like->body_len - like->payload_len >= ZC_ROW_HEAD_END)
        return NULL;
    if (c == NULL || !fits(c, like)) {
        if (c != NULL && c->len < c->cap / 4 && rows->len > FEW_MAX + rows->count / 16)
            return NULL;
        c = chunk_new(rows, ids, mb, like);
    } else if (c->from != like->from && !tell_apart(c)) {
        return NULL;
    }
    if (c == NULL)
        return NULL;
    struct zc_row *r = &c->rows[c->len];
    uint32_t at_ms = (uint32_t)(like->at_ms - c->at_ms);
    *r = (struct zc_row){.index = (uint8_t)c->len,
                         .body_len = like->body_len & (ZC_ROW_BODY_END - 1),
                         .head_len = (uint16_t)(like->body_len - like->payload_len),
                         .seq = (uint32_t)(like->seq - c->seq) & (ZC_ROW_SPAN - 1),
                         .at_high = at_ms >> 16 & 0xff,
                         .at_low = (uint16_t)at_ms};
    if (c->froms != NULL)
        c->froms[c->len] = like->from;
    c->len++;
    c->live++;
    rows->count++;
    return r;
}

struct zc_row_scope *zc_rows_scope(struct zc_row *row)
{
    struct zc_row_chunk *c = zc_row_chunk(row);
    if (c->scopes == NULL)
        c->scopes = calloc(c->cap, sizeof(c->scopes[0]));
    row->scoped = c->scopes != NULL;
    return row->scoped ? &c->scopes[row->index] : NULL;
}

void zc_rows_drop(struct zc_rows *rows, struct zc_row_ids *ids, struct zc_row *row)
{
    struct zc_row_chunk *c = zc_row_chunk(row);
    ZC_ASSERT(!row->gone && !row->deduped && c->live > 0);
    row->gone = 1;
    rows->count--;
    while (c->first < c->len && c->rows[c->first].gone)
        c->first++;
    if (--c->live == 0)
        chunk_drop(rows, ids, c);
}

/* The first row of c from index i on that is not gone, or NULL. */
static struct zc_row *alive(struct zc_row_chunk *c, uint32_t i)
{
    i = i < c->first ? c->first : i;
    while (i < c->len && c->rows[i].gone)
        i++;
    return i < c->len ? &c->rows[i] : NULL;
}

struct zc_row *zc_rows_from(const struct zc_rows *rows, uint64_t seq)
{
    if (rows->len == 0)
        return NULL;
    uint32_t i = position(rows, seq);
    struct zc_row_chunk *c = at(rows, i);
    uint32_t low = 0, high = seq > c->seq ? c->len : 0;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->rows[mid].seq < seq - c->seq)
            low = mid + 1;
        else
            high = mid;
    }
    struct zc_row *r = alive(c, low);
    while (r == NULL && ++i < rows->len)
        r = alive(at(rows, i), 0);
    return r;
}

struct zc_row *zc_rows_next(const struct zc_rows *rows, const struct zc_row *row)
{
    struct zc_row *r = alive(zc_row_chunk(row), (uint32_t)row->index + 1);
    return r != NULL ? r : zc_rows_from(rows, zc_row_seq(row) + 1);
}

uint64_t zc_rows_last(const struct zc_rows *rows)
{
    const struct zc_row_chunk *c = last(rows);
    return c != NULL ? c->seq + c->rows[c->len - 1].seq : 0;
}

void zc_rows_done(struct zc_rows *rows)
{
    for (uint32_t i = 0; i < rows->len; i++)
        chunk_free(at(rows, i));
    free(rows->chunks);
    *rows = (struct zc_rows){0};
}
