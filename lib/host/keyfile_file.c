/*
 * The key file on disk: who may have seen it, and writing it whole or not at all. See keyfile.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/disk_io.h"
#include "host/keyfile.h"

#define PATH_BYTES 4096

__attribute__((format(printf, 3, 4))) static int file_refuse(char ret_why[ZC_KEYFILE_WHY_MAX],
                                                             int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ret_why, ZC_KEYFILE_WHY_MAX, format, args);
    va_end(args);
    return err;
}

static int file_refuse_errno(char ret_why[ZC_KEYFILE_WHY_MAX], const char *what)
{
    int e = errno;
    return file_refuse(ret_why, zc_disk_io_err(e), "%s: %s", what, strerror(e));
}

static int file_judge(const struct stat *st, char ret_why[ZC_KEYFILE_WHY_MAX])
{
    unsigned open_to = (unsigned)st->st_mode & 077;
    if (!S_ISREG(st->st_mode))
        return file_refuse(ret_why, ZC_EINVAL, "is not a regular file");
    if (geteuid() != 0 && st->st_uid != geteuid() && st->st_uid != 0)
        return file_refuse(ret_why, ZC_EACCES,
                           "belongs to another user (uid %lu), who then knows its keys: make one "
                           "of your own",
                           (unsigned long)st->st_uid);
    /* systemd opens a credential to the service by an ACL, whose mask shows as the group's bits. */
    if (st->st_uid == 0 && st->st_gid == 0 && (open_to & ~040u) == 0)
        return 0;
    if (open_to != 0)
        return file_refuse(ret_why, ZC_EACCES,
                           "may be read or changed by others (mode %04o), so its keys must be "
                           "taken as known: make a new one, or, if nobody saw it, chmod 600",
                           (unsigned)st->st_mode & 07777);
    if (st->st_size > ZC_KEYFILE_BYTES_MAX)
        return file_refuse(ret_why, ZC_ELIMIT, "is no key file: it is longer than 64 KiB");
    return 0;
}

/* Reads the whole file, at most size + 1 bytes; the count, or -1 with errno. */
static ssize_t file_read(int fd, uint8_t *data, size_t cap)
{
    size_t len = 0;
    while (len < cap) {
        ssize_t n = read(fd, data + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

int zc_keyfile_load(const char *path, struct zc_keyfile *ret_keys, char ret_why[ZC_KEYFILE_WHY_MAX])
{
    const size_t cap = ZC_KEYFILE_BYTES_MAX + 1;
    uint8_t *text = NULL;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT ? file_refuse(ret_why, ZC_ENOENT, "does not exist")
                               : file_refuse_errno(ret_why, "cannot be opened");
    int err = fstat(fd, &st) == 0 ? file_judge(&st, ret_why)
                                  : file_refuse_errno(ret_why, "cannot be looked at");
    if (err != 0)
        goto done;
    text = malloc(cap);
    if (text == NULL) {
        err = file_refuse(ret_why, ZC_ENOMEM, "memory is short");
        goto done;
    }
    ssize_t len = file_read(fd, text, cap);
    if (len < 0)
        err = file_refuse_errno(ret_why, "cannot be read");
    else if ((size_t)len == cap)
        err = file_refuse(ret_why, ZC_ELIMIT, "is no key file: it is longer than 64 KiB");
    else
        err = zc_keyfile_decode(zc_slice(text, (size_t)len), ret_keys, ret_why);
    zc_secret_wipe(text, cap);
done:
    free(text);
    close(fd);
    return err;
}

/* The directory that path lies in, open; -1 with errno. */
static int file_directory(const char *path)
{
    char dir[PATH_BYTES];
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

/* A new file of mode 0600, whatever the umask, with these bytes on disk. */
static int file_write(int dir, const char *name, const struct zc_buf *text,
                      char ret_why[ZC_KEYFILE_WHY_MAX])
{
    int err = 0;
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return file_refuse_errno(ret_why, "cannot be written, its directory takes no file");
    if (fchmod(fd, 0600) != 0)
        err = file_refuse_errno(ret_why, "cannot be given mode 0600");
    for (size_t done = 0; err == 0 && done < text->len;) {
        ssize_t n = write(fd, text->data + done, text->len - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            err = file_refuse_errno(ret_why, "cannot be written");
    }
    if (err == 0 && fsync(fd) != 0)
        err = file_refuse_errno(ret_why, "cannot be synced");
    if (close(fd) != 0 && err == 0)
        err = file_refuse_errno(ret_why, "cannot be written");
    if (err != 0)
        unlinkat(dir, name, 0);
    return err;
}

/* Gives the temporary file its name. Without replace a file that appeared meanwhile stays. */
static int file_name(int dir, const char *from, const char *to, bool replace,
                     char ret_why[ZC_KEYFILE_WHY_MAX])
{
    struct stat st;
    int err = 0;
    if (!replace && linkat(dir, from, dir, to, 0) == 0) {
        unlinkat(dir, from, 0);
        goto sync;
    }
    if (!replace && (errno == EEXIST || fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0))
        err = file_refuse(ret_why, ZC_EEXIST, "is there already: name another file");
    else if (renameat(dir, from, dir, to) != 0) /* also where there are no hard links */
        err = file_refuse_errno(ret_why, "cannot be replaced");
    if (err != 0) {
        unlinkat(dir, from, 0);
        return err;
    }
sync:
    err = zc_disk_io_sync_dir(dir);
    return err == 0 ? 0
                    : file_refuse(ret_why, err, "is written, but its directory cannot be synced");
}

int zc_keyfile_save(const char *path, const struct zc_keyfile *keys, bool replace,
                    char ret_why[ZC_KEYFILE_WHY_MAX])
{
    char temporary[64];
    struct zc_buf text = {0};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (name[0] == '\0')
        return file_refuse(ret_why, ZC_EINVAL, "is a directory: name a file");
    int dir = file_directory(path);
    if (dir < 0)
        return errno == ENOENT ? file_refuse(ret_why, ZC_ENOENT,
                                             "its directory does not exist: create that first")
                               : file_refuse_errno(ret_why, "its directory cannot be opened");
    snprintf(temporary, sizeof(temporary), ".zmqcat-key-%ld", (long)getpid());
    unlinkat(dir, temporary, 0); /* of a process that had our number and was killed */
    int err = zc_keyfile_encode(keys, &text);
    if (err != 0)
        file_refuse(ret_why, err, "memory is short");
    else
        err = file_write(dir, temporary, &text, ret_why);
    if (err == 0)
        err = file_name(dir, temporary, name, replace, ret_why);
    zc_keyfile_text_done(&text);
    close(dir);
    return err;
}

int zc_keyfile_open(const char *path, enum zc_keyfile_role role, struct zc_keyfile *ret_keys,
                    bool *ret_made, char ret_why[ZC_KEYFILE_WHY_MAX])
{
    struct zc_keyfile fresh;
    *ret_made = false;
    int err = zc_keyfile_load(path, ret_keys, ret_why);
    if (err != ZC_ENOENT)
        return err;
    zc_keyfile_generate(role, &fresh);
    err = zc_keyfile_save(path, &fresh, false, ret_why);
    if (err == 0) {
        *ret_keys = fresh;
        *ret_made = true;
    } else if (err == ZC_EEXIST) { /* another process was faster */
        err = zc_keyfile_load(path, ret_keys, ret_why);
    }
    zc_keyfile_done(&fresh);
    return err;
}
