/* What a connection belongs to in the core, a session or a splice, behind one face. */
#ifndef ZC_HOST_CONN_CORE_H
#define ZC_HOST_CONN_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "host/conn.h"

#define ZC_CONN_CORE_SLICES 64

/* The core still knows it. */
bool zc_conn_core_attached(const struct zc_conn *c);
/* The core forgets it. reset: the stream of a splice broke off. */
void zc_conn_core_detach(struct zc_conn *c, bool reset);
/* The rest only while attached, with the meaning of the functions of node/hub.h. */
bool zc_conn_core_wants_input(const struct zc_conn *c);
void zc_conn_core_input(struct zc_conn *c, uint8_t *data, size_t len);
void zc_conn_core_input_eof(struct zc_conn *c);
size_t zc_conn_core_output(struct zc_conn *c, struct zc_slice *ret_slices);
void zc_conn_core_sent(struct zc_conn *c, size_t n);

#endif
