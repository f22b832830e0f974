/* What the starts of the daemons have in common. Each says why on the log before it fails. */
#ifndef ZC_DAEMONS_START_H
#define ZC_DAEMONS_START_H

#include <stdbool.h>
#include <stdint.h>

#include "host/host.h"
#include "host/relaymap.h"
#include "options.h"

/* Readies process and log; returns the limit of open files. */
int zc_start_process(struct zc_logsink *log);
/* The options are known: log level, limits, signals held until the loop takes them. 0 or the exit
 * code. */
int zc_start_options(const struct zc_options *o, int files_max);
/* Random bytes for the core. 0 or the exit code. */
int zc_start_seed(struct zc_logsink *log, uint8_t ret_seed[32]);
/* "out of memory"; returns the exit code. */
int zc_start_no_memory(struct zc_logsink *log);
/* Prepares the loop; h is to be done() afterwards in any case. 0 or the exit code. */
int zc_start_loop(struct zc_host *h, const struct zc_host_config *config);

/* Looks for the relays of a region (0: any) in the map that the options name. */
void zc_start_relays(struct zc_host *h, const struct zc_options *o, bool server, int64_t region,
                     zc_relaymap_done_fn done, void *arg);
/* What the map has to say beside its result. */
void zc_start_map_says(struct zc_host *h, const struct zc_relaymap_result *r);

#endif
