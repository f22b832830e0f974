/* host/dial.h against listeners of our own: families, races, failures, giving up. */
#include "host/dial.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/host.h"
#include "test.h"

#define FILL 8

static struct zc_host host;
static struct zc_derpmap_node node;
static int done_count, done_fd;
static bool done_v6;
static char done_why[ZC_DIAL_WHY_MAX];

static void on_done(void *arg, int fd, bool v6, const char *why)
{
    (void)arg;
    done_count++;
    done_fd = fd;
    done_v6 = v6;
    snprintf(done_why, sizeof(done_why), "%s", why != NULL ? why : "");
}

/* A listener on loopback; its port. */
static int listen_on(bool v6, int backlog, uint16_t *port)
{
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *a = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
    socklen_t len = v6 ? sizeof(a6) : sizeof(a4);
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0), one = 1;
    a6.sin6_port = a4.sin_port = htons(*port);
    if (v6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    if (fd < 0 || bind(fd, a, len) < 0 || listen(fd, backlog) < 0 || getsockname(fd, a, &len) < 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(v6 ? a6.sin6_port : a4.sin_port);
    return fd;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Dials and waits for the end; how long it took. */
static int64_t dial(uint16_t port, const char *name, const char *v4, const char *v6)
{
    struct zc_derp_dial_try to = {
        .node = &node,
        .v4 = {.use = v4 != NULL, .address = v4 != NULL && *v4 ? v4 : NULL, .delay_ms = 200},
        .v6 = {.use = v6 != NULL, .address = v6 != NULL && *v6 ? v6 : NULL},
    };
    int64_t start = now_ms();
    done_count = 0;
    done_fd = -1;
    node.derp_port = port;
    snprintf(node.host, sizeof(node.host), "%s", name);
    uv_loop_init(&host.loop);
    CHECK(zc_dial_start(&host, &to, 0, on_done, NULL) != NULL);
    CHECK_INT(done_count, 0); /* never from inside */
    uv_run(&host.loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&host.loop), 0);
    CHECK_INT(done_count, 1);
    CHECK_INT(host.blocking, 0);
    CHECK((done_fd >= 0) == (done_why[0] == '\0'));
    if (done_fd >= 0)
        close(done_fd);
    return now_ms() - start;
}

TEST(dial_one_family)
{
    uint16_t port = 0;
    int fd = listen_on(false, 5, &port);
    dial(port, "name.invalid", "127.0.0.1", NULL);
    CHECK(done_fd >= 0 && !done_v6);
    dial(port, "127.0.0.1", "", "");
    CHECK(done_fd >= 0 && !done_v6);
    dial(port, "localhost", "", NULL);
    CHECK(done_fd >= 0 && !done_v6);
    close(fd);
    CHECK(dial(port, "x", "127.0.0.1", NULL) < 1000);
    CHECK(strstr(done_why, "127.0.0.1 port ") != NULL && strstr(done_why, "refused") != NULL);
}

TEST(dial_the_other_family_goes_on_at_once)
{
    uint16_t port = 0;
    int fd = listen_on(false, 5, &port);
    CHECK(dial(port, "x", "127.0.0.1", "::1") < 150); /* refused, not waited for */
    CHECK(done_fd >= 0 && !done_v6);
    close(fd);
    dial(port, "x", "127.0.0.1", "::1");
    CHECK(done_fd < 0 && strstr(done_why, "127.0.0.1") != NULL && strstr(done_why, "::1") != NULL);
}

TEST(dial_head_start)
{
    uint16_t port = 0;
    int six = listen_on(true, 5, &port);
    if (six < 0) {
        puts("SKIP dial_head_start: no IPv6 on loopback");
        return;
    }
    int four = listen_on(false, 5, &port);
    dial(port, "x", "127.0.0.1", "::1");
    CHECK(done_fd >= 0 && done_v6);
    close(four);
    close(six);
}

/* A listener that takes no more connections: SYNs stay unanswered. */
static int black_hole(bool v6, uint16_t *port, int fill[FILL])
{
    int fd = listen_on(v6, 0, port);
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);
    if (fd < 0)
        return -1;
    getsockname(fd, (struct sockaddr *)&a, &len);
    for (int i = 0; i < FILL; i++) {
        fill[i] = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fill[i], (struct sockaddr *)&a, len);
    }
    return fd;
}

TEST(dial_black_hole)
{
    int fill[FILL];
    uint16_t port = 0;
    int fd = black_hole(false, &port, fill);
    int64_t took = dial(port, "x", "127.0.0.1", NULL);
    CHECK(done_fd < 0 && strstr(done_why, "timed out") != NULL);
    CHECK(took >= ZC_DERP_DIAL_NODE_MS && took < ZC_DERP_DIAL_NODE_MS + 1500);
    close(fd);
    for (int i = 0; i < FILL; i++)
        close(fill[i]);
    port = 0;
    fd = black_hole(true, &port, fill);
    if (fd < 0) {
        puts("SKIP half of dial_black_hole: no IPv6 on loopback");
        return;
    }
    int four = listen_on(false, 5, &port);
    took = dial(port, "x", "127.0.0.1", "::1");
    CHECK(done_fd >= 0 && !done_v6 && took >= 200);
    close(four);
    close(fd);
    for (int i = 0; i < FILL; i++)
        close(fill[i]);
}

TEST(dial_without_an_address)
{
    dial(1, "127.0.0.1", NULL, "none");
    CHECK(done_fd < 0 && strstr(done_why, "no address") != NULL);
    dial(1, "127.0.0.1", NULL, "");
    CHECK(done_fd < 0 && strstr(done_why, "no address") != NULL);
    dial(1, "no-such-host.invalid", "", "");
    CHECK(done_fd < 0 && strstr(done_why, "cannot be resolved") != NULL);
}

TEST(dial_given_up)
{
    struct zc_derp_dial_try to = {.node = &node, .v4 = {.use = true}};
    const char *const names[] = {"127.0.0.1", "localhost"};
    for (size_t i = 0; i < 2; i++)
        for (int turns = 0; turns < 3; turns++) {
            uint16_t port = 0;
            int fd = listen_on(false, 5, &port);
            node.derp_port = port;
            strcpy(node.host, names[i]);
            done_count = 0;
            uv_loop_init(&host.loop);
            struct zc_dial *d = zc_dial_start(&host, &to, 0, on_done, NULL);
            for (int n = 0; n < turns && done_count == 0; n++)
                uv_run(&host.loop, UV_RUN_NOWAIT);
            bool ended = done_count > 0;
            if (!ended)
                zc_dial_cancel(d);
            uv_run(&host.loop, UV_RUN_DEFAULT);
            CHECK_INT(done_count, ended);
            CHECK_INT(host.blocking, 0);
            CHECK_INT(uv_loop_close(&host.loop), 0);
            if (ended && done_fd >= 0)
                close(done_fd);
            close(fd);
        }
}
