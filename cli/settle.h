/* The end of a lease. */
#ifndef ZC_CLI_SETTLE_H
#define ZC_CLI_SETTLE_H

#include "args.h"

/* Acknowledges or gives back; delivery is the caller's own copy. The exit status. */
int zc_settle(const struct zc_args *args, struct zmqcat *bus, const char *delivery, size_t len,
              bool ack);

#endif
