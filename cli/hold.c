/*
 * reserve: holds a message while the caller decides. One loop waits for the answer on standard
 * input, for the hub, and for the time to extend the lease (a third of it).
 */
#include "clock.h"
#include "open.h"
#include "out.h"
#include "print.h"
#include "say.h"
#include "settle.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEASE_DEFAULT_S 60
#define LEASE_MAX_S 86400
#define DELIVERY_MAX 1024

struct hold {
    const struct zc_args *args;
    struct zmqcat *bus;
    char delivery[DELIVERY_MAX];
    size_t delivery_len;
    int64_t lease_s;
    int64_t touch_at_ms; /* on the monotonic clock */
    int lost;            /* why the lease could not be extended: an enum zmqcat_error, or 0 */
    char line[64];       /* what was read of the answer */
    size_t line_len;
    bool line_long;
};

/* Extends the lease when it is time. Returns the ms until the next time. */
static int extend(void *data)
{
    struct hold *h = data;
    int64_t now = zc_clock_ms();
    if (h->lost == 0 && now >= h->touch_at_ms) {
        h->lost = zmqcat_touch(h->bus, h->delivery, h->delivery_len, h->lease_s, NULL);
        now = zc_clock_ms();
        h->touch_at_ms = now + h->lease_s * 1000 / 3;
    }
    return h->lost != 0 ? -1 : (int)(h->touch_at_ms > now ? h->touch_at_ms - now : 0);
}

static int settle(struct hold *h, bool ack)
{
    return zc_settle(h->args, h->bus, h->delivery, h->delivery_len, ack);
}

/* A whole line of input. Returns the exit status, or -1 to go on. */
static int answer(struct hold *h)
{
    size_t len = h->line_len;
    bool too_long = h->line_long;
    h->line_len = 0;
    h->line_long = false;
    while (len > 0 && strchr(" \t\r", h->line[len - 1]) != NULL)
        len--;
    if (!too_long && len == 3 && memcmp(h->line, "ack", 3) == 0)
        return settle(h, true);
    if (!too_long && len == 4 && memcmp(h->line, "nack", 4) == 0)
        return settle(h, false);
    if (len > 0 || too_long)
        zc_say_hint("answer `ack` (done) or `nack` (give back)");
    return -1;
}

/* Reads what standard input has. Returns the exit status, or -1 to go on. */
static int read_answers(struct hold *h)
{
    char data[4096];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return -1;
    for (ssize_t i = 0; i < n; i++) {
        if (data[i] == '\n') {
            int status = answer(h);
            if (status >= 0)
                return status;
        } else if (h->line_len < sizeof h->line) {
            h->line[h->line_len++] = data[i];
        } else {
            h->line_long = true;
        }
    }
    if (n > 0)
        return -1;
    /* The end of input; a last line may lack its newline. */
    int status = h->line_len > 0 ? answer(h) : -1;
    return status >= 0 ? status : settle(h, h->args->ack);
}

static int lost(const struct hold *h, int rc)
{
    int status = zc_say_bus(h->args, h->bus, rc);
    zc_say_hint("the lease is over: the message goes back to its mailbox");
    return status;
}

/* Holds until an answer. Returns the exit status. */
static int hold(struct hold *h)
{
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
    for (;;) {
        int timeout_ms = extend(h);
        int rc = h->lost != 0 ? h->lost : zmqcat_poll(h->bus);
        if (rc != ZMQCAT_OK)
            return lost(h, rc);
        p[1].fd = zmqcat_fd(h->bus);
        int n = poll(p, 2, timeout_ms);
        int status = n > 0 && p[0].revents != 0 ? read_answers(h) : -1;
        if (status >= 0)
            return status;
    }
}

/* Prints the delivery and the payload, or one object with both. */
static int show(struct hold *h, const struct zmqcat_msg *m)
{
    struct zc_out out;
    zc_out_init(&out, h->bus);
    out.tick = extend;
    out.data = h;
    if (!h->args->json) {
        zc_out_name(&out, m->delivery, m->delivery_len);
        zc_out_str(&out, "\n");
    }
    zc_print_message(&out, h->args, m);
    int status = zc_out_flush(&out);
    zc_out_done(&out);
    if (status != 0) {
        settle(h, false);
        return status;
    }
    /* The end of the output is the end of the payload, for whoever reads it from a pipe. */
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0)
        close(null);
    return 0;
}

int zc_hold_reserve(const struct zc_args *args)
{
    int64_t lease_s = (args->lease_ms + 999) / 1000;
    struct hold h = {.args = args, .lease_s = lease_s > 0 ? lease_s : LEASE_DEFAULT_S};
    if (h.lease_s > LEASE_MAX_S)
        h.lease_s = LEASE_MAX_S;
    int status = zc_out_usable();
    if (status == 0)
        status = zc_open_bus(args, &h.bus);
    if (status != 0)
        return status;
    struct zmqcat_msg m;
    int rc =
        zmqcat_reserve(h.bus, args->rest[0], strlen(args->rest[0]), h.lease_s, args->wait_ms, &m);
    if (rc == ZMQCAT_OK && m.delivery_len <= sizeof h.delivery) {
        h.touch_at_ms = zc_clock_ms() + h.lease_s * 1000 / 3;
        memcpy(h.delivery, m.delivery, m.delivery_len);
        h.delivery_len = m.delivery_len;
        status = show(&h, &m);
        if (status == 0)
            status = hold(&h);
    } else if (rc == ZMQCAT_OK) {
        status = zc_say_fail(1, args->verb, args->rest[0], "the hub sent an unusable delivery");
    } else {
        status = zc_say_bus(args, h.bus, rc);
    }
    zmqcat_free(h.bus);
    return status;
}
