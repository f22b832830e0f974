/*
 * Is the relay's certificate good? See tls.h for the modes. Says what is wrong in a way that tells
 * a wrong clock from a wrong relay.
 */
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "host/tls_priv.h"

#define DATE_MAX 32

__attribute__((format(printf, 2, 3))) static int judge_refuse(struct zc_tls *t, const char *format,
                                                              ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(t->why, sizeof(t->why), format, args);
    va_end(args);
    return 0;
}

static void judge_date(int64_t unix_s, char ret_text[DATE_MAX])
{
    time_t at = (time_t)unix_s;
    struct tm tm;
    if (gmtime_r(&at, &tm) == NULL || strftime(ret_text, DATE_MAX, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        snprintf(ret_text, DATE_MAX, "an unknown date");
}

static void judge_asn1_date(const ASN1_TIME *when, char ret_text[DATE_MAX])
{
    struct tm tm;
    if (ASN1_TIME_to_tm(when, &tm) != 1 ||
        strftime(ret_text, DATE_MAX, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        snprintf(ret_text, DATE_MAX, "an unknown date");
}

/* Names the two dates, since either end's clock or certificate may be the wrong one. */
static int judge_refuse_date(struct zc_tls *t, const X509 *cert, bool early)
{
    char clock[DATE_MAX], limit[DATE_MAX];
    judge_date(t->unix_s, clock);
    judge_asn1_date(early ? X509_get0_notBefore(cert) : X509_get0_notAfter(cert), limit);
    if (early)
        return judge_refuse(t,
                            "the relay's certificate is valid only from %s on, and the clock here "
                            "says %s: set the clock right",
                            limit, clock);
    return judge_refuse(t,
                        "the relay's certificate expired at %s, and the clock here says %s: if the "
                        "clock is right, the relay needs a new certificate",
                        limit, clock);
}

static bool judge_name_matches(const struct zc_tls *t, X509 *cert)
{
    if (t->literal)
        return X509_check_ip_asc(cert, t->host, 0) == 1;
    return X509_check_host(cert, t->host, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}

/* A note that relays append to the chain: their DERP key as a common name. */
static bool judge_is_note(X509 *cert)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0)
        return false;
    const ASN1_STRING *cn = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    return ASN1_STRING_length(cn) >= 7 && memcmp(ASN1_STRING_get0_data(cn), "derpkey", 7) == 0;
}

static int judge_pin(struct zc_tls *t, X509 *leaf, const STACK_OF(X509) * chain)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    int others = 0;
    for (int i = 1; i < sk_X509_num(chain); i++)
        others += !judge_is_note(sk_X509_value(chain, i));
    /* The handshake proves that the relay holds the leaf's key, so only the leaf can be the pinned
     * one: the pinned certificate behind a stranger's leaf proves nothing. */
    if (others > 0 || judge_is_note(leaf))
        return judge_refuse(t, "the relay shows several certificates where its pin (sha256-raw) "
                               "wants exactly one: it is not the relay that was meant");
    if (X509_digest(leaf, EVP_sha256(), hash, &len) != 1 || len != sizeof(t->pin) ||
        memcmp(hash, t->pin, sizeof(t->pin)) != 0)
        return judge_refuse(t,
                            "the relay's certificate does not match its pin (sha256-raw): it is "
                            "not the relay that was meant, or it has a new certificate, and then "
                            "a new token or map is needed");
    if (!judge_name_matches(t, leaf))
        return judge_refuse(t, "the relay's pinned certificate is not for %s", t->host);
    time_t now = (time_t)t->unix_s;
    if (X509_cmp_time(X509_get0_notBefore(leaf), &now) >= 0)
        return judge_refuse_date(t, leaf, true);
    if (X509_cmp_time(X509_get0_notAfter(leaf), &now) <= 0)
        return judge_refuse_date(t, leaf, false);
    return 1;
}

static int judge_refuse_chain(struct zc_tls *t, X509_STORE_CTX *store)
{
    int error = X509_STORE_CTX_get_error(store);
    const X509 *at = X509_STORE_CTX_get_current_cert(store);
    switch (error) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return judge_refuse_date(t, at, true);
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return judge_refuse_date(t, at, false);
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return judge_refuse(t,
                            "the relay's certificate is not for %s: a wrong address, or somebody "
                            "between us and it",
                            t->name[0] != '\0' ? t->name : t->host);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return judge_refuse(t,
                            "the relay's certificate is signed by nobody whom this system trusts "
                            "(%s): install its roots (ca-certificates), or name the relay with "
                            "its sha256-raw pin",
                            X509_verify_cert_error_string(error));
    default:
        return judge_refuse(t, "the relay's certificate is refused: %s",
                            X509_verify_cert_error_string(error));
    }
}

int zc_tls_judge(X509_STORE_CTX *store, void *arg)
{
    struct zc_tls *t = arg;
    X509 *leaf = X509_STORE_CTX_get0_cert(store);
    if (leaf == NULL)
        return judge_refuse(t, "the relay shows no certificate");
    if (t->pinned) {
        int good = judge_pin(t, leaf, X509_STORE_CTX_get0_untrusted(store));
        X509_STORE_CTX_set_error(store, good ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
        return good;
    }
    if (t->insecure && t->name[0] == '\0') {
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 1;
    }
    return X509_verify_cert(store) == 1 ? 1 : judge_refuse_chain(t, store);
}
