/*
 * The listening sockets on the loop. Keeps descriptors back for the store and the administrator: at
 * the cap it stops listening to new clients instead of spinning, and they wait in the backlog.
 */
#ifndef ZC_HOST_ACCEPTOR_H
#define ZC_HOST_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "base/rate.h"
#include "host/listen.h"

struct zc_host;

struct zc_acceptor {
    uv_poll_t poll;
    struct zc_acceptors *owner;
    struct zc_listen *listen;
    bool polling;
};

struct zc_acceptors {
    struct zc_host *host;
    struct zc_acceptor *list;
    size_t count;
    uv_timer_t pause;        /* after the system refused an accept */
    struct zc_rate warnings; /* one a minute */
    int bus_fd_max;          /* highest descriptor number for clients */
    int control_fd_max;
    bool full; /* at bus_fd_max */
    bool control_full;
    bool paused;
    bool started;
};

/* Files the listeners of the host's configuration; nothing is accepted yet. */
ZC_MUST_CHECK int zc_acceptor_init(struct zc_acceptors *a, struct zc_host *h);
void zc_acceptor_start(struct zc_acceptors *a);
/* Whether a client's connection that we dial ourselves may have this descriptor; says so when not.
 */
bool zc_acceptor_allows(struct zc_acceptors *a, int fd);
/* A descriptor became free. */
void zc_acceptor_fd_freed(struct zc_acceptors *a);
/* Accepts no more; closes and unlinks the listeners. Handles close with the loop. Twice is fine. */
void zc_acceptor_stop(struct zc_acceptors *a);
/* After the loop closed. */
void zc_acceptor_done(struct zc_acceptors *a);

#endif
