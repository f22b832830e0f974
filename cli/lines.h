/* What the parts of `put --lines` share: sending (lines.c) and the report (lines_report.c). */
#ifndef ZC_CLI_LINES_H
#define ZC_CLI_LINES_H

#include "args.h"
#include "base/buf.h"
#include "progress.h"

#define ZC_LINES_WINDOW 256 /* puts under way */
#define ZC_LINES_RUNS_MAX (ZC_LINES_WINDOW + 2)

enum zc_lines_fate { ZC_LINES_ACCEPTED, ZC_LINES_REFUSED, ZC_LINES_UNKNOWN };

/* Lines with the same fate. */
struct zc_lines_run {
    uint64_t first, last;
    enum zc_lines_fate fate;
};

struct zc_lines {
    const struct zc_args *args;
    struct zmqcat *bus;
    struct zmqcat_put_options options;
    int fd;
    const char *source; /* for messages */
    struct zc_buf in;
    size_t used;    /* bytes of in that were sent */
    bool end;       /* of the input */
    uint64_t bytes; /* sent */
    uint64_t sent, answered, accepted;
    int64_t heard_ms; /* when the last answer came, or nothing was under way */
    int status;       /* not 0: nothing more is sent */
    struct zc_lines_run runs[ZC_LINES_RUNS_MAX];
    size_t runs_count;
    struct zc_progress progress;
};

/* What became of each line, on standard error. */
void zc_lines_report(const struct zc_lines *l);
/* The same for programs, on standard output. Returns 0 or exit status 1. */
int zc_lines_report_json(const struct zc_lines *l);

#endif
