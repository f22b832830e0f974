/* Retransmission timeout (RFC 6298), see tcp_rtt.h. */
#include "tunnel/tcp_rtt.h"

enum { GRANULE_US = 1000, BACKOFF_MAX = 16 };

void zc_tcp_rtt_sample(struct zc_tcp_rtt *r, int64_t rtt_us)
{
    if (rtt_us < 0)
        rtt_us = 0;
    r->backoff = 0;
    if (!r->known) {
        r->known = true;
        r->smooth_us = rtt_us;
        r->var_us = rtt_us / 2;
        return;
    }
    int64_t off = rtt_us - r->smooth_us;
    r->var_us += ((off < 0 ? -off : off) - r->var_us) / 4;
    r->smooth_us += off / 8;
}

int64_t zc_tcp_rtt_timeout_ms(const struct zc_tcp_rtt *r)
{
    int64_t ms = ZC_TCP_RTO_INITIAL_MS;
    if (r->known) {
        int64_t var = 4 * r->var_us;
        ms = (r->smooth_us + (var > GRANULE_US ? var : GRANULE_US) + 999) / 1000;
    }
    if (ms < ZC_TCP_RTO_MIN_MS)
        ms = ZC_TCP_RTO_MIN_MS;
    for (int i = 0; i < r->backoff && ms < ZC_TCP_RTO_MAX_MS; i++)
        ms *= 2;
    return ms < ZC_TCP_RTO_MAX_MS ? ms : ZC_TCP_RTO_MAX_MS;
}

void zc_tcp_rtt_backoff(struct zc_tcp_rtt *r)
{
    if (r->backoff < BACKOFF_MAX)
        r->backoff++;
}
