/* Certificates made on the spot, and a TLS server between memory buffers, all of libcrypto. */
#ifndef ZC_TESTS_UNIT_TLS_SERVER_H
#define ZC_TESTS_UNIT_TLS_SERVER_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <unistd.h>

#include "test.h"

#define CERT_NOW INT64_C(1800000000) /* the time for which the tests judge */
#define CERT_DAY INT64_C(86400)

struct cert {
    X509 *x509;
    EVP_PKEY *key;
};

static inline void cert_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    CHECK(e != NULL && X509_add_ext(x, e, -1) == 1);
    X509_EXTENSION_free(e);
}

/* issuer NULL: self-signed. san like "DNS:a.example" or NULL. Valid from..till around CERT_NOW. */
static inline struct cert cert_make(const char *cn, const char *san, const struct cert *issuer,
                                    bool ca, bool ed25519, int64_t from_s, int64_t till_s)
{
    static long serial = 1;
    struct cert c = {X509_new(), ed25519 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
                                         : EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256")};
    const struct cert *by = issuer != NULL ? issuer : &c;
    CHECK(c.x509 != NULL && c.key != NULL);
    X509_set_version(c.x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x509), serial++);
    ASN1_TIME_set(X509_getm_notBefore(c.x509), (time_t)(CERT_NOW + from_s));
    ASN1_TIME_set(X509_getm_notAfter(c.x509), (time_t)(CERT_NOW + till_s));
    X509_set_pubkey(c.x509, c.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c.x509), "CN", MBSTRING_UTF8,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(c.x509, X509_get_subject_name(by->x509));
    if (ca)
        cert_extension(c.x509, by->x509, NID_basic_constraints, "critical,CA:TRUE");
    if (san != NULL)
        cert_extension(c.x509, by->x509, NID_subject_alt_name, san);
    CHECK(X509_sign(c.x509, by->key,
                    EVP_PKEY_get_id(by->key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256()) > 0);
    return c;
}

static inline void cert_free(struct cert *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
}

/* "sha256-raw:<hex>" */
static inline void cert_pin(const struct cert *c, char ret_text[80])
{
    uint8_t hash[32];
    unsigned len = 32;
    CHECK(X509_digest(c->x509, EVP_sha256(), hash, &len) == 1);
    memcpy(ret_text, "sha256-raw:", 11);
    for (int i = 0; i < 32; i++)
        sprintf(ret_text + 11 + 2 * i, "%02x", hash[i]);
}

/* A file of the certificate alone; the name is put into path. */
static inline void cert_file(const struct cert *c, char path[])
{
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    CHECK(f != NULL && PEM_write_X509(f, c->x509) == 1);
    fclose(f);
}

struct server {
    SSL_CTX *ctx;
    SSL *ssl;
};

/* Shows leaf and what else is there (NULL ends it). */
static inline struct server server_make(const struct cert *leaf, const struct cert *more1,
                                        const struct cert *more2, int version)
{
    struct server s = {.ctx = SSL_CTX_new(TLS_server_method())};
    SSL_CTX_set_min_proto_version(s.ctx, version);
    SSL_CTX_set_max_proto_version(s.ctx, version);
    CHECK(SSL_CTX_use_certificate(s.ctx, leaf->x509) == 1);
    CHECK(SSL_CTX_use_PrivateKey(s.ctx, leaf->key) == 1);
    if (more1 != NULL)
        CHECK(SSL_CTX_add1_chain_cert(s.ctx, more1->x509) == 1);
    if (more2 != NULL)
        CHECK(SSL_CTX_add1_chain_cert(s.ctx, more2->x509) == 1);
    s.ssl = SSL_new(s.ctx);
    SSL_set_bio(s.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(s.ssl);
    return s;
}

static inline void server_free(struct server *s)
{
    SSL_free(s->ssl);
    SSL_CTX_free(s->ctx);
}

#endif
