/* The connection of a verb. */
#ifndef ZC_CLI_OPEN_H
#define ZC_CLI_OPEN_H

#include "args.h"
#include "client/zmqcat.h"

/* Both return 0, or the exit status after saying what is wrong: 78 for an address that cannot be
 * one, 1 when nobody answers there. */
int zc_open_bus(const struct zc_args *args, struct zmqcat **ret_bus);
/* A verb that catches signals waits for the hub in a way of its own: poll as zmqcat_open_polled has
 * it. */
int zc_open_polled(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                   struct zmqcat **ret_bus);
/* The bus, when it answers within limit_ms (negative: the library's time); else 3. zc_open_bus:
 * within --wait, at least 2 s, when that was given. */
int zc_open_within(const struct zc_args *args, int64_t limit_ms, struct zmqcat **ret_bus);
int zc_open_control(const struct zc_args *args, struct zmqcat **ret_bus);
int zc_open_control_polled(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                           struct zmqcat **ret_bus);
/* The same without a word, the bus within 5 s: they return an enum zmqcat_error, and *ret_bus as
 * zmqcat_open does. */
int zc_open_again(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                  struct zmqcat **ret_bus);
int zc_open_control_again(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                          struct zmqcat **ret_bus);

#endif
