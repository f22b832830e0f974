/* Token bucket, for log lines and the like. */
#ifndef ZC_BASE_RATE_H
#define ZC_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct zc_rate {
    int64_t interval_ms;    /* one token each */
    int64_t burst;          /* most tokens kept */
    struct zc_mono full_at; /* instant at which the bucket is full again */
    /* Refusals since the last grant. A grant sets it to 0, so read it before the call. */
    uint64_t suppressed;
};

void zc_rate_init(struct zc_rate *r, int64_t interval_ms, int64_t burst);
/* Takes a token; false (and counted in suppressed) when none is left. */
bool zc_rate_allow(struct zc_rate *r, struct zc_mono now);

#endif
