/*
 * Deliveries of subscriptions that came while another call waited: a bounded queue. Private to
 * lib/client.
 */
#ifndef ZC_CLIENT_KEPT_H
#define ZC_CLIENT_KEPT_H

#include "client/bus.h"

/* A copy of a frame's JSON, made before decoding overwrites it; NULL when memory is refused. */
struct zc_bus_kept *zc_kept_copy(const uint8_t *json, size_t len);
/* Owns k from here on. Over the bound it is lost and counted, as in the hub for a subscriber that
 * reads too slowly: the answer that is waited for must be reached. */
void zc_kept_push(struct zmqcat *bus, struct zc_bus_kept *k);
/* The oldest; valid until the next call of this function. The queue is not empty. */
struct zc_bus_kept *zc_kept_pop(struct zmqcat *bus);
bool zc_kept_full(const struct zmqcat *bus);
void zc_kept_clear(struct zmqcat *bus);

#endif
