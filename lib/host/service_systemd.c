/*
 * systemd: sockets by sd_listen_fds(3), notification and watchdog by sd_notify(3). Works under
 * anything that speaks the same environment variables (LISTEN_*, NOTIFY_SOCKET, WATCHDOG_*).
 */
#include "host/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static void free_names(char **names)
{
    for (char **n = names; n != NULL && *n != NULL; n++)
        free(*n);
    free(names);
}

static int adopt(int fd, const char *name, struct zc_service_socket *ret_socket)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
        return ZC_EINVAL;
    if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return ZC_EINVAL;
    ret_socket->fd = fd;
    ret_socket->control = strcmp(name, "control") == 0;
    snprintf(ret_socket->name, sizeof(ret_socket->name), "%s", name);
    return 0;
}

int zc_service_sockets(struct zc_service_sockets *ret_sockets, const char **ret_why)
{
    struct zc_service_sockets got = {0};
    char **names = NULL;
    int r = 0;
    int n = sd_listen_fds_with_names(1, &names);
    if (n < 0) {
        *ret_why = "LISTEN_FDS, LISTEN_PID or LISTEN_FDNAMES cannot be read";
        return ZC_EINVAL;
    }
    if (n > ZC_SERVICE_SOCKETS_MAX) {
        *ret_why = "more than 32 sockets were handed over";
        r = ZC_EINVAL;
    }
    for (int i = 0; r == 0 && i < n; i++) {
        r = adopt(SD_LISTEN_FDS_START + i, names[i], &got.sockets[i]);
        if (r < 0)
            *ret_why = "a descriptor in LISTEN_FDS is no listening stream socket";
    }
    free_names(names);
    if (r < 0)
        return r;
    got.count = (size_t)n;
    *ret_sockets = got;
    return 0;
}

void zc_service_ready(void)
{
    sd_notify(0, "READY=1");
}

void zc_service_status(const char *text)
{
    sd_notifyf(0, "STATUS=%s", text);
}

void zc_service_stopping(void)
{
    sd_notify(0, "STOPPING=1");
}

int64_t zc_service_watchdog_ms(void)
{
    uint64_t usec = 0;
    if (sd_watchdog_enabled(0, &usec) <= 0)
        return 0;
    int64_t half_ms = (int64_t)(usec / 2000);
    return half_ms > 0 ? half_ms : 1;
}

void zc_service_watchdog(void)
{
    sd_notify(0, "WATCHDOG=1");
}

bool zc_service_owns_log(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long dev, ino;
    struct stat st;
    if (stream == NULL || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
        return false;
    return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}
