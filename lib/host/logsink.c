/*
 * The one place that writes to stderr while a daemon runs. Deliberately absent: time stamps (the
 * journal and `ts` have them), files, rotation, colours.
 */
#include "host/logsink.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

void zc_logsink_init(struct zc_logsink *log, int fd, int level, bool priorities)
{
    *log = (struct zc_logsink){.fd = fd, .level = level, .priorities = priorities};
    zc_rate_init(&log->rate, 1000, 20);
}

/* True when all of the line went out without waiting. */
static bool write_now(struct zc_logsink *log, const char *line, size_t len)
{
    struct pollfd p = {.fd = log->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) == 0)
        return false;
    ssize_t n;
    do {
        n = write(log->fd, line, len);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)len;
}

static void emit(struct zc_logsink *log, int level, const char *prefix, const char *text)
{
    char line[ZC_LOGSINK_LINE_MAX], priority[8] = "";
    if (log->priorities)
        snprintf(priority, sizeof(priority), "<%d>", level);
    int n = snprintf(line, sizeof(line), "%s%s%s\n", priority, prefix, text);
    size_t len = n < 0 ? 0 : (size_t)n;
    if (len >= sizeof(line)) {
        len = sizeof(line) - 1;
        memcpy(line + len - 4, "...\n", 4);
    }
    if (!write_now(log, line, len))
        log->lost++;
}

/* Tells of lines that were lost before, once stderr takes lines again. */
static void emit_lost(struct zc_logsink *log)
{
    char text[80];
    uint64_t lost = log->lost;
    if (lost == 0)
        return;
    snprintf(text, sizeof(text), "%llu lines lost: standard error was not read in time",
             (unsigned long long)lost);
    log->lost = 0;
    emit(log, ZC_LOGSINK_WARNING, "zmqcat: ", text);
    if (log->lost > 0)
        log->lost = lost;
}

void zc_logsink_line(struct zc_logsink *log, int level, const char *format, ...)
{
    char text[ZC_LOGSINK_LINE_MAX];
    va_list args;
    if (level > log->level)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    emit_lost(log);
    emit(log, level, "zmqcat: ", text);
}

void zc_logsink_limited(struct zc_logsink *log, struct zc_mono now, int level, const char *text)
{
    if (level > log->level)
        return;
    uint64_t suppressed = log->rate.suppressed;
    if (!zc_rate_allow(&log->rate, now))
        return;
    if (suppressed > 0)
        zc_logsink_line(log, ZC_LOGSINK_WARNING, "%llu lines like these left out",
                        (unsigned long long)suppressed);
    log->rate.suppressed = 0;
    zc_logsink_line(log, level, "%s", text);
}

void zc_logsink_raw(struct zc_logsink *log, int level, const char *text)
{
    emit_lost(log);
    emit(log, level, "", text);
}

int zc_logsink_level(const char *name)
{
    static const char *const names[] = {"err", "warning", "notice", "info", "debug"};
    for (size_t i = 0; i < ZC_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return ZC_LOGSINK_ERR + (int)i;
    return strcmp(name, "error") == 0 ? ZC_LOGSINK_ERR : -1;
}
