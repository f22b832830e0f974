/*
 * launchd: sockets by launch_activate_socket(3) under the names `Listeners` and `Control`. launchd
 * has no notification and no watchdog, so those do nothing; what a daemon writes to stderr goes to
 * the file that the plist names, as it is.
 */
#include "host/service.h"

#include <errno.h>
#include <fcntl.h>
#include <launch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool flag_is(int fd, int option, int want)
{
    int value = -1;
    socklen_t len = sizeof(value);
    if (getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0)
        return false;
    return option == SO_ACCEPTCONN ? (value != 0) == (want != 0) : value == want;
}

static int adopt(int fd, const char *name, bool control, struct zc_service_socket *ret_socket)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || !flag_is(fd, SO_TYPE, SOCK_STREAM) || !flag_is(fd, SO_ACCEPTCONN, 1))
        return ZC_EINVAL;
    if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return ZC_EINVAL;
    ret_socket->fd = fd;
    ret_socket->control = control;
    snprintf(ret_socket->name, sizeof(ret_socket->name), "%s", name);
    return 0;
}

/* Adds the sockets of one name to got. */
static int activate(struct zc_service_sockets *got, const char *name, bool control,
                    const char **ret_why)
{
    int *fds = NULL;
    size_t n = 0;
    int r = launch_activate_socket(name, &fds, &n);
    if (r == ESRCH || r == ENOENT)
        return 0; /* not under launchd, or the plist has no sockets of this name */
    if (r != 0) {
        *ret_why =
            r == EALREADY
                ? "launchd handed them out before: let ProgramArguments name the daemon itself"
                : "launchd gave none: `launchctl print` shows the job";
        return ZC_EINVAL;
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (got->count == ZC_SERVICE_SOCKETS_MAX) {
            *ret_why = "more than 32 sockets were handed over";
            r = ZC_EINVAL;
        } else if ((r = adopt(fds[i], name, control, &got->sockets[got->count])) < 0) {
            *ret_why = "launchd handed over something else than a listening stream socket";
        } else {
            got->count++;
        }
    }
    free(fds);
    return r;
}

int zc_service_sockets(struct zc_service_sockets *ret_sockets, const char **ret_why)
{
    struct zc_service_sockets got = {0};
    int r = activate(&got, "Listeners", false, ret_why);
    if (r == 0)
        r = activate(&got, "Control", true, ret_why);
    if (r < 0)
        return r;
    *ret_sockets = got;
    return 0;
}

void zc_service_ready(void)
{
}

void zc_service_status(const char *text)
{
    (void)text;
}

void zc_service_stopping(void)
{
}

int64_t zc_service_watchdog_ms(void)
{
    return 0;
}

void zc_service_watchdog(void)
{
}

bool zc_service_owns_log(void)
{
    return false;
}
