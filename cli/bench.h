/* What the parts of `bench` share: the table and its output (bench.c), and what each row does. */
#ifndef ZC_CLI_BENCH_H
#define ZC_CLI_BENCH_H

#include <sys/types.h>

#include "args.h"
#include "out.h"

#define ZC_BENCH_SAMPLES_MAX 200000

struct zc_bench {
    const struct zc_args *args;
    struct zmqcat *bus;
    struct zc_out out;
    char name[64]; /* of the mailbox and the topic */
    size_t name_len;
    char *payload;
    uint64_t chunk; /* messages in the mailbox at once */
    /* of the row that runs */
    uint32_t *samples; /* us of each operation */
    size_t samples_count;
    uint64_t done;
    int64_t us; /* spent in it */
    int64_t began_us;
};

struct zc_bench_row {
    const char *name, *help;
    int (*run)(struct zc_bench
                   *b); /* an enum zmqcat_error of b->bus, or an exit status after saying why */
};

/* The last one has no name. */
extern const struct zc_bench_row zc_bench_rows[];

/* Empties the mailbox. */
int zc_bench_empty(struct zc_bench *b);

#endif
