/*
 * put --lines: each line of the input is a message. Many puts are under way at once, so that an
 * answer which refuses one comes when later ones are sent already. What became of each line is
 * known in the end and told.
 */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "clock.h"
#include "open.h"
#include "out.h"
#include "payload.h"
#include "say.h"
#include "signals.h"
#include "verbs.h"

#define READ_SIZE 65536
#define LINE_MAX_BYTES (2u << 20) /* more than a frame can carry */
#define ANSWER_MS 60000
#define LAST_S 2 /* to tell what became of the lines, after a signal */

static void add_run(struct zc_lines *l, uint64_t first, uint64_t last, enum zc_lines_fate fate)
{
    struct zc_lines_run *r = l->runs_count > 0 ? &l->runs[l->runs_count - 1] : NULL;
    if (r != NULL && r->fate == fate) {
        r->last = last;
    } else {
        ZC_ASSERT(l->runs_count < ZC_LINES_RUNS_MAX);
        l->runs[l->runs_count++] = (struct zc_lines_run){first, last, fate};
    }
}

static int fail(struct zc_lines *l, const char *what, const char *why)
{
    char text[600], shown[300];
    zc_progress_end(&l->progress, l->bytes, l->accepted);
    zc_say_escape(shown, sizeof shown, what, strlen(what));
    snprintf(text, sizeof text, "%s: %s", shown, why);
    return l->status = zc_say_fail(1, l->args->verb, l->args->rest[0], text);
}

static void bus_failed(struct zc_lines *l, int rc)
{
    if (l->status != 0)
        return;
    zc_progress_end(&l->progress, l->bytes, l->accepted);
    l->status = zc_say_bus(l->args, l->bus, rc);
}

/* The next whole line, or the rest of the input at its end. */
static bool next_line(struct zc_lines *l, struct zc_slice *ret_line, size_t *ret_size)
{
    const uint8_t *p = l->in.data + l->used;
    size_t len = l->in.len - l->used;
    const uint8_t *newline = len > 0 ? memchr(p, '\n', len) : NULL;
    if (newline == NULL && (!l->end || len == 0))
        return false;
    *ret_line = zc_slice(p, newline != NULL ? (size_t)(newline - p) : len);
    *ret_size = ret_line->len + (newline != NULL);
    return true;
}

static bool room(const struct zc_lines *l)
{
    return l->status == 0 && l->sent - l->answered < ZC_LINES_WINDOW;
}

static void send_lines(struct zc_lines *l)
{
    const char *name = l->args->rest[0];
    struct zc_slice line;
    size_t size;
    while (room(l) && next_line(l, &line, &size)) {
        int rc = zmqcat_put_start(l->bus, name, strlen(name), line.data, line.len, &l->options);
        if (rc != ZMQCAT_OK) {
            bus_failed(l, rc);
            break;
        }
        l->sent++;
        l->bytes += size;
        l->used += size;
    }
    if (l->used == l->in.len)
        l->in.len = l->used = 0;
}

/* The answers that came, or, with wait_ms, also those that come. */
static void collect(struct zc_lines *l, int64_t wait_ms)
{
    while (l->answered < l->sent) {
        int rc = zmqcat_put_finish(l->bus, wait_ms);
        bool told = rc == ZMQCAT_OK || zmqcat_error_code(l->bus)[0] != '\0' || rc == ZMQCAT_ERR;
        if (rc == ZMQCAT_TIMEOUT && !told && wait_ms == 0)
            return;
        if (rc != ZMQCAT_OK)
            bus_failed(l, rc);
        if (!told) { /* no more answers will come */
            add_run(l, l->answered + 1, l->sent, ZC_LINES_UNKNOWN);
            l->answered = l->sent;
            return;
        }
        l->answered++;
        l->accepted += rc == ZMQCAT_OK;
        add_run(l, l->answered, l->answered,
                rc == ZMQCAT_OK ? ZC_LINES_ACCEPTED : ZC_LINES_REFUSED);
    }
}

/* A hub that answers nothing for so long is given up. */
static void watch(struct zc_lines *l, uint64_t answered_before)
{
    int64_t now = zc_clock_ms();
    if (l->answered > answered_before || l->answered == l->sent)
        l->heard_ms = now;
    if (now - l->heard_ms > ANSWER_MS && l->status == 0)
        fail(l, "the hub", "does not answer");
}

/* Nothing is under way: heartbeats, and the hub's end. */
static void listen_only(struct zc_lines *l)
{
    int rc = l->answered == l->sent && l->status == 0 ? zmqcat_poll(l->bus) : ZMQCAT_OK;
    if (rc != ZMQCAT_OK)
        bus_failed(l, rc);
}

static void read_input(struct zc_lines *l)
{
    char number[64];
    if (l->used > 0) {
        zc_buf_consume(&l->in, l->used);
        l->used = 0;
    }
    if (l->in.len > LINE_MAX_BYTES) {
        snprintf(number, sizeof number, "line %" PRIu64, l->sent + 1);
        fail(l, number, "payload too large: more than 2 MiB");
        return;
    }
    if (zc_buf_reserve(&l->in, READ_SIZE) != 0) {
        fail(l, l->source, strerror(ENOMEM));
        return;
    }
    ssize_t n = read(l->fd, l->in.data + l->in.len, READ_SIZE);
    if (n > 0)
        l->in.len += (size_t)n;
    else if (n == 0)
        l->end = true;
    else if (errno != EINTR && errno != EAGAIN)
        fail(l, l->source, strerror(errno));
}

/* Waits for the hub, and for input when there is room for it. */
static void wait_more(struct zc_lines *l)
{
    struct zc_slice line;
    size_t size;
    if (room(l) && next_line(l, &line, &size))
        return; /* to be sent now */
    bool reads = room(l) && !l->end;
    struct pollfd p[3] = {{.fd = reads ? l->fd : -1, .events = POLLIN},
                          {.fd = zmqcat_fd(l->bus), .events = POLLIN},
                          {.fd = zc_signals_fd(), .events = POLLIN}};
    poll(p, 3, zc_progress_due(&l->progress));
    if (p[0].revents != 0)
        read_input(l);
}

static void put_all(struct zc_lines *l)
{
    for (;;) {
        if (zc_signals_count() > 0 && l->status == 0)
            fail(l, strsignal(zc_signals_first()), "nothing more is sent");
        send_lines(l);
        uint64_t answered = l->answered;
        collect(l, l->status != 0 ? ANSWER_MS : 0);
        watch(l, answered);
        listen_only(l);
        zc_progress_show(&l->progress, l->bytes, l->accepted);
        bool sent_all = l->status != 0 || (l->end && l->used == l->in.len);
        if (sent_all && l->answered == l->sent)
            return;
        wait_more(l);
    }
}

/* Opens the input and starts the progress. Returns 0 or an exit status. */
static int open_input(struct zc_lines *l)
{
    struct stat st;
    const struct zc_args *args = l->args;
    l->source = args->file != NULL ? args->file : "standard input";
    l->fd = args->file != NULL ? open(args->file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (l->fd < 0)
        return fail(l, l->source, strerror(errno));
    if (args->file == NULL && zc_payload_stdin_closed())
        return fail(l, l->source, "it is closed, and there is no --file");
    if (args->json && zc_out_usable() != 0)
        return 1;
    bool sized = fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
    zc_progress_init(&l->progress, args->verb, args->rest[0], "lines",
                     sized ? (uint64_t)st.st_size : 0);
    return 0;
}

int zc_lines_put(const struct zc_args *args)
{
    struct zc_lines l = {.args = args, .fd = -1, .options = zc_payload_options(args)};
    if (args->rest_count > 1)
        return zc_say_usage(args->verb, "--lines reads --file or standard input, not arguments");
    if (args->id != NULL)
        return zc_say_usage(args->verb, "--lines and --id: each line needs an id of its own");
    l.status = open_input(&l);
    if (l.status == 0)
        l.status = zc_open_polled(args, zc_signals_poll, NULL, &l.bus);
    if (l.status == 0 && !zc_signals_catch(NULL, LAST_S))
        l.status = fail(&l, "signals", strerror(errno));
    else if (l.status == 0) {
        l.heard_ms = zc_clock_ms();
        put_all(&l);
        zc_progress_end(&l.progress, l.bytes, l.accepted);
        if (l.status != 0)
            zc_lines_report(&l);
        if (args->json && zc_lines_report_json(&l) != 0)
            l.status = 1;
    }
    if (l.fd > STDIN_FILENO)
        close(l.fd);
    zc_buf_done(&l.in);
    zmqcat_free(l.bus);
    zc_signals_end();
    return l.status;
}
