/* Signals and waiting of `work`. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "say.h"
#include "work.h"

#define CONFIG_STATUS 78
#define KILL_AFTER_MS 5000

static int wake[2] = {-1, -1};
static volatile sig_atomic_t stops, idle_now;

static void on_signal(int sig)
{
    int saved = errno;
    if (sig != SIGCHLD && idle_now)
        _exit(0);
    if (sig != SIGCHLD && stops < 100)
        stops++;
    if (write(wake[1], "", 1) < 0)
        errno = 0; /* full: it wakes all the same */
    errno = saved;
}

bool zc_work_catch(void)
{
    static const int all[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    if (pipe(wake) < 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(wake[i], F_SETFL, fcntl(wake[i], F_GETFL) | O_NONBLOCK);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
        if (sigaction(all[i], NULL, &old) < 0)
            return false;
        /* What our parent wants ignored stays so, as nohup does. */
        if (all[i] != SIGCHLD && old.sa_handler == SIG_IGN)
            continue;
        if (sigaction(all[i], &act, NULL) < 0)
            return false;
    }
    return true;
}

void zc_work_idle(bool idle)
{
    idle_now = idle;
    if (idle && stops > 0)
        _exit(0);
}

static void signal_all(struct zc_work *w, int sig)
{
    for (size_t i = 0; i < w->jobs_count; i++)
        if (w->jobs[i].used)
            kill(w->jobs[i].pid, sig);
}

void zc_work_signals(struct zc_work *w)
{
    char drop[256];
    while (read(wake[0], drop, sizeof drop) > 0)
        continue;
    int came = stops;
    stops -= came;
    for (; came > 0; came--) {
        w->stops++;
        if (w->stops == 1 && w->running > 0)
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
    for (size_t i = 0; i < w->jobs_count; i++)
        if (w->bus != NULL && w->jobs[i].used && !w->jobs[i].lost && w->jobs[i].touch_at_ms < first)
            first = w->jobs[i].touch_at_ms;
    if (w->bus == NULL && w->stops == 0 && w->retry_at_ms < first)
        first = w->retry_at_ms;
    if (w->kill_at_ms >= 0 && w->kill_at_ms < first)
        first = w->kill_at_ms > now ? w->kill_at_ms : now + 100;
    if (first == INT64_MAX)
        return -1;
    return first <= now ? 0 : first - now > INT_MAX ? INT_MAX : (int)(first - now);
}

void zc_work_wait(struct zc_work *w)
{
    w->fds[0] = (struct pollfd){.fd = wake[0], .events = POLLIN};
    w->fds[1] = (struct pollfd){.fd = w->bus != NULL ? zmqcat_fd(w->bus) : -1, .events = POLLIN};
    for (size_t i = 0; i < w->jobs_count; i++)
        zc_job_wants(&w->jobs[i], w->fds + 2 + 2 * i);
    poll(w->fds, (nfds_t)(2 + 2 * w->jobs_count), due(w));
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
