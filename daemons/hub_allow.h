/* Which spokes may come in: --allow and --allow-file together. */
#ifndef ZC_DAEMONS_HUB_ALLOW_H
#define ZC_DAEMONS_HUB_ALLOW_H

#include "hub_options.h"

/* Reads the file anew. *ret_keys is malloc's; 0 or the exit code after it said why. */
int zc_hub_allow_load(const struct zc_hub_options *o, struct zc_logsink *log,
                      struct zc_key **ret_keys, uint32_t *ret_count);

#endif
