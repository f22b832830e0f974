/* What the files of TLS share; see tls.h. */
#ifndef ZC_HOST_TLS_PRIV_H
#define ZC_HOST_TLS_PRIV_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "host/tls.h"

struct zc_tls {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in;  /* owned by ssl */
    BIO *out; /* owned by ssl */
    bool ready;
    bool failed;
    bool insecure;
    bool literal; /* host is an IP address */
    bool pinned;
    uint8_t pin[32];
    int64_t unix_s;
    char host[256];
    char name[256]; /* that the certificate must have, when it is not the host's */
    char why[ZC_TLS_WHY_MAX];
};

/* For SSL_CTX_set_cert_verify_callback; arg: the zc_tls. On refusal why is set. */
int zc_tls_judge(X509_STORE_CTX *store, void *arg);

#endif
