/*
 * The directory of a log. It is only used when it is empty or plainly a log's already, so that a
 * wrong path never mixes segments into somebody's files. The lock belongs to the open file (OFD
 * lock, or flock where there are none): it ends with the process, however that ends.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include "host/disk_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/disk_io.h"
#include "store/disk.h"

#define LOCK_NAME "lock"

DIR *zc_disk_dir_list(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (d == NULL && copy >= 0)
        close(copy);
    return d;
}

/* Without slashes at its end. */
static size_t path_len(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

int zc_disk_dir_beside(const char *path, const char *end, char ret_path[PATH_MAX])
{
    int n = snprintf(ret_path, PATH_MAX, "%.*s%s", (int)path_len(path), path, end);
    return n >= 0 && n < PATH_MAX ? 0 : ZC_EINVAL;
}

int zc_disk_dir_sync_parent(const char *path)
{
    char parent[PATH_MAX];
    size_t len = path_len(path);
    while (len > 0 && path[len - 1] != '/')
        len--;
    int n = snprintf(parent, sizeof(parent), "%.*s.", (int)len, path);
    if (n < 0 || (size_t)n >= sizeof(parent))
        return ZC_EINVAL;
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : zc_disk_io_err(errno);
    int err = zc_disk_io_sync_dir(fd);
    close(fd);
    return err;
}

/* A service may often write its own directory only. */
static int cannot_write(char *why, const char *what)
{
    if (errno != EROFS)
        return zc_why_errno(why, what);
    return zc_why_set(why, zc_disk_io_err(EROFS),
                      "%s: Read-only file system: when that is the ProtectSystem= of the service, "
                      "add ReadWritePaths= with a directory that belongs to its user",
                      what);
}

static int open_directory(const char *path, struct zc_disk_dir *dir, char *why)
{
    bool made = mkdir(path, 0700) == 0;
    if (!made && errno == ENOENT)
        return zc_why_set(why, ZC_ENOENT, "its parent directory does not exist: create that first");
    if (!made && errno != EEXIST)
        return cannot_write(why, "cannot be created");
    dir->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0)
        return errno == ENOTDIR ? zc_why_set(why, ZC_EEXIST,
                                             "is a file, not a directory: name a directory, new or "
                                             "empty")
                                : zc_why_errno(why, "cannot be opened");
    if (!made)
        return 0;
    /* The new name itself must survive a power loss before anything in it is promised. */
    int err = zc_disk_dir_sync_parent(path);
    return err == 0 ? 0 : zc_why_set(why, err, "its parent cannot be synced: %s", zc_err_text(err));
}

int zc_disk_dir_add(struct zc_disk_dir *dir, uint32_t number)
{
    /* Grows by doubling: at each power of two. */
    if ((dir->count & (dir->count - 1)) == 0) {
        size_t cap = dir->count == 0 ? 1 : (size_t)dir->count * 2;
        uint32_t *segments = realloc(dir->segments, cap * sizeof(*segments));
        if (segments == NULL)
            return ZC_ENOMEM;
        dir->segments = segments;
    }
    dir->segments[dir->count++] = number;
    return 0;
}

/* Collects the segments; refuses a directory that holds other things and no log. */
static int scan(struct zc_disk_dir *dir, char *why)
{
    char foreign[64] = "";
    bool ours = false;
    int err = 0;
    DIR *d = zc_disk_dir_list(dir->fd);
    if (d == NULL)
        return zc_why_errno(why, "cannot be read");
    struct dirent *e;
    for (errno = 0; err == 0 && (e = readdir(d)) != NULL; errno = 0) {
        uint32_t number = zc_disk_number(e->d_name);
        if (number != 0)
            err = zc_disk_dir_add(dir, number);
        ours = ours || number != 0 || strcmp(e->d_name, LOCK_NAME) == 0;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, "lost+found") != 0 && foreign[0] == '\0')
            zc_text_escape(foreign, sizeof(foreign), zc_slice_str(e->d_name));
    }
    if (err != 0)
        err = zc_why_set(why, err, "cannot be read: %s", zc_err_text(err));
    else if (errno != 0)
        err = zc_why_errno(why, "cannot be read");
    else if (!ours && foreign[0] != '\0')
        err = zc_why_set(
            why, ZC_EEXIST,
            "holds other files (\"%s\") and no log: name a directory that is new or empty",
            foreign);
    closedir(d);
    return err;
}

/* 0, or -1 with errno. */
static int try_lock(int fd)
{
#ifdef F_OFD_SETLK
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
#endif
    return flock(fd, LOCK_EX | LOCK_NB);
}

static int take_lock(struct zc_disk_dir *dir, char *why)
{
    char pid[24] = "";
    dir->lock_fd = openat(dir->fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (dir->lock_fd < 0)
        return cannot_write(why, "its lock file cannot be opened");
    if (try_lock(dir->lock_fd) != 0) {
        if (errno != EAGAIN && errno != EACCES && errno != EWOULDBLOCK)
            return zc_why_errno(why, "its lock file cannot be locked");
        ssize_t n = pread(dir->lock_fd, pid, sizeof(pid) - 1, 0);
        for (ssize_t i = 0; i < n; i++)
            if (pid[i] < '0' || pid[i] > '9')
                n = i;
        pid[n < 0 ? 0 : n] = '\0';
        return zc_why_set(why, ZC_EBUSY,
                          "is in use by another hub%s%s: stop that one or name another directory",
                          pid[0] != '\0' ? ", process " : "", pid);
    }
    /* For the reader only; that it fails on a full disk is no harm. */
    int len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(dir->lock_fd, 0) == 0 && pwrite(dir->lock_fd, pid, (size_t)len, 0) < 0)
        errno = 0;
    return 0;
}

int zc_disk_dir_open(const char *path, struct zc_disk_dir *ret_dir, char ret_why[ZC_WHY_MAX])
{
    struct zc_disk_dir dir = {.fd = -1, .lock_fd = -1};
    int err = open_directory(path, &dir, ret_why);
    if (err == 0)
        err = scan(&dir, ret_why);
    if (err == 0)
        err = take_lock(&dir, ret_why);
    if (err == 0) {
        /* Another hub may have added or removed segments until the lock was ours. */
        dir.count = 0;
        free(dir.segments);
        dir.segments = NULL;
        err = scan(&dir, ret_why);
    }
    if (err != 0) {
        zc_disk_dir_done(&dir);
        return err;
    }
    *ret_dir = dir;
    return 0;
}

void zc_disk_dir_done(struct zc_disk_dir *dir)
{
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->fd >= 0)
        close(dir->fd);
    free(dir->segments);
    *dir = (struct zc_disk_dir){.fd = -1, .lock_fd = -1};
}
