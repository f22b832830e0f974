/* A seed's world: its making, its end, its log of events and its output hash. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"
#include "trace.h"

static void *zeroed(size_t count, size_t size)
{
    void *p = calloc(count, size);
    ZC_ASSERT(p != NULL);
    return p;
}

struct world *world_new(uint64_t seed, const char *liar)
{
    struct world *w = zeroed(1, sizeof *w);
    w->seed = seed;
    w->liar = liar;
    w->rnd.state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    w->hash = UINT64_C(0xcbf29ce484222325);
    w->now.mono.ns = rnd_range(&w->rnd, 1, 1000) * SECOND;
    w->now.wall.ms = INT64_C(1800000000000) + rnd_range(&w->rnd, 0, 1000000);
    w->messages = zeroed(MESSAGES_MAX, sizeof *w->messages);
    w->deliveries = zeroed(DELIVERIES_MAX, sizeof *w->deliveries);
    w->pubs = zeroed(PUBS_MAX, sizeof *w->pubs);
    w->scratch = zeroed(1, ZC_FRAME_BODY_MAX + ZC_FRAME_HEADER);
    snprintf(w->deliveries[0].name, sizeof w->deliveries[0].name, "none of the hub's");
    w->messages_len = w->deliveries_len = w->pubs_len = w->items_len = 1;
    profile_choose(&w->p, seed, &w->rnd);
    for (int i = 0; i < BOXES_MAX; i++)
        snprintf(w->boxes[i].name, sizeof w->boxes[i].name, "box%d", i);
    disk_init(&w->disk, rnd_u64(&w->rnd));
    w->disk.latency_ns[0] = w->p.latency_ns[0];
    w->disk.latency_ns[1] = w->p.latency_ns[1];
    w->disk.lying = liar != NULL && strcmp(liar, "fsync") == 0;
    w->tick_lag_ns = liar != NULL && strcmp(liar, "late-tick") == 0 ? 3 * SECOND : 0;
    return w;
}

void world_free(struct world *w)
{
    if (w->hub != NULL)
        zc_hub_free(w->hub);
    for (uint32_t i = 0; i < w->conns_len; i++)
        conn_free(w->conns[i]);
    for (int i = 0; i < BOXES_MAX; i++)
        free(w->boxes[i].live);
    for (size_t i = 0; i < w->groups_len; i++)
        free(w->groups[i].members);
    disk_done(&w->disk);
    free(w->messages);
    free(w->deliveries);
    free(w->pubs);
    free(w->scratch);
    free(w->held_back);
    free(w);
}

void world_trace(struct world *w, const char *format, ...)
{
    va_list args;
    char *line;
    int n;
    if (w->trace == NULL)
        return;
    line = w->trace->lines[w->trace->count++ % TRACE_LINES];
    n = snprintf(line, TRACE_WIDTH, "%9.4f ", (double)(world_ns(w) % (1000 * SECOND)) / 1e9);
    va_start(args, format);
    vsnprintf(line + n, TRACE_WIDTH - (size_t)n, format, args);
    va_end(args);
    if (w->trace->echo)
        puts(line);
}

void world_fail(struct world *w, const char *format, ...)
{
    va_list args;
    if (w->failed)
        return;
    w->failed = true;
    va_start(args, format);
    vsnprintf(w->failure, sizeof w->failure, format, args);
    va_end(args);
    world_trace(w, "VIOLATION: %s", w->failure);
}

/* FNV-1a over eight bytes at a time, the rest byte by byte. */
void world_hash(struct world *w, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t h = w->hash;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        h = (h ^ v) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
    }
    for (; len > 0; len--, p++)
        h = (h ^ *p) * UINT64_C(0x100000001b3);
    w->hash = h;
}
