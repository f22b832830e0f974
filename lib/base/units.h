/* Durations and sizes as people write them: 5s, 300ms, 1m30s, 8m, 64k. */
#ifndef ZC_BASE_UNITS_H
#define ZC_BASE_UNITS_H

#include <stdint.h>

#include "base/err.h"

/* A duration: numbers (fractions allowed) each with a unit of ms, s, m, h or d, or one bare number
 * of seconds; a leading minus makes it negative. Rounded to whole ms, away from zero. ZC_EINVAL: no
 * duration, or beyond ±100 years. */
ZC_MUST_CHECK int zc_units_duration_ms(const char *text, int64_t *ret_ms);
/* A size in bytes: a whole number with nothing, b, k, m, g (powers of 1024; case does not matter; a
 * trailing b, ib is fine). ZC_EINVAL: no size, or beyond INT64_MAX. */
ZC_MUST_CHECK int zc_units_bytes(const char *text, uint64_t *ret_bytes);
/* A plain whole number, digits only. ZC_EINVAL: anything else, or beyond UINT64_MAX. */
ZC_MUST_CHECK int zc_units_count(const char *text, uint64_t *ret_count);

#endif
