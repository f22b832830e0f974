/* Log lines about the tunnel: ten at once, then one a minute; see hub_tunnel.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/hub_tunnel.h"

#define LINES_BURST 10
#define LINE_EVERY_MS 60000

void zc_hub_say_init(struct zc_hub_lines *l)
{
    zc_rate_init(&l->rate, LINE_EVERY_MS, LINES_BURST);
}

static void push(struct zc_hub_lines *l, const struct zc_hub_line *line)
{
    if (l->len == ZC_HUB_LINES) {
        l->first++;
        l->len--;
    }
    l->ring[(l->first + l->len++) % ZC_HUB_LINES] = *line;
}

void zc_hub_say(struct zc_hub_tunnel *net, struct zc_now now, enum zc_hub_level level, bool keep,
                const char *format, ...)
{
    struct zc_hub_lines *l = &net->lines;
    struct zc_hub_line line = {.level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(line.text, sizeof(line.text), format, args);
    va_end(args);
    l->has_kept = l->has_kept && !keep;
    if (strcmp(line.text, l->last) == 0)
        return;
    if (zc_rate_allow(&l->rate, now.mono)) {
        memcpy(l->last, line.text, sizeof(l->last));
        push(l, &line);
    } else if (keep) {
        l->kept = line;
        l->has_kept = true;
    }
}

void zc_hub_say_warning(struct zc_hub *hub, struct zc_now now, const char *text)
{
    if (hub->tunnel != NULL)
        zc_hub_say(hub->tunnel, now, ZC_HUB_WARNING, true, "%s", text);
}

void zc_hub_trace(struct zc_hub_tunnel *net, const char *format, ...)
{
    struct zc_hub_line line = {.trace = true};
    va_list args;
    if (!net->hub->broker->trace)
        return;
    va_start(args, format);
    vsnprintf(line.text, sizeof(line.text), format, args);
    va_end(args);
    push(&net->lines, &line);
}

const struct zc_hub_line *zc_hub_say_next(struct zc_hub_lines *l, struct zc_now now)
{
    if (l->has_kept && zc_rate_allow(&l->rate, now.mono)) {
        l->has_kept = false;
        memcpy(l->last, l->kept.text, sizeof(l->last));
        push(l, &l->kept);
    }
    if (l->len == 0)
        return NULL;
    l->told = l->ring[l->first++ % ZC_HUB_LINES];
    l->len--;
    return &l->told;
}

struct zc_mono zc_hub_say_deadline(const struct zc_hub_lines *l)
{
    if (!l->has_kept)
        return ZC_NEVER;
    /* One token is there when all but one are still missing. */
    return (struct zc_mono){l->rate.full_at.ns -
                            (l->rate.burst - 1) * l->rate.interval_ms * ZC_NS_PER_MS};
}
