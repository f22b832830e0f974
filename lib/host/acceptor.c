/*
 * Accepting. The kernel always gives the lowest free descriptor, so the number that accept returns
 * tells how many are left: no counting. Bus clients and forwarded ports leave RESERVE descriptors,
 * the administrator's control socket may use some of those.
 */
#define _GNU_SOURCE /* accept4 */
#include "host/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "host/conn.h"
#include "host/host.h"

#define RESERVE 24
#define RESERVE_CONTROL 16
#define ACCEPTS_PER_TURN 64
#define PAUSE_MS 250

static void update_polling(struct zc_acceptors *a);

static int accept_one(int listen_fd)
{
#ifdef SOCK_CLOEXEC
    return accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
#else
    int fd = accept(listen_fd, NULL, NULL);
    if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)) {
        close(fd);
        errno = ECONNABORTED;
        return -1;
    }
    return fd;
#endif
}

static void warn(struct zc_acceptors *a, const char *what, const char *hint)
{
    if (zc_rate_allow(&a->warnings, zc_host_now(a->host).mono))
        zc_logsink_line(a->host->config.log, ZC_LOGSINK_WARNING, "new connections wait: %s: %s",
                        what, hint);
}

static void on_pause_over(uv_timer_t *timer)
{
    struct zc_acceptors *a = ZC_CONTAINER(timer, struct zc_acceptors, pause);
    a->paused = false;
    update_polling(a);
}

/* The system has nothing left to accept with: trying again at once would only spin. */
static void pause_accepting(struct zc_acceptors *a, int error)
{
    warn(a, strerror(error), "raise LimitNOFILE= or `ulimit -n`, or connect fewer clients");
    a->paused = true;
    uv_timer_start(&a->pause, on_pause_over, PAUSE_MS, 0);
    update_polling(a);
}

/* Notes that descriptors run out. */
static void check_cap(struct zc_acceptors *a, const struct zc_listen *l, int fd)
{
    bool full = a->full || fd >= a->bus_fd_max;
    bool control_full = a->control_full || fd >= a->control_fd_max;
    if (full == a->full && control_full == a->control_full)
        return;
    a->full = full;
    a->control_full = control_full;
    if (full && !l->control)
        warn(a, "the limit of open files is reached",
             "raise LimitNOFILE= or `ulimit -n`, or connect fewer clients");
    update_polling(a);
}

static void on_incoming(uv_poll_t *poll, int status, int events)
{
    struct zc_acceptor *one = ZC_CONTAINER(poll, struct zc_acceptor, poll);
    struct zc_acceptors *a = one->owner;
    (void)status; /* accept tells what is wrong */
    (void)events;
    a->host->active = true;
    for (int i = 0; i < ACCEPTS_PER_TURN && one->polling; i++) {
        int fd = accept_one(one->listen->fd);
        if (fd >= 0) {
            zc_conn_start(a->host, fd, one->listen);
            check_cap(a, one->listen, fd);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
            pause_accepting(a, errno);
        }
    }
}

static void update_polling(struct zc_acceptors *a)
{
    for (size_t i = 0; i < a->count; i++) {
        struct zc_acceptor *one = &a->list[i];
        bool full = one->listen->control ? a->control_full : a->full;
        bool want = a->started && !a->paused && !full;
        if (want == one->polling)
            continue;
        one->polling = want;
        if (want)
            uv_poll_start(&one->poll, UV_READABLE, on_incoming);
        else
            uv_poll_stop(&one->poll);
    }
}

int zc_acceptor_init(struct zc_acceptors *a, struct zc_host *h)
{
    const struct zc_host_config *c = &h->config;
    int files = c->files_max;
    *a = (struct zc_acceptors){.host = h};
    a->bus_fd_max = files - (files / 2 < RESERVE ? files / 2 : RESERVE);
    a->control_fd_max = files - (files / 3 < RESERVE_CONTROL ? files / 3 : RESERVE_CONTROL);
    zc_rate_init(&a->warnings, 60000, 1);
    a->list = calloc(c->listens_count > 0 ? c->listens_count : 1, sizeof(*a->list));
    if (a->list == NULL || uv_timer_init(&h->loop, &a->pause) < 0)
        return ZC_ENOMEM;
    for (; a->count < c->listens_count; a->count++) {
        struct zc_acceptor *one = &a->list[a->count];
        one->owner = a;
        one->listen = &c->listens[a->count];
        if (uv_poll_init(&h->loop, &one->poll, one->listen->fd) < 0)
            return ZC_EINVAL;
    }
    return 0;
}

bool zc_acceptor_allows(struct zc_acceptors *a, int fd)
{
    if (fd >= 0 && fd < a->bus_fd_max)
        return true;
    warn(a, "the limit of open files is reached by forwarded ports",
         "raise LimitNOFILE= or `ulimit -n`");
    return false;
}

void zc_acceptor_start(struct zc_acceptors *a)
{
    a->started = true;
    update_polling(a);
}

void zc_acceptor_fd_freed(struct zc_acceptors *a)
{
    if (!a->full && !a->control_full)
        return;
    a->full = a->control_full = false;
    update_polling(a);
}

void zc_acceptor_stop(struct zc_acceptors *a)
{
    a->started = false;
    update_polling(a);
    for (size_t i = 0; i < a->count; i++) {
        if (!uv_is_closing((uv_handle_t *)&a->list[i].poll))
            uv_close((uv_handle_t *)&a->list[i].poll, NULL);
        zc_listen_close(a->list[i].listen);
    }
}

void zc_acceptor_done(struct zc_acceptors *a)
{
    free(a->list);
    a->list = NULL;
    a->count = 0;
}
