/* What a daemon asks of its process before anything else: descriptors, signals, no core files. */
#ifndef ZC_HOST_LIMITS_H
#define ZC_HOST_LIMITS_H

#include <stdbool.h>

#include "base/err.h"

/* Opens /dev/null where standard input, output or error is closed, so that no socket gets their
 * number; ignores SIGPIPE and SIGXFSZ; sets the core size to 0; raises the soft limit of open files
 * to the hard one. Returns that limit. */
int zc_limits_apply(void);
/* NULL, or what is not allowed that a daemon needs: to be asked before libuv is, which aborts
 * instead of an error. files_max: from zc_limits_apply. */
const char *zc_limits_lacking(int files_max);
/* SIGTERM, SIGINT and SIGHUP wait while held, so that one that comes before the loop can take it
 * stops the daemon in order and leaves no socket behind. */
void zc_limits_hold_signals(bool hold);

/* Keeps what the process holds from debuggers and core files of the same user, and readies the
 * cryptography. Before a key is loaded. 0 or ZC_EIO. */
ZC_MUST_CHECK int zc_limits_keep_secrets(void);

#endif
