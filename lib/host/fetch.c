/*
 * HTTP GET with blocking steps and one deadline for all of them; see fetch.h. Source: RFC 9112 for
 * the framing of bodies.
 */
#include "host/fetch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "host/fetch_body.h"
#include "host/fetch_url.h"
#include "host/tls.h"
#include "tunnel/http1.h"

#define CONNECT_MS 3000 /* for one address */
#define READ_BYTES 16384

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* an older macOS; the daemons ignore SIGPIPE */
#endif

struct fetch {
    const struct zc_fetch *request;
    int64_t deadline_ms;
    int fd;
    struct zc_tls *tls;
    struct zc_http1 head;
    char *why;
};

static int fail(struct fetch *f, int err, const char *what, const char *why)
{
    if (why != NULL)
        snprintf(f->why, ZC_FETCH_WHY_MAX, "%.190s: %.190s", what, why);
    else
        snprintf(f->why, ZC_FETCH_WHY_MAX, "%.380s", what);
    return err;
}

static int64_t now_ms(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the connection ---- */

/* Waits for the socket; false: the time is over. */
static bool wait_for(struct fetch *f, short events, int64_t until_ms)
{
    for (;;) {
        int64_t left = until_ms - now_ms();
        struct pollfd p = {.fd = f->fd, .events = events};
        int n = left <= 0 ? 0 : poll(&p, 1, (int)left);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* One address. 0 or an errno. */
static int connect_to(struct fetch *f, const struct addrinfo *to)
{
    int error = 0;
    socklen_t len = sizeof(error);
    int64_t until = now_ms() + CONNECT_MS;
    f->fd = socket(to->ai_family, SOCK_STREAM, 0);
    if (f->fd < 0)
        return errno;
    if (fcntl(f->fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(f->fd, F_SETFL, O_NONBLOCK) < 0)
        error = errno;
    else if (connect(f->fd, to->ai_addr, to->ai_addrlen) < 0 && errno != EINPROGRESS)
        error = errno;
    else if (!wait_for(f, POLLOUT, until < f->deadline_ms ? until : f->deadline_ms))
        error = ETIMEDOUT;
    else if (getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error != 0) {
        close(f->fd);
        f->fd = -1;
    }
    return error;
}

static int dial(struct fetch *f, const struct zc_fetch_url *u)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char what[320];
    int rc = getaddrinfo(u->host, u->port, &hints, &list), error = ECONNREFUSED;
    snprintf(what, sizeof(what), "%s port %s", u->host, u->port);
    if (rc != 0)
        return fail(f, ZC_ENOENT, what, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    for (const struct addrinfo *i = list; i != NULL && f->fd < 0; i = i->ai_next)
        error = connect_to(f, i);
    freeaddrinfo(list);
    if (f->fd < 0)
        return fail(f, ZC_EIO, what, strerror(error));
    if (!u->tls)
        return 0;
    char why[ZC_TLS_WHY_MAX];
    struct zc_tls_config config = {.host = u->host};
    int err = zc_tls_new(&config, &f->tls, why);
    return err == 0 ? 0 : fail(f, err, what, why);
}

/* Sends all of data over the socket itself. */
static int send_raw(struct fetch *f, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(f->fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return fail(f, ZC_EIO, "sending", strerror(errno));
        if (n < 0 && errno == EAGAIN && !wait_for(f, POLLOUT, f->deadline_ms))
            return fail(f, ZC_ETIMEDOUT, "no answer in time", NULL);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static int send_ciphertext(struct fetch *f)
{
    uint8_t buf[READ_BYTES];
    size_t n;
    int err = 0;
    while (err == 0 && (n = zc_tls_output(f->tls, buf, sizeof(buf))) > 0)
        err = send_raw(f, buf, n);
    return err;
}

/* Bytes of the socket: their count, 0 at the end, or an error. */
static int recv_raw(struct fetch *f, uint8_t *buf, size_t cap)
{
    for (;;) {
        if (!wait_for(f, POLLIN, f->deadline_ms))
            return fail(f, ZC_ETIMEDOUT, "no answer in time", NULL);
        ssize_t n = recv(f->fd, buf, cap, 0);
        if (n >= 0)
            return (int)n;
        if (errno != EAGAIN && errno != EINTR)
            return fail(f, ZC_EIO, "reading", strerror(errno));
    }
}

/* Plaintext: its length, 0 at the end, or an error. */
static int receive(struct fetch *f, uint8_t *buf, size_t cap)
{
    uint8_t raw[READ_BYTES];
    if (f->tls == NULL)
        return recv_raw(f, buf, cap);
    for (;;) {
        int n = zc_tls_read(f->tls, buf, cap);
        int err = send_ciphertext(f);
        if (err != 0)
            return err;
        if (n > 0 || n == ZC_ECLOSED)
            return n > 0 ? n : 0;
        if (n < 0)
            return fail(f, ZC_EIO, zc_tls_why(f->tls), NULL);
        n = recv_raw(f, raw, sizeof(raw));
        if (n <= 0)
            return n < 0 ? n : fail(f, ZC_EIO, "the connection broke off", NULL);
        if (zc_tls_input(f->tls, raw, (size_t)n) < 0)
            return fail(f, ZC_ENOMEM, "memory is short", NULL);
    }
}

/* The TLS handshake runs inside reads; the request must wait for it. */
static int handshake(struct fetch *f)
{
    uint8_t raw[READ_BYTES], none[1];
    while (f->tls != NULL && !zc_tls_ready(f->tls)) {
        int n = zc_tls_read(f->tls, none, sizeof(none));
        int err = send_ciphertext(f);
        if (n < 0)
            return fail(f, ZC_EIO, zc_tls_why(f->tls), NULL);
        if (err != 0 || zc_tls_ready(f->tls))
            return err;
        n = recv_raw(f, raw, sizeof(raw));
        if (n <= 0)
            return n < 0 ? n : fail(f, ZC_EIO, "the connection broke off", NULL);
        if (zc_tls_input(f->tls, raw, (size_t)n) < 0)
            return fail(f, ZC_ENOMEM, "memory is short", NULL);
    }
    return 0;
}

/* ---- request and response ---- */

static int send_request(struct fetch *f, const struct zc_fetch_url *u)
{
    char text[ZC_FETCH_URL_MAX + 1024];
    bool v6 = strchr(u->host, ':') != NULL;
    bool usual = strcmp(u->port, u->tls ? "443" : "80") == 0;
    const char *etag = f->request->etag;
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nHost: %s%s%s%s%s\r\nUser-Agent: zmqcat\r\n"
                     "Tailcat-Mode: %s\r\n%s%s%sConnection: close\r\n\r\n",
                     u->path, v6 ? "[" : "", u->host, v6 ? "]" : "", usual ? "" : ":",
                     usual ? "" : u->port, f->request->mode, etag != NULL ? "If-None-Match: " : "",
                     etag != NULL ? etag : "", etag != NULL ? "\r\n" : "");
    if (n < 0 || (size_t)n >= sizeof(text))
        return fail(f, ZC_EINVAL, "the URL is too long", NULL);
    int err = handshake(f);
    if (err != 0)
        return err;
    if (f->tls == NULL)
        return send_raw(f, (uint8_t *)text, (size_t)n);
    if (zc_tls_write(f->tls, (uint8_t *)text, (size_t)n) < 0)
        return fail(f, ZC_EIO, zc_tls_why(f->tls), NULL);
    return send_ciphertext(f);
}

static int read_body(struct fetch *f, const uint8_t *data, size_t len, struct zc_buf *body)
{
    uint8_t buf[READ_BYTES];
    struct zc_fetch_body b;
    zc_fetch_body_init(&b, &f->head, body, f->request->bytes_max);
    for (;;) {
        const char *bad = zc_fetch_body_input(&b, data, len);
        if (bad != NULL)
            return fail(f, ZC_EBADMSG, "the answer is unusable", bad);
        if (b.complete)
            return 0;
        int n = receive(f, buf, sizeof(buf));
        if (n < 0)
            return n;
        if (n == 0)
            return zc_fetch_body_end(&b)
                       ? 0
                       : fail(f, ZC_EBADMSG, "the answer is unusable", "it broke off");
        data = buf;
        len = (size_t)n;
    }
}

/* Head, and the body of a status that has one. */
static int read_response(struct fetch *f, struct zc_fetch_result *result)
{
    uint8_t buf[READ_BYTES];
    struct zc_slice etag;
    size_t used = 0;
    int n = 0;
    f->head = (struct zc_http1){0};
    while (!f->head.complete) {
        n = receive(f, buf, sizeof(buf));
        if (n <= 0)
            return n < 0 ? n : fail(f, ZC_EIO, "the server closed without an answer", NULL);
        used = zc_http1_input(&f->head, buf, (size_t)n);
        if (f->head.error != NULL)
            return fail(f, ZC_EBADMSG, "the answer is unusable", f->head.error);
    }
    result->status = f->head.status;
    if (zc_http1_header(&f->head, "ETag", &etag) && etag.len < sizeof(result->etag)) {
        memcpy(result->etag, etag.data, etag.len);
        result->etag[etag.len] = '\0';
    }
    return result->status == 200 ? read_body(f, buf + used, (size_t)n - used, &result->body) : 0;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static void hang_up(struct fetch *f)
{
    zc_tls_free(f->tls);
    if (f->fd >= 0)
        close(f->fd);
    f->tls = NULL;
    f->fd = -1;
}

int zc_fetch_get(const struct zc_fetch *request, struct zc_fetch_result *ret_result,
                 char ret_why[ZC_FETCH_WHY_MAX])
{
    struct fetch f = {.request = request, .fd = -1, .why = ret_why};
    struct zc_fetch_result result = {0};
    struct zc_slice location;
    struct zc_fetch_url u;
    int err = 0;
    f.deadline_ms = now_ms() + request->timeout_ms;
    if (!zc_fetch_url_parse(request->url, &u))
        return fail(&f, ZC_EINVAL, "that is no URL", NULL);
    for (int i = 0; err == 0; i++) {
        err = dial(&f, &u);
        if (err == 0)
            err = send_request(&f, &u);
        if (err == 0)
            err = read_response(&f, &result);
        hang_up(&f);
        if (err != 0 || !is_redirect(result.status))
            break;
        if (i == ZC_FETCH_REDIRECTS_MAX)
            err = fail(&f, ZC_ELIMIT, "too many redirects", NULL);
        else if (!zc_http1_header(&f.head, "Location", &location) ||
                 !zc_fetch_url_follow(location, &u))
            err = fail(&f, ZC_EBADMSG, "a redirect leads nowhere", NULL);
    }
    if (err != 0) {
        zc_fetch_done(&result);
        return err;
    }
    *ret_result = result;
    return 0;
}

void zc_fetch_done(struct zc_fetch_result *result)
{
    zc_buf_done(&result->body);
}
