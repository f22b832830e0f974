/* Small secret files; see secretfile.h. */
#include "host/secretfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crypto/secret.h"
#include "host/disk_dir.h"
#include "host/disk_io.h"

/* How long a read waits for the writer of a pipe, altogether. */
#define WRITER_MS 3000

static int refuse(char ret_why[ZC_SECRETFILE_WHY_MAX], const char *what, int error)
{
    snprintf(ret_why, ZC_SECRETFILE_WHY_MAX, "%s: %s", what, strerror(error));
    return zc_disk_io_err(error);
}

static int say(char ret_why[ZC_SECRETFILE_WHY_MAX], int err, const char *what)
{
    snprintf(ret_why, ZC_SECRETFILE_WHY_MAX, "%s", what);
    return err;
}

void zc_secretfile_done(struct zc_buf *text)
{
    if (text->data != NULL)
        zc_secret_wipe(text->data, text->cap);
    zc_buf_done(text);
}

/* ---- writing ---- */

/* The directory that path lies in, open; -1 with errno. */
static int open_directory(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t len = slash == path ? 1 : (size_t)(slash - path);
    if (len >= sizeof(dir)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(dir, path, len);
    dir[len] = '\0';
    return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Writes all; 0 or an errno. */
static int write_all(int fd, struct zc_slice text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.data, text.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        text.data += n;
        text.len -= (size_t)n;
    }
    return fsync(fd) < 0 ? errno : 0;
}

/* Removes the temporary files of processes that were killed: they hold secrets, too. head: what
 * stands before the number of the process. */
static void sweep(int dir, const char *head)
{
    size_t len = strlen(head);
    DIR *d = zc_disk_dir_list(dir);
    struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        char *end = NULL;
        if (strncmp(e->d_name, head, len) != 0 || e->d_name[len] < '1' || e->d_name[len] > '9')
            continue;
        long pid = strtol(e->d_name + len, &end, 10);
        if (*end == '\0' && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH)
            unlinkat(dir, e->d_name, 0);
    }
    if (d != NULL)
        closedir(d);
}

/* A new file with these bytes on disk. */
static int make_file(int dir, const char *name, struct zc_slice text,
                     char ret_why[ZC_SECRETFILE_WHY_MAX])
{
    unlinkat(dir, name, 0); /* of a process that had our number and was killed */
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return refuse(ret_why, "cannot be written, its directory takes no file", errno);
    int error = fchmod(fd, 0600) < 0 ? errno : write_all(fd, text);
    if (close(fd) < 0 && error == 0)
        error = errno;
    if (error == 0)
        return 0;
    unlinkat(dir, name, 0);
    return refuse(ret_why, "cannot be written", error);
}

/* A device, a pipe, a directory, or a link to one. */
static bool is_no_file(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, 0) == 0 && !S_ISREG(st.st_mode);
}

/* Gives the temporary file its name. Without replace a file that appeared meanwhile stays. */
static int name_file(int dir, const char *from, const char *to, bool replace,
                     char ret_why[ZC_SECRETFILE_WHY_MAX])
{
    struct stat st;
    int err = 0;
    if (!replace && linkat(dir, from, dir, to, 0) == 0) {
        unlinkat(dir, from, 0);
        return 0;
    }
    if (!replace && (errno == EEXIST || fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0))
        err = say(ret_why, ZC_EEXIST, "is there already: name another file");
    else if (renameat(dir, from, dir, to) < 0) /* also where there are no hard links */
        err = refuse(ret_why, "cannot be replaced", errno);
    if (err != 0)
        unlinkat(dir, from, 0);
    return err;
}

int zc_secretfile_put(const char *path, struct zc_slice text, bool replace,
                      char ret_why[ZC_SECRETFILE_WHY_MAX])
{
    char temporary[NAME_MAX + 1], head[NAME_MAX + 1];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (name[0] == '\0')
        return say(ret_why, ZC_EINVAL, "is a directory: name a file");
    /* Its own for each file: another thread may write beside it. */
    int n = snprintf(head, sizeof(head), ".%s.new-", name);
    if (n > 0 && (size_t)n < sizeof(head))
        n = snprintf(temporary, sizeof(temporary), "%s%ld", head, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return refuse(ret_why, "cannot be written", ENAMETOOLONG);
    int dir = open_directory(path);
    if (dir < 0 && errno == ENOENT)
        return say(ret_why, ZC_ENOENT, "its directory does not exist: create that first");
    if (dir < 0)
        return refuse(ret_why, "its directory cannot be opened", errno);
    sweep(dir, head);
    int err = replace && is_no_file(dir, name)
                  ? say(ret_why, ZC_EINVAL, "is there and no regular file: name another")
                  : make_file(dir, temporary, text, ret_why);
    if (err == 0)
        err = name_file(dir, temporary, name, replace, ret_why);
    if (err == 0 && (err = zc_disk_io_sync_dir(dir)) != 0)
        say(ret_why, err, "is written, but its directory cannot be synced");
    close(dir);
    return err;
}

int zc_secretfile_write(const char *path, struct zc_slice text, char ret_why[ZC_SECRETFILE_WHY_MAX])
{
    return zc_secretfile_put(path, text, true, ret_why);
}

/* ---- reading ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads to the end; 0 or an errno, EFBIG: longer than most. The writer of a <(command) may need a
 * moment, but not for ever. */
static int read_all(int fd, size_t most, struct zc_buf *text)
{
    int64_t end_ms = now_ms() + WRITER_MS;
    for (;;) {
        ssize_t n = read(fd, text->data + text->len, most + 1 - text->len);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            int64_t left_ms = end_ms - now_ms();
            if (left_ms <= 0)
                return ETIMEDOUT;
            (void)poll(&p, 1, (int)left_ms);
            continue;
        }
        if (n < 0)
            return errno;
        text->len += (size_t)n;
        if (text->len > most)
            return EFBIG;
        if (n == 0)
            return 0;
    }
}

int zc_secretfile_read(const char *path, size_t most, struct zc_buf *ret_text,
                       char ret_why[ZC_SECRETFILE_WHY_MAX])
{
    struct zc_buf text = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        int error = errno;
        (void)refuse(ret_why, "cannot be opened", error);
        return error == ENOENT || error == ENOTDIR ? ZC_ENOENT : zc_disk_io_err(error);
    }
    int error = fstat(fd, &st) < 0 ? errno : 0;
    if (error == 0 && S_ISDIR(st.st_mode))
        error = EISDIR;
    if (error == 0 && zc_buf_reserve(&text, most + 1) != 0)
        error = ENOMEM;
    if (error == 0)
        error = read_all(fd, most, &text);
    close(fd);
    if (error != 0) {
        zc_secretfile_done(&text);
        return refuse(ret_why, "cannot be read", error);
    }
    *ret_text = text;
    return 0;
}
