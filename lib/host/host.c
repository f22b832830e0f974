/*
 * The loop. Order within a turn (libuv): timers, prepare, epoll_wait, socket callbacks, check. The
 * clock is read at most once between two waits, when the first callback asks. The pump runs in
 * check, and in timer callbacks, whose effects must not wait for the next socket to be ready.
 *
 * A stop has stages: listeners close and the core says good-bye to its sessions; after 3 s whoever
 * has not read its last bytes is dropped, so that the log can be closed; after 4.5 s the process
 * ends whatever the disk does: everything that was acknowledged is on it.
 */
#include "host/host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/check.h"
#include "base/text.h"
#include "host/clock.h"
#include "host/conn.h"
#include "host/disk.h"
#include "host/limits.h"
#include "host/netwatch.h"
#include "host/pump.h"
#include "host/relay.h"
#include "host/relaymap.h"
#include "host/service.h"
#include "tunnel/tunnel.h"

#define STATUS_MS 1000
#define LINGER_MS 500
#define STOP_DROP_MS 3000
#define STOP_EXIT_MS 1500

struct zc_now zc_host_now(struct zc_host *h)
{
    if (!h->now_valid) {
        struct zc_now now = zc_clock_now();
        if (now.mono.ns < h->now.mono.ns)
            now.mono = h->now.mono;
        h->now = now;
        h->now_valid = true;
    }
    return h->now;
}

void zc_host_fd_freed(struct zc_host *h)
{
    zc_acceptor_fd_freed(&h->acceptors);
}

/* ---- ending ---- */

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void zc_host_end(struct zc_host *h, int code)
{
    struct zc_list *n;
    if (h->ended)
        return;
    h->ended = true;
    h->exit_code = code;
    zc_acceptor_stop(&h->acceptors);
    if (h->relay != NULL)
        zc_relay_close(h->relay);
    zc_relaymap_free(h->map);
    zc_netwatch_close(h->watch);
    while ((n = zc_list_first(&h->conns)) != NULL)
        zc_conn_drop(ZC_CONTAINER(n, struct zc_conn, all));
    uv_walk(&h->loop, close_handle, NULL);
    if (h->blocking > 0)
        uv_stop(&h->loop);
}

static void on_stop_timer(uv_timer_t *timer)
{
    struct zc_host *h = ZC_CONTAINER(timer, struct zc_host, stop);
    struct zc_list *n;
    size_t dropped = 0;
    if (h->stop_stage++ > 0) {
        zc_logsink_line(h->config.log, ZC_LOGSINK_WARNING,
                        "stop: the disk does not finish: ending without it");
        _exit(0);
    }
    for (; (n = zc_list_first(&h->conns)) != NULL; dropped++)
        zc_conn_drop(ZC_CONTAINER(n, struct zc_conn, all));
    if (dropped > 0)
        zc_logsink_line(h->config.log, ZC_LOGSINK_WARNING,
                        "stop: %zu connections did not take their last bytes in 3 s: closed",
                        dropped);
    uv_timer_start(timer, on_stop_timer, STOP_EXIT_MS, 0);
    zc_pump_run(h);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct zc_host *h = handle->data;
    if (number == SIGHUP) {
        const struct zc_hub_event reload = {.kind = ZC_HUB_RELOAD};
        if (h->config.on_event != NULL && !h->stopping)
            h->config.on_event(h->config.arg, h, &reload);
        zc_pump_run(h);
        return;
    }
    if (h->stopping)
        _exit(0);
    h->stopping = true;
    h->active = true;
    zc_service_stopping();
    zc_service_status("stopping");
    zc_logsink_line(h->config.log, ZC_LOGSINK_DEBUG, "stopping on %s",
                    number == SIGTERM ? "SIGTERM" : "SIGINT");
    zc_acceptor_stop(&h->acceptors);
    zc_hub_stop(h->config.hub, zc_host_now(h));
    uv_timer_start(&h->stop, on_stop_timer, STOP_DROP_MS, 0);
}

/* ---- status ---- */

static const char *storage_text(enum zc_log_state state, bool durable)
{
    switch (state) {
    case ZC_LOG_OPENING:
        return "opening";
    case ZC_LOG_OK:
        return "ok";
    case ZC_LOG_FULL:
        return "full";
    case ZC_LOG_ERROR:
        return "error";
    case ZC_LOG_CLOSED:
        break;
    }
    return durable ? "closed" : "memory";
}

/* What STATUS= says of the tunnel; "" without one. */
static void tunnel_text(struct zc_host *h, char *ret_text, size_t cap)
{
    struct zc_tunnel *t = zc_hub_tunnel(h->config.hub);
    struct zc_tunnel_status st;
    char relay[ZC_DERPMAP_STRING_MAX + 1];
    ret_text[0] = '\0';
    if (t == NULL) {
        snprintf(ret_text, cap, "%s", h->config.spoke ? "waits for a token" : "");
        return;
    }
    zc_tunnel_status(t, &st);
    zc_text_escape(relay, sizeof(relay), zc_slice_str(st.relay != NULL ? st.relay->host : "yet"));
    const char *is = st.relay != NULL ? "relay" : "no relay";
    const char *away = st.relay != NULL && st.state == ZC_TUNNEL_DOWN ? " is away" : "";
    if (h->config.spoke)
        snprintf(ret_text, cap, "%s, %s %s%s", st.state == ZC_TUNNEL_UP ? "joined" : "joining", is,
                 relay, away);
    else
        snprintf(ret_text, cap, ", %u spoke%s, %s %s%s", (unsigned)st.peers,
                 st.peers == 1 ? "" : "s", is, relay, away);
}

static void hub_text(const struct zc_host *h, const struct zc_hub_stats *s, const char *tunnel,
                     char *ret_text, size_t cap)
{
    snprintf(ret_text, cap, "%llu session%s, %llu queued, %llu leased, storage %s%s",
             (unsigned long long)s->sessions, s->sessions == 1 ? "" : "s",
             (unsigned long long)s->queued, (unsigned long long)s->leased,
             storage_text(s->storage, h->config.disk != NULL), tunnel);
}

static void tell_status(struct zc_host *h)
{
    char text[sizeof(h->status_text)], tunnel[320], body[420];
    struct zc_hub_stats stats;
    zc_hub_stats(h->config.hub, &stats);
    tunnel_text(h, tunnel, sizeof(tunnel));
    if (h->config.spoke)
        snprintf(body, sizeof(body), "%s", tunnel);
    else
        hub_text(h, &stats, tunnel, body, sizeof(body));
    snprintf(text, sizeof(text), "%s%s%s%s", h->config.name != NULL ? h->config.name : "",
             h->config.name != NULL ? ": " : "", stats.draining ? "draining, " : "", body);
    if (strcmp(text, h->status_text) == 0)
        return;
    memcpy(h->status_text, text, sizeof(text));
    zc_service_status(text);
}

static void on_status_timer(uv_timer_t *timer)
{
    struct zc_host *h = ZC_CONTAINER(timer, struct zc_host, status);
    if (!h->stopping)
        tell_status(h);
}

void zc_host_turned(struct zc_host *h)
{
    if (h->active && !uv_is_active((uv_handle_t *)&h->status))
        uv_timer_start(&h->status, on_status_timer, STATUS_MS, 0);
    h->active = false;
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    zc_service_watchdog();
}

/* The original's line, which scripts wait for. */
static void say_listening(struct zc_host *h)
{
    char text[ZC_ADDRESS_TEXT_MAX], escaped[2 * ZC_ADDRESS_TEXT_MAX];
    char line[2 * ZC_ADDRESS_TEXT_MAX + 32];
    for (size_t i = 0; i < h->config.listens_count; i++) {
        const struct zc_listen *l = &h->config.listens[i];
        if (l->control || l->port > 0 || h->config.log->level < ZC_LOGSINK_INFO)
            continue;
        zc_address_text(&l->address, text);
        zc_text_escape(escaped, sizeof(escaped), zc_slice_str(text));
        snprintf(line, sizeof(line), "local bus at %s", escaped);
        zc_logsink_raw(h->config.log, ZC_LOGSINK_INFO, line);
    }
}

void zc_host_serve(struct zc_host *h)
{
    if (h->serving || h->stopping)
        return;
    h->serving = true;
    zc_acceptor_start(&h->acceptors);
    tell_status(h);
    say_listening(h);
}

void zc_host_ready(struct zc_host *h)
{
    if (h->ready_told || h->stopping)
        return;
    h->ready_told = true;
    tell_status(h);
    zc_service_ready();
}

/* What waits for the relay need not wait any longer, and a stream that stands may be dead. */
static void on_network(void *arg)
{
    struct zc_host *h = arg;
    struct zc_tunnel *t = zc_hub_tunnel(h->config.hub);
    zc_logsink_line(h->config.log, ZC_LOGSINK_DEBUG, "the network has changed, or a sleep is over");
    zc_relaymap_hurry(h->map);
    if (t != NULL)
        zc_tunnel_relay_hurry(t, zc_host_now(h));
    zc_pump_run(h);
}

static void on_check(uv_check_t *check)
{
    struct zc_host *h = ZC_CONTAINER(check, struct zc_host, check);
    if (h->watch != NULL)
        zc_netwatch_turn(h->watch, zc_host_now(h).mono);
    zc_pump_run(h);
}

static void on_prepare(uv_prepare_t *prepare)
{
    /* The wait that follows takes time. */
    ZC_CONTAINER(prepare, struct zc_host, prepare)->now_valid = false;
}

static void on_linger(uv_timer_t *timer)
{
    struct zc_host *h = ZC_CONTAINER(timer, struct zc_host, linger);
    struct zc_list *next;
    bool any = false;
    for (struct zc_list *n = h->conns.next; n != &h->conns; n = next) {
        struct zc_conn *c = ZC_CONTAINER(n, struct zc_conn, all);
        next = n->next;
        any = any || (c->session == NULL && c->splice == NULL);
        zc_conn_linger(c);
    }
    if (!any)
        uv_timer_stop(timer);
}

void zc_host_linger(struct zc_host *h)
{
    if (!uv_is_active((uv_handle_t *)&h->linger))
        uv_timer_start(&h->linger, on_linger, LINGER_MS, LINGER_MS);
}

/* ---- start and end ---- */

static int start_signals(struct zc_host *h)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < ZC_ARRAY_LEN(numbers); i++) {
        h->signals[i].data = h;
        if (uv_signal_init(&h->loop, &h->signals[i]) < 0 ||
            uv_signal_start(&h->signals[i], on_signal, numbers[i]) < 0)
            return ZC_EMFILE;
    }
    zc_limits_hold_signals(false);
    return 0;
}

int zc_host_init(struct zc_host *h, const struct zc_host_config *config)
{
    *h = (struct zc_host){.config = *config, .armed = ZC_NEVER};
    zc_list_init(&h->conns);
    zc_list_init(&h->ready);
    if (uv_loop_init(&h->loop) < 0) {
        h->ended = true;
        return ZC_EMFILE;
    }
    h->has_loop = true;
    h->read_buf = malloc(ZC_HOST_READ_BYTES);
    if (h->read_buf == NULL)
        return ZC_ENOMEM;
    uv_prepare_init(&h->loop, &h->prepare);
    uv_check_init(&h->loop, &h->check);
    uv_idle_init(&h->loop, &h->more);
    uv_timer_init(&h->loop, &h->tick);
    uv_timer_init(&h->loop, &h->status);
    uv_timer_init(&h->loop, &h->watchdog);
    uv_timer_init(&h->loop, &h->linger);
    uv_timer_init(&h->loop, &h->stop);
    if (config->tunnel && (zc_relay_new(h, &h->relay) < 0 ||
                           zc_netwatch_new(&h->loop, config->log, on_network, h, &h->watch) < 0))
        return ZC_ENOMEM;
    if (config->disk != NULL)
        zc_disk_start(config->disk, &h->loop);
    int r = start_signals(h);
    if (r < 0)
        return r;
    return zc_acceptor_init(&h->acceptors, h);
}

int zc_host_run(struct zc_host *h)
{
    int64_t watchdog_ms = zc_service_watchdog_ms();
    uv_prepare_start(&h->prepare, on_prepare);
    uv_check_start(&h->check, on_check);
    if (watchdog_ms > 0)
        uv_timer_start(&h->watchdog, on_watchdog, 0, (uint64_t)watchdog_ms);
    zc_pump_run(h);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    return h->exit_code;
}

/* Runs what is left of the loop. What other threads still do is not waited for. */
static void end_loop(struct zc_host *h)
{
    for (int i = 0; i < 3 && h->blocking > 0; i++)
        uv_run(&h->loop, UV_RUN_NOWAIT);
    h->stuck = h->blocking > 0;
    if (h->stuck)
        return;
    uv_run(&h->loop, UV_RUN_DEFAULT);
    uv_loop_close(&h->loop);
}

void zc_host_done(struct zc_host *h)
{
    if (!h->ended)
        zc_host_end(h, 1);
    if (h->has_loop) {
        end_loop(h);
    }
    zc_acceptor_done(&h->acceptors);
    if (!h->stuck) {
        zc_relay_free(h->relay);
        zc_netwatch_free(h->watch);
    }
    free(h->read_buf);
    h->read_buf = NULL;
}
