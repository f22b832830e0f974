/*
 * TLS to a relay: an OpenSSL 3 client between memory buffers. No sockets: ciphertext comes in and
 * goes out by argument, as for the state machines of the core.
 *
 * How the relay's certificate is judged follows the node's CertName and InsecureForTests:
 *
 *   ""                chain to the system's roots, name = host
 *   "some.name"       chain, name = CertName instead of host
 *   "sha256-raw:HEX"  exactly one certificate, its SHA-256 equal to HEX, its name the host, today
 *                     within its dates; no chain. Those whose common name begins with "derpkey" are
 *                     the relay's notes and do not count
 *   insecure          nothing is judged but what CertName, when there, demands as above
 *
 * OpenSSL is initialised when the first zc_tls is made, not before.
 * Deliberately absent: server side, resumption, ALPN, client certificates, close notices (frames of
 * DERP and HTTP tell their own end).
 */
#ifndef ZC_HOST_TLS_H
#define ZC_HOST_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct zc_tls;

#define ZC_TLS_WHY_MAX 256

struct zc_tls_config {
    const char *host; /* DNS name or IP literal: SNI (names only) and verified name */
    const char *cert; /* CertName, "" or NULL: none */
    bool insecure;
    const char *roots; /* PEM file to trust instead of the system's, or NULL */
    int64_t unix_s;    /* the time for which certificates are judged; 0: the machine's clock */
};

/* ZC_EINVAL: a pin that is none, a host that cannot be one; why says so. */
ZC_MUST_CHECK int zc_tls_new(const struct zc_tls_config *config, struct zc_tls **ret_tls,
                             char ret_why[ZC_TLS_WHY_MAX]);
void zc_tls_free(struct zc_tls *tls);

/* Ciphertext from the relay. 0, ZC_ENOMEM. Call zc_tls_read and zc_tls_output after it. */
ZC_MUST_CHECK int zc_tls_input(struct zc_tls *tls, const uint8_t *data, size_t len);
/* Ciphertext for the relay: copies at most cap bytes; 0 when there is none. */
size_t zc_tls_output(struct zc_tls *tls, uint8_t *ret_data, size_t cap);
/* Runs the handshake and reads plaintext. Returns its length; 0: none now; ZC_ECLOSED: the relay
 * ended the stream in order; ZC_EIO: it failed, see zc_tls_why. */
ZC_MUST_CHECK int zc_tls_read(struct zc_tls *tls, uint8_t *ret_data, size_t cap);
/* Plaintext to send; takes all of it once the handshake is done (ZC_EAGAIN before that). Stop when
 * zc_tls_pending is large. */
ZC_MUST_CHECK int zc_tls_write(struct zc_tls *tls, const uint8_t *data, size_t len);
/* The handshake is done and the certificate accepted. */
bool zc_tls_ready(const struct zc_tls *tls);
/* Bytes that zc_tls_output would give. */
size_t zc_tls_pending(const struct zc_tls *tls);
/* After ZC_EIO: one line, what failed, why, what to do. Never NULL. */
const char *zc_tls_why(const struct zc_tls *tls);

#endif
