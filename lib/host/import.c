/* The Go program's mailbox file, imported at the start of a hub; see import.h. */
#include "host/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/disk_io.h"
#include "host/rebuild.h"
#include "node/original.h"

/* More than any Go program could rewrite for each message, and less than a mistake costs. */
#define FILE_MAX ((off_t)4 << 30)
#define ROUNDS_MAX 3

struct import {
    const char *path;
    char imported[PATH_MAX], made[PATH_MAX]; /* PATH.imported, PATH.new */
    char *why;
    int fd; /* of the file, locked */
    struct stat st;
    uint8_t *data;
};

/* Opens and locks the file at path, so that one start at a time works on it. ZC_EAGAIN: it was
 * another file by then. */
static int file_take(struct import *im, const char *path)
{
    struct stat now;
    im->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (im->fd < 0)
        return errno == ENOENT ? ZC_EAGAIN : zc_why_errno(im->why, "cannot be opened");
    if (flock(im->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return zc_why_set(im->why, ZC_EBUSY,
                          "is being imported by another hub: let that one go on");
    if (fstat(im->fd, &im->st) != 0)
        return zc_why_errno(im->why, "cannot be read");
    if (stat(path, &now) != 0 || now.st_ino != im->st.st_ino || now.st_dev != im->st.st_dev)
        return ZC_EAGAIN;
    return 0;
}

static void file_give(struct import *im)
{
    if (im->fd >= 0)
        close(im->fd);
    im->fd = -1;
}

/* Whatever does not begin as JSON is not read as a whole. */
static bool begins(int fd)
{
    char head[4096];
    ssize_t n = pread(fd, head, sizeof(head), 0);
    for (ssize_t i = 0; i < n; i++)
        if (strchr(" \t\r\n", head[i]) == NULL || head[i] == '\0')
            return head[i] == '{';
    return false;
}

static int file_read(struct import *im)
{
    size_t len = (size_t)im->st.st_size, got = 0;
    if (im->st.st_size > FILE_MAX)
        return zc_why_set(im->why, ZC_EBADMSG, "is a file of more than 4 GiB, and no mailbox file");
    if (len > 0 && !begins(im->fd))
        return zc_why_set(im->why, ZC_EBADMSG,
                          "is a file, and no mailbox file of the Go zmqcat: name a directory");
    im->data = malloc(len + 1);
    if (im->data == NULL)
        return zc_why_set(im->why, ZC_ENOMEM, "cannot be imported: out of memory");
    while (got <= len) {
        ssize_t n = read(im->fd, im->data + got, len + 1 - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return zc_why_errno(im->why, "cannot be read");
        if (n == 0)
            break;
        got += (size_t)n;
    }
    if (got != len)
        return zc_why_set(im->why, ZC_EBUSY,
                          "changes while it is read: stop the program that uses it");
    return 0;
}

static int damaged(const struct zc_original *o, char why[ZC_WHY_MAX])
{
    if (o->error_at == 0)
        return zc_why_set(why, ZC_EBADMSG, "is no mailbox file of the Go zmqcat (%s)", o->error);
    return zc_why_set(why, ZC_EBADMSG,
                      "is damaged, or no mailbox file of the Go zmqcat (%s, near byte %zu)",
                      o->error, o->error_at);
}

int zc_import_messages(struct zc_rebuild *r, uint8_t *data, size_t len, int64_t *ret_count,
                       char ret_why[ZC_WHY_MAX])
{
    struct zc_original o;
    struct zc_item item;
    int64_t count = 0;
    int more = 0, err = zc_original_open(&o, data, len);
    if (err == 0)
        while ((more = zc_original_next(&o, &item)) == 1) {
            struct zc_block *body = zc_item_encode(&item, NULL, 0);
            err = body == NULL ? ZC_ENOMEM
                               : zc_rebuild_put(r, r->seq + 1, zc_block_slice(body), false, 0, 0);
            zc_block_unref(body);
            if (err != 0)
                break;
            count++;
        }
    if (err == 0)
        err = more;
    if (err == ZC_EBADMSG && o.error != NULL)
        err = damaged(&o, ret_why);
    else if (err != 0)
        zc_why_set(ret_why, err, "cannot be imported: %s",
                   r->why[0] != '\0' ? r->why : zc_err_text(err));
    *ret_count = count;
    zc_original_done(&o);
    return err;
}

/* The last two steps. */
static int names_change(struct import *im, struct zc_rebuild *r)
{
    struct stat st;
    if (lstat(im->imported, &st) == 0)
        return zc_why_set(
            im->why, ZC_EEXIST,
            "is a mailbox file to be imported, but the same path plus .imported is there "
            "already: move that away");
    if (rename(im->path, im->imported) != 0)
        return zc_why_errno(im->why, "cannot be renamed to the same path plus .imported");
    r->open = false; /* from here on PATH.new is what a next start goes on with */
    int err = zc_disk_dir_sync_parent(im->path);
    if (err != 0)
        return zc_why_set(im->why, err, "its directory cannot be synced");
    err = zc_rebuild_place(r, false);
    return err == 0 ? 0 : zc_why_set(im->why, err, "%s", r->why);
}

/* All steps, for the file at path. */
static int file_import(struct import *im, uint64_t segment_bytes, int64_t *ret_count)
{
    struct zc_rebuild r;
    int err = file_read(im);
    if (err != 0)
        return err;
    if (im->st.st_size == 0)
        return zc_why_set(im->why, ZC_EBADMSG, "is an empty file: name a directory, new or empty");
    err = zc_rebuild_begin(&r, im->path, segment_bytes);
    if (err == 0)
        err = zc_import_messages(&r, im->data, (size_t)im->st.st_size, ret_count, im->why);
    if (err == 0)
        err = zc_rebuild_sync(&r, true);
    if (err != 0 && r.why[0] != '\0')
        zc_why_set(im->why, err, "cannot be imported: %s", r.why);
    if (err == 0)
        err = names_change(im, &r);
    zc_rebuild_done(&r);
    return err;
}

/* Nothing is at path: the last step of an import may be missing. Only an import of this kind says
 * of PATH.new that it is whole, and holds PATH.imported while it works; what `zmqcat store import`
 * makes there, or has left there, is not for us. */
static int last_step(struct import *im)
{
    struct stat st;
    if (!zc_rebuild_whole(im->made) || stat(im->imported, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    int err = file_take(im, im->imported);
    if (err != 0)
        return err;
    if (rename(im->made, im->path) != 0)
        return errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST
                   ? ZC_EAGAIN
                   : zc_why_errno(im->why, "its import cannot be ended");
    err = zc_disk_dir_sync_parent(im->path);
    if (err != 0)
        return zc_why_set(im->why, err, "its directory cannot be synced");
    zc_rebuild_unmark(im->path);
    return 0;
}

static int look(struct import *im, uint64_t segment_bytes, int64_t *ret_count)
{
    struct stat st;
    if (stat(im->path, &st) != 0)
        return errno == ENOENT ? last_step(im) : 0;
    if (!S_ISREG(st.st_mode))
        return 0;
    int err = file_take(im, im->path);
    return err != 0 ? err : file_import(im, segment_bytes, ret_count);
}

int zc_import_start(const char *path, uint64_t segment_bytes, int64_t *ret_count,
                    char ret_why[ZC_WHY_MAX])
{
    struct import im = {.path = path, .why = ret_why, .fd = -1};
    int err = ZC_EAGAIN;
    *ret_count = -1;
    if (zc_disk_dir_beside(path, ".imported", im.imported) != 0 ||
        zc_disk_dir_beside(path, ".new", im.made) != 0)
        return 0; /* the directory's open says what is wrong */
    for (int i = 0; err == ZC_EAGAIN && i < ROUNDS_MAX; i++) {
        err = look(&im, segment_bytes, ret_count);
        file_give(&im);
        free(im.data);
        im.data = NULL;
    }
    if (err == ZC_EAGAIN)
        return zc_why_set(im.why, ZC_EBUSY,
                          "changes while it is looked at: another hub starts here");
    if (err != 0)
        *ret_count = -1;
    return err;
}
