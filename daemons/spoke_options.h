/* The command line of zmqcat-spoke (docs/man/zmqcat-spoke.8). */
#ifndef ZC_DAEMONS_SPOKE_OPTIONS_H
#define ZC_DAEMONS_SPOKE_OPTIONS_H

#include "options.h"

struct zc_spoke_options {
    struct zc_options shared; /* .argument: the token */
    const char *token_file;   /* NULL: not given */
    int64_t wait_hub_ms;
};

/* Returns ZC_OPTIONS_RUN, or the exit code when there is nothing to run. */
int zc_spoke_options_parse(int argc, char **argv, struct zc_logsink *log,
                           struct zc_spoke_options *ret_options);

#endif
