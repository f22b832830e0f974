/* The live records of a log, see contents.h. */
#include "node/contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/le.h"
#include "zmqc/item.h"
#include "zmqc/stored.h"

#define CHUNK 4096u

struct zc_contents_entry *zc_contents_at(const struct zc_contents *c, uint32_t i)
{
    return &c->chunks[i / CHUNK][i % CHUNK];
}

/* Where a key stands: messages and bindings share their numbers, what was seen has its own. */
static uint32_t bucket(const struct zc_contents *c, bool seen, uint64_t key)
{
    key = (key ^ key >> 31 ^ seen) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32) & (c->buckets_len - 1);
}

static struct zc_contents_entry *find(const struct zc_contents *c, bool seen, uint64_t key)
{
    uint32_t at = c->buckets_len > 0 ? c->buckets[bucket(c, seen, key)] : 0;
    while (at != 0) {
        struct zc_contents_entry *e = zc_contents_at(c, at - 1);
        if (e->key == key && (e->type == ZC_RECORD_SEEN) == seen)
            return e;
        at = e->next;
    }
    return NULL;
}

static int buckets_grow(struct zc_contents *c)
{
    uint32_t len = c->buckets_len == 0 ? 1024 : c->buckets_len * 2;
    uint32_t *buckets = calloc(len, sizeof(*buckets));
    if (buckets == NULL)
        return ZC_ENOMEM;
    free(c->buckets);
    c->buckets = buckets;
    c->buckets_len = len;
    for (uint32_t i = 0; i < c->entries; i++) {
        struct zc_contents_entry *e = zc_contents_at(c, i);
        if (e->type == 0)
            continue;
        uint32_t *at = &buckets[bucket(c, e->type == ZC_RECORD_SEEN, e->key)];
        e->next = *at;
        *at = i + 1;
    }
    return 0;
}

static int chunk_add(struct zc_contents *c)
{
    struct zc_contents_entry **chunks =
        realloc(c->chunks, (c->chunks_len + (size_t)1) * sizeof(struct zc_contents_entry *));
    if (chunks == NULL)
        return ZC_ENOMEM;
    c->chunks = chunks;
    chunks[c->chunks_len] = calloc(CHUNK, sizeof(struct zc_contents_entry));
    if (chunks[c->chunks_len] == NULL)
        return ZC_ENOMEM;
    c->chunks_len++;
    return 0;
}

/* A new entry in its bucket; NULL: no memory. */
static struct zc_contents_entry *entry_new(struct zc_contents *c, uint8_t type, uint64_t key)
{
    uint32_t i = c->free - 1;
    if (c->live >= c->buckets_len && buckets_grow(c) != 0)
        return NULL;
    if (c->free != 0) {
        c->free = zc_contents_at(c, i)->next;
    } else {
        if (c->entries == c->chunks_len * CHUNK && chunk_add(c) != 0)
            return NULL;
        i = c->entries++;
    }
    struct zc_contents_entry *e = zc_contents_at(c, i);
    uint32_t *at = &c->buckets[bucket(c, type == ZC_RECORD_SEEN, key)];
    *e = (struct zc_contents_entry){.key = key, .type = type, .next = *at};
    *at = i + 1;
    c->live++;
    return e;
}

static void count(struct zc_contents *c, const struct zc_contents_entry *e, bool add)
{
    uint32_t one = add ? 1 : UINT32_MAX;
    if (e->type == ZC_RECORD_PUT) {
        c->messages += one;
        c->boxes[e->box]->messages += add ? 1 : UINT64_MAX;
    } else if (e->type == ZC_RECORD_BIND) {
        c->bindings += one;
    } else {
        c->seen += one;
    }
}

static void entry_drop(struct zc_contents *c, struct zc_contents_entry *e)
{
    uint32_t *at = &c->buckets[bucket(c, e->type == ZC_RECORD_SEEN, e->key)];
    while (zc_contents_at(c, *at - 1) != e)
        at = &zc_contents_at(c, *at - 1)->next;
    uint32_t i = *at;
    *at = e->next;
    count(c, e, false);
    if (c->log != NULL)
        zc_log_forget(c->log, e->place);
    e->type = 0;
    e->next = c->free;
    c->free = i;
    c->live--;
}

static struct zc_contents_box *box_find(const struct zc_contents *c, struct zc_slice name,
                                        uint64_t hash)
{
    for (struct zc_map_node *n = zc_map_first(&c->names, hash); n != NULL; n = zc_map_next(n)) {
        struct zc_contents_box *box = ZC_CONTAINER(n, struct zc_contents_box, node);
        if (zc_slice_eq(zc_slice(box->name, box->len), name))
            return box;
    }
    return NULL;
}

/* The mailbox of that name, made when it is new; NULL: no memory. */
static struct zc_contents_box *box_get(struct zc_contents *c, struct zc_slice name)
{
    static const uint8_t key[16];
    uint64_t hash = zc_map_hash(key, name);
    struct zc_contents_box *box = box_find(c, name, hash);
    if (box != NULL)
        return box;
    if (c->boxes_len == c->boxes_cap) {
        uint32_t cap = c->boxes_cap == 0 ? 64 : c->boxes_cap * 2;
        struct zc_contents_box **boxes = realloc(c->boxes, cap * sizeof(struct zc_contents_box *));
        if (boxes == NULL)
            return NULL;
        c->boxes = boxes;
        c->boxes_cap = cap;
    }
    box = calloc(1, sizeof(*box) + name.len);
    if (box == NULL || zc_map_insert(&c->names, &box->node, hash) != 0) {
        free(box);
        return NULL;
    }
    box->len = (uint16_t)name.len;
    memcpy(box->name, name.data, name.len);
    box->index = c->boxes_len;
    c->boxes[c->boxes_len++] = box;
    return box;
}

/* Makes a live entry of ev, with its place; NULL: no memory. */
static struct zc_contents_entry *enter(struct zc_contents *c, const struct zc_log_event *ev,
                                       uint64_t key)
{
    struct zc_contents_entry *e = entry_new(c, (uint8_t)ev->type, key);
    if (e == NULL)
        return NULL;
    e->place = ev->place;
    e->len = ev->body_len;
    if (c->log != NULL)
        zc_log_own(c->log, ev->place, &e->place);
    return e;
}

static int put(struct zc_contents *c, const struct zc_log_event *ev)
{
    struct zc_item item;
    struct zc_contents_entry *e = find(c, false, ev->seq);
    struct zc_contents_entry before = {0};
    if (e != NULL) {
        /* A copy takes the place of its record; what was said of it stays. */
        before = *e;
        entry_drop(c, e);
    }
    if (zc_item_decode_head(ev->body, ev->body_len, &item) != 0 || item.name.len == 0) {
        c->unreadable++;
        return 0;
    }
    struct zc_contents_box *box = box_get(c, item.name);
    e = box != NULL ? enter(c, ev, ev->seq) : NULL;
    if (e == NULL)
        return ZC_ENOMEM;
    e->box = box->index;
    if (before.type == ZC_RECORD_PUT) {
        e->attempt = before.attempt;
        e->due_ms = before.due_ms;
        e->has_state = before.has_state;
    }
    count(c, e, true);
    return 0;
}

static int other(struct zc_contents *c, const struct zc_log_event *ev)
{
    bool is_seen = ev->type == ZC_RECORD_SEEN;
    struct zc_stored_seen seen = {0};
    struct zc_stored_bind bind;
    if ((is_seen ? zc_stored_seen_decode(ev->body, &seen)
                 : zc_stored_bind_decode(ev->body, &bind)) != 0) {
        c->unreadable++;
        return 0;
    }
    uint64_t key = is_seen ? seen.id : ev->seq;
    struct zc_contents_entry *e = find(c, is_seen, key);
    if (e != NULL)
        entry_drop(c, e);
    e = enter(c, ev, key);
    if (e == NULL)
        return ZC_ENOMEM;
    e->due_ms = seen.until_ms;
    count(c, e, true);
    return 0;
}

int zc_contents_record(struct zc_contents *c, const struct zc_log_event *ev)
{
    struct zc_contents_entry *e;
    struct zc_stored_state state;
    switch (ev->type) {
    case ZC_RECORD_PUT:
        return put(c, ev);
    case ZC_RECORD_BIND:
    case ZC_RECORD_SEEN:
        return other(c, ev);
    case ZC_RECORD_REMOVE:
        for (size_t i = 0; i + 8 <= ev->body.len; i += 8)
            if ((e = find(c, false, zc_le_get(ev->body.data + i, 8))) != NULL)
                entry_drop(c, e);
        return 0;
    case ZC_RECORD_STATE:
        e = find(c, false, ev->seq);
        if (e != NULL && e->type == ZC_RECORD_PUT &&
            zc_stored_state_decode(ev->body, &state) == 0) {
            e->attempt = state.attempt;
            e->due_ms = state.due_ms;
            e->has_state = true;
        }
        return 0;
    default:
        return 0;
    }
}

static int by_order(const void *pa, const void *pb)
{
    const struct zc_contents_entry *a = *(struct zc_contents_entry *const *)pa;
    const struct zc_contents_entry *b = *(struct zc_contents_entry *const *)pb;
    bool seen = a->type == ZC_RECORD_SEEN;
    if (seen != (b->type == ZC_RECORD_SEEN))
        return seen ? 1 : -1;
    if (seen && a->due_ms != b->due_ms)
        return a->due_ms < b->due_ms ? -1 : 1;
    return a->key < b->key ? -1 : a->key > b->key;
}

struct zc_contents_entry **zc_contents_sorted(const struct zc_contents *c)
{
    struct zc_contents_entry **all =
        malloc((c->live + (size_t)1) * sizeof(struct zc_contents_entry *));
    uint32_t n = 0;
    if (all == NULL)
        return NULL;
    for (uint32_t i = 0; i < c->entries; i++)
        if (zc_contents_at(c, i)->type != 0)
            all[n++] = zc_contents_at(c, i);
    ZC_ASSERT(n == c->live);
    qsort(all, n, sizeof(struct zc_contents_entry *), by_order);
    return all;
}

void zc_contents_move(struct zc_contents *c, const struct zc_log_event *ev)
{
    uint8_t body[ZC_STORED_STATE_LEN];
    struct zc_contents_entry *e = ZC_CONTAINER(ev->owner, struct zc_contents_entry, place);
    if (ev->err != 0) {
        /* It cannot be read any more; its segment is kept aside. */
        c->unreadable++;
        entry_drop(c, e);
        return;
    }
    if (zc_log_move(c->log, ev->type, ev->seq, ev->body) <= 0 || !e->has_state)
        return;
    struct zc_stored_state state = {e->attempt, e->due_ms};
    (void)!zc_log_append(c->log, ZC_RECORD_STATE, e->key, zc_stored_state_encode(&state, body),
                         false, NULL);
}

void zc_contents_expire(struct zc_contents *c, int64_t now_ms)
{
    for (uint32_t i = 0; i < c->entries; i++) {
        struct zc_contents_entry *e = zc_contents_at(c, i);
        if (e->type == ZC_RECORD_SEEN && e->due_ms <= now_ms)
            entry_drop(c, e);
    }
}

void zc_contents_done(struct zc_contents *c)
{
    for (uint32_t i = 0; i < c->boxes_len; i++)
        free(c->boxes[i]);
    free(c->boxes);
    zc_map_done(&c->names);
    for (uint32_t i = 0; i < c->chunks_len; i++)
        free(c->chunks[i]);
    free(c->chunks);
    free(c->buckets);
    *c = (struct zc_contents){0};
}
