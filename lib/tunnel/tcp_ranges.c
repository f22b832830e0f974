/* Sorted sequence ranges, see tcp_ranges.h. */
#include "tunnel/tcp_ranges.h"

#include <string.h>

#include "base/check.h"

bool zc_tcp_ranges_add(struct zc_tcp_ranges *s, struct zc_tcp_range r)
{
    ZC_ASSERT(zc_tcp_seq_lt(r.start, r.end));
    uint32_t first = 0;
    while (first < s->count && zc_tcp_seq_lt(s->at[first].end, r.start))
        first++;
    uint32_t last = first; /* the ranges [first, last) meet r */
    while (last < s->count && zc_tcp_seq_le(s->at[last].start, r.end)) {
        r.start = zc_tcp_seq_min(r.start, s->at[last].start);
        r.end = zc_tcp_seq_max(r.end, s->at[last].end);
        last++;
    }
    if (first == last && s->count == ZC_TCP_RANGES_MAX)
        return false;
    memmove(&s->at[first + 1], &s->at[last], (s->count - last) * sizeof(s->at[0]));
    s->count = s->count - (last - first) + 1;
    s->at[first] = r;
    return true;
}

void zc_tcp_ranges_cut(struct zc_tcp_ranges *s, uint32_t seq)
{
    uint32_t gone = 0;
    while (gone < s->count && zc_tcp_seq_le(s->at[gone].end, seq))
        gone++;
    s->count -= gone;
    if (gone > 0)
        memmove(&s->at[0], &s->at[gone], s->count * sizeof(s->at[0]));
    if (s->count > 0)
        s->at[0].start = zc_tcp_seq_max(s->at[0].start, seq);
}

const struct zc_tcp_range *zc_tcp_ranges_find(const struct zc_tcp_ranges *s, uint32_t seq)
{
    for (uint32_t i = 0; i < s->count && zc_tcp_seq_le(s->at[i].start, seq); i++) {
        if (zc_tcp_seq_lt(seq, s->at[i].end))
            return &s->at[i];
    }
    return NULL;
}

uint32_t zc_tcp_ranges_bytes(const struct zc_tcp_ranges *s)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < s->count; i++)
        sum += s->at[i].end - s->at[i].start;
    return sum;
}
