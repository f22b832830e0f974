/* A self-signed certificate for an IPv4 address; see relay_cert.h. */
#include "relay_cert.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>

#define PATH 4096

static bool extend(X509 *cert, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool good = e != NULL && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return good;
}

static X509 *make(EVP_PKEY *key, const char *address)
{
    char alternative[32];
    X509 *cert = X509_new();
    uint32_t serial;
    if (cert == NULL || RAND_bytes((unsigned char *)&serial, sizeof(serial)) != 1)
        return NULL;
    X509_NAME *name = X509_get_subject_name(cert);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial & 0x7fffffff);
    X509_gmtime_adj(X509_getm_notBefore(cert), -86400);
    X509_gmtime_adj(X509_getm_notAfter(cert), 365 * 86400);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)address, -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_set_pubkey(cert, key);
    snprintf(alternative, sizeof(alternative), "IP:%s", address);
    if (extend(cert, NID_subject_alt_name, alternative) && X509_sign(cert, key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

static bool load(const char *path, EVP_PKEY **ret_key, X509 **ret_cert)
{
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return false;
    *ret_key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
    *ret_cert = PEM_read_X509(f, NULL, NULL, NULL);
    fclose(f);
    return *ret_key != NULL && *ret_cert != NULL;
}

static bool create(const char *path, const char *address, EVP_PKEY **ret_key, X509 **ret_cert)
{
    *ret_key = EVP_EC_gen("P-256");
    *ret_cert = *ret_key != NULL ? make(*ret_key, address) : NULL;
    FILE *f = *ret_cert != NULL ? fopen(path, "w") : NULL;
    if (f == NULL)
        return false;
    bool good = PEM_write_PrivateKey(f, *ret_key, NULL, NULL, 0, NULL, NULL) == 1 &&
                PEM_write_X509(f, *ret_cert) == 1;
    return fclose(f) == 0 && good;
}

static bool write_map(const char *dir, const char *address, uint16_t port, X509 *cert)
{
    char path[PATH], temporary[PATH], pin[65];
    unsigned char hash[32];
    unsigned len = 0;
    if (X509_digest(cert, EVP_sha256(), hash, &len) != 1 || len != sizeof(hash))
        return false;
    for (int i = 0; i < 32; i++)
        snprintf(pin + 2 * i, 3, "%02x", hash[i]);
    snprintf(path, sizeof(path), "%s/map.json", dir);
    snprintf(temporary, sizeof(temporary), "%s/map.new", dir);
    FILE *f = fopen(temporary, "w");
    if (f == NULL)
        return false;
    fprintf(f,
            "{\"Regions\":{\"900\":{\"RegionID\":900,\"RegionCode\":\"lo\",\"RegionName\":"
            "\"Loopback\",\"Nodes\":[{\"Name\":\"900a\",\"RegionID\":900,\"HostName\":"
            "\"%s\",\"IPv4\":\"%s\",\"IPv6\":\"none\",\"STUNPort\":-1,"
            "\"DERPPort\":%u,\"CertName\":\"sha256-raw:%s\"}]}}}\n",
            address, address, port, pin);
    return fclose(f) == 0 && rename(temporary, path) == 0;
}

SSL_CTX *relay_cert_open(const char *dir, const char *address, uint16_t port)
{
    char path[PATH];
    EVP_PKEY *key = NULL;
    X509 *cert = NULL;
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    snprintf(path, sizeof(path), "%s/relay.pem", dir);
    if (ctx == NULL || !(load(path, &key, &cert) || create(path, address, &key, &cert)) ||
        !write_map(dir, address, port, cert) || SSL_CTX_use_certificate(ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey(ctx, key) != 1)
        return NULL;
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}
