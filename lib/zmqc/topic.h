/*
 * Publish and subscribe: the last value of each topic and the prefixes that sessions follow.
 *
 * Values stand in an array ordered by publication number, so that a subscription replays with one
 * cursor: it walks the numbers up to the one current when it began, and what is published later
 * moves past its end and comes live. So no value goes back in time and none comes twice. What finds
 * no room meanwhile is brought by one cursor of the session, for all of its subscriptions.
 */
#ifndef ZC_ZMQC_TOPIC_H
#define ZC_ZMQC_TOPIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "zmqc/filter.h"

/* All last values together, as encoded frames: what clients publish must not fill the memory. */
#define ZC_TOPICS_BYTES_MAX (UINT64_C(256) << 20)

struct zc_session;

struct zc_topic {
    struct zc_map_node node;
    struct zc_timer timer;  /* ttl */
    uint64_t version;       /* publication number */
    uint64_t from;          /* hash of the publisher's claimed name */
    uint32_t slot;          /* in zc_topics.order */
    struct zc_block *frame; /* encoded msg */
    uint16_t name_len;
    uint8_t name[];
};

/* A prefix that at least one session follows, or a mailbox is bound to. */
struct zc_prefix {
    struct zc_map_node node;
    struct zc_list subs;
    struct zc_list bindings; /* of binding.h */
    uint16_t len;
    uint8_t text[];
};

struct zc_sub {
    struct zc_list in_prefix, in_session;
    struct zc_prefix *prefix;
    struct zc_session *session;
    struct zc_filter *filter;     /* NULL: none */
    uint64_t replayed, replay_to; /* publication numbers; equal: replay is over */
    /* Something found no room while the replay ran: from `late` on the session's cursor brings
     * what matches. */
    bool behind;
    uint64_t late;
};

struct zc_topics {
    uint8_t key[16];
    struct zc_map by_name, prefixes;
    struct zc_topic **order;                    /* by version, with holes */
    uint32_t order_first, order_len, order_cap; /* nothing but holes before order_first */
    struct zc_topic *recent;                    /* set last; NULL: none */
    uint64_t version;                           /* last publication number */
    uint32_t prefix_lens[1025];                 /* prefixes of each length */
    uint16_t prefix_len_max;
    uint64_t bytes;     /* of all frames */
    uint64_t bytes_max; /* ZC_TOPICS_BYTES_MAX; tests choose less */
};

void zc_topics_init(struct zc_topics *t, const uint8_t key[16]);
/* Frees all values; prefixes must be gone. */
void zc_topics_done(struct zc_topics *t, struct zc_heap *timers);

/* Sets the last value (a reference is taken); at most topics_max of bytes_max together are kept,
 * the one published longest ago goes first. *ret_topic is the entry, for its timer. */
ZC_MUST_CHECK int zc_topics_set(struct zc_topics *t, struct zc_slice name, struct zc_block *frame,
                                uint64_t topics_max, struct zc_heap *timers,
                                struct zc_topic **ret_topic);
void zc_topics_remove(struct zc_topics *t, struct zc_heap *timers, struct zc_topic *topic);
struct zc_topic *zc_topics_find(const struct zc_topics *t, struct zc_slice name);
/* Next value after sub->replayed that the prefix matches, or NULL when the replay is over. */
struct zc_topic *zc_topics_replay(const struct zc_topics *t, struct zc_sub *sub);
/* The publication that was kept last finds no room in the session. */
void zc_topics_fall_behind(const struct zc_topics *t, struct zc_sub *sub);
/* Next value after s->caught for which a subscription is behind, or NULL: none is behind now. */
struct zc_topic *zc_topics_catch_up(const struct zc_topics *t, struct zc_session *s);

/* Not all that is to come before the live publications has come. */
static inline bool zc_topics_replaying(const struct zc_sub *sub)
{
    return sub->behind || sub->replayed < sub->replay_to;
}

/* The session follows prefix from now on; a repeated prefix only starts its replay anew, with this
 * filter. The filter is taken over. NULL, filter freed: memory is refused. */
struct zc_sub *zc_topics_sub(struct zc_topics *t, struct zc_session *s, struct zc_slice prefix,
                             struct zc_filter *filter);
void zc_topics_unsub(struct zc_topics *t, struct zc_sub *sub);
/* The entry of a prefix, made when it is not there; NULL when memory is refused. */
struct zc_prefix *zc_topics_prefix(struct zc_topics *t, struct zc_slice prefix);
/* NULL when it is not there. */
struct zc_prefix *zc_topics_prefix_find(const struct zc_topics *t, struct zc_slice prefix);
/* Frees it when nobody follows it and nothing is bound. */
void zc_topics_prefix_drop(struct zc_topics *t, struct zc_prefix *p);
/* Walks the prefixes that match name: *len starts at 0; NULL at the end. */
struct zc_prefix *zc_topics_match(const struct zc_topics *t, struct zc_slice name, size_t *len);

#endif
