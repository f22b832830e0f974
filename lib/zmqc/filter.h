/*
 * A filter over `from`: a comma list, read from left to right (docs/man/zmqc.5, FILTERS).
 *
 *   name allows (and is excluded no more)   !name excludes   . or ~ my own name
 *   * forgets all so far   ! forgets exclusions
 *
 * What is excluded is refused first; then an empty list of the allowed allows all. Names are kept
 * as hashes under the broker's secret key, so a filter is one small block, equal filters are equal
 * bytes, and matching a message needs its hash only.
 */
#ifndef ZC_ZMQC_FILTER_H
#define ZC_ZMQC_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define ZC_FILTER_NAMES_MAX 1024

struct zc_filter {
    uint32_t allow, deny; /* counts; both lists sorted */
    uint64_t names[];     /* the allowed, then the excluded */
};

/* The hash that stands for a name. */
uint64_t zc_filter_hash(const uint8_t key[16], struct zc_slice name);
/* Reads text; self is what . and ~ mean. *ret_filter is NULL when it allows all; else free() it.
 * ZC_EINVAL: more than ZC_FILTER_NAMES_MAX names; ZC_ENOMEM. */
ZC_MUST_CHECK int zc_filter_new(const uint8_t key[16], struct zc_slice text, struct zc_slice self,
                                struct zc_filter **ret_filter);
/* NULL allows all. O(log names). */
bool zc_filter_allows(const struct zc_filter *f, uint64_t from);
bool zc_filter_equal(const struct zc_filter *a, const struct zc_filter *b);

#endif
