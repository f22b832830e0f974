/*
 * Ids of a scope that were seen: for some time after a message was accepted another put of its id
 * adds nothing, also when the message is gone and after a restart of the hub. While the message is
 * there, its own id does that; what leaves a mailbox earlier is remembered here.
 *
 * Mailbox and id are remembered as hashes that mean the same in every run. In the log it is one
 * SEEN record: u64 hash of the mailbox's name, u64 hash of name and id, i64 unix ms until which it
 * counts. Written just before the removal of the message, so that no crash falls between them.
 */
#ifndef ZC_ZMQC_SEEN_H
#define ZC_ZMQC_SEEN_H

#include "zmqc/broker.h"
#include "zmqc/setting.h"

#define ZC_SEEN_MS INT64_C(600000)
#define ZC_SEEN_MAILBOX_MAX 65536 /* ids of one mailbox; the oldest are forgotten */
#define ZC_SEEN_MAX 1048576       /* of all together */

/* The ids of one mailbox. */
struct zc_seen_box {
    struct zc_map_node node;
    struct zc_list entries; /* in the order in which they came */
    uint32_t count;
};

struct zc_seen {
    struct zc_setting setting;
    struct zc_map_node node; /* b->seen, by a keyed hash of id */
    struct zc_list in_box, in_all;
    struct zc_seen_box *box;
    uint64_t name, id; /* hashes */
    struct zc_mono until;
    int64_t until_ms;
};

/* The hash of a mailbox's name and a message id (empty: of the name alone). */
uint64_t zc_seen_hash(struct zc_slice name, struct zc_slice id);
/* That id was seen and still counts. */
bool zc_seen_has(const struct zc_broker *b, uint64_t id);
/* m, whose id belongs to a scope, leaves its mailbox: journaled before its removal, for which the
 * caller has room to settle (one more than for itself). */
void zc_seen_add(struct zc_broker *b, const struct zc_message *m);
/* Its record is durable or failed. */
void zc_seen_settled(struct zc_broker *b, struct zc_setting *s, bool durable);
/* Forgets what counts no more. */
void zc_seen_tick(struct zc_broker *b);
ZC_MUST_CHECK int zc_seen_restore(struct zc_broker *b, struct zc_slice body, uint64_t place);
/* Journals it anew, for compaction. */
void zc_seen_move(struct zc_broker *b, struct zc_setting *s);
void zc_seen_free_all(struct zc_broker *b);

#endif
