/*
 * The stream to the relay: dials when the tunnel says so, TLS around it, bytes both ways. All that
 * is decided (whom, when again) is decided in lib/tunnel.
 */
#ifndef ZC_HOST_RELAY_H
#define ZC_HOST_RELAY_H

#include <stdbool.h>

#include "base/err.h"

struct zc_host;
struct zc_relay;

/* For the tunnel of the host's hub or spoke. ZC_ENOMEM. */
ZC_MUST_CHECK int zc_relay_new(struct zc_host *h, struct zc_relay **ret_relay);
/* Does what the tunnel wants: hang up, dial, send. True: something moved. */
bool zc_relay_run(struct zc_relay *r);
/* Closes the stream and gives a dial up without a word to the tunnel, which is about to be another
 * one. */
void zc_relay_reset(struct zc_relay *r);
/* The same for good. */
void zc_relay_close(struct zc_relay *r);
/* After the loop closed. NULL is fine. */
void zc_relay_free(struct zc_relay *r);

#endif
