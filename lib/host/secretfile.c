/* Small secret files; see secretfile.h. */
#include "host/secretfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crypto/secret.h"
#include "host/disk_io.h"

#define WRITER_MS 3000

static int refuse(char ret_why[ZC_SECRETFILE_WHY_MAX], const char *what, int error)
{
    snprintf(ret_why, ZC_SECRETFILE_WHY_MAX, "%s: %s", what, strerror(error));
    return zc_disk_io_err(error);
}

void zc_secretfile_done(struct zc_buf *text)
{
    if (text->data != NULL)
        zc_secret_wipe(text->data, text->cap);
    zc_buf_done(text);
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

/* The rename outlives a power loss only when the directory is synced too; what fails here is not
 * worth a failure: the file is right. */
static void sync_directory_of(const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (len >= sizeof(dir))
        return;
    memcpy(dir, len > 0 ? path : ".", len > 0 ? len : 1);
    dir[len > 0 ? len : 1] = '\0';
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)!zc_disk_io_sync_dir(fd);
    close(fd);
}

int zc_secretfile_write(const char *path, struct zc_slice text, char ret_why[ZC_SECRETFILE_WHY_MAX])
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.new-%ld", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return refuse(ret_why, "cannot be written", ENAMETOOLONG);
    unlink(temporary); /* of a process that had our number and was killed */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return refuse(ret_why, "cannot be written", errno);
    int error = fchmod(fd, 0600) < 0 ? errno : write_all(fd, text);
    if (close(fd) < 0 && error == 0)
        error = errno;
    if (error == 0 && rename(temporary, path) < 0)
        error = errno;
    if (error != 0) {
        unlink(temporary);
        return refuse(ret_why, "cannot be written", error);
    }
    sync_directory_of(path);
    return 0;
}

/* Reads to the end; 0 or an errno, EFBIG: longer than most. The writer of a <(command) may need a
 * moment, but not for ever. */
static int read_all(int fd, size_t most, struct zc_buf *text)
{
    for (;;) {
        ssize_t n = read(fd, text->data + text->len, most + 1 - text->len);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && poll(&p, 1, WRITER_MS) > 0)
            continue;
        if (n < 0 && errno == EAGAIN)
            return ETIMEDOUT;
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
