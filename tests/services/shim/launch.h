/*
 * The one call of macOS's <launch.h> that the daemons use, declared as there, so that
 * lib/host/service_launchd.c compiles on other systems for its test. The contract (man page
 * launch_activate_socket(3)): 0 and a malloc'ed array that the caller frees; ESRCH when launchd did
 * not start the process; ENOENT when the job has no sockets of that name; EALREADY when they were
 * taken before.
 */
#ifndef ZC_TESTS_SERVICES_SHIM_LAUNCH_H
#define ZC_TESTS_SERVICES_SHIM_LAUNCH_H

#include <stddef.h>

int launch_activate_socket(const char *name, int **fds, size_t *cnt);

#endif
