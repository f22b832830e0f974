/* Listening unix sockets: random histories of what lies at the path, against the rule of what may
 * be replaced. (tests/services/test_sockets.py looks at the same through the daemon.) */
#include "host/unixsock.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

static char dir[64], path[80];

static void setup(void)
{
    strcpy(dir, "/tmp/zqunixXXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/s", dir);
}

static void teardown(void)
{
    unlink(path);
    rmdir(path);
    CHECK_INT(rmdir(dir), 0);
}

/* A bound socket that listens or not. */
static int other_socket(int type, bool listening)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type, 0);
    strcpy(sa.sun_path, path);
    CHECK_INT(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    if (listening)
        CHECK_INT(listen(fd, 1), 0);
    return fd;
}

enum there { NOTHING, DEAD, LIVE, BOUND_ONLY, DATAGRAM, FILE_, DIRECTORY, LINK, KINDS };

/* Lays the thing at path; a descriptor to close afterwards, or -1. */
static int lay(enum there what)
{
    switch (what) {
    case DEAD:
        close(other_socket(SOCK_STREAM, true));
        return -1;
    case LIVE:
        return other_socket(SOCK_STREAM, true);
    case BOUND_ONLY:
        return other_socket(SOCK_STREAM, false);
    case DATAGRAM:
        return other_socket(SOCK_DGRAM, false);
    case FILE_:
        close(open(path, O_CREAT | O_WRONLY, 0600));
        return -1;
    case DIRECTORY:
        CHECK_INT(mkdir(path, 0700), 0);
        return -1;
    case LINK:
        CHECK_INT(symlink("nowhere", path), 0);
        return -1;
    default:
        return -1;
    }
}

TEST(what_may_be_replaced)
{
    /* A socket that is bound and does not listen yet cannot be told from a dead one; a hub never
     * shows one, because it holds the lock of the directory until it listens. */
    static const int want[KINDS] = {0, 0, ZC_EBUSY, 0, ZC_EINVAL, ZC_EINVAL, ZC_EINVAL, ZC_EINVAL};
    setup();
    for (int what = 0; what < KINDS; what++) {
        struct zc_unixsock_options o = {.mode = 0600};
        struct zc_unixsock s;
        struct stat before = {0}, after = {0};
        char why[ZC_UNIXSOCK_WHY_MAX] = "";
        int fd = lay((enum there)what);
        lstat(path, &before);
        int r = zc_unixsock_open(path, &o, &s, why);
        CHECK_INT(r, want[what]);
        if (r == 0) {
            zc_unixsock_close(path, &s);
            CHECK(lstat(path, &after) < 0);
        } else {
            CHECK(why[0] != '\0');
            CHECK(lstat(path, &after) == 0 && before.st_ino == after.st_ino);
            if (rmdir(path) < 0)
                unlink(path);
        }
        if (fd >= 0)
            close(fd);
    }
    teardown();
}

TEST(every_mode_under_every_umask)
{
    static const mode_t modes[] = {0600, 0660, 0666, 0700, 0777, 0200, 0};
    setup();
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
            struct zc_unixsock_options o = {.mode = modes[i]};
            struct zc_unixsock s;
            struct stat st;
            char why[ZC_UNIXSOCK_WHY_MAX];
            mode_t saved = umask(modes[k]);
            CHECK_INT(zc_unixsock_open(path, &o, &s, why), 0);
            CHECK_INT(umask(saved), modes[k]);
            CHECK_INT(lstat(path, &st), 0);
            CHECK_INT(st.st_mode & 07777, modes[i]);
            CHECK_INT(st.st_ino, s.ino);
            CHECK(fcntl(s.fd, F_GETFL) & O_NONBLOCK);
            CHECK(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
            zc_unixsock_close(path, &s);
        }
    }
    teardown();
}

TEST(only_what_was_bound_is_unlinked)
{
    struct zc_unixsock_options o = {.mode = 0600};
    struct zc_unixsock first, second;
    char why[ZC_UNIXSOCK_WHY_MAX];
    struct stat st;
    setup();
    CHECK_INT(zc_unixsock_open(path, &o, &first, why), 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(zc_unixsock_open(path, &o, &second, why), 0);
    zc_unixsock_close(path, &first);
    CHECK(lstat(path, &st) == 0 && st.st_ino == second.ino);
    zc_unixsock_close(path, &second);
    CHECK(lstat(path, &st) < 0);
    teardown();
}

TEST(path_that_does_not_fit)
{
    struct zc_unixsock_options o = {.mode = 0600};
    struct zc_unixsock s;
    char why[ZC_UNIXSOCK_WHY_MAX] = "", big[200];
    memset(big, 'x', sizeof(big));
    memcpy(big, "/tmp/", 5);
    big[108] = '\0';
    CHECK_INT(zc_unixsock_open(big, &o, &s, why), ZC_EINVAL);
    CHECK(strstr(why, "108 bytes") != NULL);
    big[107] = '\0';
    CHECK(access(big, F_OK) < 0);
}
