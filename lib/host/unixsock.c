/*
 * Unix sockets made safely.
 *
 * Mode: the socket file is born with its final mode (the umask is set for the bind), its group is
 * set next, and only then does it listen: a connect before that is refused by the kernel.
 *
 * Races: all steps run under an flock of the directory, so that of two hubs that meet the same dead
 * socket only one replaces it, and a hub that stops never removes its successor's. A directory that
 * cannot be locked (a foreign lock holder, a file system without locks) costs only that protection:
 * bind itself still never takes a path that exists.
 */
#include "host/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 4096
#define LOCK_TRIES 300 /* 10 ms apart */

__attribute__((format(printf, 3, 4))) static int refuse(int err, char why[ZC_UNIXSOCK_WHY_MAX],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, ZC_UNIXSOCK_WHY_MAX, format, args);
    va_end(args);
    return err;
}

static void set_address(const char *path, struct sockaddr_un *ret_sa)
{
    memset(ret_sa, 0, sizeof(*ret_sa));
    ret_sa->sun_family = AF_UNIX;
    snprintf(ret_sa->sun_path, sizeof(ret_sa->sun_path), "%s", path);
}

static int stream_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The locked directory of path, or -1 when it cannot be opened or locked. */
static int lock_directory(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        strcpy(dir, ".");
    else
        snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    close(fd);
    return -1;
}

static void unlock_directory(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* 0 when nothing listens at path, ZC_EBUSY when somebody does or may. */
static int probe(const char *path, char *why)
{
    struct sockaddr_un sa;
    int fd = stream_socket();
    if (fd < 0)
        return refuse(ZC_EMFILE, why, "cannot make a socket: %s", strerror(errno));
    set_address(path, &sa);
    int e = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 ? 0 : errno;
    close(fd);
    if (e == ECONNREFUSED || e == ENOENT)
        return 0;
    if (e == 0 || e == EAGAIN || e == EINPROGRESS)
        return refuse(ZC_EBUSY, why,
                      "another hub is listening there: stop it, or choose another path");
    return refuse(ZC_EINVAL, why,
                  "a socket is there that is not ours (%s): remove it, or choose "
                  "another path",
                  strerror(e));
}

/* Removes a dead socket of ours; refuses anything else that is there. */
static int clear_path(const char *path, char *why)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return refuse(ZC_EINVAL, why, "%s", strerror(errno));
    }
    if (!S_ISSOCK(st.st_mode))
        return refuse(ZC_EINVAL, why,
                      "something that is no socket is there: move it away, or choose another path");
    int r = probe(path, why);
    if (r < 0)
        return r;
    if (st.st_uid != geteuid() && geteuid() != 0)
        return refuse(ZC_EINVAL, why,
                      "a dead socket of uid %lu is there: ask its owner to remove it, "
                      "or choose another path",
                      (unsigned long)st.st_uid);
    if (unlink(path) < 0 && errno != ENOENT)
        return refuse(ZC_EINVAL, why, "a dead socket is there and cannot be removed: %s",
                      strerror(errno));
    return 0;
}

static int bind_with_mode(int fd, const char *path, mode_t mode, char *why)
{
    struct sockaddr_un sa;
    set_address(path, &sa);
    mode_t saved = umask(~mode & 0777);
    int r = bind(fd, (struct sockaddr *)&sa, sizeof(sa));
    int e = errno;
    umask(saved);
    if (r == 0)
        return 0;
    if (e == EADDRINUSE)
        return refuse(ZC_EBUSY, why, "another hub took the path at the same moment");
    return refuse(e == EMFILE || e == ENOMEM ? ZC_EMFILE : ZC_EINVAL, why, "%s", strerror(e));
}

/* Sets the group and checks that the file is what was asked for. */
static int finish(const char *path, const struct zc_unixsock_options *o,
                  struct zc_unixsock *ret_sock, char *why)
{
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return refuse(ZC_EINVAL, why, "the path was changed by somebody else while binding");
    ret_sock->dev = st.st_dev;
    ret_sock->ino = st.st_ino;
    if (o->has_group && lchown(path, (uid_t)-1, o->group) < 0)
        return refuse(ZC_EINVAL, why,
                      "cannot give it to group %lu (%s): run as a member of that "
                      "group",
                      (unsigned long)o->group, strerror(errno));
    if (lstat(path, &st) < 0 || (st.st_mode & 0777) != o->mode ||
        (o->has_group && st.st_gid != o->group))
        return refuse(ZC_EINVAL, why,
                      "the file system does not keep the mode of a socket: choose a "
                      "path on another one");
    return 0;
}

/* The path still names what was bound. */
static bool still_ours(const char *path, const struct zc_unixsock *sock)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_dev == sock->dev &&
           st.st_ino == sock->ino;
}

int zc_unixsock_open(const char *path, const struct zc_unixsock_options *options,
                     struct zc_unixsock *ret_sock, char ret_why[ZC_UNIXSOCK_WHY_MAX])
{
    /* 107 on Linux, less elsewhere. */
    size_t path_max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    if (strlen(path) > path_max)
        return refuse(ZC_EINVAL, ret_why, "the path has %zu bytes, this system takes at most %zu",
                      strlen(path), path_max);
    struct zc_unixsock sock = {.fd = stream_socket()};
    if (sock.fd < 0)
        return refuse(ZC_EMFILE, ret_why, "cannot make a socket: %s", strerror(errno));
    int lock = lock_directory(path);
    int r = clear_path(path, ret_why);
    if (r < 0)
        goto fail;
    r = bind_with_mode(sock.fd, path, options->mode, ret_why);
    if (r < 0)
        goto fail;
    r = finish(path, options, &sock, ret_why);
    if (r == 0 && listen(sock.fd, BACKLOG) < 0)
        r = refuse(ZC_EINVAL, ret_why, "%s", strerror(errno));
    if (r < 0)
        goto fail_bound;
    unlock_directory(lock);
    *ret_sock = sock;
    return 0;
fail_bound:
    if (still_ours(path, &sock))
        unlink(path);
fail:
    unlock_directory(lock);
    close(sock.fd);
    return r;
}

void zc_unixsock_close(const char *path, struct zc_unixsock *sock)
{
    int lock = lock_directory(path);
    /* Unlinked while it still listens: closed first, a successor could find it dead. */
    if (still_ours(path, sock))
        unlink(path);
    close(sock->fd);
    sock->fd = -1;
    unlock_directory(lock);
}
