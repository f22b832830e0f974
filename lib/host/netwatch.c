/* News of the machine's network from the kernel; see netwatch.h. */
#include "host/netwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#else
#include <net/if.h>
#include <net/route.h>
#endif

#include "base/check.h"
#include "host/logsink.h"

#define READ_BYTES 8192
/* Messages of one turn, or of the time while a change settles. */
#define READS_MAX 256

struct zc_netwatch {
    zc_netwatch_fn fn;
    void *arg;
    uv_poll_t poll;
    uv_timer_t timer; /* active while a change waits to be told */
    int fd;           /* -1: no socket */
    uint64_t told_ms;
    int64_t ahead_ms;
};

uint64_t zc_netwatch_wait_ms(uint64_t now_ms, uint64_t told_ms)
{
    uint64_t at = now_ms + ZC_NETWATCH_SETTLE_MS;
    uint64_t next = told_ms == 0 ? 0 : told_ms + ZC_NETWATCH_EVERY_MS;
    return (next > at ? next : at) - now_ms;
}

bool zc_netwatch_slept(int64_t *ahead_ms, struct zc_mono now, uint64_t awake_ms)
{
    int64_t was = *ahead_ms;
    *ahead_ms = now.ns / ZC_NS_PER_MS - (int64_t)awake_ms;
    return was != INT64_MIN && *ahead_ms - was >= ZC_NETWATCH_SLEEP_MS;
}

/* ---- the kernel's messages ---- */

#ifdef __linux__

/* Loopback, link-local addresses and the kernel's own routes lead nowhere. */
static bool matters(uint16_t type, const uint8_t *body, size_t len)
{
    struct ifinfomsg link;
    struct ifaddrmsg addr;
    struct rtmsg route;
    switch (type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        if (len < sizeof(link))
            return false;
        memcpy(&link, body, sizeof(link));
        return (link.ifi_flags & IFF_LOOPBACK) == 0;
    case RTM_NEWADDR:
    case RTM_DELADDR:
        if (len < sizeof(addr))
            return false;
        memcpy(&addr, body, sizeof(addr));
        return addr.ifa_scope < RT_SCOPE_LINK;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
        if (len < sizeof(route))
            return false;
        memcpy(&route, body, sizeof(route));
        return route.rtm_table != RT_TABLE_LOCAL && (route.rtm_flags & RTM_F_CLONED) == 0;
    default:
        return false;
    }
}

bool zc_netwatch_counts(const uint8_t *data, size_t len)
{
    struct nlmsghdr head;
    while (len >= NLMSG_HDRLEN) {
        memcpy(&head, data, sizeof(head));
        if (head.nlmsg_len < NLMSG_HDRLEN)
            return false;
        size_t here = head.nlmsg_len < len ? head.nlmsg_len : len;
        if (matters(head.nlmsg_type, data + NLMSG_HDRLEN, here - NLMSG_HDRLEN))
            return true;
        size_t step = NLMSG_ALIGN(here);
        if (step >= len)
            return false;
        data += step;
        len -= step;
    }
    return false;
}

static int open_socket(void)
{
    return socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
}

static int subscribe(int fd)
{
    struct sockaddr_nl self = {.nl_family = AF_NETLINK};
    self.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                     RTMGRP_IPV6_ROUTE;
    return bind(fd, (struct sockaddr *)&self, sizeof(self));
}

/* Only the kernel's port is 0. */
static ssize_t read_message(int fd, uint8_t *buf, size_t cap)
{
    struct sockaddr_nl from = {0};
    socklen_t from_len = sizeof(from);
    ssize_t n = recvfrom(fd, buf, cap, 0, (struct sockaddr *)&from, &from_len);
    return n > 0 && from.nl_pid != 0 ? 0 : n;
}

#else

#ifdef RTF_WASCLONED
#define RTF_NOISE (RTF_LLINFO | RTF_WASCLONED) /* neighbours, not routes */
#else
#define RTF_NOISE 0
#endif

bool zc_netwatch_counts(const uint8_t *data, size_t len)
{
    struct rt_msghdr head = {0};
    memcpy(&head, data, len < sizeof(head) ? len : sizeof(head));
    if (len < offsetof(struct rt_msghdr, rtm_index) || head.rtm_version != RTM_VERSION)
        return false;
    switch (head.rtm_type) {
    case RTM_IFINFO:
    case RTM_NEWADDR:
    case RTM_DELADDR:
        return true;
    case RTM_ADD:
    case RTM_CHANGE:
    case RTM_DELETE:
        return len >= sizeof(head) && (head.rtm_flags & RTF_NOISE) == 0;
    default:
        return false;
    }
}

static int open_socket(void)
{
    return socket(PF_ROUTE, SOCK_RAW, AF_UNSPEC);
}

static int subscribe(int fd)
{
    (void)fd; /* all is told to all */
    return 0;
}

static ssize_t read_message(int fd, uint8_t *buf, size_t cap)
{
    return recv(fd, buf, cap, 0);
}

#endif

/* ---- on the loop ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

/* Reads what is there. True: some of it counts, or some was lost. */
static bool read_news(struct zc_netwatch *w)
{
    uint8_t buf[READ_BYTES];
    bool any = false;
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t n = read_message(w->fd, buf, sizeof(buf));
        if (n >= 0) {
            any = zc_netwatch_counts(buf, (size_t)n) || any;
        } else if (errno == ENOBUFS) {
            any = true;
        } else if (errno != EINTR) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                uv_poll_stop(&w->poll); /* else it would be ready for ever */
            break;
        }
    }
    return any;
}

static void on_timer(uv_timer_t *timer)
{
    struct zc_netwatch *w = ZC_CONTAINER(timer, struct zc_netwatch, timer);
    w->told_ms = uv_now(timer->loop);
    if (w->fd >= 0) {
        uv_poll_start(&w->poll, UV_READABLE, on_poll);
        (void)read_news(w); /* the rest of this change */
    }
    w->fn(w->arg);
}

static void changed(struct zc_netwatch *w)
{
    if (uv_is_active((uv_handle_t *)&w->timer))
        return;
    if (w->fd >= 0)
        uv_poll_stop(&w->poll);
    uv_timer_start(&w->timer, on_timer, zc_netwatch_wait_ms(uv_now(w->timer.loop), w->told_ms), 0);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct zc_netwatch *w = ZC_CONTAINER(poll, struct zc_netwatch, poll);
    (void)status; /* reading tells */
    (void)events;
    if (read_news(w))
        changed(w);
}

void zc_netwatch_turn(struct zc_netwatch *w, struct zc_mono now)
{
    if (zc_netwatch_slept(&w->ahead_ms, now, uv_now(w->timer.loop)))
        changed(w);
}

static bool watch(struct zc_netwatch *w, uv_loop_t *loop)
{
    w->fd = open_socket();
    if (w->fd < 0)
        return false;
    /* uv_poll_init makes it non-blocking. */
    if (fcntl(w->fd, F_SETFD, FD_CLOEXEC) == 0 && subscribe(w->fd) == 0 &&
        uv_poll_init(loop, &w->poll, w->fd) == 0) {
        uv_poll_start(&w->poll, UV_READABLE, on_poll);
        return true;
    }
    int err = errno;
    close(w->fd);
    w->fd = -1;
    errno = err;
    return false;
}

int zc_netwatch_new(uv_loop_t *loop, struct zc_logsink *log, zc_netwatch_fn fn, void *arg,
                    struct zc_netwatch **ret_watch)
{
    struct zc_netwatch *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return ZC_ENOMEM;
    w->fn = fn;
    w->arg = arg;
    w->ahead_ms = INT64_MIN;
    uv_timer_init(loop, &w->timer);
    if (!watch(w, loop))
        zc_logsink_line(log, ZC_LOGSINK_DEBUG, "changes of the network are not watched: %s",
                        strerror(errno));
    *ret_watch = w;
    return 0;
}

void zc_netwatch_close(struct zc_netwatch *w)
{
    if (w == NULL || uv_is_closing((uv_handle_t *)&w->timer))
        return;
    uv_close((uv_handle_t *)&w->timer, NULL);
    if (w->fd < 0)
        return;
    uv_close((uv_handle_t *)&w->poll, NULL);
    close(w->fd);
}

void zc_netwatch_free(struct zc_netwatch *w)
{
    free(w);
}
