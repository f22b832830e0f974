/*
 * Lines for the administrator on stderr: `zmqcat: what: why`, with a journal priority in front when
 * stderr is the journal. A line that cannot be written at once is dropped and counted: a full pipe
 * behind stderr must not stop the bus.
 */
#ifndef ZC_HOST_LOGSINK_H
#define ZC_HOST_LOGSINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rate.h"
#include "base/time.h"

#define ZC_LOGSINK_LINE_MAX 4096 /* longer lines are cut; PIPE_BUF, so that a line stays whole */

/* syslog priorities; the same numbers as enum zc_hub_level */
enum zc_logsink_level {
    ZC_LOGSINK_ERR = 3,
    ZC_LOGSINK_WARNING = 4,
    ZC_LOGSINK_NOTICE = 5,
    ZC_LOGSINK_INFO = 6,
    ZC_LOGSINK_DEBUG = 7,
};

struct zc_logsink {
    int fd;
    int level;       /* lines above it are dropped */
    bool priorities; /* "<6>" in front of each line */
    struct zc_rate rate;
    uint64_t lost; /* lines that stderr did not take */
};

/* Writes to fd (2). */
void zc_logsink_init(struct zc_logsink *log, int fd, int level, bool priorities);
/* "zmqcat: " and the text; never rate-limited. Values in it are escaped by the caller. */
__attribute__((format(printf, 3, 4))) void zc_logsink_line(struct zc_logsink *log, int level,
                                                           const char *format, ...);
/* As above, at most 20 at once and one a second after that; says how many it left out. */
void zc_logsink_limited(struct zc_logsink *log, struct zc_mono now, int level, const char *text);
/* The text as it is, without "zmqcat: ". */
void zc_logsink_raw(struct zc_logsink *log, int level, const char *text);
/* The level of a name (err or error, warning, notice, info, debug), or -1. */
int zc_logsink_level(const char *name);

#endif
