/*
 * The relay's stream.
 *
 *   idle --tunnel wants to dial--> dialling --TCP--> TLS --handshake--> started
 *     ^                               |               |                   |
 *     +------ lost, told with its cause, or hung up by the tunnel --------+
 *
 * At most OUT_BYTES of ciphertext wait here; packets are made only when the socket takes bytes, so
 * what is under way is bounded by the kernel's buffer and these.
 */
#include "host/relay.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "crypto/secret.h"
#include "host/dial.h"
#include "host/host.h"
#include "host/pump.h"
#include "host/tls.h"
#include "tunnel/tunnel.h"

#define PLAIN_BYTES (64 * 1024)
#define OUT_BYTES (72 * 1024)
/* Sent in one turn before the others have theirs. */
#define SEND_PER_RUN (1024 * 1024)

/* Lives until its handle is closed. */
struct stream {
    uv_poll_t poll;
    struct zc_relay *relay;
    int fd;
    int interest;
};

struct zc_relay {
    struct zc_host *h;
    struct zc_dial *dial;
    struct zc_tls *tls;
    struct stream *stream;
    uint32_t round;
    bool v6;
    bool started; /* the tunnel knows that it stands */
    bool blocked; /* waits for the socket to take more */
    bool closed;
    size_t out_at, out_len;
    uint8_t plain[PLAIN_BYTES];
    uint8_t out[OUT_BYTES];
};

static struct zc_tunnel *tunnel(const struct zc_relay *r)
{
    return zc_hub_tunnel(r->h->config.hub);
}

static struct zc_now now(const struct zc_relay *r)
{
    return zc_host_now(r->h);
}

static void on_stream_closed(uv_handle_t *handle)
{
    free(ZC_CONTAINER(handle, struct stream, poll));
}

void zc_relay_reset(struct zc_relay *r)
{
    if (r->dial != NULL)
        zc_dial_cancel(r->dial);
    r->dial = NULL;
    if (r->stream != NULL) {
        uv_close((uv_handle_t *)&r->stream->poll, on_stream_closed);
        close(r->stream->fd);
    }
    r->stream = NULL;
    zc_tls_free(r->tls);
    r->tls = NULL;
    r->started = r->blocked = false;
    r->out_at = r->out_len = 0;
    zc_secret_wipe(r->plain, sizeof(r->plain));
}

void zc_relay_close(struct zc_relay *r)
{
    zc_relay_reset(r);
    r->closed = true;
}

static void lost(struct zc_relay *r, const char *why)
{
    char text[ZC_TLS_WHY_MAX];
    snprintf(text, sizeof(text), "%s", why);
    zc_relay_reset(r);
    zc_tunnel_relay_lost(tunnel(r), now(r), text);
}

/* ---- reading ---- */

/* Plaintext to the tunnel. False: the stream is over. */
static bool feed(struct zc_relay *r)
{
    for (;;) {
        int n = zc_tls_read(r->tls, r->plain, sizeof(r->plain));
        if (!r->started && zc_tls_ready(r->tls)) {
            r->started = true;
            zc_tunnel_relay_started(tunnel(r), now(r), r->v6);
        }
        if (n < 0) {
            lost(r, n == ZC_ECLOSED ? "the relay ended the connection" : zc_tls_why(r->tls));
            return false;
        }
        if (n == 0)
            return true;
        zc_tunnel_relay_input(tunnel(r), now(r), r->plain, (size_t)n);
    }
}

static bool read_stream(struct zc_relay *r)
{
    struct zc_host *h = r->h;
    ssize_t n;
    do {
        n = read(r->stream->fd, h->read_buf, ZC_HOST_READ_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return true;
    if (n <= 0) {
        char why[ZC_TLS_WHY_MAX];
        snprintf(why, sizeof(why), "%s%s",
                 n < 0 ? strerror(errno) : "the relay closed the connection",
                 r->started ? "" : " during the TLS handshake");
        lost(r, why);
        return false;
    }
    if (zc_tls_input(r->tls, h->read_buf, (size_t)n) < 0) {
        lost(r, "memory is short");
        return false;
    }
    return feed(r);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void set_interest(struct zc_relay *r)
{
    int want = UV_READABLE | (r->blocked ? UV_WRITABLE : 0);
    if (want == r->stream->interest)
        return;
    r->stream->interest = want;
    uv_poll_start(&r->stream->poll, want, on_poll);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct stream *s = ZC_CONTAINER(poll, struct stream, poll);
    struct zc_relay *r = s->relay;
    r->h->active = true;
    if (status < 0) {
        s->interest = 0;
        events = UV_READABLE; /* which tells the error */
    }
    if (events & UV_WRITABLE)
        r->blocked = false;
    if ((events & UV_READABLE) && !read_stream(r))
        return;
    set_interest(r);
}

/* ---- writing ---- */

/* Gets ciphertext to send; false: there is none, or the stream is over. */
static bool fill(struct zc_relay *r)
{
    if (zc_tls_pending(r->tls) == 0 && r->started) {
        size_t n = zc_tunnel_relay_output(tunnel(r), now(r), r->plain, sizeof(r->plain));
        if (n == 0)
            return false;
        if (zc_tls_write(r->tls, r->plain, n) < 0) {
            lost(r, zc_tls_why(r->tls));
            return false;
        }
    }
    r->out_at = 0;
    r->out_len = zc_tls_output(r->tls, r->out, sizeof(r->out));
    return r->out_len > 0;
}

/* One write of what is filled. False: the socket is full, or the stream is over. */
static bool write_stream(struct zc_relay *r)
{
    ssize_t n;
    do {
        n = write(r->stream->fd, r->out + r->out_at, r->out_len - r->out_at);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        lost(r, strerror(errno));
        return false;
    }
    if (n > 0)
        r->out_at += (size_t)n;
    r->blocked = r->out_at < r->out_len;
    return !r->blocked;
}

static bool send_stream(struct zc_relay *r)
{
    size_t total = 0;
    while (!r->blocked && total < SEND_PER_RUN) {
        if (r->out_at == r->out_len && !fill(r))
            break;
        total += r->out_len - r->out_at;
        if (!write_stream(r))
            break;
    }
    if (r->stream != NULL)
        set_interest(r);
    return total > 0 && !r->blocked;
}

/* ---- dialling ---- */

/* The handshake begins: its first bytes. */
static void start_tls(struct zc_relay *r)
{
    if (feed(r))
        (void)send_stream(r);
}

static bool open_stream(struct zc_relay *r, int fd)
{
    struct stream *s = calloc(1, sizeof(*s));
    if (s == NULL || uv_poll_init(&r->h->loop, &s->poll, fd) < 0) {
        free(s);
        return false;
    }
    s->relay = r;
    s->fd = fd;
    r->stream = s;
    return true;
}

static void on_dialled(void *arg, int fd, bool v6, const char *why)
{
    struct zc_relay *r = arg;
    r->dial = NULL;
    if (why != NULL) {
        r->round++;
        lost(r, why);
    } else if (open_stream(r, fd)) {
        r->v6 = v6;
        start_tls(r);
    } else {
        close(fd);
        lost(r, "memory is short");
    }
    zc_pump_run(r->h);
}

static void dial(struct zc_relay *r, const struct zc_derp_dial_try *to)
{
    char why[ZC_TLS_WHY_MAX] = "memory is short";
    struct zc_tls_config config = {
        .host = to->node->host,
        .cert = to->node->cert,
        .insecure = to->node->insecure,
    };
    if (zc_tls_new(&config, &r->tls, why) == 0)
        r->dial = zc_dial_start(r->h, to, r->round, on_dialled, r);
    if (r->dial == NULL)
        lost(r, why);
}

bool zc_relay_run(struct zc_relay *r)
{
    struct zc_tunnel *t = tunnel(r);
    struct zc_derp_dial_try to;
    if (t == NULL || r->closed)
        return false;
    if (zc_tunnel_relay_hangup(t)) {
        zc_relay_reset(r);
        return true;
    }
    if (r->stream != NULL)
        return send_stream(r);
    if (r->dial != NULL || !zc_tunnel_relay_dial(t, now(r), &to))
        return false;
    dial(r, &to);
    return true;
}

int zc_relay_new(struct zc_host *h, struct zc_relay **ret_relay)
{
    struct zc_relay *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return ZC_ENOMEM;
    r->h = h;
    *ret_relay = r;
    return 0;
}

void zc_relay_free(struct zc_relay *r)
{
    if (r == NULL)
        return;
    zc_relay_close(r);
    free(r);
}
