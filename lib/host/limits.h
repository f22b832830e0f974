/* What a daemon asks of its process before anything else: descriptors, signals, no core files. */
#ifndef ZC_HOST_LIMITS_H
#define ZC_HOST_LIMITS_H

/* Opens /dev/null where standard input, output or error is closed, so that no socket gets their
 * number; ignores SIGPIPE; sets the core size to 0; raises the soft limit of open files to the hard
 * one. Returns that limit. */
int zc_limits_apply(void);

#endif
