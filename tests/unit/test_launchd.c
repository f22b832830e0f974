/*
 * The launchd service manager against a stand-in for launchd that keeps the contract of
 * launch_activate_socket (tests/services/shim/launch.h). service_launchd.c is compiled into this
 * program, in place of the one that the host library has on this system.
 */
#include "../../lib/host/service_launchd.c"

#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

/* What the stand-in launchd has. */
static struct {
    bool running;
    int fail_with; /* for any name, when not 0 */
    struct {
        const char *name;
        int fds[40];
        size_t count;
        bool there, taken;
    } jobs[2];
} launchd;

int launch_activate_socket(const char *name, int **fds, size_t *cnt)
{
    if (!launchd.running)
        return ESRCH;
    if (launchd.fail_with != 0)
        return launchd.fail_with;
    for (size_t i = 0; i < 2; i++) {
        if (!launchd.jobs[i].there || strcmp(launchd.jobs[i].name, name) != 0)
            continue;
        if (launchd.jobs[i].taken)
            return EALREADY;
        size_t n = launchd.jobs[i].count;
        launchd.jobs[i].taken = true;
        /* Exactly as large as promised, so that a sanitizer sees a read beyond. */
        *fds = malloc(n * sizeof(int));
        memcpy(*fds, launchd.jobs[i].fds, n * sizeof(int));
        *cnt = n;
        return 0;
    }
    return ENOENT;
}

static void reset(void)
{
    memset(&launchd, 0, sizeof(launchd));
    launchd.running = true;
    launchd.jobs[0].name = "Listeners";
    launchd.jobs[1].name = "Control";
}

static void give(size_t job, int fd)
{
    launchd.jobs[job].there = true;
    launchd.jobs[job].fds[launchd.jobs[job].count++] = fd;
}

static void close_all(void)
{
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < launchd.jobs[i].count; k++)
            close(launchd.jobs[i].fds[k]);
}

static int tcp_socket(bool listening)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    if (listening)
        CHECK_INT(listen(fd, 5), 0);
    return fd;
}

/* The sockets are taken, or refused with a word of the reason. */
static void check_refused(const char *word)
{
    struct zc_service_sockets got = {.count = 99};
    const char *why = "";
    CHECK_INT(zc_service_sockets(&got, &why), ZC_EINVAL);
    CHECK(strstr(why, word) != NULL);
    CHECK_INT(got.count, 99);
}

TEST(not_under_launchd)
{
    struct zc_service_sockets got = {.count = 99};
    const char *why = NULL;
    reset();
    launchd.running = false;
    CHECK_INT(zc_service_sockets(&got, &why), 0);
    CHECK_INT(got.count, 0);
}

TEST(job_without_sockets)
{
    struct zc_service_sockets got = {.count = 99};
    const char *why = NULL;
    reset();
    CHECK_INT(zc_service_sockets(&got, &why), 0);
    CHECK_INT(got.count, 0);
}

TEST(listeners_and_control)
{
    struct zc_service_sockets got;
    const char *why = NULL;
    reset();
    give(0, tcp_socket(true));
    give(0, tcp_socket(true));
    give(1, tcp_socket(true));
    CHECK_INT(zc_service_sockets(&got, &why), 0);
    CHECK_INT(got.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct zc_service_socket *s = &got.sockets[i];
        CHECK_INT(s->fd, i < 2 ? launchd.jobs[0].fds[i] : launchd.jobs[1].fds[0]);
        CHECK(s->control == (i == 2));
        CHECK(strcmp(s->name, i == 2 ? "Control" : "Listeners") == 0);
        CHECK(fcntl(s->fd, F_GETFL) & O_NONBLOCK);
        CHECK(fcntl(s->fd, F_GETFD) & FD_CLOEXEC);
    }
    close_all();
}

TEST(only_control)
{
    struct zc_service_sockets got;
    const char *why = NULL;
    reset();
    give(1, tcp_socket(true));
    CHECK_INT(zc_service_sockets(&got, &why), 0);
    CHECK_INT(got.count, 1);
    CHECK(got.sockets[0].control);
    close_all();
}

TEST(taken_twice)
{
    struct zc_service_sockets got;
    const char *why = NULL;
    reset();
    give(0, tcp_socket(true));
    CHECK_INT(zc_service_sockets(&got, &why), 0);
    check_refused("handed them out before");
    close_all();
}

TEST(other_failures)
{
    reset();
    launchd.fail_with = EPERM;
    check_refused("gave none");
}

TEST(not_a_listening_stream_socket)
{
    int pipes[2];
    reset();
    give(0, tcp_socket(true));
    give(0, tcp_socket(false));
    check_refused("listening stream socket");
    close_all();
    reset();
    give(1, socket(AF_INET, SOCK_DGRAM, 0));
    check_refused("listening stream socket");
    close_all();
    reset();
    CHECK_INT(pipe(pipes), 0);
    give(0, pipes[0]);
    check_refused("listening stream socket");
    close_all();
    close(pipes[1]);
    reset();
    give(0, 999);
    check_refused("listening stream socket");
}

TEST(too_many)
{
    reset();
    for (int i = 0; i < 33; i++)
        give(0, tcp_socket(true));
    check_refused("more than 32");
    close_all();
}

TEST(nothing_to_notify)
{
    zc_service_ready();
    zc_service_status("text");
    zc_service_stopping();
    zc_service_watchdog();
    CHECK_INT(zc_service_watchdog_ms(), 0);
    CHECK(!zc_service_owns_log());
}
