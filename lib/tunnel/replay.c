/* The ring of seen counters: see replay.h. */
#include "tunnel/replay.h"

#define WORD_BITS 64

bool zc_replay_accept(struct zc_replay *r, uint64_t counter, uint64_t limit)
{
    if (counter >= limit)
        return false;
    uint64_t word = counter / WORD_BITS;
    if (counter > r->greatest) {
        uint64_t last = r->greatest / WORD_BITS;
        uint64_t steps = word - last;
        if (steps > ZC_REPLAY_WORDS)
            steps = ZC_REPLAY_WORDS;
        for (uint64_t i = 1; i <= steps; i++)
            r->ring[(last + i) % ZC_REPLAY_WORDS] = 0;
        r->greatest = counter;
    } else if (r->greatest - counter > ZC_REPLAY_WINDOW) {
        return false;
    }
    uint64_t bit = UINT64_C(1) << counter % WORD_BITS;
    uint64_t *at = &r->ring[word % ZC_REPLAY_WORDS];
    if ((*at & bit) != 0)
        return false;
    *at |= bit;
    return true;
}
