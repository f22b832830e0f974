/* Ids of scopes that were seen, see seen.h. */
#include "zmqc/seen.h"

#include <stdlib.h>

#include "base/le.h"
#include "crypto/blake2s.h"
#include "zmqc/settle.h"
#include "zmqc/stored.h"

uint64_t zc_seen_hash(struct zc_slice name, struct zc_slice id)
{
    static const char key[] = "zmqcat seen";
    struct zc_blake2s h;
    uint8_t out[8], len[8];
    zc_le_put(len, name.len, 8);
    zc_blake2s_init(&h, sizeof(out), key, sizeof(key) - 1);
    zc_blake2s_update(&h, len, sizeof(len));
    zc_blake2s_update(&h, name.data, name.len);
    if (id.len > 0)
        zc_blake2s_update(&h, id.data, id.len);
    zc_blake2s_final(&h, out);
    return zc_le_get(out, 8);
}

/* Clients choose what is hashed, so the table has a secret of its own. */
static uint64_t bucket(const struct zc_broker *b, uint64_t hash)
{
    uint8_t text[8];
    zc_le_put(text, hash, 8);
    return zc_map_hash(b->key, zc_slice(text, sizeof(text)));
}

static struct zc_seen *find(const struct zc_broker *b, uint64_t id)
{
    struct zc_map_node *n = zc_map_first(&b->seen, bucket(b, id));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_seen *e = ZC_CONTAINER(n, struct zc_seen, node);
        if (e->id == id)
            return e;
    }
    return NULL;
}

bool zc_seen_has(const struct zc_broker *b, uint64_t id)
{
    const struct zc_seen *e = find(b, id);
    return e != NULL && e->until.ns > b->now.mono.ns;
}

static void forget(struct zc_broker *b, struct zc_seen *e)
{
    if (b->journal != NULL && e->setting.place != 0)
        b->journal->forget(b->journal->arg, e->setting.place);
    free(e);
}

/* It counts no more; what waits for its record frees it. */
static void drop(struct zc_broker *b, struct zc_seen *e)
{
    struct zc_seen_box *box = e->box;
    zc_map_remove(&b->seen, &e->node);
    zc_list_remove(&e->in_all);
    zc_list_remove(&e->in_box);
    if (--box->count == 0) {
        zc_map_remove(&b->seen_boxes, &box->node);
        free(box);
    }
    e->setting.gone = true;
    if (!e->setting.unsettled)
        forget(b, e);
}

static struct zc_seen *first(const struct zc_list *all)
{
    struct zc_list *l = zc_list_first(all);
    return l != NULL ? ZC_CONTAINER(l, struct zc_seen, in_all) : NULL;
}

void zc_seen_tick(struct zc_broker *b)
{
    struct zc_seen *e;
    while ((e = first(&b->seen_all)) != NULL && e->until.ns <= b->now.mono.ns)
        drop(b, e);
    if (e == NULL)
        zc_heap_remove(&b->timers, &b->seen_timer);
    else if (zc_heap_set(&b->timers, &b->seen_timer, e->until) != 0)
        zc_broker_log(b, 3, NULL, "no memory for a timer: ids are remembered longer");
}

static struct zc_seen_box *box_get(struct zc_broker *b, uint64_t name)
{
    struct zc_map_node *n = zc_map_first(&b->seen_boxes, bucket(b, name));
    if (n != NULL)
        return ZC_CONTAINER(n, struct zc_seen_box, node);
    struct zc_seen_box *box = calloc(1, sizeof(*box));
    if (box == NULL || zc_map_insert(&b->seen_boxes, &box->node, bucket(b, name)) != 0) {
        free(box);
        return NULL;
    }
    zc_list_init(&box->entries);
    return box;
}

/* A new entry, with room made for it; NULL: no memory. */
static struct zc_seen *enter(struct zc_broker *b, uint64_t name, uint64_t id)
{
    if (b->seen.len >= ZC_SEEN_MAX)
        drop(b, first(&b->seen_all));
    struct zc_seen_box *box = box_get(b, name);
    if (box == NULL)
        return NULL;
    struct zc_seen *e = calloc(1, sizeof(*e));
    if (e == NULL || zc_map_insert(&b->seen, &e->node, bucket(b, id)) != 0) {
        free(e);
        if (box->count == 0) {
            zc_map_remove(&b->seen_boxes, &box->node);
            free(box);
        }
        return NULL;
    }
    e->setting.owner = ZC_OWNER_SEEN;
    e->box = box;
    e->name = name;
    e->id = id;
    zc_list_push(&box->entries, &e->in_box);
    zc_list_push(&b->seen_all, &e->in_all);
    if (++box->count > ZC_SEEN_MAILBOX_MAX)
        drop(b, ZC_CONTAINER(box->entries.next, struct zc_seen, in_box));
    return e;
}

static struct zc_slice encode(const struct zc_seen *e, uint8_t ret_body[ZC_STORED_SEEN_LEN])
{
    struct zc_stored_seen seen = {e->name, e->id, e->until_ms};
    return zc_stored_seen_encode(&seen, ret_body);
}

static void store(struct zc_broker *b, struct zc_seen *e)
{
    uint8_t body[ZC_STORED_SEEN_LEN];
    if (b->journal == NULL || e->setting.place != 0 || e->setting.unsettled)
        return;
    e->setting.seq = b->seq_next;
    int64_t ticket = b->journal->append(b->journal->arg, ZC_JOURNAL_SEEN, e->setting.seq,
                                        encode(e, body), false, &e->setting.place);
    if (ticket <= 0)
        return; /* a disk that is full: memory alone remembers it */
    b->seq_next++;
    zc_settle_push_setting(b, (uint64_t)ticket, &e->setting, true);
}

void zc_seen_add(struct zc_broker *b, const struct zc_message *m)
{
    struct zc_mono until = zc_mono_add_ms(b->started, (int64_t)m->seen_s * 1000);
    if (until.ns <= b->now.mono.ns)
        return;
    struct zc_seen *e = find(b, m->id_tag);
    if (e != NULL && e->until.ns <= b->now.mono.ns) {
        /* Over, but still behind one that lasts longer. */
        drop(b, e);
        e = NULL;
    }
    if (e == NULL) {
        struct zc_slice none = zc_slice(NULL, 0);
        e = enter(b, zc_seen_hash(zc_mailbox_name(m->mailbox), none), m->id_tag);
        if (e == NULL)
            return;
        e->until = until;
        e->until_ms = b->now.wall.ms + zc_mono_diff_ms(b->now.mono, e->until);
        if (!zc_heap_has(&b->seen_timer))
            zc_seen_tick(b);
    }
    store(b, e);
}

void zc_seen_settled(struct zc_broker *b, struct zc_setting *s, bool durable)
{
    struct zc_seen *e = ZC_CONTAINER(s, struct zc_seen, setting);
    if (!durable)
        s->place = 0;
    if (s->gone)
        forget(b, e);
}

int zc_seen_restore(struct zc_broker *b, struct zc_slice body, uint64_t place)
{
    struct zc_stored_seen seen;
    if (zc_stored_seen_decode(body, &seen) != 0)
        return ZC_EBADMSG;
    int64_t left = 0;
    if (seen.until_ms > b->now.wall.ms)
        left = seen.until_ms - b->now.wall.ms;
    left = left < ZC_SEEN_MS ? left : ZC_SEEN_MS;
    struct zc_seen *e = find(b, seen.id);
    if (e != NULL) /* this one is a copy */
        drop(b, e);
    if (left == 0) {
        b->journal->forget(b->journal->arg, place);
        return 0;
    }
    if ((e = enter(b, seen.name, seen.id)) == NULL)
        return ZC_ENOMEM;
    e->until_ms = b->now.wall.ms + left;
    e->until = zc_mono_add_ms(b->now.mono, left);
    e->setting.place = place;
    b->journal->own(b->journal->arg, place, &e->setting.place);
    return 0;
}

void zc_seen_move(struct zc_broker *b, struct zc_setting *s)
{
    struct zc_seen *e = ZC_CONTAINER(s, struct zc_seen, setting);
    uint8_t body[ZC_STORED_SEEN_LEN];
    if (!s->gone)
        (void)!b->journal->move(b->journal->arg, ZC_JOURNAL_SEEN, s->seq, encode(e, body));
}

void zc_seen_free_all(struct zc_broker *b)
{
    struct zc_seen *e;
    while ((e = first(&b->seen_all)) != NULL) {
        e->setting.unsettled = false; /* nobody is told any more */
        drop(b, e);
    }
    zc_map_done(&b->seen);
    zc_map_done(&b->seen_boxes);
}
