/*
 * The key file on disk, and who may have seen it. See keyfile.h.
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
#include "host/secretfile.h"

_Static_assert(ZC_KEYFILE_WHY_MAX == ZC_SECRETFILE_WHY_MAX, "one reason fits the other");

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

int zc_keyfile_save(const char *path, const struct zc_keyfile *keys, bool replace,
                    char ret_why[ZC_KEYFILE_WHY_MAX])
{
    struct zc_buf text = {0};
    int err = zc_keyfile_encode(keys, &text);
    if (err != 0)
        file_refuse(ret_why, err, "memory is short");
    else
        err = zc_secretfile_put(path, zc_slice(text.data, text.len), replace, ret_why);
    zc_secretfile_done(&text);
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
