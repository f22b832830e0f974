/*
 * One local connection and what it belongs to in the core: a session, or a splice with a connection
 * of the tunnel. Non-blocking reads and writes of our own on a uv_poll_t: an idle connection owns
 * no buffer.
 */
#ifndef ZC_HOST_CONN_H
#define ZC_HOST_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "node/hub.h"

struct zc_host;
struct zc_listen;

struct zc_conn {
    uv_poll_t poll;
    struct zc_host *host;
    struct zc_session *session; /* one of the two; both NULL: detached, lingering or closing */
    struct zc_splice *splice;
    struct zc_list all;
    struct zc_list ready;
    int fd;
    uint16_t port;    /* the forwarded one */
    uint8_t interest; /* UV_READABLE, UV_WRITABLE as armed */
    uint8_t age;      /* linger: turns of the linger timer */
    bool eof;         /* the peer sends nothing more */
    bool blocked;     /* the last write did not take all: waits for UV_WRITABLE */
    bool dialling;    /* a forwarded port: connect() is under way */
    bool shut_due;    /* zc_conn_shut came meanwhile */
};

/* Takes over an accepted descriptor (closes it on failure) and attaches it to the core. */
void zc_conn_start(struct zc_host *h, int fd, const struct zc_listen *listen);
/* Dials 127.0.0.1:port for a splice; a failure is told to the core. */
void zc_conn_dial(struct zc_host *h, struct zc_splice *splice, uint16_t port);
/* Writes what the core has and sets what to wait for. False: stopped early to be fair, call again.
 */
bool zc_conn_flush(struct zc_conn *c);
/* Puts c on the host's ready list. */
void zc_conn_wake(struct zc_conn *c);
/* The core ended it: its output was given; close. reset: the peer shall see a reset. */
void zc_conn_end(struct zc_conn *c, bool reset);
/* The core has nothing more to write: the peer sees an end. */
void zc_conn_shut(struct zc_conn *c);
/* Closes now, whatever is on the way; detaches. */
void zc_conn_drop(struct zc_conn *c);
/* A turn of the linger timer. */
void zc_conn_linger(struct zc_conn *c);

#endif
