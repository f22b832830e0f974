/*
 * A TCP connection to a relay: its name is resolved anew each time, then IPv4 and IPv6 race, the
 * family that is believed to work with a head start.
 */
#ifndef ZC_HOST_DIAL_H
#define ZC_HOST_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tunnel/derp_dial.h"

struct zc_host;
struct zc_dial;

#define ZC_DIAL_WHY_MAX 256

/* The end of a dial: fd >= 0 is connected and the callee's, why is then NULL; else why is one line.
 * The dial is gone after this. */
typedef void (*zc_dial_done_fn)(void *arg, int fd, bool v6, const char *why);

/* Copies what it needs of `to`. round: which of several addresses is taken. NULL: no memory. done
 * is called later, never from here. */
struct zc_dial *zc_dial_start(struct zc_host *h, const struct zc_derp_dial_try *to, uint32_t round,
                              zc_dial_done_fn done, void *arg);
/* Gives it up: done will not be called. */
void zc_dial_cancel(struct zc_dial *d);

#endif
