/*
 * Signals, noted by a handler that writes to a pipe, so that whoever polls it misses none. The
 * handler runs with all of them blocked: it never interrupts itself.
 */
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "base/check.h"
#include "clock.h"

#define COUNT_MAX 1000000 /* nobody tells more of them apart */

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
static int wake[2] = {-1, -1};
static volatile sig_atomic_t count, first, at_once;
static void (*first_does)(void);
static unsigned ends_after_s; /* 0: signals are only counted */

static void end_by(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig); /* at the end of the handler, which blocks it */
}

static void on_stop(int sig)
{
    if (at_once)
        _exit(0);
    count += count < COUNT_MAX;
    if (first != 0 && ends_after_s > 0)
        end_by(first);
    if (first != 0)
        return;
    first = sig;
    if (first_does != NULL)
        first_does();
    if (ends_after_s > 0)
        alarm(ends_after_s);
}

static void on_signal(int sig)
{
    int saved = errno;
    if (sig == SIGALRM)
        end_by(first);
    else if (sig != SIGCHLD)
        on_stop(sig);
    if (write(wake[1], "", 1) < 0)
        errno = 0; /* full: it wakes all the same */
    errno = saved;
}

static bool handle(int sig)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&act.sa_mask);
    return sigaction(sig, &act, NULL) == 0;
}

static bool open_pipe(void)
{
    if (wake[0] >= 0)
        return true;
    if (pipe(wake) < 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(wake[i], F_SETFL, fcntl(wake[i], F_GETFL) | O_NONBLOCK);
    }
    return true;
}

bool zc_signals_catch(void (*at_first)(void), unsigned last_s)
{
    first_does = at_first;
    ends_after_s = last_s;
    if (!open_pipe() || (last_s > 0 && !handle(SIGALRM)))
        return false;
    for (size_t i = 0; i < ZC_ARRAY_LEN(stops); i++) {
        struct sigaction old;
        if (sigaction(stops[i], NULL, &old) < 0)
            return false;
        if (old.sa_handler != SIG_IGN && !handle(stops[i]))
            return false;
    }
    return true;
}

bool zc_signals_count_them(void)
{
    return zc_signals_catch(NULL, 0);
}

bool zc_signals_of_children(void)
{
    return open_pipe() && handle(SIGCHLD);
}

int zc_signals_count(void)
{
    return count;
}

int zc_signals_first(void)
{
    return first;
}

int zc_signals_fd(void)
{
    return wake[0];
}

void zc_signals_clear(void)
{
    char drop[256];
    while (read(wake[0], drop, sizeof drop) > 0)
        continue;
}

void zc_signals_exit_at_once(bool now)
{
    at_once = now;
    if (now && count > 0)
        _exit(0);
}

int zc_signals_poll(void *data, struct pollfd *hub, int timeout_ms)
{
    static int64_t end_ms;
    (void)data;
    bool stopped = count > 0;
    if (stopped) {
        int64_t now = zc_clock_ms();
        end_ms = end_ms > 0 ? end_ms : now + ZC_SIGNALS_LAST_MS;
        if (now >= end_ms) {
            errno = ECANCELED;
            return -1;
        }
        if (timeout_ms < 0 || timeout_ms > end_ms - now)
            timeout_ms = (int)(end_ms - now);
    }
    struct pollfd p[2] = {*hub, {.fd = stopped ? -1 : wake[0], .events = POLLIN}};
    int n = poll(p, 2, timeout_ms);
    *hub = p[0];
    return n < 0 ? n : hub->revents != 0;
}

void zc_signals_end(void)
{
    if (first != 0)
        end_by(first);
}

void zc_signals_default(void)
{
    for (size_t i = 0; i < ZC_ARRAY_LEN(stops); i++)
        signal(stops[i], SIG_DFL);
}
