/*
 * The service manager that started us: systemd (service_systemd.c), launchd (service_launchd.c) or
 * none (service_none.c); the build picks one file. All behind one face.
 */
#ifndef ZC_HOST_SERVICE_H
#define ZC_HOST_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ZC_SERVICE_SOCKETS_MAX 32

/* A listening socket that was handed over. It is never unlinked and never shut down by us. */
struct zc_service_socket {
    int fd;
    bool control; /* named `control` (systemd) or `Control` (launchd) */
    char name[64];
};

struct zc_service_sockets {
    struct zc_service_socket sockets[ZC_SERVICE_SOCKETS_MAX];
    size_t count;
};

/* Collects the inherited listening sockets, close-on-exec and non-blocking. Zero of them is fine.
 * ZC_EINVAL: something else than a listening stream socket was handed over, or too many
 * (*ret_why: static text). Removes the LISTEN_* variables from the environment. */
ZC_MUST_CHECK int zc_service_sockets(struct zc_service_sockets *ret_sockets, const char **ret_why);
/* READY=1, once. */
void zc_service_ready(void);
/* STATUS=text; one line. */
void zc_service_status(const char *text);
/* STOPPING=1. */
void zc_service_stopping(void);
/* Half of the watchdog interval in ms, or 0 when none is wanted. */
int64_t zc_service_watchdog_ms(void);
void zc_service_watchdog(void);
/* True when stderr is the journal, which reads a priority like <6> in front of a line. */
bool zc_service_owns_log(void);

#endif
