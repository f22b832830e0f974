/* What the files of one TCP connection share. */
#ifndef ZC_TUNNEL_TCP_PRIV_H
#define ZC_TUNNEL_TCP_PRIV_H

#include "tunnel/tcp.h"

#define ZC_TCP_REPLY_MS                                                                            \
    100 /* one answer to a misplaced segment each, beyond ZC_TCP_REPLY_BURST                       \
         */
#define ZC_TCP_REPLY_BURST 10
#define ZC_TCP_IDLE_MS 10000

/* Ends it; reason must not be ZC_TCP_OPEN. */
void zc_tcp_close(struct zc_tcp *t, enum zc_tcp_reason reason);
/* Both sides have closed and ours went first. */
void zc_tcp_time_wait(struct zc_tcp *t, struct zc_mono now);
/* Our FIN is acknowledged and the peer's has not come. */
void zc_tcp_fin_wait(struct zc_tcp *t, struct zc_mono now);
/* The reset that ends an open connection. */
struct zc_tcp_segment zc_tcp_reset(const struct zc_tcp *t);
/* Memory moved: empty queues give it back some time later. */
void zc_tcp_active(struct zc_tcp *t, struct zc_mono now);

static inline uint32_t zc_tcp_stamp(const struct zc_tcp *t, struct zc_mono now)
{
    return (uint32_t)(now.ns / ZC_NS_PER_MS) + t->stamp_offset;
}

#endif
