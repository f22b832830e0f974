/*
 * Round-trip time and retransmission timeout (RFC 6298), in microseconds.
 */
#ifndef ZC_TUNNEL_TCP_RTT_H
#define ZC_TUNNEL_TCP_RTT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define ZC_TCP_RTO_INITIAL_MS 1000
#define ZC_TCP_RTO_MIN_MS 200
#define ZC_TCP_RTO_MAX_MS 60000

struct zc_tcp_rtt {
    int64_t smooth_us, var_us; /* 0 and 0: no sample yet */
    bool known;
    uint8_t backoff; /* doublings of the timeout */
};

/* A measured round trip; negative ones count as 0. */
void zc_tcp_rtt_sample(struct zc_tcp_rtt *r, int64_t rtt_us);
/* The timeout with its doublings. */
int64_t zc_tcp_rtt_timeout_ms(const struct zc_tcp_rtt *r);
/* A timeout came: double. */
void zc_tcp_rtt_backoff(struct zc_tcp_rtt *r);

#endif
