/*
 * Bindings: every publication whose topic begins with the prefix is also put into the mailbox. The
 * prefixes are those of topic.h; mailboxes are known by name, since an empty one is not there.
 *
 * In the log a binding is one BIND record: u16 length of the mailbox's name, u16 length of the
 * prefix, both texts.
 */
#ifndef ZC_ZMQC_BINDING_H
#define ZC_ZMQC_BINDING_H

#include "zmqc/broker.h"
#include "zmqc/setting.h"

#define ZC_BINDINGS_MAX 65536

/* A mailbox that is bound. */
struct zc_bound {
    struct zc_map_node node;
    uint64_t mark; /* of the last walk that met it, for one copy each */
    uint32_t bindings;
    uint16_t len;
    uint8_t name[];
};

struct zc_binding {
    struct zc_setting setting;
    struct zc_map_node by_key; /* mailbox and prefix; like `all` */
    struct zc_map_node by_seq; /* of those that were restored */
    struct zc_list all;        /* b->bindings; unlinked while its removal is on its way */
    struct zc_list in_prefix;  /* likewise */
    struct zc_prefix *prefix;  /* NULL likewise */
    struct zc_bound *bound;
    uint16_t topic_len;
    uint8_t topic[];
};

static inline struct zc_slice zc_binding_name(const struct zc_bound *bound)
{
    return zc_slice(bound->name, bound->len);
}

/* A new binding, or the one that is there. The ticket that must be synced before ok, or a negative
 * zc_err; ZC_ELIMIT: ZC_BINDINGS_MAX. */
ZC_MUST_CHECK int64_t zc_binding_add(struct zc_broker *b, struct zc_slice name,
                                     struct zc_slice topic);
/* Ends it; likewise. 0 when there is none. */
ZC_MUST_CHECK int64_t zc_binding_remove(struct zc_broker *b, struct zc_slice name,
                                        struct zc_slice topic);
/* A walk over the mailboxes that are bound to a topic. While it pauses, bindings may come and go
 * if b->walk points to it; there is one at a time. */
struct zc_binding_walk {
    struct zc_slice topic;
    size_t len;            /* prefixes below that length are through, or `at` is in the last one */
    struct zc_binding *at; /* the next one; NULL: the first of the next prefix */
    uint64_t limit;        /* bindings with sequence numbers from here on came later */
    uint64_t mark;
    uint32_t looked; /* bindings passed */
};

/* False: none is bound. The topic stays where it is. */
bool zc_binding_begin(struct zc_broker *b, struct zc_slice topic, struct zc_binding_walk *ret_walk);
/* The next mailbox, each once; NULL: that was all. */
struct zc_bound *zc_binding_next(struct zc_broker *b, struct zc_binding_walk *w);

/* Its record, or its removal (put false), is durable or failed. */
void zc_binding_settled(struct zc_broker *b, struct zc_setting *s, bool put, bool durable);
/* While the log opens. */
ZC_MUST_CHECK int zc_binding_restore(struct zc_broker *b, uint64_t seq, struct zc_slice body,
                                     uint64_t place);
/* True: the REMOVE was of a binding. */
bool zc_binding_restore_remove(struct zc_broker *b, uint64_t seq);
/* Journals it anew, for compaction. */
void zc_binding_move(struct zc_broker *b, struct zc_setting *s);
/* Frees all; nothing is written. */
void zc_binding_free_all(struct zc_broker *b);

#endif
