/*
 * sub and take --follow: each message written at once, and an end as soon as the reader has gone.
 *
 * A message that take was given is the hub's no more. So the first signal only closes our half of
 * the connection: the hub answers what was asked before, or gives nothing and closes, and what came
 * is still written. A second signal ends at once, as does a hub that is silent for LAST_S.
 */
#include "clock.h"
#include "open.h"
#include "out.h"
#include "print.h"
#include "say.h"
#include "signals.h"
#include "verbs.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LAST_S 3
#define GUARD_MS 5000 /* a hub that has not said by then that nothing came says nothing more */

static int bus_fd;

/* The hub gives nothing more. */
static void close_our_half(void)
{
    shutdown(bus_fd, SHUT_WR);
}

/* Waits for the hub, at most to deadline_ms (negative: for ever). False: the reader has gone. */
static bool wait_for_hub(struct zmqcat *bus, struct zc_out *out, int64_t deadline_ms)
{
    struct pollfd p[2] = {{.fd = zmqcat_fd(bus), .events = POLLIN}, {.fd = STDOUT_FILENO}};
    int timeout_ms = -1;
    if (deadline_ms >= 0) {
        int64_t left = deadline_ms - zc_clock_ms();
        timeout_ms = left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
    }
    poll(p, 2, timeout_ms);
    return !zc_out_gone(out);
}

/* When wait_ms (negative: for ever) and `more` are over, or -1. */
static int64_t deadline(int64_t wait_ms, int64_t more)
{
    int64_t now = zc_clock_ms() + more;
    return wait_ms < 0 || now > INT64_MAX - wait_ms ? -1 : now + wait_ms;
}

/* One delivery, or its absence within the wait. Returns an enum zmqcat_error; out->gone ends too.
 */
static int next(const struct zc_args *args, struct zmqcat *bus, struct zc_out *out,
                struct zmqcat_msg *ret_msg)
{
    int64_t deadline_ms = deadline(args->wait_ms, 0);
    for (;;) {
        int rc = zmqcat_next(bus, 0, ret_msg);
        if (rc != ZMQCAT_TIMEOUT || !wait_for_hub(bus, out, deadline_ms))
            return rc;
        if (deadline_ms >= 0 && zc_clock_ms() >= deadline_ms)
            return zmqcat_next(bus, 0, ret_msg);
    }
}

static int follow(const struct zc_args *args, struct zmqcat *bus, struct zc_out *out)
{
    for (uint64_t n = 0; args->count == 0 || n < args->count; n++) {
        struct zmqcat_msg m;
        int rc = next(args, bus, out, &m);
        if (out->gone)
            return 0;
        if (rc == ZMQCAT_CLOSED)
            return 0; /* the hub stopped */
        if (rc == ZMQCAT_TIMEOUT)
            return zc_say_fail(3, args->verb, args->rest_count > 0 ? args->rest[0] : NULL,
                               "nothing came within --wait");
        if (rc != ZMQCAT_OK)
            return zc_say_bus(args, bus, rc);
        if (args->json)
            zc_print_json(out, &m);
        else
            zc_print_delivery(out, &m);
        int status = zc_out_flush(out);
        if (status != 0)
            return out->gone ? 0 : status;
    }
    return 0;
}

int zc_follow_sub(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_out_usable();
    if (status == 0)
        status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    const char *prefix = args->rest_count > 0 ? args->rest[0] : "";
    struct zc_out out;
    zc_out_init(&out, bus);
    int rc = args->no_replay ? zmqcat_sub_new(bus, prefix, strlen(prefix))
                             : zmqcat_sub(bus, prefix, strlen(prefix));
    status = rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : follow(args, bus, &out);
    if (zmqcat_dropped(bus) > 0)
        zc_say_fail(0, args->verb, NULL, "standard output was too slow: deliveries were lost");
    zc_out_done(&out);
    zmqcat_free(bus);
    return status;
}

/* Takes a message; it is asked for, so that the end of the reader is seen meanwhile and the message
 * stays where it is. */
static int take(const struct zc_args *args, struct zmqcat *bus, struct zc_out *out,
                struct zmqcat_msg *ret_msg)
{
    const char *name = args->rest[0];
    if (zc_out_gone(out))
        return ZMQCAT_OK;
    int64_t deadline_ms = deadline(args->wait_ms, GUARD_MS);
    int rc = zmqcat_ask(bus, "take", name, strlen(name), 0, args->wait_ms);
    while (rc == ZMQCAT_OK) {
        rc = zmqcat_next(bus, 0, ret_msg);
        if (rc != ZMQCAT_TIMEOUT || zmqcat_error_code(bus)[0] != '\0' ||
            (deadline_ms >= 0 && zc_clock_ms() >= deadline_ms) ||
            !wait_for_hub(bus, out, deadline_ms))
            return rc;
        rc = ZMQCAT_OK;
    }
    return rc;
}

int zc_follow_take(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    struct zc_out out;
    zc_out_init(&out, bus);
    bus_fd = zmqcat_fd(bus);
    if (!zc_signals_catch(close_our_half, LAST_S))
        status = zc_say_fail(1, args->verb, NULL, strerror(errno));
    for (uint64_t n = 0; status == 0 && (args->count == 0 || n < args->count); n++) {
        struct zmqcat_msg m;
        int rc = take(args, bus, &out, &m);
        if (out.gone || (rc != ZMQCAT_OK && zc_signals_count() > 0))
            break;
        if (rc != ZMQCAT_OK) {
            status = zc_say_bus(args, bus, rc);
            break;
        }
        zc_print_message(&out, args, &m);
        status = zc_out_flush(&out);
    }
    status = out.gone ? 0 : status;
    zc_out_done(&out);
    zc_signals_end();
    zmqcat_free(bus);
    return status;
}
