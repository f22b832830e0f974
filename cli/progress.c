/* A bar or plain lines. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "say.h"

#define BAR_MS 100
#define LINE_MS 2000
#define BAR_WIDTH 24

void zc_progress_init(struct zc_progress *p, const char *verb, const char *name, const char *unit,
                      uint64_t total)
{
    *p = (struct zc_progress){.verb = verb, .name = name, .unit = unit, .total = total};
    p->terminal = isatty(STDERR_FILENO) == 1;
    p->began_ms = zc_clock_ms();
    p->next_ms = p->began_ms + (p->terminal ? BAR_MS : LINE_MS);
}

static unsigned percent(const struct zc_progress *p, uint64_t done)
{
    return done >= p->total ? 100 : (unsigned)((double)done * 100 / (double)p->total);
}

static void bar(struct zc_progress *p, uint64_t done, uint64_t count, uint64_t a_second)
{
    char text[BAR_WIDTH + 16] = "";
    if (p->total > 0) {
        char fill[BAR_WIDTH + 1];
        unsigned now = percent(p, done), n = now * BAR_WIDTH / 100;
        memset(fill, ' ', BAR_WIDTH);
        memset(fill, '=', n);
        if (n < BAR_WIDTH)
            fill[n] = '>';
        fill[BAR_WIDTH] = '\0';
        snprintf(text, sizeof text, "[%s] %3u%%  ", fill, now);
    }
    fprintf(stderr, "\r%s%" PRIu64 " %s, %" PRIu64 " a second\033[K", text, count, p->unit,
            a_second);
    p->drawn = true;
}

static void line(const struct zc_progress *p, uint64_t done, uint64_t count, uint64_t a_second)
{
    char text[160], part[32] = "";
    if (p->total > 0)
        snprintf(part, sizeof part, " (%u%%)", percent(p, done));
    snprintf(text, sizeof text, "%" PRIu64 " %s%s, %" PRIu64 " a second", count, p->unit, part,
             a_second);
    zc_say_fail(0, p->verb, p->name, text);
}

static void show(struct zc_progress *p, uint64_t done, uint64_t count)
{
    int64_t ms = zc_clock_ms() - p->began_ms;
    uint64_t a_second = ms > 0 ? (uint64_t)((double)count * 1000 / (double)ms) : 0;
    if (p->terminal)
        bar(p, done, count, a_second);
    else
        line(p, done, count, a_second);
}

void zc_progress_show(struct zc_progress *p, uint64_t done, uint64_t count)
{
    int64_t now = zc_clock_ms();
    if (now < p->next_ms)
        return;
    p->next_ms = now + (p->terminal ? BAR_MS : LINE_MS);
    show(p, done, count);
}

int zc_progress_due(const struct zc_progress *p)
{
    int64_t left = p->next_ms - zc_clock_ms();
    return left > 0 ? (int)left : 0;
}

void zc_progress_end(struct zc_progress *p, uint64_t done, uint64_t count)
{
    if (!p->drawn)
        return;
    show(p, done, count);
    fputc('\n', stderr);
    p->drawn = false;
}
