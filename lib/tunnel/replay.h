/*
 * Which packet counters of a session were seen (RFC 6479): a ring of bits that moves in whole
 * words.
 */
#ifndef ZC_TUNNEL_REPLAY_H
#define ZC_TUNNEL_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define ZC_REPLAY_WORDS 128
/* One word is always being cleared, so 64 bits less than the ring. */
#define ZC_REPLAY_WINDOW ((ZC_REPLAY_WORDS - 1) * 64)

/* All zero is a fresh one. */
struct zc_replay {
    uint64_t greatest;
    uint64_t ring[ZC_REPLAY_WORDS];
};

/* Marks counter as seen. False when it was seen before, is more than the window behind the
 * greatest, or is limit or more. Call it only for packets that proved authentic. */
bool zc_replay_accept(struct zc_replay *r, uint64_t counter, uint64_t limit);

#endif
