/* A log without a hub, see offline.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include "host/offline.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/disk_io.h"
#include "store/segment.h"
#include "zmqc/item.h"

#define WAIT_MS_MAX 100
#define SEGMENT_BYTES (UINT64_C(8) << 20)

/* READ: keeps hubs away, where there is a lock that one would take. */
static int lock_shared(struct zc_offline *o)
{
    static const char busy[] = "is in use by a hub: stop that one, or name a copy";
    o->dir.lock_fd = openat(o->dir.fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (o->dir.lock_fd < 0)
        return errno == ENOENT ? 0 : zc_why_errno(o->why, "its lock file cannot be opened");
#ifdef F_OFD_SETLK
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(o->dir.lock_fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return zc_why_set(o->why, ZC_EBUSY, "%s", busy);
#endif
    if (flock(o->dir.lock_fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return zc_why_set(o->why, ZC_EBUSY, "%s", busy);
    return 0;
}

/* Counts what is there; with `enter`, the segments become those of the directory. */
static int look(struct zc_offline *o, bool enter, bool *ret_ours)
{
    DIR *d = zc_disk_dir_list(o->dir.fd);
    struct dirent *e;
    struct stat st;
    int err = 0;
    if (d == NULL)
        return zc_why_errno(o->why, "cannot be read");
    while (err == 0 && (e = readdir(d)) != NULL) {
        uint32_t number = zc_disk_number(e->d_name);
        bool aside = strstr(e->d_name, ".damaged") != NULL;
        *ret_ours = *ret_ours || number != 0 || aside || strcmp(e->d_name, "lock") == 0;
        if ((number == 0 && !aside) || fstatat(o->dir.fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (number != 0 && (o->smallest == 0 || (uint64_t)st.st_size < o->smallest))
            o->smallest = (uint64_t)st.st_size;
        o->aside += aside;
        o->aside_bytes += aside ? (uint64_t)st.st_size : 0;
        o->bytes += number != 0 ? (uint64_t)st.st_size : 0;
        if (number != 0 && enter)
            err = zc_disk_dir_add(&o->dir, number);
    }
    closedir(d);
    return err == 0 ? 0 : zc_why_set(o->why, err, "cannot be read: %s", zc_err_text(err));
}

static int open_read(struct zc_offline *o, const char *path)
{
    bool ours = false;
    o->dir.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (o->dir.fd < 0 && errno == ENOTDIR)
        return zc_why_set(o->why, ZC_EEXIST, "is a file: want the directory of a log");
    if (o->dir.fd < 0)
        return zc_why_errno(o->why, "cannot be opened");
    int err = lock_shared(o);
    if (err == 0)
        err = look(o, true, &ours);
    if (err == 0 && !ours)
        err = zc_why_set(o->why, ZC_EEXIST, "holds no log: want the directory given to --mailbox");
    return err;
}

int zc_offline_open(struct zc_offline *o, const char *path, enum zc_offline_mode mode,
                    uint64_t segment_bytes, enum zc_log_sync sync)
{
    uint8_t seed[32];
    bool ours = false;
    *o = (struct zc_offline){.mode = mode, .dir = {.fd = -1, .lock_fd = -1}};
    int err =
        mode == ZC_OFFLINE_READ ? open_read(o, path) : zc_disk_dir_open(path, &o->dir, o->why);
    if (err == 0 && mode == ZC_OFFLINE_WRITE)
        err = look(o, false, &ours);
    if (err != 0)
        return err;
    if (getentropy(seed, sizeof(seed)) != 0)
        return zc_why_set(o->why, ZC_EIO, "cannot be opened: the system gives no random bytes");
    zc_rng_init(&o->rng, seed);
    if (segment_bytes == 0)
        segment_bytes = o->smallest != 0 ? o->smallest : SEGMENT_BYTES;
    struct zc_log_config config = {.sync = sync,
                                   .segment_bytes = segment_bytes,
                                   .segments = o->dir.segments,
                                   .segments_count = o->dir.count,
                                   .body_head = zc_item_head};
    o->log = zc_log_new(&config, &o->rng);
    return o->log != NULL ? 0 : zc_why_set(o->why, ZC_ENOMEM, "cannot be opened: out of memory");
}

static void file_forget(struct zc_offline *o, uint32_t segment)
{
    for (size_t i = 0; i < ZC_OFFLINE_FILES; i++) {
        if (o->files[i].segment != segment)
            continue;
        close(o->files[i].fd);
        o->files[i].segment = 0;
    }
}

/* The place of an open segment; opened when `open_now`. NULL: it is not open. */
static struct zc_offline_file *file_of(struct zc_offline *o, uint32_t segment, bool open_now)
{
    char name[ZC_DISK_NAME_MAX];
    for (size_t i = 0; i < ZC_OFFLINE_FILES; i++)
        if (o->files[i].segment == segment)
            return &o->files[i];
    if (!open_now)
        return NULL;
    zc_disk_name(segment, name);
    int flags = o->mode == ZC_OFFLINE_READ ? O_RDONLY : O_RDWR;
    int fd = openat(o->dir.fd, name, flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    struct zc_offline_file *f = &o->files[o->files_next++ % ZC_OFFLINE_FILES];
    if (f->segment != 0)
        close(f->fd);
    *f = (struct zc_offline_file){segment, fd};
    return f;
}

/* Carries out one request. */
static int64_t run(struct zc_offline *o, const struct zc_disk_op *op)
{
    atomic_bool written = false;
    bool uses = op->kind == ZC_DISK_READ || op->kind == ZC_DISK_WRITE;
    if (op->kind == ZC_DISK_INDEX_READ && o->mode == ZC_OFFLINE_READ)
        return ZC_ENOENT;
    struct zc_offline_file *f = uses ? file_of(o, op->segment, true) : NULL;
    if (uses && f == NULL)
        return zc_disk_io_err(errno);
    int fd = f != NULL ? f->fd : -1;
    int64_t result = zc_disk_io_run(o->dir.fd, op, &fd, &written);
    if (f == NULL && fd >= 0)
        close(fd);
    if (op->kind == ZC_DISK_REMOVE)
        file_forget(o, op->segment);
    if (op->kind == ZC_DISK_READ && result > 0)
        o->bytes_read += (uint64_t)result;
    return result;
}

static bool changes(const struct zc_disk_op *op)
{
    return op->kind != ZC_DISK_READ && op->kind != ZC_DISK_INDEX_READ;
}

/* What went wrong, when the log reports trouble. */
static int trouble(struct zc_offline *o, const struct zc_log_event *ev)
{
    struct zc_log_status st;
    zc_log_status(o->log, &st);
    if (ev->kind == ZC_LOG_UNUSABLE)
        return zc_why_set(o->why, ev->err, "%s", ev->text);
    if (st.failures == 0)
        return 0;
    return zc_why_set(o->why, st.last_err, "cannot be written: %s", zc_err_text(st.last_err));
}

int zc_offline_event(struct zc_offline *o, struct zc_log_event *ret_event)
{
    struct zc_disk_op op;
    while (!o->all_read) {
        if (zc_log_event(o->log, ret_event)) {
            int err = trouble(o, ret_event);
            return err != 0 ? err : 1;
        }
        if (!zc_log_op(o->log, zc_clock_now(), &op))
            return 0;
        if (o->mode == ZC_OFFLINE_READ && changes(&op)) {
            o->all_read = true;
            break;
        }
        struct zc_disk_completion done = {.id = op.id, .result = run(o, &op)};
        zc_log_input(o->log, zc_clock_now(), &done);
    }
    return 0;
}

void zc_offline_wait(struct zc_offline *o)
{
    struct zc_mono at = zc_log_deadline(o->log);
    struct zc_now now = zc_clock_now();
    int64_t ms = at.ns > now.mono.ns ? zc_mono_diff_ms(now.mono, at) + 1 : 0;
    if (ms > 0)
        usleep((useconds_t)(ms < WAIT_MS_MAX ? ms : WAIT_MS_MAX) * 1000);
    zc_log_tick(o->log, zc_clock_now());
}

/* Reads len bytes of a segment. False: they are not there. */
static bool read_at(int fd, uint8_t *ret_data, size_t len, uint64_t offset)
{
    return zc_disk_io_read(fd, ret_data, len, offset) == (int64_t)len;
}

int zc_offline_read(struct zc_offline *o, uint64_t place, size_t len, struct zc_buf *buf,
                    struct zc_slice *ret_body)
{
    struct zc_segment s = {.number = (uint32_t)(place >> 32)};
    struct zc_record r;
    uint8_t head[ZC_SEGMENT_HEAD];
    uint64_t offset = (uint32_t)place;
    struct zc_offline_file *f = file_of(o, s.number, true);
    buf->len = 0;
    if (f == NULL)
        return zc_why_errno(o->why, "cannot be read");
    if (zc_buf_reserve(buf, ZC_RECORD_HEAD + len) != 0)
        return zc_why_set(o->why, ZC_ENOMEM, "cannot be read: out of memory");
    if (!read_at(f->fd, head, sizeof(head), 0) || zc_segment_head_decode(head, &s) != 0 ||
        !read_at(f->fd, buf->data, ZC_RECORD_HEAD + len, offset) ||
        zc_record_decode(buf->data, s.salt, offset, &r) != 0 || r.len != len ||
        !zc_record_body_ok(&r, buf->data + ZC_RECORD_HEAD))
        return zc_why_set(o->why, ZC_EBADMSG, "a record cannot be read any more: check the disk");
    *ret_body = zc_slice(buf->data + ZC_RECORD_HEAD, len);
    return 0;
}

int zc_offline_finish(struct zc_offline *o)
{
    struct zc_log_event ev;
    struct zc_log_status st;
    zc_log_close(o->log, zc_clock_now());
    for (;;) {
        int r = zc_offline_event(o, &ev);
        if (r < 0)
            return r;
        zc_log_status(o->log, &st);
        if (r == 0 && st.state == ZC_LOG_CLOSED)
            return 0;
        if (r == 0)
            zc_offline_wait(o);
    }
}

void zc_offline_done(struct zc_offline *o)
{
    for (size_t i = 0; i < ZC_OFFLINE_FILES; i++)
        if (o->files[i].segment != 0)
            close(o->files[i].fd);
    zc_log_free(o->log);
    zc_disk_dir_done(&o->dir);
    o->log = NULL;
}
