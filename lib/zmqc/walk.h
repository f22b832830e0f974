/*
 * Looks through a mailbox in the order in which its messages would be given out, and changes
 * nothing: what peek shows, and what purge and move work on. Rows (rest.h) are not among them: peek
 * looks at those itself, purge and move wake them first.
 */
#ifndef ZC_ZMQC_WALK_H
#define ZC_ZMQC_WALK_H

#include <stdbool.h>

#include "zmqc/mailbox.h"

#define ZC_WALK_MAX 1024 /* messages of one look */

/* The first messages with sequence numbers below limit, at most cap (<= ZC_WALK_MAX): those that
 * are QUEUED in order, then, if `delayed`, DELAYED ones. Returns how many; fewer than cap: there
 * are no more but rows. Costs what it finds, and a look at each DELAYED message before the last one
 * found.
 */
uint32_t zc_walk_collect(const struct zc_mailbox *mb, uint64_t limit, bool delayed,
                         struct zc_message **ret_found, uint32_t cap);

#endif
