/*
 * Dialling.
 *
 *   resolving --addresses--> racing: one way for each family --first that stands--> done
 *       |                       | all failed, or 1.5 s
 *       +--no address-----------+--> done with why
 *
 * The resolver runs on libuv's thread pool and cannot be stopped while it asks: a dial that is
 * given up meanwhile stays until the answer comes, and counts as host.blocking.
 */
#include "host/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "host/host.h"

/* One family. */
struct way {
    uv_poll_t poll;
    uv_timer_t delay; /* the head start of the other one */
    struct zc_dial *dial;
    struct sockaddr_storage to;
    socklen_t to_len; /* 0: not used */
    uint32_t delay_ms;
    int fd;
    bool v6;
    bool waiting; /* for its delay */
    bool polling;
};

struct zc_dial {
    struct zc_host *h;
    zc_dial_done_fn done;
    void *arg;
    uv_getaddrinfo_t resolve;
    uv_timer_t limit;
    struct way ways[2]; /* v6, v4 */
    char host[ZC_DERPMAP_STRING_MAX + 1];
    uint16_t port;
    uint32_t round;
    uint32_t refs; /* handles and the resolver */
    bool over;
    char why[ZC_DIAL_WHY_MAX];
};

static void unref(struct zc_dial *d)
{
    if (--d->refs == 0)
        free(d);
}

static void on_limit_closed(uv_handle_t *handle)
{
    unref(ZC_CONTAINER(handle, struct zc_dial, limit));
}

static void on_delay_closed(uv_handle_t *handle)
{
    unref(ZC_CONTAINER(handle, struct way, delay)->dial);
}

static void on_poll_closed(uv_handle_t *handle)
{
    unref(ZC_CONTAINER(handle, struct way, poll)->dial);
}

/* Its poll handle may be closed at any time; the descriptor only when it is not handed on. */
static void end_way(struct way *w, bool keep_fd)
{
    if (w->polling)
        uv_close((uv_handle_t *)&w->poll, on_poll_closed);
    if (w->fd >= 0 && !keep_fd)
        close(w->fd);
    w->polling = w->waiting = false;
    w->fd = -1;
}

static void end(struct zc_dial *d, const struct way *kept)
{
    d->over = true;
    for (size_t i = 0; i < ZC_ARRAY_LEN(d->ways); i++) {
        struct way *w = &d->ways[i];
        end_way(w, w == kept);
        uv_close((uv_handle_t *)&w->delay, on_delay_closed);
    }
    uv_close((uv_handle_t *)&d->limit, on_limit_closed);
}

static void fail(struct zc_dial *d, const char *why)
{
    zc_dial_done_fn done = d->done;
    char text[ZC_DIAL_WHY_MAX];
    snprintf(text, sizeof(text), "%s", why);
    d->refs++;
    end(d, NULL);
    done(d->arg, -1, false, text);
    unref(d);
}

void zc_dial_cancel(struct zc_dial *d)
{
    uv_cancel((uv_req_t *)&d->resolve);
    end(d, NULL);
}

/* ---- racing ---- */

/* Adds why this way failed to what is known. */
static void note(struct way *w, int error)
{
    struct zc_dial *d = w->dial;
    char address[INET6_ADDRSTRLEN] = "?";
    const void *ip = w->v6 ? (void *)&((struct sockaddr_in6 *)&w->to)->sin6_addr
                           : (void *)&((struct sockaddr_in *)&w->to)->sin_addr;
    size_t len = strlen(d->why);
    inet_ntop(w->v6 ? AF_INET6 : AF_INET, ip, address, sizeof(address));
    snprintf(d->why + len, sizeof(d->why) - len, "%s%s port %u: %s", len > 0 ? "; " : "", address,
             (unsigned)d->port, strerror(error));
}

static void start_way(struct way *w);

/* Out of the race. The last one ends it. */
static void lose(struct way *w, int error)
{
    struct zc_dial *d = w->dial;
    struct way *other = &d->ways[w == &d->ways[0]];
    note(w, error);
    end_way(w, false);
    if (other->waiting)
        start_way(other);
    else if (other->fd < 0)
        fail(d, d->why);
}

static void win(struct way *w)
{
    struct zc_dial *d = w->dial;
    int fd = w->fd;
    d->refs++;
    end(d, w);
    d->done(d->arg, fd, w->v6, NULL);
    unref(d);
}

static void on_connected(uv_poll_t *poll, int status, int events)
{
    struct way *w = ZC_CONTAINER(poll, struct way, poll);
    int error = 0;
    socklen_t len = sizeof(error);
    (void)status;
    (void)events;
    w->dial->h->active = true;
    if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error != 0)
        lose(w, error);
    else
        win(w);
}

static int open_socket(const struct way *w)
{
    int one = 1;
    int fd = socket(w->v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        (connect(fd, (const struct sockaddr *)&w->to, w->to_len) < 0 && errno != EINPROGRESS)) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void start_way(struct way *w)
{
    struct zc_dial *d = w->dial;
    w->waiting = false;
    uv_timer_stop(&w->delay);
    w->fd = open_socket(w);
    if (w->fd < 0) {
        lose(w, errno);
        return;
    }
    if (uv_poll_init(&d->h->loop, &w->poll, w->fd) < 0) {
        lose(w, EMFILE);
        return;
    }
    w->polling = true;
    d->refs++;
    uv_poll_start(&w->poll, UV_WRITABLE, on_connected);
}

static void on_delay(uv_timer_t *timer)
{
    struct way *w = ZC_CONTAINER(timer, struct way, delay);
    if (w->waiting)
        start_way(w);
}

static void on_limit(uv_timer_t *timer)
{
    struct zc_dial *d = ZC_CONTAINER(timer, struct zc_dial, limit);
    for (size_t i = 0; i < ZC_ARRAY_LEN(d->ways); i++)
        if (d->ways[i].fd >= 0)
            note(&d->ways[i], ETIMEDOUT);
    fail(d, d->why);
}

/* All addresses are known. */
static void race(struct zc_dial *d)
{
    bool any = false;
    for (size_t i = 0; i < ZC_ARRAY_LEN(d->ways); i++) {
        struct way *w = &d->ways[i];
        if (w->to_len == 0)
            continue;
        any = w->waiting = true;
        uv_timer_start(&w->delay, on_delay, w->delay_ms, 0);
    }
    if (any)
        uv_timer_start(&d->limit, on_limit, ZC_DERP_DIAL_NODE_MS, 0);
    else
        fail(d, "the relay's map gives no address that can be used");
}

/* ---- addresses ---- */

static void set_v4(struct way *w, const void *ip, uint16_t port)
{
    struct sockaddr_in *to = (struct sockaddr_in *)&w->to;
    *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&to->sin_addr, ip, sizeof(to->sin_addr));
    w->to_len = sizeof(*to);
}

static void set_v6(struct way *w, const void *ip, uint16_t port)
{
    struct sockaddr_in6 *to = (struct sockaddr_in6 *)&w->to;
    *to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&to->sin6_addr, ip, sizeof(to->sin6_addr));
    w->to_len = sizeof(*to);
}

/* False: text is no literal of the way's family. */
static bool set_literal(struct way *w, const char *text, uint16_t port)
{
    uint8_t ip[16];
    if (inet_pton(w->v6 ? AF_INET6 : AF_INET, text, ip) != 1)
        return false;
    if (w->v6)
        set_v6(w, ip, port);
    else
        set_v4(w, ip, port);
    return true;
}

/* Of the family's addresses the one whose turn it is. */
static void choose(struct way *w, const struct addrinfo *list, uint16_t port, uint32_t round)
{
    int family = w->v6 ? AF_INET6 : AF_INET;
    uint32_t count = 0, at = 0;
    for (const struct addrinfo *i = list; i != NULL; i = i->ai_next)
        count += i->ai_family == family;
    for (const struct addrinfo *i = list; i != NULL; i = i->ai_next) {
        if (i->ai_family != family || at++ != round % count)
            continue;
        memcpy(&w->to, i->ai_addr, i->ai_addrlen);
        w->to_len = i->ai_addrlen;
        if (w->v6)
            ((struct sockaddr_in6 *)&w->to)->sin6_port = htons(port);
        else
            ((struct sockaddr_in *)&w->to)->sin_port = htons(port);
    }
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct zc_dial *d = ZC_CONTAINER(req, struct zc_dial, resolve);
    char why[ZC_DIAL_WHY_MAX];
    d->h->blocking--;
    if (!d->over) {
        d->h->active = true;
        for (size_t i = 0; status == 0 && i < ZC_ARRAY_LEN(d->ways); i++)
            if (d->ways[i].waiting)
                choose(&d->ways[i], list, d->port, d->round);
        d->ways[0].waiting = d->ways[1].waiting = false;
        if (status == 0 || d->ways[0].to_len > 0 || d->ways[1].to_len > 0) {
            race(d);
        } else {
            snprintf(why, sizeof(why), "its name cannot be resolved: %s", uv_strerror(status));
            fail(d, why);
        }
    }
    uv_freeaddrinfo(list);
    unref(d);
}

static bool resolve(struct zc_dial *d)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    if (uv_getaddrinfo(&d->h->loop, &d->resolve, on_resolved, d->host, NULL, &hints) < 0)
        return false;
    d->refs++;
    d->h->blocking++;
    return true;
}

static void on_at_once(uv_timer_t *timer)
{
    race(ZC_CONTAINER(timer, struct zc_dial, limit));
}

/* What of a family is known without asking; true: its name must be resolved. */
static bool plan(struct way *w, const struct zc_derp_dial_way *way, const struct zc_dial *d)
{
    w->delay_ms = way->delay_ms;
    if (!way->use)
        return false;
    if (way->address != NULL) {
        (void)set_literal(w, way->address, d->port);
        return false;
    }
    uint8_t ip[16];
    bool literal = inet_pton(AF_INET, d->host, ip) == 1 || inet_pton(AF_INET6, d->host, ip) == 1;
    if (literal)
        (void)set_literal(w, d->host, d->port);
    w->waiting = !literal;
    return w->waiting;
}

struct zc_dial *zc_dial_start(struct zc_host *h, const struct zc_derp_dial_try *to, uint32_t round,
                              zc_dial_done_fn done, void *arg)
{
    struct zc_dial *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return NULL;
    d->h = h;
    d->done = done;
    d->arg = arg;
    d->port = zc_derpmap_port(to->node);
    d->round = round;
    snprintf(d->host, sizeof(d->host), "%s", to->node->host);
    uv_timer_init(&h->loop, &d->limit);
    d->refs = 1;
    for (size_t i = 0; i < ZC_ARRAY_LEN(d->ways); i++) {
        d->ways[i].dial = d;
        d->ways[i].fd = -1;
        d->ways[i].v6 = i == 0;
        uv_timer_init(&h->loop, &d->ways[i].delay);
        d->refs++;
    }
    bool v6 = plan(&d->ways[0], &to->v6, d), v4 = plan(&d->ways[1], &to->v4, d);
    if (!(v6 || v4) || !resolve(d)) {
        d->ways[0].waiting = d->ways[1].waiting = false;
        uv_timer_start(&d->limit, on_at_once, 0, 0);
    }
    return d;
}
