/*
 * How far a long piece of work is, on standard error: a bar on a terminal, else a plain line now
 * and then, and nothing for what is quickly done.
 */
#ifndef ZC_CLI_PROGRESS_H
#define ZC_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct zc_progress {
    const char *verb, *name; /* name may be NULL */
    const char *unit;        /* what is counted, in the plural */
    uint64_t total;          /* amount of all work; 0: not known */
    bool terminal;
    bool drawn; /* a bar stands in the line of the cursor */
    int64_t began_ms, next_ms;
};

void zc_progress_init(struct zc_progress *p, const char *verb, const char *name, const char *unit,
                      uint64_t total);
/* done: of total. Cheap when nothing is to be shown yet. */
void zc_progress_show(struct zc_progress *p, uint64_t done, uint64_t count);
/* Ms until the next show would print something, for a wait. */
int zc_progress_due(const struct zc_progress *p);
/* A last look, and the end of the bar's line. Before anything else is said. */
void zc_progress_end(struct zc_progress *p, uint64_t done, uint64_t count);

#endif
