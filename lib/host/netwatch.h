/*
 * Tells that the machine's network has changed or that the machine has woken up, so that what waits
 * for a network tries again. Links, addresses and routes are watched through rtnetlink(7);
 * elsewhere than on Linux through route(4). Where there is no such socket it is silent, and nothing
 * else fails.
 *
 *   QUIET --a message that counts, a sleep--> PENDING --settled, told--> QUIET
 *
 * While PENDING the socket is not looked at: a flood of messages costs two turns a second.
 *
 * Deliberately absent: what changed. Who is told looks whether his connections still work.
 */
#ifndef ZC_HOST_NETWATCH_H
#define ZC_HOST_NETWATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/time.h"

#define ZC_NETWATCH_SETTLE_MS 100 /* one change is many messages */
#define ZC_NETWATCH_EVERY_MS 1000 /* told at most once in this time */
#define ZC_NETWATCH_SLEEP_MS 5000 /* a shorter sleep is none */

struct zc_logsink;
struct zc_netwatch;

typedef void (*zc_netwatch_fn)(void *arg);

/* ZC_ENOMEM. A socket that cannot be had is worth a debug line. */
ZC_MUST_CHECK int zc_netwatch_new(uv_loop_t *loop, struct zc_logsink *log, zc_netwatch_fn fn,
                                  void *arg, struct zc_netwatch **ret_watch);
/* For each turn of the loop, with the time that goes on in a sleep. */
void zc_netwatch_turn(struct zc_netwatch *w, struct zc_mono now);
/* fn is not called again. NULL is fine. */
void zc_netwatch_close(struct zc_netwatch *w);
/* After the loop closed. NULL is fine. */
void zc_netwatch_free(struct zc_netwatch *w);

/* The rest is without sockets and clocks, for tests. */

/* What was read holds news of a link, an address or a route that may matter. Anything may be in it:
 * what is cut short is judged by its beginning. */
bool zc_netwatch_counts(const uint8_t *data, size_t len);
/* How long a change waits until it is told, when the last was told at told_ms (0: none was). */
uint64_t zc_netwatch_wait_ms(uint64_t now_ms, uint64_t told_ms);
/* The machine has slept since the last call: one clock ran on, the other stood. *ahead_ms is how
 * far the first was ahead then, and is set; INT64_MIN: no call yet. */
bool zc_netwatch_slept(int64_t *ahead_ms, struct zc_mono now, uint64_t awake_ms);

#endif
