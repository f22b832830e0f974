/* The command line of zmqcat-hub (docs/man/zmqcat-hub.8). */
#ifndef ZC_DAEMONS_HUB_OPTIONS_H
#define ZC_DAEMONS_HUB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"
#include "host/logsink.h"
#include "host/unixsock.h"
#include "node/hub.h"

#define ZC_HUB_OPTIONS_LISTEN_MAX 28
#define ZC_HUB_OPTIONS_NAME_MAX 64
#define ZC_HUB_OPTIONS_RUN (-1)

struct zc_hub_options {
    struct zc_address listen[ZC_HUB_OPTIONS_LISTEN_MAX];
    size_t listen_count;
    struct zc_address control;
    bool has_control;
    bool local;
    const char *mailbox;                /* NULL: memory */
    char name[ZC_HUB_OPTIONS_NAME_MAX]; /* escaped, cut; empty when not given */
    int log_level;
    struct zc_unixsock_options socket; /* mode and group of bus sockets */
    struct zc_hub_config hub;          /* limits, heartbeat, trace, fsync, segment size */
};

/* Returns ZC_HUB_OPTIONS_RUN, or the exit code when there is nothing to run (help, version, a bad
 * option: said on `log`). */
int zc_hub_options_parse(int argc, char **argv, struct zc_logsink *log,
                         struct zc_hub_options *ret_options);

#endif
