/*
 * A link between two network namespaces with the faults of a real one: a TUN device in each, and
 * for each direction delay, jitter, loss, duplicates, another order, a rate with its queue, a
 * largest size, and a cut. For machines without netem; Linux, as root.
 *
 *   link --a NAMESPACE --b NAMESPACE [--name DEVICE] [--seed N]
 *
 * NAMESPACE is a path such as /proc/PID/ns/net, DEVICE (link0) the name of the TUN device in both.
 * Prints {"ok":true} when both are there; addresses are the caller's to give. Then it takes lines
 * from standard input, answers each with a line of JSON, and ends with standard input:
 *
 *   a delay_ms=25 loss=0.01    knobs of what a sends; b: of what b sends; both: of both
 *   stats                      {"a":{...},"b":{...}}, what a and b sent
 *   help                       the knobs, on standard error
 */
#define _GNU_SOURCE /* setns */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include "knobs.h"
#include "too_big.h"

/* A turn reads so many packets of an end, then looks at the clock. */
#define TURN_PACKETS 64
#define LINE_MAX_BYTES 1024

struct end {
    int fd;
    struct flow sends;
    uint64_t unwritten; /* packets that its device did not take */
};

static struct end ends[2];
static char line[LINE_MAX_BYTES];
static size_t line_len;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "link: %s: %s\n", what, errno != 0 ? strerror(errno) : "failed");
    exit(1);
}

/* ---- packets ---- */

static void write_to(struct end *e, const void *data, size_t len)
{
    if (write(e->fd, data, len) < 0)
        e->unwritten++;
}

static void read_from(struct end *e)
{
    static uint8_t packet[65536], answer[TOO_BIG_MAX];
    for (int i = 0; i < TURN_PACKETS; i++) {
        ssize_t n = read(e->fd, packet, sizeof(packet));
        if (n <= 0) {
            if (n == 0 || (errno != EAGAIN && errno != EINTR && errno != EIO))
                die("read from the device");
            return;
        }
        enum flow_fate fate = flow_put(&e->sends, now_ns(), packet, (size_t)n);
        if (fate == FLOW_NO_MEMORY)
            die("memory");
        if (fate != FLOW_TOO_BIG)
            continue;
        size_t len = too_big_answer(packet, (size_t)n, e->sends.knobs.mtu, answer);
        if (len > 0)
            write_to(e, answer, len);
    }
}

static void deliver(int64_t now)
{
    for (int i = 0; i < 2; i++) {
        struct flow_packet *p;
        while ((p = flow_take(&ends[i].sends, now)) != NULL) {
            write_to(&ends[!i], p->data, p->len);
            free(p);
        }
    }
}

static void set_timer(int timer)
{
    int64_t a = flow_next(&ends[0].sends), b = flow_next(&ends[1].sends), at = a < b ? a : b;
    struct itimerspec when = {0};
    if (at != FLOW_NEVER) {
        at = at > 0 ? at : 1; /* 0 would stop it */
        when.it_value = (struct timespec){at / 1000000000, at % 1000000000};
    }
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) < 0)
        die("timerfd_settime");
}

/* ---- control ---- */

static void change(char *words, int first, int last)
{
    struct flow_knobs k[2];
    char copy[LINE_MAX_BYTES];
    const char *bad = NULL;
    for (int i = first; i <= last && bad == NULL; i++) {
        k[i] = ends[i].sends.knobs;
        memcpy(copy, words, strlen(words) + 1);
        bad = knobs_read(copy, &k[i]);
    }
    if (bad != NULL) {
        size_t plain = strspn(bad, "abcdefghijklmnopqrstuvwxyz0123456789_=.-");
        printf("{\"error\":\"no such knob or value\",\"at\":\"%.*s\"}\n", (int)plain, bad);
        return;
    }
    for (int i = first; i <= last; i++)
        flow_set(&ends[i].sends, now_ns(), &k[i]);
    puts("{\"ok\":true}");
}

static void stats(void)
{
    for (int i = 0; i < 2; i++) {
        fputs(i == 0 ? "{\"a\":" : ",\"b\":", stdout);
        knobs_counts(stdout, &ends[i].sends);
    }
    printf(",\"unwritten\":%llu}\n", (unsigned long long)(ends[0].unwritten + ends[1].unwritten));
}

static void obey(char *words)
{
    size_t len = strcspn(words, " ");
    char *rest = words + len + (words[len] != '\0');
    words[len] = '\0';
    if (strcmp(words, "stats") == 0) {
        stats();
    } else if (strcmp(words, "help") == 0) {
        knobs_help(stderr);
        puts("{\"ok\":true}");
    } else if (strcmp(words, "a") == 0 || strcmp(words, "b") == 0) {
        change(rest, words[0] == 'b', words[0] == 'b');
    } else if (strcmp(words, "both") == 0) {
        change(rest, 0, 1);
    } else {
        puts("{\"error\":\"a line begins with a, b, both, stats or help\"}");
    }
    if (fflush(stdout) != 0)
        exit(0); /* nobody wants the answer */
}

/* False: standard input has ended. */
static bool read_lines(void)
{
    ssize_t n = read(STDIN_FILENO, line + line_len, sizeof(line) - 1 - line_len);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    line_len += (size_t)n;
    char *end;
    while ((end = memchr(line, '\n', line_len)) != NULL) {
        size_t used = (size_t)(end - line) + 1;
        *end = '\0';
        obey(line);
        line_len -= used;
        memmove(line, line + used, line_len);
    }
    if (line_len == sizeof(line) - 1) {
        errno = E2BIG;
        die("a line of standard input");
    }
    return true;
}

/* ---- start ---- */

static int open_in(const char *namespace, const char *name)
{
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    int ns = open(namespace, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET) < 0)
        die(namespace);
    close(ns);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    strncpy(r.ifr_name, name, sizeof(r.ifr_name) - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r) < 0)
        die("/dev/net/tun");
    return fd;
}

static void watch(int poll, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e) < 0)
        die("epoll");
}

static void run(void)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (poll < 0 || timer < 0)
        die("epoll, timerfd");
    int fds[] = {ends[0].fd, ends[1].fd, timer, STDIN_FILENO};
    for (int i = 0; i < 4; i++)
        watch(poll, fds[i]);
    for (bool more = true; more;) {
        struct epoll_event got[4];
        uint64_t ticks;
        set_timer(timer);
        int n = epoll_wait(poll, got, 4, -1);
        if (n < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < n; i++) {
            int fd = got[i].data.fd;
            if (fd == STDIN_FILENO)
                more = read_lines();
            else if (fd == timer)
                (void)!read(timer, &ticks, sizeof(ticks));
            else
                read_from(fd == ends[0].fd ? &ends[0] : &ends[1]);
        }
        deliver(now_ns());
    }
}

int main(int argc, char **argv)
{
    const char *spaces[2] = {NULL, NULL}, *name = "link0";
    uint64_t seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--a") == 0)
            spaces[0] = argv[i + 1];
        else if (strcmp(argv[i], "--b") == 0)
            spaces[1] = argv[i + 1];
        else if (strcmp(argv[i], "--name") == 0)
            name = argv[i + 1];
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
    }
    if (spaces[0] == NULL || spaces[1] == NULL) {
        fprintf(stderr, "usage: link --a NAMESPACE --b NAMESPACE [--name DEVICE] [--seed N]\n"
                        "then lines of `a|b|both KNOB=VALUE...` or `stats`; the knobs:\n");
        knobs_help(stderr);
        return 2;
    }
    /* Others that are busy shall not be seen as a slow link. Without the right to it: as it goes.
     */
    (void)setpriority(PRIO_PROCESS, 0, -10);
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        ends[i].fd = open_in(spaces[i], name);
        flow_init(&ends[i].sends, seed * 2 + (uint64_t)i);
    }
    puts("{\"ok\":true}");
    fflush(stdout);
    run();
    for (int i = 0; i < 2; i++)
        flow_done(&ends[i].sends);
    return 0;
}
