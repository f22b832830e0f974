/*
 * Waiters with a filter: those with the same filter on one mailbox are a group, which stands in one
 * line and remembers how far it has looked through the queue. So a message that comes costs one
 * look a group, a waiter that comes goes on where the ones before it stopped, and whoever has no
 * filter pays nothing.
 *
 * Everything before `at` in the queue, and before `row_seq` in the rows, was looked at and is not
 * for this group. What came back is in no order that a group could remember its place in: of that
 * it keeps the oldest ones it wants, so that it looks at all of it once for ZC_GROUP_NEAR messages
 * that go to it or come back.
 */
#ifndef ZC_ZMQC_GROUP_H
#define ZC_ZMQC_GROUP_H

#include "zmqc/filter.h"
#include "zmqc/mailbox.h"

#define ZC_GROUPS_MAX 1024 /* different filters that wait on one mailbox */
#define ZC_GROUPS_IDLE 16  /* kept without waiters, for what they remember */
#define ZC_GROUP_NEAR 128

struct zc_group {
    struct zc_list link; /* in its mailbox; those that had waiters last come last */
    struct zc_line_up line;
    struct zc_filter *filter;
    struct zc_message *at; /* first of the queue that was not looked at, or NULL */
    uint64_t row_seq;      /* rows from here on were not looked at */
    uint32_t waiting;      /* its waiters, parked ones too */
    bool returned;         /* something for it may be in `returned` of the mailbox */
    /* The oldest of `returned` that it wants, the oldest last; NULL while there are few in all. */
    struct zc_message **near;
    uint32_t near_len;
    bool known;        /* near is right */
    bool more;         /* there may be younger ones that it wants as well */
    uint32_t followed; /* came back since it was last asked for one */
};

/* The group of that filter, which it takes over. NULL, filter freed: no memory, or ZC_GROUPS_MAX
 * different ones wait. */
struct zc_group *zc_group_join(struct zc_mailbox *mb, struct zc_filter *filter);
/* One waiter less. */
void zc_group_leave(struct zc_mailbox *mb, struct zc_group *g);
void zc_group_free_all(struct zc_mailbox *mb);
/* The oldest queued message that the group takes, but for rows, or NULL. *looked counts messages
 * looked at. */
struct zc_message *zc_group_find(struct zc_mailbox *mb, struct zc_group *g, uint64_t *looked);
/* The same of the rows. */
struct zc_row *zc_group_find_row(const struct zc_mailbox *mb, struct zc_group *g, uint64_t *looked);
/* m has joined the end of the queue; m came back, into `returned` or the queue; m leaves. */
void zc_group_pushed(struct zc_mailbox *mb, struct zc_message *m);
void zc_group_returned(struct zc_mailbox *mb, struct zc_message *m);
void zc_group_leaving(struct zc_mailbox *mb, struct zc_message *m);
/* A message with this number has become a row. */
void zc_group_rested(struct zc_mailbox *mb, uint64_t seq);
/* Somebody with a filter waits for a message of this sender. */
bool zc_group_wants(const struct zc_mailbox *mb, uint64_t from);
/* The same, and it can be given it now. */
bool zc_group_awaits(const struct zc_mailbox *mb, uint64_t from);

#endif
