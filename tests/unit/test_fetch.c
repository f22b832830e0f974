/* host/fetch_body.h and host/fetch_url.h: bodies cut at every byte, what is refused; URLs and
 * redirects. The whole of fetch is tested against a server in tests/tunnel/test_map.py. */
#include "base/check.h"
#include "host/fetch_body.h"
#include "host/fetch_url.h"
#include "test.h"

static struct zc_http1 head;
static struct zc_buf body;

/* Gives data in two pieces; NULL or what is wrong. */
static const char *parse(const char *text, const char *data, size_t len, size_t cut,
                         struct zc_fetch_body *b)
{
    const char *bad;
    memset(&head, 0, sizeof(head));
    body.len = 0;
    zc_http1_input(&head, (const uint8_t *)text, strlen(text));
    CHECK(head.complete && head.error == NULL);
    zc_fetch_body_init(b, &head, &body, 1000);
    bad = zc_fetch_body_input(b, (const uint8_t *)data, cut);
    return bad != NULL ? bad : zc_fetch_body_input(b, (const uint8_t *)data + cut, len - cut);
}

static void check_good(const char *text, const char *data, const char *want, bool complete,
                       bool whole)
{
    for (size_t cut = 0; cut <= strlen(data); cut++) {
        struct zc_fetch_body b;
        CHECK(parse(text, data, strlen(data), cut, &b) == NULL);
        CHECK_INT(b.complete, complete);
        CHECK(complete || zc_fetch_body_end(&b) == whole);
        CHECK(zc_slice_is(zc_slice(body.data, body.len), want));
    }
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
#define LENGTH "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
#define PLAIN "HTTP/1.1 200 OK\r\n\r\n"

TEST(fetch_bodies_cut_everywhere)
{
    check_good(LENGTH, "hello", "hello", true, false);
    check_good(LENGTH, "hello and more", "hello", true, false);
    check_good(LENGTH, "hell", "hell", false, false);
    check_good(PLAIN, "hello", "hello", false, true);
    check_good(CHUNKED, "5\r\nhello\r\nA ;x=y\r\n0123456789\r\n0\r\n\r\n", "hello0123456789", true,
               false);
    check_good(CHUNKED, "1\nx\n00\nTrailer: y\n\n", "x", true, false);
    check_good(CHUNKED, "0\r\n\r\n", "", true, false);
    check_good(CHUNKED, "5\r\nhello\r\n", "hello", false, false);
    check_good("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "", true, false);
}

TEST(fetch_bodies_that_are_refused)
{
    static const struct {
        const char *head, *data;
    } bad[] = {
        {CHUNKED, "x\r\n"},
        {CHUNKED, "\r\n"},
        {CHUNKED, "-1\r\n"},
        {CHUNKED, "5\r\nhelloX\r\n"},
        {CHUNKED, "fffffffffffffffff\r\n"},
        {CHUNKED, "3e9\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "x"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "x"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "x"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n", "x"},
    };
    static char fill[2000];
    struct zc_fetch_body b;
    memset(fill, 'a', sizeof(fill));
    for (size_t i = 0; i < ZC_ARRAY_LEN(bad); i++) {
        char data[2100];
        /* So that a size that is too large is met by too many bytes. */
        int n = snprintf(data, sizeof(data), "%s%.*s", bad[i].data, 1500, fill);
        CHECK(parse(bad[i].head, data, (size_t)n, 0, &b) != NULL);
        CHECK(body.len <= 1000);
    }
    CHECK(parse(PLAIN, fill, 1001, 1000, &b) != NULL);
    CHECK(parse(PLAIN, fill, 1000, 1, &b) == NULL);
    zc_buf_done(&body);
}

TEST(fetch_urls)
{
    static const struct {
        const char *text;
        bool tls;
        const char *host, *port, *path;
    } good[] = {
        {"http://a", false, "a", "80", "/"},
        {"https://a.example/x?y=1#z", true, "a.example", "443", "/x?y=1"},
        {"http://127.0.0.1:8080/m.json", false, "127.0.0.1", "8080", "/m.json"},
        {"https://[::1]:444?q", true, "::1", "444", "/?q"},
        {"http://[fe80::1]/", false, "fe80::1", "80", "/"},
    };
    static const char *const bad[] = {
        "",
        "a",
        "ftp://a",
        "http://",
        "http:///x",
        "http://a:/",
        "http://a:x",
        "http://[::1",
        "http://a b/",
        "http://a/\r\nx",
        "http://u@a/",
        "HTTP://a",
        "http://a:1234567/",
    };
    struct zc_fetch_url u;
    for (size_t i = 0; i < ZC_ARRAY_LEN(good); i++) {
        CHECK(zc_fetch_url_parse(good[i].text, &u));
        CHECK(u.tls == good[i].tls && strcmp(u.host, good[i].host) == 0 &&
              strcmp(u.port, good[i].port) == 0 && strcmp(u.path, good[i].path) == 0);
    }
    for (size_t i = 0; i < ZC_ARRAY_LEN(bad); i++)
        CHECK(!zc_fetch_url_parse(bad[i], &u));
}

TEST(fetch_redirects)
{
    struct zc_fetch_url u;
    CHECK(zc_fetch_url_parse("https://a/x", &u));
    CHECK(zc_fetch_url_follow(zc_slice_str("/y"), &u) && strcmp(u.path, "/y") == 0);
    CHECK(zc_fetch_url_follow(zc_slice_str("https://b:1/z"), &u) && strcmp(u.host, "b") == 0);
    /* What is fetched by TLS stays with TLS. */
    CHECK(!zc_fetch_url_follow(zc_slice_str("http://b/z"), &u));
    CHECK(!zc_fetch_url_follow(zc_slice_str("//c/z"), &u));
    CHECK(!zc_fetch_url_follow(zc_slice_str("z"), &u));
    CHECK(!zc_fetch_url_follow(zc_slice_str(""), &u));
    CHECK(!zc_fetch_url_follow(zc_slice_str("/a b"), &u));
    CHECK(strcmp(u.host, "b") == 0 && strcmp(u.path, "/z") == 0);
    CHECK(zc_fetch_url_parse("http://a/x", &u));
    CHECK(zc_fetch_url_follow(zc_slice_str("https://b/"), &u) && u.tls);
}
