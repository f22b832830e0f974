/* host/tls.h: each mode against good and bad certificates, streams in pieces, nonsense. */
#include "host/tls.h"

#include <openssl/err.h>

#include "base/check.h"
#include "test.h"
#include "tls_server.h"

static char why[ZC_TLS_WHY_MAX];

/* Carries bytes both ways until nothing moves, at most `piece` at a time to the client. Returns
 * the client's last read result; plaintext goes to ret_text. */
static int pump(struct zc_tls *client, struct server *s, size_t piece, char *ret_text, size_t *len)
{
    uint8_t data[32768];
    int result = 0;
    bool moved = true;
    while (moved) {
        moved = false;
        result = zc_tls_read(client, (uint8_t *)ret_text + *len, 65536);
        if (result > 0)
            *len += (size_t)result;
        moved = result > 0;
        size_t n = zc_tls_output(client, data, sizeof(data));
        if (n > 0)
            BIO_write(SSL_get_rbio(s->ssl), data, (int)n);
        moved = moved || n > 0;
        if (!SSL_is_init_finished(s->ssl))
            SSL_do_handshake(s->ssl);
        int got = BIO_read(SSL_get_wbio(s->ssl), data,
                           piece < sizeof(data) ? (int)piece : (int)sizeof(data));
        if (got > 0)
            CHECK_INT(zc_tls_input(client, data, (size_t)got), 0);
        moved = (moved || got > 0) && (result >= 0);
    }
    ERR_clear_error();
    return result;
}

struct outcome {
    bool ready;
    char why[ZC_TLS_WHY_MAX];
};

/* A handshake with a server that shows these. */
static struct outcome meet(const struct zc_tls_config *config, const struct cert *leaf,
                           const struct cert *more1, const struct cert *more2, int version)
{
    static char text[1 << 17];
    struct zc_tls *client = NULL;
    struct outcome o = {0};
    size_t len = 0;
    struct server s = server_make(leaf, more1, more2, version);
    CHECK_INT(zc_tls_new(config, &client, why), 0);
    CHECK(!zc_tls_ready(client));
    CHECK_INT(zc_tls_write(client, (const uint8_t *)"early", 5), ZC_EAGAIN);
    int result = pump(client, &s, SIZE_MAX, text, &len);
    o.ready = zc_tls_ready(client);
    CHECK_INT(result, o.ready ? 0 : ZC_EIO);
    snprintf(o.why, sizeof(o.why), "%s", zc_tls_why(client));
    if (o.ready) {
        size_t got = 0;
        char back[8] = "";
        CHECK_INT(zc_tls_write(client, (const uint8_t *)"hello", 5), 0);
        pump(client, &s, SIZE_MAX, text, &len);
        CHECK(SSL_read_ex(s.ssl, back, sizeof(back), &got) == 1 && got == 5);
        CHECK(memcmp(back, "hello", 5) == 0);
        CHECK(SSL_write(s.ssl, "world", 5) == 5);
        pump(client, &s, SIZE_MAX, text, &len);
        CHECK(len == 5 && memcmp(text, "world", 5) == 0);
    } else {
        /* Nothing comes out of a relay that was refused, and nothing goes to it. */
        CHECK_INT(zc_tls_write(client, (const uint8_t *)"secret", 6), ZC_EIO);
        CHECK_INT(zc_tls_read(client, (uint8_t *)text, 100), ZC_EIO);
        CHECK_INT(len, 0);
    }
    zc_tls_free(client);
    server_free(&s);
    return o;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static bool both_accept(const struct zc_tls_config *config, const struct cert *leaf,
                        const struct cert *more1, const struct cert *more2)
{
    bool good = true;
    for (size_t i = 0; i < 2; i++) {
        struct outcome o = meet(config, leaf, more1, more2, versions[i]);
        if (!o.ready)
            printf("  %s\n", o.why);
        good = good && o.ready;
    }
    return good;
}

static bool both_refuse(const struct zc_tls_config *config, const struct cert *leaf,
                        const struct cert *more1, const struct cert *more2, const char *words)
{
    bool good = true;
    for (size_t i = 0; i < 2; i++) {
        struct outcome o = meet(config, leaf, more1, more2, versions[i]);
        bool said = !o.ready && strstr(o.why, words) != NULL;
        if (!said)
            printf("  %d %s\n", o.ready, o.why);
        good = good && said;
    }
    return good;
}

/* a and b: the chain and a name. */
TEST(tls_chain_and_name)
{
    char roots[] = "/tmp/zcrootsXXXXXX";
    struct cert ca = cert_make("ca", NULL, NULL, true, false, -CERT_DAY, CERT_DAY);
    struct cert leaf = cert_make("x", "DNS:a.example", &ca, false, false, -CERT_DAY, CERT_DAY);
    struct cert ip = cert_make("x", "IP:127.0.0.1,IP:::1", &ca, false, false, -CERT_DAY, CERT_DAY);
    struct cert note = cert_make("derpkey00", NULL, NULL, false, true, -CERT_DAY, CERT_DAY);
    struct cert old = cert_make("x", "DNS:a.example", &ca, false, false, -9 * CERT_DAY, -CERT_DAY);
    struct cert young = cert_make("x", "DNS:a.example", &ca, false, false, CERT_DAY, 9 * CERT_DAY);
    struct cert own = cert_make("x", "DNS:a.example", NULL, false, false, -CERT_DAY, CERT_DAY);
    struct zc_tls_config c = {.host = "a.example", .roots = roots, .unix_s = CERT_NOW};
    cert_file(&ca, roots);
    CHECK(both_accept(&c, &leaf, NULL, NULL));
    CHECK(both_accept(&c, &leaf, &note, NULL));
    CHECK(both_refuse(&c, &ip, NULL, NULL, "not for a.example"));
    CHECK(both_refuse(&c, &own, NULL, NULL, "nobody whom this system trusts"));
    CHECK(both_refuse(&c, &old, NULL, NULL, "expired at 2027-01-14"));
    CHECK(both_refuse(&c, &young, NULL, NULL, "set the clock right"));
    c.host = "127.0.0.1";
    CHECK(both_accept(&c, &ip, NULL, NULL));
    CHECK(both_refuse(&c, &leaf, NULL, NULL, "not for 127.0.0.1"));
    c.host = "::1";
    CHECK(both_accept(&c, &ip, NULL, NULL));
    c.cert = "a.example"; /* another name than the host's */
    CHECK(both_accept(&c, &leaf, NULL, NULL));
    CHECK(both_refuse(&c, &ip, NULL, NULL, "not for a.example"));
    c.insecure = true; /* CertName still counts */
    CHECK(both_accept(&c, &leaf, NULL, NULL));
    CHECK(both_refuse(&c, &ip, NULL, NULL, "not for a.example"));
    CHECK(both_refuse(&c, &own, NULL, NULL, "nobody whom"));
    c.cert = "";
    CHECK(both_accept(&c, &ip, NULL, NULL));
    CHECK(both_accept(&c, &own, NULL, NULL));
    CHECK(both_accept(&c, &old, NULL, NULL));
    c.insecure = false;
    c.roots = NULL; /* the system does not know our root */
    CHECK(both_refuse(&c, &ip, NULL, NULL, "nobody whom this system trusts"));
    unlink(roots);
    cert_free(&ca), cert_free(&leaf), cert_free(&ip), cert_free(&note), cert_free(&old);
    cert_free(&young), cert_free(&own);
}

/* c: the pin. */
TEST(tls_pin)
{
    char pin[80], other_pin[80], upper[80], note_pin[80];
    struct cert own = cert_make("x", "IP:127.0.0.1", NULL, false, false, -CERT_DAY, CERT_DAY);
    struct cert other = cert_make("x", "IP:127.0.0.1", NULL, false, false, -CERT_DAY, CERT_DAY);
    struct cert note =
        cert_make("derpkeyabc", "IP:127.0.0.1", NULL, false, true, -CERT_DAY, CERT_DAY);
    struct cert old = cert_make("x", "IP:127.0.0.1", NULL, false, false, -9 * CERT_DAY, -CERT_DAY);
    struct cert young = cert_make("x", "IP:127.0.0.1", NULL, false, false, CERT_DAY, 9 * CERT_DAY);
    struct zc_tls_config c = {.host = "127.0.0.1", .cert = pin, .unix_s = CERT_NOW};
    cert_pin(&own, pin);
    cert_pin(&other, other_pin);
    cert_pin(&note, note_pin);
    CHECK(both_accept(&c, &own, NULL, NULL));
    CHECK(both_accept(&c, &own, &note, NULL));
    CHECK(both_refuse(&c, &other, NULL, NULL, "does not match its pin"));
    CHECK(both_refuse(&c, &own, &other, NULL, "several certificates"));
    CHECK(both_refuse(&c, &other, &own, NULL, "several certificates"));
    /* The pinned certificate behind a stranger's: once with a leaf that calls itself a note. */
    CHECK(both_refuse(&c, &note, &own, NULL, "several certificates"));
    c.cert = note_pin;
    CHECK(both_refuse(&c, &note, NULL, NULL, "several certificates"));
    c.cert = other_pin;
    CHECK(both_refuse(&c, &own, NULL, NULL, "does not match its pin"));
    c.insecure = true; /* the pin counts all the same */
    CHECK(both_refuse(&c, &own, NULL, NULL, "does not match its pin"));
    CHECK(both_accept(&c, &other, NULL, NULL));
    c.insecure = false;
    c.cert = upper;
    snprintf(upper, sizeof(upper), "%s", pin);
    for (char *p = upper + 11; *p != '\0'; p++)
        *p = *p >= 'a' && *p <= 'f' ? (char)(*p - 32) : *p;
    CHECK(both_accept(&c, &own, NULL, NULL));
    for (int i = 0; i < 64; i++) { /* one digit off */
        snprintf(upper, sizeof(upper), "%s", pin);
        upper[11 + i] = upper[11 + i] == '0' ? '1' : '0';
        struct outcome o = meet(&c, &own, NULL, NULL, TLS1_3_VERSION);
        CHECK(!o.ready);
    }
    c.cert = pin;
    c.host = "a.example";
    CHECK(both_refuse(&c, &own, NULL, NULL, "not for a.example"));
    c.host = "127.0.0.1";
    cert_pin(&old, pin);
    CHECK(both_refuse(&c, &old, NULL, NULL, "the clock here says 2027-01-15"));
    cert_pin(&young, pin);
    CHECK(both_refuse(&c, &young, NULL, NULL, "set the clock right"));
    cert_free(&own), cert_free(&other), cert_free(&note), cert_free(&old), cert_free(&young);
}

TEST(tls_unusable_configuration)
{
    static const struct zc_tls_config bad[] = {
        {.host = ""},
        {.host = NULL},
        {.host = "a b"},
        {.host = "a\r\nb"},
        {.host = "a", .cert = "sha256-raw:"},
        {.host = "a", .cert = "sha256-raw:00"},
        {.host = "a",
         .cert = "sha256-raw:"
                 "zz00000000000000000000000000000000000000000000000000000000000000"},
        {.host = "a", .cert = "a b"},
        {.host = "a", .roots = "/nonexistent/roots"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(bad); i++) {
        struct zc_tls *client = NULL;
        memset(why, 0, sizeof(why));
        CHECK_INT(zc_tls_new(&bad[i], &client, why), ZC_EINVAL);
        CHECK(client == NULL && why[0] != '\0');
    }
}

/* A name is told to the server, an address is not. */
TEST(tls_server_name)
{
    struct cert own = cert_make("x", "DNS:a.example", NULL, false, false, -CERT_DAY, CERT_DAY);
    static const char *const hosts[] = {"a.example", "127.0.0.1", "::1"};
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        size_t len = 0;
        struct zc_tls_config c = {.host = hosts[i], .insecure = true};
        struct zc_tls *client = NULL;
        struct server s = server_make(&own, NULL, NULL, TLS1_3_VERSION);
        CHECK_INT(zc_tls_new(&c, &client, why), 0);
        pump(client, &s, SIZE_MAX, text, &len);
        const char *name = SSL_get_servername(s.ssl, TLSEXT_NAMETYPE_host_name);
        CHECK(i == 0 ? name != NULL && strcmp(name, "a.example") == 0 : name == NULL);
        zc_tls_free(client);
        server_free(&s);
    }
    cert_free(&own);
}

/* Ciphertext a byte at a time, a large stream both ways, an orderly end. */
TEST(tls_stream)
{
    static char text[1 << 20], sent[600000];
    struct cert own = cert_make("x", "DNS:a.example", NULL, false, false, -CERT_DAY, CERT_DAY);
    struct zc_tls_config c = {.host = "a.example", .insecure = true};
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (char)(i * 7 + i / 1000);
    for (size_t round = 0; round < 4; round++) {
        struct zc_tls *client = NULL;
        size_t len = 0, got = 0, total = 0, piece = round % 2 == 0 ? 1 : 5000;
        struct server s = server_make(&own, NULL, NULL, versions[round / 2]);
        CHECK_INT(zc_tls_new(&c, &client, why), 0);
        CHECK_INT(pump(client, &s, piece, text, &len), 0);
        CHECK(zc_tls_ready(client));
        size_t amount = round % 2 == 0 ? 20000 : 300000;
        CHECK(SSL_write_ex(s.ssl, sent, amount, &got) == 1 && got == amount);
        CHECK_INT(pump(client, &s, piece, text, &len), 0);
        CHECK(len == amount && memcmp(text, sent, amount) == 0);
        CHECK_INT(zc_tls_write(client, (uint8_t *)sent, sizeof(sent)), 0);
        CHECK(zc_tls_pending(client) >= sizeof(sent));
        pump(client, &s, piece, text, &len);
        CHECK_INT(zc_tls_pending(client), 0);
        while (SSL_read_ex(s.ssl, text + total, 10000, &got) == 1)
            total += got;
        CHECK(total == sizeof(sent) && memcmp(text, sent, total) == 0);
        SSL_shutdown(s.ssl);
        CHECK_INT(pump(client, &s, piece, text, &len), ZC_ECLOSED);
        zc_tls_free(client);
        server_free(&s);
    }
    cert_free(&own);
}

TEST(tls_nonsense)
{
    static const char *const answers[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
        "\x15\x03\x03\x00\x02\x02\x28", /* alert: handshake failure */
    };
    struct zc_tls_config c = {.host = "a.example"};
    for (size_t i = 0; i < 3; i++) {
        struct zc_tls *client = NULL;
        uint8_t data[100];
        size_t len = i < 2 ? strlen(answers[i]) : 7;
        CHECK_INT(zc_tls_new(&c, &client, why), 0);
        CHECK_INT(zc_tls_read(client, data, sizeof(data)), 0);
        CHECK_INT(zc_tls_input(client, (const uint8_t *)answers[i], len), 0);
        CHECK_INT(zc_tls_read(client, data, sizeof(data)), ZC_EIO);
        CHECK(strstr(zc_tls_why(client), "TLS with the relay failed") != NULL);
        if (i < 2 && strstr(zc_tls_why(client), "is the port right?") == NULL) {
            printf("  %s\n", zc_tls_why(client));
            CHECK(false);
        }
        CHECK_INT(zc_tls_read(client, data, sizeof(data)), ZC_EIO);
        zc_tls_free(client);
    }
    zc_tls_free(NULL);
}
