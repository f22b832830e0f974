/*
 * One disk request as system calls. Short transfers are continued; an error in the middle is the
 * result. fdatasync is never tried again after an error: the kernel reports a lost page once only.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate, preadv2, renameat2 */
#endif
#include "host/disk_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Names tried for a damaged segment, when one number was set aside more than once. */
#define ASIDE_MAX 100

int zc_disk_io_err(int error)
{
    switch (error) {
    case 0:
        return 0;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ZC_ENOSPC;
    case ENOMEM:
        return ZC_ENOMEM;
    case EMFILE:
    case ENFILE:
        return ZC_EMFILE;
    case EACCES:
    case EPERM:
    case EROFS:
        return ZC_EACCES;
    case ENOENT:
        return ZC_ENOENT;
    case EEXIST:
        return ZC_EEXIST;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return ZC_EINVAL; /* the path is at fault, not the disk */
    default:
        return ZC_EIO;
    }
}

static int last_err(void)
{
    return zc_disk_io_err(errno);
}

/* Calls fsync, or what truly reaches the platter. */
static int sync_fd(int fd, bool all)
{
    int r;
    do {
#ifdef __APPLE__
        (void)all;
        r = fcntl(fd, F_FULLFSYNC);
        if (r < 0 && (errno == ENOTSUP || errno == EINVAL))
            r = fsync(fd);
#else
        r = all ? fsync(fd) : fdatasync(fd);
#endif
    } while (r < 0 && errno == EINTR);
    return r < 0 ? last_err() : 0;
}

int zc_disk_io_sync_dir(int dir_fd)
{
    int err = sync_fd(dir_fd, true);
#ifdef __APPLE__
    return err;
#else
    /* Some file systems cannot sync a directory and say so; they have no more to give. */
    return err != 0 && errno == EINVAL ? 0 : err;
#endif
}

static int open_segment(int dir_fd, uint32_t segment, int flags, int *fd)
{
    char name[ZC_DISK_NAME_MAX];
    if (*fd >= 0)
        return 0;
    zc_disk_name(segment, name);
    do
        *fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (*fd < 0 && errno == EINTR);
    return *fd < 0 ? last_err() : 0;
}

static int write_all(int fd, const uint8_t *data, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? last_err() : ZC_ENOSPC;
        data += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int write_zeros(int fd, uint64_t size)
{
    static const uint8_t zeros[65536];
    int err = 0;
    for (uint64_t at = 0; err == 0 && at < size; at += sizeof(zeros))
        err = write_all(fd, zeros, size - at < sizeof(zeros) ? (size_t)(size - at) : sizeof(zeros),
                        at);
    return err;
}

static int preallocate(int fd, uint64_t size)
{
#ifdef __linux__
    int r;
    do
        r = fallocate(fd, 0, 0, (off_t)size);
    while (r < 0 && errno == EINTR);
    if (r == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return last_err();
#endif
    return write_zeros(fd, size);
}

static int64_t do_create(int dir_fd, const struct zc_disk_op *op, int *fd)
{
    char name[ZC_DISK_NAME_MAX];
    int err = open_segment(dir_fd, op->segment, O_RDWR | O_CREAT | O_EXCL, fd);
    if (err != 0)
        return err;
    err = preallocate(*fd, op->size);
    if (err == 0)
        err = sync_fd(*fd, true);
    if (err != 0) {
        zc_disk_name(op->segment, name);
        unlinkat(dir_fd, name, 0);
        close(*fd);
        *fd = -1;
    }
    return err;
}

static int64_t do_write(int dir_fd, const struct zc_disk_op *op, int *fd, atomic_bool *ret_written)
{
    int err = open_segment(dir_fd, op->segment, O_RDWR, fd);
    if (err == 0)
        err = write_all(*fd, op->data, op->len, op->offset);
    if (err == 0)
        atomic_store(ret_written, true);
    if (err == 0 && op->sync)
        err = sync_fd(*fd, false);
    if (err == 0 && op->sync_dir)
        err = zc_disk_io_sync_dir(dir_fd);
    return err != 0 ? err : (int64_t)op->len;
}

int64_t zc_disk_io_read(int fd, uint8_t *ret_data, size_t len, uint64_t offset)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, ret_data + got, len - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return last_err();
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (int64_t)got;
}

static int64_t do_read(int dir_fd, const struct zc_disk_op *op, int *fd)
{
    int err = open_segment(dir_fd, op->segment, O_RDWR, fd);
    if (err != 0)
        return err;
#ifdef POSIX_FADV_DONTNEED
    /* All of the file: of a range, the kernel keeps the pages that it covers in part. */
    if (op->uncached)
        posix_fadvise(*fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
    return zc_disk_io_read(*fd, op->data, op->len, op->offset);
}

/* Whether both names are of one file. */
static bool same_file(int dir_fd, const char *a, const char *b)
{
    struct stat x, y;
    return fstatat(dir_fd, a, &x, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(dir_fd, b, &y, AT_SYMLINK_NOFOLLOW) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Gives a damaged segment a name that is no segment's, without replacing an older one. */
static int set_aside(int dir_fd, uint32_t segment)
{
    char name[ZC_DISK_NAME_MAX], aside[ZC_DISK_NAME_MAX + 16];
    zc_disk_name(segment, name);
    int stem = (int)strcspn(name, ".");
    for (int i = 0; i < ASIDE_MAX; i++) {
        if (i == 0)
            snprintf(aside, sizeof(aside), "%.*s.damaged", stem, name);
        else
            snprintf(aside, sizeof(aside), "%.*s.damaged.%d", stem, name, i);
        int error = linkat(dir_fd, name, dir_fd, aside, 0) == 0 ? 0 : errno;
        /* An attempt before this one may have come as far as the second name. */
        if (error == 0 || (error == EEXIST && same_file(dir_fd, name, aside)))
            return unlinkat(dir_fd, name, 0) == 0 ? 0 : last_err();
        if (error == EPERM || error == EOPNOTSUPP || error == EMLINK)
            return renameat(dir_fd, name, dir_fd, aside) == 0 ? 0 : last_err();
        if (error != EEXIST)
            return zc_disk_io_err(error);
    }
    return ZC_EEXIST;
}

/* An index is opened for each request: there is one in the life of a segment. */
static int64_t do_index(int dir_fd, const struct zc_disk_op *op)
{
    bool writing = op->kind == ZC_DISK_INDEX_WRITE;
    int flags = writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
    char name[ZC_DISK_NAME_MAX];
    int64_t result;
    zc_disk_index_name(op->segment, name);
    int fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return last_err();
    if (writing) {
        int err = write_all(fd, op->data, op->len, 0);
        if (err != 0)
            unlinkat(dir_fd, name, 0);
        result = err != 0 ? err : (int64_t)op->len;
    } else {
        result = zc_disk_io_read(fd, op->data, op->len, op->offset);
    }
    close(fd);
    return result;
}

/* Closing the last descriptor of a file without a name frees its blocks: that is done here too. */
static int64_t do_remove(int dir_fd, const struct zc_disk_op *op, int *fd)
{
    char name[ZC_DISK_NAME_MAX];
    int err = 0;
    zc_disk_index_name(op->segment, name);
    unlinkat(dir_fd, name, 0); /* mostly there is none */
    zc_disk_name(op->segment, name);
    if (op->aside)
        err = set_aside(dir_fd, op->segment);
    else if (unlinkat(dir_fd, name, 0) != 0)
        err = last_err();
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (err == 0 && op->sync_dir)
        err = zc_disk_io_sync_dir(dir_fd);
    return err;
}

int64_t zc_disk_io_run(int dir_fd, const struct zc_disk_op *op, int *fd, atomic_bool *ret_written)
{
    switch (op->kind) {
    case ZC_DISK_CREATE:
        return do_create(dir_fd, op, fd);
    case ZC_DISK_WRITE:
        return do_write(dir_fd, op, fd, ret_written);
    case ZC_DISK_READ:
        return do_read(dir_fd, op, fd);
    case ZC_DISK_REMOVE:
        return do_remove(dir_fd, op, fd);
    case ZC_DISK_INDEX_WRITE:
    case ZC_DISK_INDEX_READ:
        return do_index(dir_fd, op);
    }
    return ZC_EINVAL;
}

#ifdef RWF_NOWAIT
static int64_t read_now(int fd, const struct zc_disk_op *op)
{
    size_t got = 0;
    struct stat st;
    while (got < op->len) {
        struct iovec v = {.iov_base = op->data + got, .iov_len = op->len - got};
        ssize_t n = preadv2(fd, &v, 1, (off_t)(op->offset + got), RWF_NOWAIT);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    /* Less than asked for may be the end of the file or the end of what is in memory. */
    bool end = got == op->len ||
               (fstat(fd, &st) == 0 && (uint64_t)st.st_size <= op->offset + (uint64_t)got);
    return end ? (int64_t)got : ZC_EAGAIN;
}

int64_t zc_disk_io_read_now(int dir_fd, const struct zc_disk_op *op, int *fd)
{
    char name[ZC_DISK_NAME_MAX];
    if (op->kind == ZC_DISK_READ)
        return open_segment(dir_fd, op->segment, O_RDWR, fd) != 0 ? ZC_EAGAIN : read_now(*fd, op);
    zc_disk_index_name(op->segment, name);
    int index_fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int64_t n = index_fd < 0 ? ZC_EAGAIN : read_now(index_fd, op);
    if (index_fd >= 0)
        close(index_fd);
    return n;
}
#else
int64_t zc_disk_io_read_now(int dir_fd, const struct zc_disk_op *op, int *fd)
{
    (void)dir_fd;
    (void)op;
    (void)fd;
    return ZC_EAGAIN;
}
#endif
