/*
 * What moves in a turn: core events, then outputs, then disk requests, round after round until
 * nothing moves. Disk requests come last, so that all input of the turn shares one fsync.
 *
 * An fsync that ends sets clients free, which then ask for more. Those who waited meanwhile could
 * be served at once, but then there would be two halves for ever, each waiting for the fsync of the
 * other. So the next requests wait as long as each look at the sockets brings more input, and not
 * for long.
 */
#include "host/pump.h"

#include <stddef.h>

#include "base/check.h"
#include "host/conn.h"
#include "host/disk.h"
#include "host/host.h"
#include "host/relay.h"

/* Looks at the sockets before the next disk requests. */
#define GATHER_TURNS 8
/* Rounds of one turn: past them the sockets are looked at first. */
#define ROUNDS 64
/* And behind so long. */
#define TURN_MS 50
/* uv timers stand still while the machine sleeps, the core's clock does not: look this often. */
#define TICK_MAX_MS 10000
#define EXIT_CONFIG 78

static void to_daemon(struct zc_host *h, const struct zc_hub_event *e)
{
    if (h->config.on_event != NULL)
        h->config.on_event(h->config.arg, h, e);
}

static void take_event(struct zc_host *h, const struct zc_hub_event *e)
{
    struct zc_conn *c = e->data;
    switch (e->kind) {
    case ZC_HUB_READY:
        zc_host_serve(h);
        if (!h->config.spoke)
            zc_host_ready(h);
        to_daemon(h, e);
        break;
    case ZC_HUB_ONLINE:
    case ZC_HUB_PSK:
    case ZC_HUB_RELOAD:
    case ZC_HUB_REVOKE:
    case ZC_HUB_REFUSED:
    case ZC_HUB_STAMPS:
        to_daemon(h, e);
        break;
    case ZC_HUB_SPLICE_OPEN:
        zc_conn_dial(h, e->splice, e->port);
        break;
    case ZC_HUB_SPLICE_EOF:
        zc_conn_shut(c);
        break;
    case ZC_HUB_UNUSABLE:
        zc_logsink_line(h->config.log, ZC_LOGSINK_ERR, "%s", e->text);
        zc_host_end(h, e->err == ZC_EBUSY || e->err == ZC_ENOMEM || e->err == ZC_EIO ? 1
                                                                                     : EXIT_CONFIG);
        break;
    case ZC_HUB_OUTPUT:
    case ZC_HUB_SPLICE_OUTPUT:
        zc_conn_wake(c);
        break;
    case ZC_HUB_CLOSE:
        zc_conn_end(c, false);
        break;
    case ZC_HUB_SPLICE_CLOSE:
        zc_conn_end(c, e->reset);
        break;
    case ZC_HUB_LOG:
        zc_logsink_limited(h->config.log, zc_host_now(h).mono, (int)e->level, e->text);
        break;
    case ZC_HUB_TRACE:
        zc_logsink_raw(h->config.log, ZC_LOGSINK_DEBUG, e->text);
        break;
    case ZC_HUB_STOPPED:
        zc_host_end(h, 0);
        break;
    }
}

static bool pump_events(struct zc_host *h)
{
    struct zc_hub_event e;
    bool any = false;
    while (!h->ended && zc_hub_event(h->config.hub, zc_host_now(h), &e)) {
        take_event(h, &e);
        any = true;
    }
    return any;
}

/* Writes for each connection that was ready at the start, once. */
static bool pump_outputs(struct zc_host *h)
{
    struct zc_list batch, *n;
    bool any = false;
    if (zc_list_empty(&h->ready))
        return false;
    /* The whole list moves to batch; what wakes up meanwhile waits for the next round. */
    zc_list_insert_before(&h->ready, &batch);
    zc_list_remove(&h->ready);
    while ((n = zc_list_first(&batch)) != NULL) {
        struct zc_conn *c = ZC_CONTAINER(n, struct zc_conn, ready);
        zc_list_remove(n);
        if (!zc_conn_flush(c))
            zc_conn_wake(c);
        any = true;
    }
    return any;
}

static void on_disk_done(void *arg, const struct zc_disk_completion *done)
{
    struct zc_host *h = arg;
    h->now_valid = false; /* an fsync may have taken long */
    h->active = true;
    if (!h->submitting && !done->written)
        h->gather = GATHER_TURNS;
    zc_hub_disk_done(h->config.hub, zc_host_now(h), done);
}

/* The turn has lasted long: a log that opens may find all it reads in memory. */
static bool late(struct zc_host *h, struct zc_mono start)
{
    return zc_mono_diff_ms(start, zc_host_now(h).mono) >= TURN_MS;
}

static bool pump_disk(struct zc_host *h, struct zc_mono start)
{
    struct zc_disk_op op;
    bool any = false;
    while ((!any || !late(h, start)) && zc_hub_disk_op(h->config.hub, zc_host_now(h), &op)) {
        h->submitting = true;
        zc_disk_submit(h->config.disk, &op, on_disk_done, h);
        h->submitting = false;
        any = true;
    }
    return any;
}

/* Whether disk requests wait in this turn. */
static bool gathering(struct zc_host *h)
{
    if (h->gather == 0)
        return false;
    bool more = h->gather == GATHER_TURNS || h->heard;
    h->gather = more ? h->gather - 1 : 0;
    return more;
}

static void on_tick(uv_timer_t *timer)
{
    struct zc_host *h = ZC_CONTAINER(timer, struct zc_host, tick);
    h->armed = ZC_NEVER;
    zc_pump_run(h);
}

/* Sets the one timer for the core's next deadline; nothing when it stands already. True: it has
 * come already, and the next turn is to begin at once. That is not for the timer: libuv before 1.45
 * calls one that is armed with nothing again and again before it looks at the sockets. */
static bool arm_tick(struct zc_host *h)
{
    struct zc_mono deadline = zc_hub_deadline(h->config.hub);
    int64_t ns = deadline.ns - zc_host_now(h).mono.ns;
    if (ns <= 0)
        return true;
    if (deadline.ns == h->armed.ns)
        return false;
    h->armed = deadline;
    if (deadline.ns == ZC_NEVER.ns) {
        uv_timer_stop(&h->tick);
        return false;
    }
    int64_t ms = ns / ZC_NS_PER_MS + 1;
    uv_timer_start(&h->tick, on_tick, (uint64_t)(ms > TICK_MAX_MS ? TICK_MAX_MS : ms), 0);
    return false;
}

static void on_more(uv_idle_t *idle)
{
    (void)idle; /* its being active makes the loop not wait */
}

void zc_pump_run(struct zc_host *h)
{
    bool moved = true, hold = gathering(h);
    struct zc_mono start = zc_host_now(h).mono;
    h->heard = false;
    zc_disk_poll(h->config.disk);
    if (zc_hub_deadline(h->config.hub).ns <= zc_host_now(h).mono.ns)
        zc_hub_tick(h->config.hub, zc_host_now(h));
    for (int round = 0; moved && !h->ended && round < ROUNDS; round++) {
        if (round > 0 && late(h, start))
            break;
        moved = pump_events(h);
        if (!h->ended && pump_outputs(h))
            moved = true;
        if (!h->ended && !hold && pump_disk(h, start))
            moved = true;
        if (!h->ended && h->relay != NULL && zc_relay_run(h->relay))
            moved = true;
        /* Asking for disk work may itself end the recovery. */
        if (!moved && h->config.disk != NULL && pump_events(h))
            moved = true;
    }
    if (h->ended)
        return;
    if (arm_tick(h) || moved || hold)
        uv_idle_start(&h->more, on_more);
    else
        uv_idle_stop(&h->more);
    zc_host_turned(h);
}
