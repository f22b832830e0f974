/* Last values and prefixes, see topic.h. */
#include "zmqc/topic.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "zmqc/session.h"

void zc_topics_init(struct zc_topics *t, const uint8_t key[16])
{
    memset(t, 0, sizeof(*t));
    memcpy(t->key, key, 16);
    t->bytes_max = ZC_TOPICS_BYTES_MAX;
}

void zc_topics_done(struct zc_topics *t, struct zc_heap *timers)
{
    for (uint32_t i = 0; i < t->order_len; i++) {
        if (t->order[i] != NULL)
            zc_topics_remove(t, timers, t->order[i]);
    }
    free(t->order);
    zc_map_done(&t->by_name);
    zc_map_done(&t->prefixes);
    memset(t, 0, sizeof(*t));
}

struct zc_topic *zc_topics_find(const struct zc_topics *t, struct zc_slice name)
{
    struct zc_map_node *n = zc_map_first(&t->by_name, zc_map_hash(t->key, name));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_topic *topic = ZC_CONTAINER(n, struct zc_topic, node);
        if (zc_slice_eq(name, zc_slice(topic->name, topic->name_len)))
            return topic;
    }
    return NULL;
}

void zc_topics_remove(struct zc_topics *t, struct zc_heap *timers, struct zc_topic *topic)
{
    if (t->recent == topic)
        t->recent = NULL;
    zc_heap_remove(timers, &topic->timer);
    t->order[topic->slot] = NULL;
    zc_map_remove(&t->by_name, &topic->node);
    t->bytes -= topic->frame->len;
    zc_block_unref(topic->frame);
    free(topic);
}

/* Room for one more at the end of order: closes the holes, or grows. */
static int order_room(struct zc_topics *t)
{
    if (t->order_len < t->order_cap)
        return 0;
    uint32_t live = 0;
    for (uint32_t i = 0; i < t->order_len; i++) {
        struct zc_topic *topic = t->order[i];
        if (topic != NULL) {
            topic->slot = live;
            t->order[live++] = topic;
        }
    }
    t->order_len = live;
    t->order_first = 0;
    if (live < t->order_cap / 2)
        return 0;
    uint32_t cap = t->order_cap == 0 ? 16 : t->order_cap * 2;
    struct zc_topic **order = realloc(t->order, cap * sizeof(struct zc_topic *));
    if (order == NULL)
        return live < t->order_cap ? 0 : ZC_ENOMEM;
    t->order = order;
    t->order_cap = cap;
    return 0;
}

static struct zc_topic *topic_new(struct zc_topics *t, struct zc_slice name)
{
    struct zc_topic *topic = calloc(1, sizeof(*topic) + name.len);
    if (topic == NULL)
        return NULL;
    topic->name_len = (uint16_t)name.len;
    memcpy(topic->name, name.data, name.len);
    if (zc_map_insert(&t->by_name, &topic->node, zc_map_hash(t->key, name)) != 0) {
        free(topic);
        return NULL;
    }
    return topic;
}

/* The value published longest ago. */
static struct zc_topic *oldest(struct zc_topics *t)
{
    for (; t->order_first < t->order_len; t->order_first++) {
        if (t->order[t->order_first] != NULL)
            return t->order[t->order_first];
    }
    return NULL;
}

/* Lets old values go until one more topic, or a known one with a new value, has room. */
static void make_room(struct zc_topics *t, uint64_t topics_max, uint64_t len,
                      struct zc_heap *timers)
{
    struct zc_topic *old;
    while ((t->by_name.len > topics_max || t->bytes + len > t->bytes_max) &&
           (old = oldest(t)) != NULL)
        zc_topics_remove(t, timers, old);
}

int zc_topics_set(struct zc_topics *t, struct zc_slice name, struct zc_block *frame,
                  uint64_t topics_max, struct zc_heap *timers, struct zc_topic **ret_topic)
{
    if (order_room(t) != 0)
        return ZC_ENOMEM;
    struct zc_topic *topic = t->recent;
    if (topic == NULL || !zc_slice_eq(name, zc_slice(topic->name, topic->name_len)))
        topic = zc_topics_find(t, name);
    if (topic == NULL) {
        if ((topic = topic_new(t, name)) == NULL)
            return ZC_ENOMEM;
    } else {
        t->order[topic->slot] = NULL;
        t->bytes -= topic->frame->len;
        zc_block_unref(topic->frame);
        zc_heap_remove(timers, &topic->timer);
    }
    make_room(t, topics_max, frame->len, timers);
    topic->frame = zc_block_ref(frame);
    t->bytes += frame->len;
    topic->version = ++t->version;
    topic->slot = t->order_len;
    t->order[t->order_len++] = t->recent = topic;
    *ret_topic = topic;
    return 0;
}

/* First index in order at or after which versions are above `version`. Holes are looked over. */
static uint32_t order_after(const struct zc_topics *t, uint64_t version)
{
    uint32_t low = 0, high = t->order_len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2, probe = mid;
        while (probe < high && t->order[probe] == NULL)
            probe++;
        if (probe == high)
            high = mid;
        else if (t->order[probe]->version <= version)
            low = probe + 1;
        else
            high = mid;
    }
    return low;
}

static bool wants(const struct zc_sub *sub, const struct zc_topic *topic)
{
    struct zc_slice prefix = zc_slice(sub->prefix->text, sub->prefix->len);
    struct zc_slice name = zc_slice(topic->name, topic->name_len);
    bool own = prefix.len == 0 && name.len > 0 && name.data[0] == '$';
    return zc_slice_starts(name, prefix) && !own && zc_filter_allows(sub->filter, topic->from);
}

struct zc_topic *zc_topics_replay(const struct zc_topics *t, struct zc_sub *sub)
{
    if (sub->replayed >= sub->replay_to)
        return NULL;
    for (uint32_t i = order_after(t, sub->replayed); i < t->order_len; i++) {
        struct zc_topic *topic = t->order[i];
        if (topic == NULL)
            continue;
        if (topic->version > sub->replay_to)
            break;
        if (wants(sub, topic))
            return topic;
        sub->replayed = topic->version;
    }
    sub->replayed = sub->replay_to;
    return NULL;
}

void zc_topics_fall_behind(const struct zc_topics *t, struct zc_sub *sub)
{
    struct zc_session *s = sub->session;
    if (!s->behind)
        s->caught = t->version - 1;
    s->behind = sub->behind = true;
    sub->late = t->version;
}

static bool misses(const struct zc_session *s, const struct zc_topic *topic)
{
    for (struct zc_list *l = s->subs.next; l != &s->subs; l = l->next) {
        const struct zc_sub *sub = ZC_CONTAINER(l, struct zc_sub, in_session);
        if (sub->behind && sub->late <= topic->version && wants(sub, topic))
            return true;
    }
    return false;
}

struct zc_topic *zc_topics_catch_up(const struct zc_topics *t, struct zc_session *s)
{
    if (!s->behind)
        return NULL;
    for (uint32_t i = order_after(t, s->caught); i < t->order_len; i++) {
        struct zc_topic *topic = t->order[i];
        if (topic == NULL)
            continue;
        if (misses(s, topic))
            return topic;
        s->caught = topic->version;
    }
    s->behind = false;
    for (struct zc_list *l = s->subs.next; l != &s->subs; l = l->next)
        ZC_CONTAINER(l, struct zc_sub, in_session)->behind = false;
    return NULL;
}

struct zc_prefix *zc_topics_prefix_find(const struct zc_topics *t, struct zc_slice text)
{
    struct zc_map_node *n = zc_map_first(&t->prefixes, zc_map_hash(t->key, text));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_prefix *p = ZC_CONTAINER(n, struct zc_prefix, node);
        if (zc_slice_eq(text, zc_slice(p->text, p->len)))
            return p;
    }
    return NULL;
}

static struct zc_prefix *prefix_new(struct zc_topics *t, struct zc_slice text)
{
    struct zc_prefix *p = calloc(1, sizeof(*p) + text.len);
    if (p == NULL)
        return NULL;
    zc_list_init(&p->subs);
    zc_list_init(&p->bindings);
    p->len = (uint16_t)text.len;
    if (text.len > 0)
        memcpy(p->text, text.data, text.len);
    if (zc_map_insert(&t->prefixes, &p->node, zc_map_hash(t->key, text)) != 0) {
        free(p);
        return NULL;
    }
    t->prefix_lens[p->len]++;
    if (p->len > t->prefix_len_max)
        t->prefix_len_max = p->len;
    return p;
}

struct zc_prefix *zc_topics_prefix(struct zc_topics *t, struct zc_slice prefix)
{
    struct zc_prefix *p = zc_topics_prefix_find(t, prefix);
    return p != NULL ? p : prefix_new(t, prefix);
}

void zc_topics_prefix_drop(struct zc_topics *t, struct zc_prefix *p)
{
    if (!zc_list_empty(&p->subs) || !zc_list_empty(&p->bindings))
        return;
    zc_map_remove(&t->prefixes, &p->node);
    t->prefix_lens[p->len]--;
    while (t->prefix_len_max > 0 && t->prefix_lens[t->prefix_len_max] == 0)
        t->prefix_len_max--;
    free(p);
}

struct zc_sub *zc_topics_sub(struct zc_topics *t, struct zc_session *s, struct zc_slice prefix,
                             struct zc_filter *filter)
{
    struct zc_prefix *p = zc_topics_prefix_find(t, prefix);
    struct zc_sub *sub = NULL;
    for (struct zc_list *l = s->subs.next; p != NULL && l != &s->subs; l = l->next) {
        sub = ZC_CONTAINER(l, struct zc_sub, in_session);
        if (sub->prefix == p)
            break;
        sub = NULL;
    }
    if (sub == NULL) {
        sub = calloc(1, sizeof(*sub));
        if (sub == NULL || (p == NULL && (p = prefix_new(t, prefix)) == NULL)) {
            free(filter);
            free(sub);
            return NULL;
        }
        sub->prefix = p;
        sub->session = s;
        zc_list_push(&p->subs, &sub->in_prefix);
        zc_list_push(&s->subs, &sub->in_session);
        s->subs_count++;
    }
    free(sub->filter);
    sub->filter = filter;
    sub->replayed = 0;
    sub->behind = false;
    sub->replay_to = t->version;
    return sub;
}

void zc_topics_unsub(struct zc_topics *t, struct zc_sub *sub)
{
    struct zc_prefix *p = sub->prefix;
    zc_list_remove(&sub->in_prefix);
    zc_list_remove(&sub->in_session);
    sub->session->subs_count--;
    free(sub->filter);
    free(sub);
    zc_topics_prefix_drop(t, p);
}

struct zc_prefix *zc_topics_match(const struct zc_topics *t, struct zc_slice name, size_t *len)
{
    /* "" means everything but the hub's own topics. */
    if (*len == 0 && name.len > 0 && name.data[0] == '$')
        *len = 1;
    for (; *len <= name.len && *len <= t->prefix_len_max; ++*len) {
        if (t->prefix_lens[*len] == 0)
            continue;
        struct zc_prefix *p = zc_topics_prefix_find(t, zc_slice(name.data, *len));
        if (p != NULL) {
            ++*len;
            return p;
        }
    }
    return NULL;
}
