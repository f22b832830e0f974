/*
 * When to dial a relay, and which one: the nodes of a region in turn, then a pause that grows with
 * the failures, for ever.
 *
 *   IDLE --due--> DIALLING node 0 --failed--> node 1 ... --failed--> IDLE (pause)
 *                    | up                                              ^
 *                    v                                                 |
 *                   UP ----------------- lost -------------------------+
 *
 * The pause is n * n * 10 ms, at most 5 s, times 0.5 to 1.5, from the start of a dial that failed;
 * n counts failures since a connection last stood for 10 s, so that a relay which takes logins and
 * hangs up is not hammered. It stays when the network changes, or one that changes each second
 * would have it dialled ten times as often; but not above what makes a second.
 */
#ifndef ZC_TUNNEL_DERP_DIAL_H
#define ZC_TUNNEL_DERP_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/time.h"
#include "tunnel/derpmap.h"

#define ZC_DERP_DIAL_NODE_MS 1500   /* for the TCP connection to one node */
#define ZC_DERP_DIAL_STAGGER_MS 200 /* head start of the family that is believed to work */

enum zc_derp_dial_state { ZC_DERP_DIAL_IDLE, ZC_DERP_DIAL_DIALLING, ZC_DERP_DIAL_UP };

struct zc_derp_dial {
    const struct zc_derpmap_node *nodes;
    uint32_t nodes_count;
    enum zc_derp_dial_state state;
    uint32_t node;     /* the one that is dialled or up */
    uint32_t failures; /* rounds */
    bool v6_works;
    bool hold; /* at was set by the relay */
    struct zc_mono at;
    struct zc_mono began_at, up_at;
};

/* One family of a node. */
struct zc_derp_dial_way {
    bool use;
    const char *address; /* IP literal, or NULL: resolve the node's host */
    uint32_t delay_ms;
};

struct zc_derp_dial_try {
    const struct zc_derpmap_node *node;
    struct zc_derp_dial_way v4;
    struct zc_derp_dial_way v6;
};

/* nodes must outlive it; STUN-only ones are passed over. Due at once. */
void zc_derp_dial_init(struct zc_derp_dial *d, const struct zc_derpmap_node *nodes,
                       uint32_t nodes_count, struct zc_mono now);
/* When zc_derp_dial_next has something; ZC_NEVER while dialling or up, or without any relay. */
struct zc_mono zc_derp_dial_deadline(const struct zc_derp_dial *d);
/* True: dial this now, then say up or failed. */
bool zc_derp_dial_next(struct zc_derp_dial *d, struct zc_mono now,
                       struct zc_derp_dial_try *ret_try);
/* Logged in; v6: over IPv6. */
void zc_derp_dial_up(struct zc_derp_dial *d, struct zc_mono now, bool v6);
/* The try failed, or the connection that was up is lost. */
void zc_derp_dial_failed(struct zc_derp_dial *d, struct zc_mono now, struct zc_rng *rng);
/* The relay restarts: do not dial before in_ms have passed (bounded to a minute). */
void zc_derp_dial_restarting(struct zc_derp_dial *d, struct zc_mono now, uint32_t in_ms);
/* The network changed: the next dial is due at once, unless the relay set its time, and those after
 * it in about a second. */
void zc_derp_dial_hurry(struct zc_derp_dial *d, struct zc_mono now);
/* Likewise, but at a random instant within spread_ms (more than 0): when many clients have the same
 * reason. */
void zc_derp_dial_soon(struct zc_derp_dial *d, struct zc_mono now, struct zc_rng *rng,
                       uint32_t spread_ms);

#endif
