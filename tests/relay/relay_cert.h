/* The relay's certificate, and the map that names it. */
#ifndef ZC_TESTS_RELAY_CERT_H
#define ZC_TESTS_RELAY_CERT_H

#include <openssl/ssl.h>
#include <stdint.h>

/*
 * Loads DIR/relay.pem, or makes it for this IPv4 address; writes DIR/map.json. NULL: an OpenSSL
 * call failed.
 */
SSL_CTX *relay_cert_open(const char *dir, const char *address, uint16_t port);

#endif
