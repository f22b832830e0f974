/* PATH.new and its way to PATH, see rebuild.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2 */
#endif
#include "host/rebuild.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "host/disk_io.h"
#include "store/record.h"
#include "zmqc/stored.h"

/* In PATH.new, so that a log of somebody else with such a name is never taken for ours; and in the
 * old one when it is about to get that name. */
#define MARK "rebuilding"
/* What it becomes in one that is whole, and waits for nothing but its place. */
#define WHOLE "rebuilt"
#define LOCK "lock"

enum kind { LOG, SIGN, ASIDE, FOREIGN };

static enum kind kind_of(const char *name)
{
    static const char *const signs[] = {".", "..", MARK, WHOLE, LOCK};
    size_t digits = strspn(name, "0123456789");
    for (size_t i = 0; i < ZC_ARRAY_LEN(signs); i++)
        if (strcmp(name, signs[i]) == 0)
            return SIGN;
    if (digits >= 8 && (strcmp(name + digits, ".zlog") == 0 || strcmp(name + digits, ".zidx") == 0))
        return LOG;
    return digits >= 8 && strncmp(name + digits, ".damaged", 8) == 0 ? ASIDE : FOREIGN;
}

/* Goes through the names in fd. Without `remove_all` only judges: false when one is foreign, or set
 * aside and there is no keep_fd for it. */
static bool walk(int fd, int keep_fd, bool remove_all)
{
    DIR *d = zc_disk_dir_list(fd);
    struct dirent *e;
    bool fine = d != NULL;
    while (fine && (e = readdir(d)) != NULL) {
        enum kind kind = kind_of(e->d_name);
        if (kind == FOREIGN || (kind == ASIDE && keep_fd < 0))
            fine = false;
        else if (remove_all && kind == ASIDE)
            fine = renameat(fd, e->d_name, keep_fd, e->d_name) == 0;
        else if (remove_all && kind == LOG)
            fine = unlinkat(fd, e->d_name, 0) == 0;
    }
    if (d != NULL)
        closedir(d);
    return fine;
}

/* PATH.new is one of ours: it has a mark, or no segment yet. */
static bool is_ours(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    bool segment = d == NULL, marked = false;
    while (d != NULL && (e = readdir(d)) != NULL) {
        segment = segment || zc_disk_number(e->d_name) != 0;
        marked = marked || strcmp(e->d_name, MARK) == 0 || strcmp(e->d_name, WHOLE) == 0;
    }
    if (d != NULL)
        closedir(d);
    return !segment || marked;
}

static int mark(int dir_fd)
{
    int fd = openat(dir_fd, MARK, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return zc_disk_io_err(errno);
    close(fd);
    return zc_disk_io_sync_dir(dir_fd);
}

static void unmark(int fd)
{
    unlinkat(fd, MARK, 0);
    unlinkat(fd, WHOLE, 0);
}

bool zc_rebuild_whole(const char *new_path)
{
    char name[PATH_MAX + 16];
    snprintf(name, sizeof(name), "%s/" WHOLE, new_path);
    return access(name, F_OK) == 0;
}

void zc_rebuild_unmark(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    unmark(fd);
    close(fd);
}

bool zc_rebuild_empty(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    bool empty = d != NULL;
    while (empty && (e = readdir(d)) != NULL)
        empty = e->d_name[0] == '.' && (e->d_name[1] == '\0' || strcmp(e->d_name, "..") == 0);
    if (d != NULL)
        closedir(d);
    return empty;
}

/* Removes the directory of a log and what is in it; last that by which it is known. Nothing is
 * touched when other files are there. 0 when there is none. */
static int remove_log(const char *path, int keep_fd)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : ZC_EEXIST;
    bool done = walk(fd, keep_fd, false) && walk(fd, keep_fd, true);
    if (done) {
        unmark(fd);
        unlinkat(fd, LOCK, 0);
    }
    close(fd);
    return done && rmdir(path) == 0 ? 0 : ZC_EEXIST;
}

static int beside(struct zc_rebuild *r, int err, const char *why)
{
    return zc_why_set(r->why, err, "the log beside it: %s", why);
}

static int in_the_way(struct zc_rebuild *r, int err, const char *why)
{
    return zc_why_set(r->why, err, "what lies at the same path plus .new %s", why);
}

/* Removes what an earlier one has left at PATH.new. */
static int clear(struct zc_rebuild *r)
{
    static const char foreign[] = "is not what an earlier import left: move it away";
    struct zc_disk_dir dir;
    char why[ZC_WHY_MAX];
    struct stat st;
    if (lstat(r->new_path, &st) != 0)
        return 0;
    if (zc_rebuild_whole(r->new_path) && lstat(r->path, &st) != 0)
        return in_the_way(r, ZC_EEXIST,
                          "is an import that was cut short at its last step: start the hub, which "
                          "ends it");
    if (!is_ours(r->new_path))
        return in_the_way(r, ZC_EEXIST, foreign);
    /* Whoever is at work there holds the lock; its files must not be taken from it. */
    int err = zc_disk_dir_open(r->new_path, &dir, why);
    if (err != 0)
        return in_the_way(r, err, why);
    err = remove_log(r->new_path, -1);
    zc_disk_dir_done(&dir);
    return err == 0 ? 0 : in_the_way(r, err, foreign);
}

int zc_rebuild_begin(struct zc_rebuild *r, const char *path, uint64_t segment_bytes)
{
    *r = (struct zc_rebuild){.path = path, .log = {.dir = {.fd = -1, .lock_fd = -1}}};
    if (zc_disk_dir_beside(path, ".new", r->new_path) != 0)
        return zc_why_set(r->why, ZC_EINVAL, "its path is too long");
    int err = clear(r);
    if (err != 0)
        return err;
    err = zc_offline_open(&r->log, r->new_path, ZC_OFFLINE_WRITE, segment_bytes, ZC_LOG_SYNC_NEVER);
    struct zc_log_event ev;
    r->open = err == 0;
    if (err == 0 && (err = mark(r->log.dir.fd)) != 0)
        return beside(r, err, zc_err_text(err));
    while (err == 0 && (err = zc_offline_event(&r->log, &ev)) == 1 && ev.kind != ZC_LOG_READY)
        err = 0;
    return err == 1 ? 0 : beside(r, err != 0 ? err : ZC_EIO, r->log.why);
}

/* After an append: lets the disk follow. */
static int appended(struct zc_rebuild *r, int64_t ticket)
{
    struct zc_log_event ev;
    int err = 0;
    if (ticket < 0)
        return beside(r, (int)ticket, zc_err_text((int)ticket));
    if (!zc_log_backlogged(r->log.log))
        return 0;
    while ((err = zc_offline_event(&r->log, &ev)) == 1)
        continue;
    return err == 0 ? 0 : beside(r, err, r->log.why);
}

int zc_rebuild_put(struct zc_rebuild *r, uint64_t seq, struct zc_slice body, bool state,
                   uint32_t attempt, int64_t due_ms)
{
    uint8_t fields[ZC_STORED_STATE_LEN];
    struct zc_stored_state later = {attempt, due_ms};
    if (body.len > ZC_RECORD_BODY_MAX)
        return zc_why_set(r->why, ZC_ELIMIT, "a message is too large");
    r->seq = seq > r->seq ? seq : r->seq;
    int err = appended(r, zc_log_append(r->log.log, ZC_RECORD_PUT, seq, body, false, NULL));
    if (err != 0 || !state)
        return err;
    return appended(r, zc_log_append(r->log.log, ZC_RECORD_STATE, seq,
                                     zc_stored_state_encode(&later, fields), false, NULL));
}

int zc_rebuild_add(struct zc_rebuild *r, enum zc_record_type type, uint64_t seq,
                   struct zc_slice body)
{
    r->seq = seq > r->seq ? seq : r->seq;
    return appended(r, zc_log_append(r->log.log, type, seq, body, false, NULL));
}

/* The mode is that of the old one. What root has made belongs to whom that, or the directory around
 * it, belongs to. */
static int own(struct zc_rebuild *r)
{
    struct stat st;
    struct dirent *e;
    int err = 0, fd = r->log.dir.fd;
    bool old = stat(r->path, &st) == 0;
    if (old && S_ISDIR(st.st_mode) && fchmod(fd, (st.st_mode & 07777) | 0700) != 0)
        return ZC_EACCES;
    if (geteuid() != 0 || (!old && fstatat(fd, "..", &st, 0) != 0))
        return 0;
    DIR *d = zc_disk_dir_list(fd);
    if (d == NULL)
        return ZC_EIO;
    while (err == 0 && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, "..") != 0)
            err = fchownat(fd, e->d_name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
    closedir(d);
    return err == 0 ? 0 : ZC_EACCES;
}

int zc_rebuild_sync(struct zc_rebuild *r, bool whole)
{
    int err = zc_offline_finish(&r->log);
    if (err != 0)
        return beside(r, err, r->log.why);
    err = own(r);
    if (err != 0)
        return beside(r, err, "cannot be given to the owner of the other");
    if (whole && renameat(r->log.dir.fd, MARK, r->log.dir.fd, WHOLE) != 0)
        return zc_why_errno(r->why, "the log beside it cannot be marked");
    err = zc_disk_io_sync_dir(r->log.dir.fd);
    if (err == 0)
        err = zc_disk_dir_sync_parent(r->new_path);
    return err == 0 ? 0 : beside(r, err, zc_err_text(err));
}

/* Two names change places in one step. */
static int swap(const char *a, const char *b)
{
#if defined(__APPLE__)
    return renamex_np(a, b, RENAME_SWAP);
#elif defined(RENAME_EXCHANGE)
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
#else
    (void)a;
    (void)b;
    errno = ENOSYS;
    return -1;
#endif
}

/* The log at PATH and that at PATH.new change places. The old one is marked, or else what a crash
 * leaves of it would be in the way of the next. */
static int exchange(struct zc_rebuild *r)
{
    int old = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
    if (old < 0 || !walk(old, r->log.dir.fd, false)) {
        err = zc_why_set(r->why, ZC_EEXIST, "holds other files beside the log: move them away");
    } else {
        (void)!mark(old);
        if (swap(r->new_path, r->path) != 0) {
            err =
                errno == EINVAL || errno == ENOSYS || errno == ENOTSUP
                    ? zc_why_set(r->why, ZC_EINVAL,
                                 "its file system cannot exchange two names: name a new directory")
                    : zc_why_errno(r->why, "the log beside it cannot take its place");
            unmark(old);
        }
    }
    if (old >= 0)
        close(old);
    return err;
}

int zc_rebuild_place(struct zc_rebuild *r, bool replace)
{
    int err = 0;
    if (replace)
        err = exchange(r);
    else if (rename(r->new_path, r->path) != 0)
        err = zc_why_errno(r->why, "the log beside it cannot take its place");
    if (err != 0)
        return err;
    r->open = false;
    err = zc_disk_dir_sync_parent(r->path);
    unmark(r->log.dir.fd);
    if (err != 0)
        return zc_why_set(r->why, err, "its directory cannot be synced: %s", zc_err_text(err));
    if (replace && remove_log(r->new_path, r->log.dir.fd) != 0)
        return in_the_way(r, ZC_EEXIST, "is what it held before, and cannot be removed: remove it");
    return 0;
}

void zc_rebuild_done(struct zc_rebuild *r)
{
    if (r->open)
        (void)!remove_log(r->new_path, -1);
    r->open = false;
    zc_offline_done(&r->log);
}
