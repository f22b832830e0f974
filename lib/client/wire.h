/*
 * Bytes of one connection: whole frames in, bytes out, each with a deadline on the monotonic clock.
 * Private to lib/client.
 */
#ifndef ZC_CLIENT_WIRE_H
#define ZC_CLIENT_WIRE_H

#include "client/bus.h"

#define ZC_WIRE_FOREVER INT64_MAX

int64_t zc_wire_now_ms(void);
/* now + ms, or ZC_WIRE_FOREVER when ms is negative. */
int64_t zc_wire_deadline(int64_t ms);
/* Sends all bytes. While the hub does not take them, what it sends is read (and kept undecoded), so
 * that two full buffers never wait for each other. A hub that has closed is no error here: reading
 * tells what it said before. Returns 0, ZMQCAT_TIMEOUT, ZMQCAT_STOPPED or ZMQCAT_FAILED; when it
 * was not 0 the connection is closed, because half a frame may be out. */
int zc_wire_send(struct zmqcat *bus, struct zc_slice bytes, int64_t deadline_ms);
/* Waits for the next whole frame; a deadline of 0 does not wait. *ret_json stays valid, and may be
 * overwritten, until the next call of zc_wire_*. Returns 0, ZMQCAT_TIMEOUT, ZMQCAT_STOPPED,
 * ZMQCAT_CLOSED, ZMQCAT_PROTOCOL or ZMQCAT_FAILED. */
int zc_wire_frame(struct zmqcat *bus, int64_t deadline_ms, uint8_t **ret_json, size_t *ret_len);
/* Waits on one descriptor, as poll does, in the way that the caller of the library wants it. */
int zc_wire_poll(const struct zmqcat *bus, struct pollfd *fd, int timeout_ms);
/* Closes the socket; what was received stays. */
void zc_wire_close(struct zmqcat *bus);

#endif
