/* The command line of zmqcat-hub (docs/man/zmqcat-hub.8). */
#ifndef ZC_DAEMONS_HUB_OPTIONS_H
#define ZC_DAEMONS_HUB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "node/hub.h"
#include "options.h"

#define ZC_HUB_OPTIONS_ALLOW_MAX 4096

struct zc_hub_options {
    struct zc_options shared;
    bool local;
    const char *mailbox;      /* NULL: memory */
    struct zc_hub_config hub; /* limits, heartbeat, trace, fsync, segment size */
    /* the tunnel */
    const char *token_out, *allow_file, *region; /* NULL: not given */
    bool print_token, no_psk, open;
    struct zc_key *allow; /* of --allow */
    uint32_t allow_count;
    uint64_t clients_max;
};

/* Returns ZC_OPTIONS_RUN, or the exit code when there is nothing to run (help, version, a bad
 * option: said on `log`). */
int zc_hub_options_parse(int argc, char **argv, struct zc_logsink *log,
                         struct zc_hub_options *ret_options);
void zc_hub_options_done(struct zc_hub_options *options);

#endif
