/* TLS between memory buffers; see tls.h. */
#include "host/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/tls_priv.h"
#include "tunnel/derpmap.h"

static int tls_refuse(char ret_why[ZC_TLS_WHY_MAX], int err, const char *text)
{
    snprintf(ret_why, ZC_TLS_WHY_MAX, "%s", text);
    return err;
}

static bool tls_is_literal(const char *host)
{
    uint8_t address[16];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static int tls_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool tls_pin_parse(const char *hex, uint8_t ret_pin[32])
{
    if (strlen(hex) != 64)
        return false;
    for (int i = 0; i < 32; i++) {
        int high = tls_hex_digit(hex[2 * i]), low = tls_hex_digit(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_pin[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Copies what is asked of the relay, before anything of OpenSSL is touched. */
static int tls_configure(struct zc_tls *t, const struct zc_tls_config *c,
                         char ret_why[ZC_TLS_WHY_MAX])
{
    static const char raw[] = "sha256-raw:";
    const char *cert = c->cert != NULL ? c->cert : "";
    if (c->host == NULL || c->host[0] == '\0' || strlen(c->host) >= sizeof(t->host) ||
        !zc_derpmap_host_valid(c->host))
        return tls_refuse(ret_why, ZC_EINVAL, "the relay's host name is none");
    snprintf(t->host, sizeof(t->host), "%s", c->host);
    t->literal = tls_is_literal(c->host);
    t->insecure = c->insecure;
    t->unix_s = c->unix_s != 0 ? c->unix_s : (int64_t)time(NULL);
    if (strncmp(cert, raw, sizeof(raw) - 1) == 0) {
        t->pinned = tls_pin_parse(cert + sizeof(raw) - 1, t->pin);
        return t->pinned ? 0
                         : tls_refuse(ret_why, ZC_EINVAL,
                                      "the relay's CertName is no pin: \"sha256-raw:\" wants 64 "
                                      "hex digits after it");
    }
    if (cert[0] != '\0' && (strlen(cert) >= sizeof(t->name) || !zc_derpmap_host_valid(cert)))
        return tls_refuse(ret_why, ZC_EINVAL, "the relay's CertName is neither a name nor a pin");
    snprintf(t->name, sizeof(t->name), "%s", cert);
    return 0;
}

/* Roots, and the name that the chain must end in. Not for pins. */
static bool tls_trust(struct zc_tls *t, const char *roots)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
    if (t->pinned || (t->insecure && t->name[0] == '\0'))
        return true;
    if (roots != NULL ? SSL_CTX_load_verify_file(t->ctx, roots) != 1
                      : SSL_CTX_set_default_verify_paths(t->ctx) != 1)
        return false;
    X509_VERIFY_PARAM_set_time(param, (time_t)t->unix_s);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (t->name[0] != '\0')
        return tls_is_literal(t->name) ? X509_VERIFY_PARAM_set1_ip_asc(param, t->name) == 1
                                       : X509_VERIFY_PARAM_set1_host(param, t->name, 0) == 1;
    return t->literal ? X509_VERIFY_PARAM_set1_ip_asc(param, t->host) == 1
                      : X509_VERIFY_PARAM_set1_host(param, t->host, 0) == 1;
}

static bool tls_open(struct zc_tls *t, const char *roots)
{
    t->ctx = SSL_CTX_new(TLS_client_method());
    if (t->ctx == NULL || SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION) != 1)
        return false;
    SSL_CTX_set_options(t->ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(t->ctx, zc_tls_judge, t);
    t->ssl = SSL_new(t->ctx);
    if (t->ssl == NULL || !tls_trust(t, roots))
        return false;
    if (!t->literal && SSL_set_tlsext_host_name(t->ssl, t->host) != 1)
        return false;
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (in == NULL || out == NULL) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    BIO_set_mem_eof_return(in, -1);
    BIO_set_mem_eof_return(out, -1);
    SSL_set_bio(t->ssl, in, out);
    t->in = in;
    t->out = out;
    SSL_set_connect_state(t->ssl);
    return true;
}

int zc_tls_new(const struct zc_tls_config *config, struct zc_tls **ret_tls,
               char ret_why[ZC_TLS_WHY_MAX])
{
    struct zc_tls *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return tls_refuse(ret_why, ZC_ENOMEM, "memory is short");
    int err = tls_configure(t, config, ret_why);
    if (err != 0)
        goto fail;
    ERR_clear_error();
    if (!tls_open(t, config->roots)) {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        snprintf(ret_why, ZC_TLS_WHY_MAX, "TLS cannot be set up: %s",
                 reason != NULL ? reason : "memory is short");
        err = ZC_EINVAL;
        goto fail;
    }
    *ret_tls = t;
    return 0;
fail:
    ERR_clear_error();
    zc_tls_free(t);
    return err;
}

void zc_tls_free(struct zc_tls *t)
{
    if (t == NULL)
        return;
    SSL_free(t->ssl);
    SSL_CTX_free(t->ctx);
    free(t);
}

int zc_tls_input(struct zc_tls *t, const uint8_t *data, size_t len)
{
    while (len > 0) {
        int part = len < INT_MAX ? (int)len : INT_MAX;
        if (BIO_write(t->in, data, part) != part)
            return ZC_ENOMEM;
        data += part;
        len -= (size_t)part;
    }
    return 0;
}

size_t zc_tls_output(struct zc_tls *t, uint8_t *ret_data, size_t cap)
{
    int n = BIO_read(t->out, ret_data, cap < INT_MAX ? (int)cap : INT_MAX);
    return n > 0 ? (size_t)n : 0;
}

/* Keeps the first reason; what the certificate's judge said comes before what OpenSSL says. */
static int tls_fail(struct zc_tls *t)
{
    unsigned long error = ERR_peek_error();
    const char *reason = ERR_reason_error_string(error);
    t->failed = true;
    if (t->why[0] == '\0') {
        bool foreign = !t->ready && (ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER ||
                                     ERR_GET_REASON(error) == SSL_R_BAD_RECORD_TYPE ||
                                     ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST);
        snprintf(t->why, sizeof(t->why), "TLS with the relay failed: %s%s",
                 reason != NULL ? reason : "it broke off",
                 foreign ? ": what answers there does not speak TLS; is the port right?" : "");
    }
    ERR_clear_error();
    return ZC_EIO;
}

/* After a call that did not give what was wanted. */
static int tls_result(struct zc_tls *t, int result)
{
    switch (SSL_get_error(t->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return ZC_ECLOSED;
    default:
        return tls_fail(t);
    }
}

static int tls_handshake(struct zc_tls *t)
{
    ERR_clear_error();
    int result = SSL_do_handshake(t->ssl);
    if (result != 1)
        return tls_result(t, result);
    t->ready = SSL_get_verify_result(t->ssl) == X509_V_OK;
    return t->ready ? 0 : tls_fail(t);
}

int zc_tls_read(struct zc_tls *t, uint8_t *ret_data, size_t cap)
{
    size_t n = 0;
    if (t->failed)
        return ZC_EIO;
    if (!t->ready) {
        int err = tls_handshake(t);
        if (err != 0 || !t->ready)
            return err;
    }
    ERR_clear_error();
    int result = SSL_read_ex(t->ssl, ret_data, cap < INT_MAX ? cap : INT_MAX, &n);
    return result == 1 ? (int)n : tls_result(t, result);
}

int zc_tls_write(struct zc_tls *t, const uint8_t *data, size_t len)
{
    if (t->failed)
        return ZC_EIO;
    if (!t->ready)
        return ZC_EAGAIN;
    ERR_clear_error();
    while (len > 0) {
        size_t n = 0;
        int result = SSL_write_ex(t->ssl, data, len, &n);
        if (result != 1) {
            int err = tls_result(t, result);
            return err != 0 ? err : tls_fail(t); /* memory takes all: it cannot have to wait */
        }
        data += n;
        len -= n;
    }
    return 0;
}

bool zc_tls_ready(const struct zc_tls *t)
{
    return t->ready && !t->failed;
}

size_t zc_tls_pending(const struct zc_tls *t)
{
    return BIO_ctrl_pending(t->out);
}

const char *zc_tls_why(const struct zc_tls *t)
{
    return t->why[0] != '\0' ? t->why : "TLS with the relay has not failed";
}
