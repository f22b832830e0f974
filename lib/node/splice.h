/*
 * One local byte stream of the host tied to one TCP connection of the tunnel: a spoke's client and
 * its bus connection, or a forwarded port and the local service. Bytes, half-closes and resets pass
 * both ways; a side that does not read holds the other up.
 *
 * The host drives it as it drives a session: input, wants_input, output, sent, and the events
 * ZC_HUB_SPLICE_OUTPUT, ZC_HUB_SPLICE_EOF, ZC_HUB_SPLICE_CLOSE of zc_hub_event.
 */
#ifndef ZC_NODE_SPLICE_H
#define ZC_NODE_SPLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/time.h"

struct zc_splice;

#define ZC_SPLICE_SLICES 3 /* the most that zc_splice_output gives */

/* The host's pointer, told in events. */
void zc_splice_set_data(struct zc_splice *s, void *data);
/* Bytes from the local side; all are taken. */
void zc_splice_input(struct zc_splice *s, struct zc_now now, const uint8_t *data, size_t len);
/* The local side sends nothing more. */
void zc_splice_eof(struct zc_splice *s, struct zc_now now);
/* False: leave the bytes where they are until a ZC_HUB_SPLICE_OUTPUT event. */
bool zc_splice_wants_input(const struct zc_splice *s);
/* What is to be written to the local side, without consuming it; valid until the next call with
 * this hub. Returns how many slices. */
size_t zc_splice_output(const struct zc_splice *s, struct zc_slice ret_slices[ZC_SPLICE_SLICES]);
/* The local side took n bytes of it. */
void zc_splice_sent(struct zc_splice *s, struct zc_now now, size_t n);
/* The local stream is closed; the pointer is dead after this. reset: it failed, or (of a forwarded
 * port that cannot be dialled) it never stood: false then, the peer sees an end, or a reset when it
 * sent something. */
void zc_splice_detach(struct zc_splice *s, struct zc_now now, bool reset);

#endif
