/*
 * Keys that a server refused, so that its administrator hears of each, now and then. They cost a
 * fixed room and a bounded number of lines, however many strangers knock.
 */
#ifndef ZC_TUNNEL_REFUSED_H
#define ZC_TUNNEL_REFUSED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rate.h"
#include "base/time.h"
#include "crypto/secret.h"

#define ZC_REFUSED_KEYS 64
#define ZC_REFUSED_EVERY_MS 900000 /* between two lines about one key */
#define ZC_REFUSED_BURST 20        /* lines at once, all keys together */
#define ZC_REFUSED_LINE_MS 30000   /* and one more for each of these */

struct zc_refused {
    struct {
        struct zc_key key;
        struct zc_mono told_at;
        bool due;
    } at[ZC_REFUSED_KEYS];
    uint32_t len;
    struct zc_rate rate;
};

void zc_refused_init(struct zc_refused *r);
/* The key was refused. The one that was told longest ago makes room. */
void zc_refused_note(struct zc_refused *r, struct zc_mono now, const struct zc_key *key);
/* A key that is to be told; false: none. */
bool zc_refused_next(struct zc_refused *r, struct zc_key *ret_key);

#endif
