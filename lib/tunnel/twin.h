/*
 * Signs that two processes use one key. The relay gives the packets for a key to the process that
 * sent last, so each takes the other's, and both sessions limp. One process with a key always uses
 * its newest session; what may look otherwise (packets that were long on their way when it started
 * again or came over another network) comes in one burst. So it takes several signs apart from each
 * other, and an episode is told once.
 */
#ifndef ZC_TUNNEL_TWIN_H
#define ZC_TUNNEL_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* A session counts as the only one that is used when it was used for so long. */
#define ZC_TWIN_SETTLED_MS 1000
#define ZC_TWIN_APART_MS 5000   /* signs closer to each other are one */
#define ZC_TWIN_SIGNS 3         /* so many ... */
#define ZC_TWIN_FOR_MS 600000   /* within this time are enough */
#define ZC_TWIN_OVER_MS 3600000 /* an episode is over after this time without a sign */

/* All zero: no sign yet. */
struct zc_twin {
    uint32_t signs;
    struct zc_mono first, last;
    bool told;
};

/* One more sign. True: it is to be told now. */
bool zc_twin_sign(struct zc_twin *t, struct zc_now now);

#endif
