/* Bindings of topics to mailboxes, see binding.h. */
#include "zmqc/binding.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "zmqc/settle.h"
#include "zmqc/stored.h"

static struct zc_binding *of(struct zc_setting *s)
{
    return ZC_CONTAINER(s, struct zc_binding, setting);
}

static struct zc_bound *bound_find(const struct zc_broker *b, struct zc_slice name)
{
    struct zc_map_node *n = zc_map_first(&b->bound, zc_map_hash(b->key, name));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_bound *bound = ZC_CONTAINER(n, struct zc_bound, node);
        if (zc_slice_eq(name, zc_binding_name(bound)))
            return bound;
    }
    return NULL;
}

static struct zc_bound *bound_get(struct zc_broker *b, struct zc_slice name)
{
    struct zc_bound *bound = bound_find(b, name);
    if (bound != NULL || (bound = calloc(1, sizeof(*bound) + name.len)) == NULL)
        return bound;
    bound->len = (uint16_t)name.len;
    memcpy(bound->name, name.data, name.len);
    if (zc_map_insert(&b->bound, &bound->node, zc_map_hash(b->key, name)) != 0) {
        free(bound);
        return NULL;
    }
    return bound;
}

static void bound_drop(struct zc_broker *b, struct zc_bound *bound)
{
    if (bound->bindings > 0)
        return;
    zc_map_remove(&b->bound, &bound->node);
    free(bound);
}

static uint64_t key_hash(const struct zc_broker *b, struct zc_slice name, struct zc_slice topic)
{
    return zc_map_hash(b->key, name) + 3 * zc_map_hash(b->key2, topic);
}

/* It counts from now on. False: no memory. */
static bool enter(struct zc_broker *b, struct zc_binding *g)
{
    struct zc_slice topic = zc_slice(g->topic, g->topic_len);
    struct zc_prefix *p = zc_topics_prefix(&b->topics, topic);
    if (p == NULL)
        return false;
    uint64_t hash = key_hash(b, zc_binding_name(g->bound), topic);
    if (zc_map_insert(&b->bindings_by_key, &g->by_key, hash) != 0) {
        zc_topics_prefix_drop(&b->topics, p);
        return false;
    }
    g->prefix = p;
    zc_list_push(&g->prefix->bindings, &g->in_prefix);
    zc_list_push(&b->bindings, &g->all);
    return true;
}

/* The next one of its prefix, or NULL. */
static struct zc_binding *after(const struct zc_binding *g)
{
    struct zc_list *l = g->in_prefix.next;
    return l != &g->prefix->bindings ? ZC_CONTAINER(l, struct zc_binding, in_prefix) : NULL;
}

static void leave(struct zc_broker *b, struct zc_binding *g)
{
    if (g->prefix == NULL)
        return;
    if (b->walk != NULL && b->walk->at == g)
        b->walk->at = after(g);
    zc_map_remove(&b->bindings_by_key, &g->by_key);
    zc_list_remove(&g->in_prefix);
    zc_list_remove(&g->all);
    zc_topics_prefix_drop(&b->topics, g->prefix);
    g->prefix = NULL;
}

static void binding_free(struct zc_broker *b, struct zc_binding *g)
{
    leave(b, g);
    if (g->by_seq.link != NULL)
        zc_map_remove(&b->bindings_by_seq, &g->by_seq);
    b->bindings_count--;
    g->bound->bindings--;
    bound_drop(b, g->bound);
    free(g);
}

static struct zc_binding *binding_new(struct zc_broker *b, struct zc_slice name,
                                      struct zc_slice topic)
{
    struct zc_bound *bound = bound_get(b, name);
    struct zc_binding *g = bound != NULL ? calloc(1, sizeof(*g) + topic.len) : NULL;
    if (g == NULL) {
        if (bound != NULL)
            bound_drop(b, bound);
        return NULL;
    }
    g->setting.owner = ZC_OWNER_BINDING;
    g->bound = bound;
    bound->bindings++;
    b->bindings_count++;
    g->topic_len = (uint16_t)topic.len;
    if (topic.len > 0)
        memcpy(g->topic, topic.data, topic.len);
    if (!enter(b, g)) {
        binding_free(b, g);
        return NULL;
    }
    return g;
}

static struct zc_binding *binding_find(const struct zc_broker *b, struct zc_slice name,
                                       struct zc_slice topic)
{
    struct zc_map_node *n = zc_map_first(&b->bindings_by_key, key_hash(b, name, topic));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_binding *g = ZC_CONTAINER(n, struct zc_binding, by_key);
        if (zc_slice_eq(name, zc_binding_name(g->bound)) &&
            zc_slice_eq(topic, zc_slice(g->topic, g->topic_len)))
            return g;
    }
    return NULL;
}

static struct zc_slice encode(const struct zc_binding *g, uint8_t ret_body[ZC_STORED_BIND_MAX])
{
    struct zc_stored_bind bind = {zc_binding_name(g->bound), zc_slice(g->topic, g->topic_len)};
    return zc_stored_bind_encode(&bind, ret_body);
}

int64_t zc_binding_add(struct zc_broker *b, struct zc_slice name, struct zc_slice topic)
{
    uint8_t body[ZC_STORED_BIND_MAX];
    struct zc_binding *g = binding_find(b, name, topic);
    if (g != NULL && b->bindings_unsure) { /* the removal that failed may be on disk */
        int64_t removed = zc_binding_remove(b, name, topic);
        if (removed < 0)
            return removed;
        g = NULL;
    }
    if (g != NULL)
        return g->setting.unsettled ? (int64_t)zc_settle_last(b) : 0;
    if (b->bindings_count >= ZC_BINDINGS_MAX)
        return ZC_ELIMIT;
    int err = zc_settle_reserve(b, 1);
    if (err != 0 || (g = binding_new(b, name, topic)) == NULL)
        return ZC_ENOMEM;
    g->setting.seq = b->seq_next;
    int64_t ticket = 0;
    if (b->journal != NULL)
        ticket = b->journal->append(b->journal->arg, ZC_JOURNAL_BIND, g->setting.seq,
                                    encode(g, body), true, &g->setting.place);
    if (ticket < 0) {
        binding_free(b, g);
        return ticket;
    }
    b->seq_next++;
    if (ticket > 0)
        zc_settle_push_setting(b, (uint64_t)ticket, &g->setting, true);
    return ticket;
}

int64_t zc_binding_remove(struct zc_broker *b, struct zc_slice name, struct zc_slice topic)
{
    uint8_t seq[8];
    struct zc_binding *g = binding_find(b, name, topic);
    if (g == NULL &&
        b->bindings_unsure) { /* one that failed may be on disk: a newer one is removed */
        int64_t added = zc_binding_add(b, name, topic);
        if (added < 0)
            return added;
        g = binding_find(b, name, topic);
    }
    if (g == NULL)
        return b->journal != NULL ? (int64_t)zc_settle_last(b) : 0;
    if (b->journal == NULL) {
        binding_free(b, g);
        return 0;
    }
    int err = zc_settle_reserve(b, 1);
    if (err != 0)
        return err;
    zc_le_put(seq, g->setting.seq, 8);
    int64_t ticket = b->journal->append(b->journal->arg, ZC_JOURNAL_REMOVE, 0,
                                        zc_slice(seq, sizeof(seq)), true, NULL);
    if (ticket < 0)
        return ticket;
    leave(b, g);
    g->setting.gone = true;
    zc_settle_push_setting(b, (uint64_t)ticket, &g->setting, false);
    return ticket;
}

void zc_binding_settled(struct zc_broker *b, struct zc_setting *s, bool put, bool durable)
{
    struct zc_binding *g = of(s);
    if (put && durable)
        return;
    b->bindings_unsure = b->bindings_unsure || !durable;
    if (!put && !durable) {
        s->gone = false; /* it is still there */
        if (enter(b, g))
            return;
        zc_broker_log(b, 3, NULL,
                      "no memory: a binding whose unbind failed is off until a restart");
        return;
    }
    if (durable && s->place != 0 && b->journal != NULL)
        b->journal->forget(b->journal->arg, s->place);
    binding_free(b, g);
}

/* w->at is a binding, unless there is none left. */
static void find(const struct zc_broker *b, struct zc_binding_walk *w)
{
    struct zc_prefix *p;
    while (w->at == NULL && (p = zc_topics_match(&b->topics, w->topic, &w->len)) != NULL) {
        if (!zc_list_empty(&p->bindings))
            w->at = ZC_CONTAINER(p->bindings.next, struct zc_binding, in_prefix);
    }
}

bool zc_binding_begin(struct zc_broker *b, struct zc_slice topic, struct zc_binding_walk *ret_walk)
{
    *ret_walk = (struct zc_binding_walk){.topic = topic, .limit = b->seq_next, .mark = ++b->walks};
    find(b, ret_walk);
    return ret_walk->at != NULL;
}

struct zc_bound *zc_binding_next(struct zc_broker *b, struct zc_binding_walk *w)
{
    for (find(b, w); w->at != NULL; find(b, w)) {
        struct zc_bound *bound = w->at->bound;
        bool newer = w->at->setting.seq >= w->limit;
        w->at = after(w->at);
        w->looked++;
        if (newer || bound->mark == w->mark)
            continue;
        bound->mark = w->mark;
        return bound;
    }
    return NULL;
}

int zc_binding_restore(struct zc_broker *b, uint64_t seq, struct zc_slice body, uint64_t place)
{
    struct zc_stored_bind bind;
    if (zc_stored_bind_decode(body, &bind) != 0)
        return ZC_EBADMSG;
    struct zc_binding *g = binding_find(b, bind.name, bind.topic);
    if (g != NULL) /* a copy, or bound again before its unbind was on disk */
        b->journal->forget(b->journal->arg, g->setting.place);
    else if ((g = binding_new(b, bind.name, bind.topic)) == NULL)
        return ZC_ENOMEM;
    g->setting.seq = seq;
    g->setting.place = place;
    b->journal->own(b->journal->arg, place, &g->setting.place);
    if (g->by_seq.link != NULL)
        zc_map_remove(&b->bindings_by_seq, &g->by_seq);
    return zc_map_insert(&b->bindings_by_seq, &g->by_seq, seq);
}

bool zc_binding_restore_remove(struct zc_broker *b, uint64_t seq)
{
    struct zc_map_node *n = zc_map_first(&b->bindings_by_seq, seq);
    if (n != NULL) {
        struct zc_binding *g = ZC_CONTAINER(n, struct zc_binding, by_seq);
        b->journal->forget(b->journal->arg, g->setting.place);
        binding_free(b, g);
        return true;
    }
    return false;
}

void zc_binding_move(struct zc_broker *b, struct zc_setting *s)
{
    uint8_t body[ZC_STORED_BIND_MAX];
    if (s->gone)
        return; /* a copy behind its REMOVE would bring it back */
    (void)!b->journal->move(b->journal->arg, ZC_JOURNAL_BIND, s->seq, encode(of(s), body));
}

void zc_binding_free_all(struct zc_broker *b)
{
    while (!zc_list_empty(&b->bindings))
        binding_free(b, ZC_CONTAINER(b->bindings.next, struct zc_binding, all));
    zc_map_done(&b->bound);
    zc_map_done(&b->bindings_by_key);
    zc_map_done(&b->bindings_by_seq);
}
