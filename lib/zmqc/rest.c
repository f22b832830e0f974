/* Messages at rest, see rest.h. */
#include "zmqc/rest.h"

#include <stddef.h>
#include <stdlib.h>

#include "zmqc/group.h"
#include "zmqc/message.h"
#include "zmqc/pack.h"
#include "zmqc/setting.h"
#include "zmqc/walk.h"

_Static_assert(offsetof(struct zc_row, owner) == offsetof(struct zc_row, place) + 8,
               "zc_setting_owner finds the owner behind the place");

/* Somebody stands in line to whom it would be given at once. */
static bool awaited(const struct zc_mailbox *mb, uint64_t from)
{
    return !zc_list_empty(&mb->line.waiters) || zc_group_awaits(mb, from);
}

static bool may_rest(const struct zc_broker *b, const struct zc_message *m)
{
    bool cold = b->journal != NULL ? m->body == NULL && m->place != 0
                                   : m->body != NULL && m->body_len <= ZC_ROW_BYTES_MAX &&
                                         b->hot_count > b->limits.hot_messages;
    return cold && m->state == ZC_MESSAGE_QUEUED && !m->returned && !m->reading &&
           m->attempt == 0 && m->due.ns == ZC_NEVER.ns && m->expires.ns == ZC_NEVER.ns &&
           !zc_heap_has(&m->timer) && m->delivery == NULL &&
           m->seq > zc_rows_last(&m->mailbox->rows) && !awaited(m->mailbox, m->from);
}

static struct zc_pack_like like_of(const struct zc_row_chunk *c)
{
    const uint8_t *p = c->bytes.data + c->like_at;
    if (c->like_at == 0)
        return (struct zc_pack_like){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    return (struct zc_pack_like){zc_slice(p, c->like_id), zc_slice(p + c->like_id, c->like_from),
                                 zc_slice(p + c->like_id + c->like_from, c->like_by)};
}

/* The body goes into the chunk of its row. */
static bool pack(struct zc_row *r, const struct zc_item *item)
{
    struct zc_row_chunk *c = zc_row_chunk(r);
    size_t strings;
    r->place = c->bytes.len;
    /* First the room: what it is like may move. */
    if (zc_buf_reserve(&c->bytes, zc_pack_size(item)) != 0)
        return false;
    struct zc_pack_like like = like_of(c);
    zc_pack(&c->bytes, item, &like, &strings);
    if (c->like_at == 0) {
        c->like_at = (uint32_t)strings;
        c->like_id = (uint16_t)item->id.len;
        c->like_from = (uint16_t)item->from.len;
        c->like_by = (uint16_t)item->by.len;
    }
    return true;
}

/* What r, else complete, is to know of m. False: no memory. */
static bool note(struct zc_broker *b, struct zc_row *r, const struct zc_message *m)
{
    uint64_t key[2] = {m->by_id.hash, m->id_tag};
    struct zc_row_scope *scope = m->scoped ? zc_rows_scope(r) : NULL;
    if (scope != NULL)
        *scope = (struct zc_row_scope){m->id_tag, m->seen_s};
    r->owner = ZC_OWNER_ROW;
    r->request = m->request;
    return (scope != NULL || !m->scoped) &&
           (!m->deduped || zc_row_ids_add(&b->row_ids, r, key) == 0);
}

/* The row for m, with its id. NULL: m stays what it is. */
static struct zc_row *row_for(struct zc_broker *b, const struct zc_message *m)
{
    struct zc_mailbox *mb = m->mailbox;
    struct zc_row_like like = {.seq = m->seq,
                               .from = m->from,
                               .at_ms = m->at_ms,
                               .body_len = m->body_len,
                               .payload_len = m->payload_len,
                               .bytes = b->journal == NULL};
    struct zc_item item;
    if (like.bytes && (zc_item_decode(zc_block_slice(m->body), &item) != 0 ||
                       item.expires_ms != 0 || item.due_ms != 0))
        return NULL; /* a row does not know of times */
    struct zc_row *r = zc_rows_push(&mb->rows, &b->row_ids, mb, &like);
    if (r == NULL)
        return NULL;
    if ((like.bytes && !pack(r, &item)) || !note(b, r, m)) {
        zc_rows_drop(&mb->rows, &b->row_ids, r);
        return NULL;
    }
    return r;
}

void zc_rest(struct zc_broker *b, struct zc_message *m)
{
    zc_message_cool(b, m);
    if (!may_rest(b, m))
        return;
    struct zc_row *r = row_for(b, m);
    if (r == NULL)
        return;
    zc_mailbox_leave(m->mailbox, m);
    zc_group_rested(m->mailbox, m->seq);
    zc_message_forget_id(b, m);
    if (b->journal != NULL) {
        r->place = m->place;
        b->journal->own(b->journal->arg, m->place, &r->place);
    } else {
        b->hot_count--; /* its bytes count on */
        zc_block_unref(m->body);
    }
    free(m);
}

/* m, new, has what the row knows. */
static void fill(struct zc_message *m, const struct zc_row *r)
{
    zc_list_init(&m->link);
    m->timer.kind = ZC_TIMER_MESSAGE;
    m->seq = zc_row_seq(r);
    m->mailbox = zc_row_chunk(r)->mailbox;
    m->body_len = r->body_len;
    m->payload_len = r->body_len - r->head_len;
    m->request = r->request;
    m->at_ms = zc_row_at_ms(r);
    m->from = zc_row_from(r);
    m->due = m->expires = ZC_NEVER;
    m->state = ZC_MESSAGE_QUEUED;
    m->scoped = r->scoped;
    if (m->scoped) {
        m->id_tag = zc_row_chunk(r)->scopes[r->index].id_tag;
        m->seen_s = zc_row_chunk(r)->scopes[r->index].seen_s;
    }
}

static struct zc_message *wake(struct zc_broker *b, struct zc_row *row)
{
    struct zc_mailbox *mb = zc_row_chunk(row)->mailbox;
    struct zc_message *m = calloc(1, sizeof(*m));
    struct zc_block *body = NULL;
    uint64_t key[2] = {row->key, 0};
    bool packed = zc_row_chunk(row)->packed;
    if (m == NULL || (packed && (body = zc_rest_body(row)) == NULL))
        goto fail;
    fill(m, row);
    key[1] = m->scoped ? m->id_tag : row->tag;
    if (row->deduped && zc_message_remember(b, m, key) != 0)
        goto fail;
    if (zc_mailbox_join(mb, m) != 0) {
        zc_message_forget_id(b, m);
        goto fail;
    }
    if (packed) {
        m->body = body;
        b->hot_count++;
    } else {
        m->place = row->place;
        if (b->journal != NULL)
            b->journal->own(b->journal->arg, m->place, &m->place);
    }
    zc_row_ids_drop(&b->row_ids, row);
    zc_rows_drop(&mb->rows, &b->row_ids, row);
    return m;
fail:
    zc_block_unref(body);
    free(m);
    return NULL;
}

/* Few rows are left between many gaps: as messages they would cost less. */
static bool thin(const struct zc_row_chunk *c)
{
    return c->live * 4 <= c->len && c->live < c->len - c->first;
}

struct zc_message *zc_rest_wake(struct zc_broker *b, struct zc_row *row)
{
    struct zc_row_chunk *c = zc_row_chunk(row);
    uint16_t left = (uint16_t)(c->live - 1);
    struct zc_message *m = wake(b, row);
    if (m == NULL || left == 0 || !thin(c))
        return m;
    while (left-- > 0 && wake(b, &c->rows[c->first]) != NULL)
        continue;
    return m;
}

bool zc_rest_known(const struct zc_broker *b, const uint64_t key[2])
{
    return zc_message_by_key(b, key) != NULL || zc_row_ids_find(&b->row_ids, key) != NULL;
}

struct zc_message *zc_rest_next(struct zc_broker *b, struct zc_mailbox *mb, struct zc_group *g,
                                uint64_t *looked, bool *ret_short)
{
    struct zc_message *m = g != NULL ? zc_group_find(mb, g, looked) : zc_mailbox_peek(mb);
    struct zc_row *row = g != NULL ? zc_group_find_row(mb, g, looked) : zc_rows_from(&mb->rows, 0);
    *ret_short = false;
    if (row == NULL || (m != NULL && m->seq < zc_row_seq(row)))
        return m;
    m = zc_rest_wake(b, row);
    *ret_short = m == NULL;
    return m;
}

bool zc_rest_wake_first(struct zc_broker *b, struct zc_mailbox *mb, uint64_t limit, uint32_t cap)
{
    struct zc_message *found[ZC_WALK_MAX];
    struct zc_row *row = zc_rows_from(&mb->rows, 0);
    if (row == NULL || zc_row_seq(row) >= limit)
        return true;
    uint32_t n = zc_walk_collect(mb, limit, false, found, cap), rows = 0;
    for (uint32_t i = 0; i + rows < cap && row != NULL && zc_row_seq(row) < limit;) {
        if (i < n && found[i]->seq < zc_row_seq(row)) {
            i++;
        } else {
            rows++;
            row = zc_rows_next(&mb->rows, row);
        }
    }
    for (; rows > 0; rows--) {
        /* One may have woken others with it. */
        if ((row = zc_rows_from(&mb->rows, 0)) != NULL && zc_rest_wake(b, row) == NULL)
            return false;
    }
    return true;
}

int64_t zc_rest_oldest_ms(const struct zc_broker *b, const struct zc_mailbox *mb)
{
    const struct zc_message *m = zc_mailbox_peek(mb);
    const struct zc_row *row = zc_rows_from(&mb->rows, 0);
    if (row != NULL && (m == NULL || zc_row_seq(row) < m->seq))
        return zc_row_at_ms(row);
    return m != NULL ? m->at_ms : b->now.wall.ms;
}

struct zc_block *zc_rest_body(const struct zc_row *row)
{
    const struct zc_row_chunk *c = zc_row_chunk(row);
    struct zc_pack_like like = like_of(c);
    if (row->place == 0) /* the first is like nothing */
        like = (struct zc_pack_like){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    return zc_pack_open(c->bytes.data + row->place, &like, zc_mailbox_name(c->mailbox),
                        zc_row_at_ms(row));
}

void zc_rest_move(struct zc_broker *b, struct zc_row *row, struct zc_slice body)
{
    if (body.data != NULL) {
        /* Asked for again if it is refused. */
        (void)!b->journal->move(b->journal->arg, ZC_JOURNAL_PUT, zc_row_seq(row), body);
        return;
    }
    struct zc_message *m = zc_rest_wake(b, row);
    if (m != NULL)
        zc_message_move(b, m, body);
}

void zc_rest_free_all(struct zc_broker *b, struct zc_mailbox *mb)
{
    struct zc_row *row;
    while ((row = zc_rows_from(&mb->rows, 0)) != NULL) {
        zc_row_ids_drop(&b->row_ids, row);
        zc_rows_drop(&mb->rows, &b->row_ids, row);
        mb->queued--;
    }
}
