/* tunnel/http1.h: heads cut at every byte, what is refused, bounds. */
#include "tunnel/http1.h"

#include "base/check.h"
#include "test.h"

static struct zc_http1 http;

static size_t feed(const char *text)
{
    memset(&http, 0, sizeof(http));
    return zc_http1_input(&http, (const uint8_t *)text, strlen(text));
}

#define HEAD                                                                                       \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: DERP\r\nConnection:Upgrade  \r\n"                \
    "Derp-Version: 2\r\nX-Empty:\r\n\r\n"

TEST(http1_head_cut_everywhere)
{
    static const char text[] = HEAD "\x01left";
    size_t head = strlen(HEAD);
    for (size_t cut = 0; cut <= head; cut++) {
        struct zc_slice v;
        memset(&http, 0, sizeof(http));
        CHECK_INT(zc_http1_input(&http, (const uint8_t *)text, cut), cut);
        CHECK_INT(http.complete, cut == head);
        size_t used = zc_http1_input(&http, (const uint8_t *)text + cut, strlen(text) - cut);
        CHECK_INT(used, head - cut);
        CHECK(http.complete && http.error == NULL);
        CHECK_INT(http.status, 101);
        CHECK(zc_slice_is(http.reason, "Switching Protocols"));
        CHECK(zc_http1_header(&http, "upgrade", &v) && zc_slice_is(v, "DERP"));
        CHECK(zc_http1_header(&http, "Connection", &v) && zc_slice_is(v, "Upgrade"));
        CHECK(zc_http1_header(&http, "x-empty", &v) && v.len == 0);
        CHECK(!zc_http1_header(&http, "derp", &v) && !zc_http1_header(&http, "derp-versions", &v));
        CHECK_INT(zc_http1_input(&http, (const uint8_t *)"x", 1), 0);
    }
}

TEST(http1_status_lines)
{
    static const struct {
        const char *text;
        int status; /* 0: an error */
    } cases[] = {
        {"HTTP/1.1 426 Upgrade Required\r\n\r\n", 426},
        {"HTTP/1.0 200\r\n\r\n", 200},
        {"HTTP/1.1 200 \r\n\r\n", 200},
        {"HTTP/1.1 599 x\r\n\r\n", 599},
        {"HTTP/1.1 099 x\r\n\r\n", 0},
        {"HTTP/1.1 600 x\r\n\r\n", 0},
        {"HTTP/1.1 2000\r\n\r\n", 0},
        {"HTTP/1.1 20\r\n\r\n", 0},
        {"HTTP/1.1\r\n\r\n", 0},
        {"HTTP/1.2 200 OK\r\n\r\n", 0},
        {"HTTP/2 200\r\n\r\n", 0},
        {"SSH-2.0-OpenSSH\r\n", 0},
        {"HTTP/1.1 200 a\nb\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\nbad\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\n: x\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", 0},
        {"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", 0},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        feed(cases[i].text);
        CHECK_INT(http.complete, cases[i].status != 0);
        CHECK_INT(http.error == NULL, cases[i].status != 0);
        if (http.complete)
            CHECK_INT(http.status, cases[i].status);
    }
}

TEST(http1_bounds)
{
    char *text = calloc(1, ZC_HTTP1_HEAD_MAX + 8);
    CHECK(text != NULL);
    memset(text, 'a', ZC_HTTP1_HEAD_MAX + 4);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    CHECK_INT(feed(text), ZC_HTTP1_HEAD_MAX);
    CHECK(!http.complete && http.error != NULL);
    CHECK_INT(zc_http1_input(&http, (const uint8_t *)"\r\n\r\n", 4), 0);
    memcpy(text + ZC_HTTP1_HEAD_MAX - 4, "\r\n\r\n", 4);
    CHECK_INT(feed(text), ZC_HTTP1_HEAD_MAX);
    CHECK(http.complete);
    free(text);
}
