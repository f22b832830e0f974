/*
 * top: the status of a hub or spoke, live. At a terminal a page that is drawn anew, in a pipe a
 * line each time, with --json the status itself. A daemon that goes away is waited for.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "open.h"
#include "out.h"
#include "print.h"
#include "say.h"
#include "signals.h"
#include "table.h"
#include "verbs.h"

#define ROWS_MAX 400
/* Without line wrap: a node key is wider than many a terminal. */
#define PAGE_BEGIN "\033[?1049h\033[?7l"
#define PAGE_END "\033[?7h\033[?1049l"

/* Members that only grow: what they grow by a second is worth seeing. */
static const char *const growing[] = {"puts", "redelivered", "dropped", "dropped_deliveries",
                                      ".rx",  ".tx",         NULL};
/* What a line of the pipe has, where the status has it. */
static const char *const brief[] = {
    "sessions", "mailboxes",     "queued",       "leased",  "delayed",
    "waiting",  "puts",          "redelivered",  "dropped", "tunnel.connections",
    "draining", "storage.state", "tunnel.state", NULL};

struct row {
    char *key, *value; /* in the text of the look */
};

/* One look at the status. */
struct look {
    struct zc_buf text; /* lines of `key value`, cut into rows */
    struct row rows[ROWS_MAX];
    size_t count;
    int64_t at_ms;
};

struct top {
    const struct zc_args *args;
    struct zmqcat *bus; /* NULL: away */
    struct zc_out out;
    bool page; /* at a terminal */
    bool told; /* that the daemon is away */
    struct look now, before;
    struct termios terminal;
    bool keys; /* the terminal gives single keys */
    bool quit; /* its user or its reader has gone */
};

static const char *value_of(const struct look *look, const char *key)
{
    for (size_t i = 0; i < look->count; i++)
        if (strcmp(look->rows[i].key, key) == 0)
            return look->rows[i].value;
    return NULL;
}

static bool grows(const char *key)
{
    size_t len = strlen(key);
    for (const char *const *g = growing; *g != NULL; g++) {
        size_t n = strlen(*g);
        bool end = (*g)[0] == '.' && len > n && strcmp(key + len - n, *g) == 0;
        if (end || strcmp(key, *g) == 0)
            return true;
    }
    return false;
}

/* Growth a second since the look before. False: not known. */
static bool rate(const struct top *t, const struct row *r, double *ret_rate)
{
    const char *before = value_of(&t->before, r->key);
    int64_t ms = t->now.at_ms - t->before.at_ms;
    if (before == NULL || ms <= 0 || !grows(r->key))
        return false;
    double was = strtod(before, NULL), is = strtod(r->value, NULL);
    if (is < was)
        return false; /* it was started anew */
    *ret_rate = (is - was) * 1000 / (double)ms;
    return true;
}

/* Cuts the lines of the text into rows. */
static void split(struct look *look)
{
    char *save = NULL;
    look->count = 0;
    for (char *line = strtok_r((char *)look->text.data, "\n", &save);
         line != NULL && look->count < ROWS_MAX; line = strtok_r(NULL, "\n", &save)) {
        char *gap = strchr(line, ' ');
        if (gap == NULL)
            continue;
        *gap++ = '\0';
        look->rows[look->count++] = (struct row){line, gap + strspn(gap, " ")};
    }
}

/* Makes t->now of the status. False: it is not readable. */
static bool take_in(struct top *t, const char *json, size_t len)
{
    struct zc_out table;
    struct zc_buf copy = {0};
    struct look old = t->before;
    t->before = t->now;
    t->now = old;
    zc_out_init(&table, NULL);
    bool good = zc_buf_append(&copy, json, len) == 0 &&
                zc_table_print(&table, copy.data, copy.len) &&
                zc_buf_append(&table.buf, "", 1) == 0 && !table.short_of_memory;
    zc_buf_done(&copy);
    zc_buf_done(&t->now.text);
    t->now.text = table.buf;
    t->now.at_ms = zc_clock_ms();
    t->now.count = 0;
    if (good)
        split(&t->now);
    return good;
}

static void clock_text(char ret_text[16])
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(ret_text, 16, "%H:%M:%S", &tm);
}

static void draw_row(struct top *t, const struct row *r)
{
    char line[300], speed[40] = "";
    double a_second;
    if (rate(t, r, &a_second))
        snprintf(speed, sizeof speed, "%.*f/s", a_second < 10 ? 1 : 0, a_second);
    snprintf(line, sizeof line, "%-32s %-24s %s\033[K\r\n", r->key, r->value, speed);
    zc_out_str(&t->out, line);
}

static void draw(struct top *t, const char *away)
{
    struct winsize size = {0};
    char when[16], line[300];
    size_t height = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2
                        ? (size_t)size.ws_row - 2
                        : 22;
    clock_text(when);
    snprintf(line, sizeof line, "\033[Hzmqcat top  %s  q ends%s%.200s\033[K\r\n", when,
             away != NULL ? "  AWAY: " : "", away != NULL ? away : "");
    zc_out_str(&t->out, line);
    size_t shown = t->now.count > height ? height - 1 : t->now.count;
    for (size_t i = 0; i < shown; i++)
        draw_row(t, &t->now.rows[i]);
    if (shown < t->now.count) {
        snprintf(line, sizeof line, "... and %zu more on a taller terminal\033[K\r\n",
                 t->now.count - shown);
        zc_out_str(&t->out, line);
    }
    zc_out_str(&t->out, "\033[J");
}

static void print_line(struct top *t)
{
    char text[300];
    double a_second;
    clock_text(text);
    zc_out_str(&t->out, text);
    for (const char *const *key = brief; *key != NULL; key++)
        for (size_t i = 0; i < t->now.count; i++) {
            const struct row *r = &t->now.rows[i];
            if (strcmp(r->key, *key) != 0)
                continue;
            snprintf(text, sizeof text, " %s=%.200s", r->key, r->value);
            zc_out_str(&t->out, text);
            if (rate(t, r, &a_second)) {
                snprintf(text, sizeof text, " %s/s=%.1f", r->key, a_second);
                zc_out_str(&t->out, text);
            }
        }
    zc_out_str(&t->out, "\n");
}

/* Waits for the hub too, when there is one. Returns as poll does; t->quit may have been set. */
static int wait_once(struct top *t, struct pollfd *hub, int timeout_ms)
{
    struct pollfd p[4] = {*hub,
                          {.fd = zc_signals_fd(), .events = POLLIN},
                          {.fd = t->keys ? STDIN_FILENO : -1, .events = POLLIN},
                          {.fd = STDOUT_FILENO}};
    char key = 0;
    int n = poll(p, 4, timeout_ms);
    *hub = p[0];
    if (n > 0 && p[2].revents != 0 && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q'))
        t->quit = true;
    if (zc_signals_count() > 0 || zc_out_gone(&t->out))
        t->quit = true;
    return n < 0 ? n : hub->revents != 0;
}

/* A zmqcat_poll_fn: an end is not kept waiting by a hub that does not answer. */
static int wait_for_hub(void *data, struct pollfd *hub, int timeout_ms)
{
    struct top *t = data;
    int n = t->quit ? -1 : wait_once(t, hub, timeout_ms);
    if (t->quit && n <= 0) {
        errno = ECANCELED;
        return -1;
    }
    return n;
}

/* Asks once. Returns 0, or an enum zmqcat_error. */
static int ask(struct top *t)
{
    const char *json;
    size_t len;
    int rc = ZMQCAT_OK;
    if (t->bus == NULL)
        rc = zc_open_control_again(t->args, wait_for_hub, t, &t->bus);
    if (rc == ZMQCAT_OK)
        rc = zmqcat_query(t->bus, "status", NULL, 0, NULL, &json, &len);
    if (rc != ZMQCAT_OK)
        return rc;
    if (t->args->json) {
        zc_print_json_text(&t->out, json, len);
        zc_out_str(&t->out, "\n");
    } else if (take_in(t, json, len)) {
        if (t->page)
            draw(t, NULL);
        else
            print_line(t);
    }
    return ZMQCAT_OK;
}

static void look_once(struct top *t)
{
    char text[400];
    int rc = ask(t);
    if (rc == ZMQCAT_OK)
        t->told = false;
    if (rc == ZMQCAT_OK || rc == ZMQCAT_STOPPED)
        return;
    snprintf(text, sizeof text, "%s: waiting until it is back", zmqcat_error_text(t->bus));
    if (t->page)
        draw(t, zmqcat_error_text(t->bus));
    else if (!t->told)
        zc_say_fail(0, t->args->verb, NULL, text);
    t->told = true;
    zmqcat_free(t->bus);
    t->bus = NULL;
}

/* Waits until the next look, or until there is no reader, no user or no time left. */
static bool wait_next(struct top *t, int64_t due_ms)
{
    struct pollfd none = {.fd = -1};
    while (!t->quit) {
        int64_t left = due_ms - zc_clock_ms();
        if (left <= 0)
            return true;
        wait_once(t, &none, left > INT32_MAX ? INT32_MAX : (int)left);
    }
    return false;
}

/* Returns 0, or the exit status after saying why not. */
static int begin(struct top *t)
{
    t->page = t->out.terminal && !t->args->json;
    if (!t->page)
        return 0;
    if (!zc_signals_count_them())
        return zc_say_fail(1, t->args->verb, NULL, strerror(errno));
    t->keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &t->terminal) == 0;
    if (t->keys) {
        struct termios raw = t->terminal;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    zc_out_str(&t->out, PAGE_BEGIN);
    return 0;
}

static void finish(struct top *t)
{
    if (t->page) {
        t->out.buf.len = 0;
        zc_out_str(&t->out, PAGE_END);
        zc_out_flush(&t->out);
    }
    if (t->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &t->terminal);
    zmqcat_free(t->bus);
    zc_out_done(&t->out);
    zc_buf_done(&t->now.text);
    zc_buf_done(&t->before.text);
}

int zc_top_run(const struct zc_args *args)
{
    struct top *t = calloc(1, sizeof *t);
    if (t == NULL)
        return zc_say_fail(1, args->verb, NULL, "out of memory");
    t->args = args;
    int status = zc_open_control_polled(args, wait_for_hub, t, &t->bus);
    zc_out_init(&t->out, NULL);
    if (status == 0)
        status = begin(t);
    for (uint64_t n = 0; status == 0;) {
        int64_t due_ms = zc_clock_ms() + args->interval_ms;
        look_once(t);
        status = zc_out_flush(&t->out);
        if (++n == args->count || status != 0 || !wait_next(t, due_ms))
            break;
    }
    status = t->out.gone ? 0 : status;
    finish(t);
    free(t);
    return status;
}
