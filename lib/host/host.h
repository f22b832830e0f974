/*
 * The process around a hub: one libuv loop that moves bytes between sockets and the core, disk
 * requests between the core and the disk, and time and signals into the core.
 *
 * One turn: every ready socket is read once into one shared buffer and given to the core; then the
 * pump takes events, writes outputs and hands out disk requests until nothing moves any more. A
 * message so costs one read, one write and its share of one epoll_wait.
 */
#ifndef ZC_HOST_HOST_H
#define ZC_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/list.h"
#include "base/rate.h"
#include "base/time.h"
#include "host/acceptor.h"
#include "host/listen.h"
#include "host/logsink.h"
#include "node/hub.h"

struct zc_disk;
struct zc_netwatch;
struct zc_relay;
struct zc_relaymap;
struct zc_host;

#define ZC_HOST_LISTEN_MAX 96
#define ZC_HOST_READ_BYTES (256 * 1024)

/* What the daemon brings; all of it outlives zc_host_run. */
struct zc_host_config {
    struct zc_hub *hub;
    struct zc_disk *disk; /* NULL: memory only */
    struct zc_logsink *log;
    struct zc_listen *listens;
    size_t listens_count;
    int files_max;    /* the limit of open descriptors */
    const char *name; /* for the ready line and STATUS=; may be NULL */
    bool spoke;       /* hub is a spoke (node/spoke.h): bus connections are splices */
    /* What the daemon does about events that are its own: ZC_HUB_ONLINE, ZC_HUB_PSK, ZC_HUB_REVOKE,
     * ZC_HUB_REFUSED, ZC_HUB_STAMPS and ZC_HUB_RELOAD (which SIGHUP is too), and once the loop runs
     * ZC_HUB_READY. NULL: nothing. */
    void (*on_event)(void *arg, struct zc_host *h, const struct zc_hub_event *e);
    void *arg;
    bool tunnel; /* there is, or will be, one: a relay is dialled */
};

struct zc_host {
    struct zc_host_config config;
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t more;    /* runs while a pump left work for the next turn */
    uv_timer_t tick;   /* the core's deadline */
    uv_timer_t status; /* STATUS=, at most once a second */
    uv_timer_t watchdog;
    uv_timer_t linger; /* ended connections whose last bytes are on the way */
    uv_timer_t stop;   /* the stages of a stop */
    uv_signal_t signals[3];
    struct zc_acceptors acceptors;
    struct zc_relay *relay;    /* NULL: no tunnel */
    struct zc_relaymap *map;   /* the search for relays, NULL: none */
    struct zc_netwatch *watch; /* NULL: no tunnel */
    struct zc_list conns;      /* all, lingering ones too */
    struct zc_list ready;      /* have output to write or an interest to set */
    uint8_t *read_buf;
    struct zc_now now;
    struct zc_mono armed;  /* the instant that `tick` waits for */
    char status_text[512]; /* as last told */
    int exit_code;
    int stop_stage;
    int gather;   /* turns that the next disk requests may still wait for input */
    int blocking; /* work on other threads that cannot be stopped: resolving, fetching */
    bool has_loop;
    bool now_valid;
    bool heard; /* input came in this turn */
    bool submitting;
    bool active; /* something moved since the last status */
    bool serving;
    bool ready_told;
    bool stuck; /* a thread that cannot be stopped still works: end with _exit */
    bool stopping;
    bool ended; /* handles are being closed */
};

/* Prepares the loop. ZC_ENOMEM, ZC_EMFILE. done() after a failure too. */
ZC_MUST_CHECK int zc_host_init(struct zc_host *h, const struct zc_host_config *config);
/* Runs until the hub has stopped; returns the exit code. Listeners are closed (and unlinked when
 * ours) on return. */
int zc_host_run(struct zc_host *h);
void zc_host_done(struct zc_host *h);

/* The rest is for the parts of the host. */

/* The time of this turn. */
struct zc_now zc_host_now(struct zc_host *h);
/* The store is recovered: accept. */
void zc_host_serve(struct zc_host *h);
/* Tells the service manager that the start is over. */
void zc_host_ready(struct zc_host *h);
/* Closes every connection and handle; the loop ends when the last close callback ran. */
void zc_host_end(struct zc_host *h, int code);
/* A turn is over: the status may have changed. */
void zc_host_turned(struct zc_host *h);
/* An ended connection gave back its descriptor. */
void zc_host_fd_freed(struct zc_host *h);
/* A connection lingers: zc_conn_linger is called for it until it has gone. */
void zc_host_linger(struct zc_host *h);

#endif
