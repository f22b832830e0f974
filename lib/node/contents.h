/*
 * What a log holds, without a broker: which records live, what the later ones said of them, and how
 * many messages each mailbox has. Payloads stay in the log; a live record costs about 60 bytes.
 * Says the same as zc_broker_restore_* of the same records.
 */
#ifndef ZC_NODE_CONTENTS_H
#define ZC_NODE_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "store/log.h"

/* Of one record that lives, or lived. */
struct zc_contents_entry {
    uint64_t place; /* first: what the log keeps up to date */
    uint64_t key;   /* sequence number; SEEN: hash of name and id */
    int64_t due_ms; /* PUT with STATE: not before; SEEN: until */
    uint32_t len;   /* of the body */
    uint32_t attempt;
    uint32_t box;  /* PUT: index into boxes */
    uint32_t next; /* in its bucket, or of those free: index + 1 */
    uint8_t type;  /* enum zc_record_type; 0: free */
    bool has_state;
};

struct zc_contents_box {
    struct zc_map_node node;
    uint64_t messages;
    uint32_t index;
    uint16_t len;
    uint8_t name[];
};

struct zc_contents {
    struct zc_log *log; /* not NULL: it is told what is owned and forgotten */
    struct zc_contents_entry **chunks;
    uint32_t chunks_len, entries; /* entries: with those that are free */
    uint32_t free;                /* index + 1 */
    uint32_t *buckets;
    uint32_t buckets_len; /* power of two, or 0 */
    uint32_t live, messages, bindings, seen;
    struct zc_map names;
    struct zc_contents_box **boxes;
    uint32_t boxes_len, boxes_cap;
    uint64_t unreadable; /* stored messages that cannot be understood */
};

/* A ZC_LOG_RECORD event. ZC_ENOMEM: the contents are no longer right. */
ZC_MUST_CHECK int zc_contents_record(struct zc_contents *c, const struct zc_log_event *ev);
/* Entry i of c->entries. */
struct zc_contents_entry *zc_contents_at(const struct zc_contents *c, uint32_t i);
/* The live entries in the order in which they are given out: messages and bindings by sequence
 * number, then what was seen, by time. c->live of them, to be freed; NULL: no memory. */
struct zc_contents_entry **zc_contents_sorted(const struct zc_contents *c);
/* Answers a ZC_LOG_MOVE event of c->log. */
void zc_contents_move(struct zc_contents *c, const struct zc_log_event *ev);
/* SEEN whose time is over are gone. */
void zc_contents_expire(struct zc_contents *c, int64_t now_ms);
void zc_contents_done(struct zc_contents *c);

#endif
