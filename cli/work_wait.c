/* Signals and waiting of `work`. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "say.h"
#include "signals.h"
#include "work.h"

#define CONFIG_STATUS 78
#define KILL_AFTER_MS 5000
#define KILL_AGAIN_MS 100

bool zc_work_catch(void)
{
    return zc_signals_count_them() && zc_signals_of_children();
}

static void signal_all(struct zc_work *w, int sig)
{
    for (size_t i = 0; i < w->jobs_count; i++)
        if (w->jobs[i].used)
            kill(w->jobs[i].pid, sig);
}

/* Whether a command runs. */
static bool any_runs(const struct zc_work *w)
{
    for (size_t i = 0; i < w->jobs_count; i++)
        if (w->jobs[i].used && !w->jobs[i].over)
            return true;
    return false;
}

void zc_work_signals(struct zc_work *w)
{
    zc_signals_clear();
    for (; w->signals < zc_signals_count(); w->signals++) {
        w->stops++;
        if (w->stops == 1 && any_runs(w))
            zc_say_hint("the commands that run may finish; a second signal ends them");
        if (w->stops == 2) {
            signal_all(w, SIGTERM);
            w->kill_at_ms = zc_clock_ms() + KILL_AFTER_MS;
        }
    }
    if (w->stops > 2 || (w->kill_at_ms >= 0 && zc_clock_ms() >= w->kill_at_ms))
        signal_all(w, SIGKILL);
}

/* The ms until something is due, or -1. */
static int due(const struct zc_work *w)
{
    int64_t first = INT64_MAX, now = zc_clock_ms();
    for (size_t i = 0; i < w->jobs_count; i++) {
        const struct zc_job *job = &w->jobs[i];
        if (job->used && job->over) /* seen by zc_work_poll */
            return 0;
        if (w->bus != NULL && job->used && !job->lost && job->touch_at_ms < first)
            first = job->touch_at_ms;
    }
    if (w->bus == NULL && w->stops == 0 && w->retry_at_ms < first)
        first = w->retry_at_ms;
    if (w->kill_at_ms >= 0 && w->kill_at_ms < first)
        first = w->kill_at_ms > now ? w->kill_at_ms : now + KILL_AGAIN_MS;
    if (first == INT64_MAX)
        return -1;
    return first <= now ? 0 : first - now > INT_MAX ? INT_MAX : (int)(first - now);
}

static int poll_all(struct zc_work *w, struct pollfd *hub, int timeout_ms)
{
    w->fds[0] = (struct pollfd){.fd = zc_signals_fd(), .events = POLLIN};
    w->fds[1] = *hub;
    for (size_t i = 0; i < w->jobs_count; i++)
        zc_job_wants(&w->jobs[i], w->fds + 2 + 2 * i);
    int n = poll(w->fds, (nfds_t)(2 + 2 * w->jobs_count), timeout_ms);
    *hub = w->fds[1];
    return n < 0 ? n : hub->revents != 0;
}

void zc_work_wait(struct zc_work *w)
{
    struct pollfd hub = {.fd = w->bus != NULL ? zmqcat_fd(w->bus) : -1, .events = POLLIN};
    poll_all(w, &hub, due(w));
}

int zc_work_poll(void *data, struct pollfd *hub, int timeout_ms)
{
    struct zc_work *w = data;
    zc_work_signals(w);
    for (size_t i = 0; i < w->jobs_count; i++)
        zc_job_move(&w->jobs[i]);
    int64_t now = zc_clock_ms(), end_ms = INT64_MAX;
    if (w->stops > 0 && !any_runs(w)) {
        w->last_at_ms = w->last_at_ms > 0 ? w->last_at_ms : now + ZC_SIGNALS_LAST_MS;
        end_ms = w->last_at_ms;
    } else if (w->kill_at_ms >= 0) {
        end_ms = w->kill_at_ms > now ? w->kill_at_ms : now + KILL_AGAIN_MS;
    }
    if (now >= end_ms) {
        errno = ECANCELED;
        return -1;
    }
    bool sooner = end_ms != INT64_MAX && (timeout_ms < 0 || timeout_ms > end_ms - now);
    return poll_all(w, hub, sooner ? (int)(end_ms - now) : timeout_ms);
}

/* A file that may be executed. Returns 0 or an errno. */
static int executable(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) < 0 ? errno : 0;
}

static int search(const char *command)
{
    char path[PATH_MAX];
    const char *list = getenv("PATH");
    int err = ENOENT;
    if (strchr(command, '/') != NULL)
        return executable(command);
    list = list != NULL ? list : "/bin:/usr/bin";
    for (const char *end; *command != '\0'; list = end + 1) {
        end = list + strcspn(list, ":");
        int len = (int)(end - list);
        int n = snprintf(path, sizeof path, "%.*s%s%s", len, list, len > 0 ? "/" : "", command);
        int got = n > 0 && (size_t)n < sizeof path ? executable(path) : ENAMETOOLONG;
        if (got == 0)
            return 0;
        err = got == EACCES ? got : err;
        if (*end == '\0')
            break;
    }
    return err;
}

int zc_work_check_command(const struct zc_args *args, const char *command)
{
    char text[400], shown[256];
    int err = search(command);
    if (err == 0)
        return 0;
    zc_say_escape(shown, sizeof shown, command, strlen(command));
    snprintf(text, sizeof text, "%s cannot be run: %s", shown, strerror(err));
    zc_say_fail(CONFIG_STATUS, args->verb, args->rest[0], text);
    zc_say_hint("nothing was taken; name a program that exists and may be executed");
    return CONFIG_STATUS;
}
