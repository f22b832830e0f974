/*
 * Requests on their way: which run on the loop and which on the pool, and the open files. A request
 * may run on the loop when the log allows it and the disk was fast lately; times are measured
 * wherever it runs, the first ones on the pool.
 *
 * A few segments stay open; those written to always do, so that the log goes on when the process is
 * out of file descriptors, and one descriptor is kept in reserve for making the next one.
 */
#include "host/disk.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "host/disk_dir.h"
#include "host/disk_io.h"

#define FILES_MAX 24
/* Segments written to that stay open: the current and the next one. */
#define PINNED 2
#define FAST_NS UINT64_C(500000)
/* A sync on the loop stops only the one client that waits for it, and saves it two thread hops. */
#define FAST_SYNC_NS UINT64_C(5000000)
#define HICCUP_NS UINT64_C(5000000)

struct file {
    uint32_t number; /* 0: free */
    int fd;
    uint32_t refs;
    bool written;
    bool gone; /* removed: closed with the last reference */
    uint64_t used;
};

struct job {
    uv_work_t work;
    struct zc_disk *disk;
    struct zc_disk_op op;
    zc_disk_done_fn done;
    void *arg;
    struct file *file; /* holds a reference, or NULL */
    int fd;
    int64_t result;
    uint64_t took_ns;
    bool again;          /* tried once more after running out of descriptors */
    atomic_bool written; /* by the pool's thread: only the sync is left */
    bool told;           /* the caller knows */
    struct job *next;    /* in its list: syncing or spare */
};

/* How long things take here; 0 until measured. */
struct speed {
    uint64_t sync_ns;
    uint64_t write_ns;
};

struct zc_disk {
    uv_loop_t *loop;
    struct zc_disk_dir dir;
    struct file files[FILES_MAX];
    uint64_t uses;
    struct speed speed;
    struct job *spare_jobs;
    struct job *syncing; /* WRITEs with sync on the pool */
    uint32_t busy;
    int spare_fd;
};

static void spare_take(struct zc_disk *disk)
{
    if (disk->spare_fd < 0)
        disk->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void file_close(struct file *f)
{
    close(f->fd);
    *f = (struct file){0};
}

static struct file *file_find(struct zc_disk *disk, uint32_t number)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        if (disk->files[i].number == number && !disk->files[i].gone)
            return &disk->files[i];
    return NULL;
}

/* One of the segments that records go to, or will soon. */
static bool file_pinned(const struct zc_disk *disk, const struct file *f)
{
    int higher = 0;
    for (size_t i = 0; i < FILES_MAX; i++)
        higher += disk->files[i].written && disk->files[i].number > f->number;
    return f->written && higher < PINNED;
}

/* Closes the idle file that was used longest ago. */
static struct file *file_evict(struct zc_disk *disk)
{
    struct file *oldest = NULL;
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct file *f = &disk->files[i];
        if (f->number != 0 && f->refs == 0 && !file_pinned(disk, f) &&
            (oldest == NULL || f->used < oldest->used))
            oldest = f;
    }
    if (oldest != NULL)
        file_close(oldest);
    return oldest;
}

/* Keeps a file that a request has opened; closes it when there is no place. */
static void file_keep(struct zc_disk *disk, const struct zc_disk_op *op, int fd)
{
    struct file *f = NULL;
    if (file_find(disk, op->segment) == NULL) {
        for (size_t i = 0; i < FILES_MAX && f == NULL; i++)
            f = disk->files[i].number == 0 ? &disk->files[i] : NULL;
        f = f != NULL ? f : file_evict(disk);
    }
    if (f == NULL) {
        close(fd);
        return;
    }
    *f = (struct file){.number = op->segment,
                       .fd = fd,
                       .written = op->kind == ZC_DISK_CREATE || op->kind == ZC_DISK_WRITE,
                       .used = ++disk->uses};
}

static void file_unref(struct file *f)
{
    if (--f->refs == 0 && f->gone)
        file_close(f);
}

static void file_forget(struct zc_disk *disk, uint32_t number)
{
    struct file *f = file_find(disk, number);
    if (f == NULL)
        return;
    f->gone = true;
    if (f->refs == 0)
        file_close(f);
}

/* The descriptor of a file that nobody uses, which is the caller's from now on; -1: there is none.
 */
static int file_take(struct zc_disk *disk, uint32_t number)
{
    struct file *f = file_find(disk, number);
    if (f == NULL || f->refs > 0)
        return -1;
    int fd = f->fd;
    *f = (struct file){0};
    return fd;
}

static struct job *job_new(struct zc_disk *disk)
{
    struct job *j = disk->spare_jobs;
    if (j != NULL)
        disk->spare_jobs = j->next;
    else
        j = malloc(sizeof(*j));
    return j;
}

static void job_run(struct job *j)
{
    uint64_t start = uv_hrtime();
    j->result = zc_disk_io_run(j->disk->dir.fd, &j->op, &j->fd, &j->written);
    j->took_ns = uv_hrtime() - start;
}

static void syncing_add(struct job *j)
{
    if (j->op.kind != ZC_DISK_WRITE || !j->op.sync)
        return;
    j->next = j->disk->syncing;
    j->disk->syncing = j;
}

static void syncing_remove(struct job *j)
{
    struct job **at = &j->disk->syncing;
    while (*at != NULL && *at != j)
        at = &(*at)->next;
    if (*at != NULL)
        *at = j->next;
}

void zc_disk_poll(struct zc_disk *disk)
{
    for (struct job *j = disk == NULL ? NULL : disk->syncing; j != NULL; j = j->next) {
        if (j->told || !atomic_load(&j->written))
            continue;
        j->told = true;
        j->done(j->arg, &(struct zc_disk_completion){
                            .id = j->op.id, .result = (int64_t)j->op.len, .written = true});
    }
}

/* Takes a sample into a moving average. */
static void measure(uint64_t *average_ns, uint64_t took_ns)
{
    *average_ns = *average_ns == 0 ? took_ns : (*average_ns * 7 + took_ns) / 8;
}

/* A hiccup counts in full where everybody would wait for it. Where it is only the one client that
 * waits for its sync, one of a few milliseconds now and then is no reason to send the next ones
 * through the pool; one of many, or many of them, are. */
static void measure_write(struct speed *speed, bool sync, uint64_t took_ns)
{
    if (sync)
        measure(&speed->sync_ns, took_ns);
    else if (took_ns > HICCUP_NS && took_ns > speed->write_ns)
        speed->write_ns = took_ns;
    else
        measure(&speed->write_ns, took_ns);
}

/* The request ran: keeps its file, forgets the job, tells the caller. */
static void job_finish(struct job *j)
{
    struct zc_disk *disk = j->disk;
    struct zc_disk_completion done = {.id = j->op.id, .result = j->result};
    zc_disk_done_fn fn = j->done;
    void *arg = j->arg;
    if (j->op.kind == ZC_DISK_WRITE && j->result >= 0)
        measure_write(&disk->speed, j->op.sync, j->took_ns);
    if (j->file != NULL)
        file_unref(j->file);
    else if (j->fd >= 0)
        file_keep(disk, &j->op, j->fd);
    if (j->op.kind == ZC_DISK_REMOVE && j->result >= 0)
        file_forget(disk, j->op.segment);
    spare_take(disk);
    syncing_remove(j);
    j->next = disk->spare_jobs;
    disk->spare_jobs = j;
    disk->busy--;
    fn(arg, &done);
}

static void on_work(uv_work_t *work)
{
    job_run(ZC_CONTAINER(work, struct job, work));
}

static void on_worked(uv_work_t *work, int status);

static void job_queue(struct job *j)
{
    int r = uv_queue_work(j->disk->loop, &j->work, on_work, on_worked);
    /* Only wrong arguments make it fail. */
    ZC_ASSERT(r == 0);
}

/* Out of descriptors: gives up what is kept in reserve, for one more try. */
static bool job_again(struct job *j)
{
    struct zc_disk *disk = j->disk;
    if (j->result != ZC_EMFILE || j->again)
        return false;
    j->again = true;
    file_evict(disk);
    if (disk->spare_fd >= 0)
        close(disk->spare_fd);
    disk->spare_fd = -1;
    return true;
}

static void on_worked(uv_work_t *work, int status)
{
    struct job *j = ZC_CONTAINER(work, struct job, work);
    if (status == UV_ECANCELED)
        j->result = ZC_ECLOSED;
    if (job_again(j))
        job_queue(j);
    else
        job_finish(j);
}

/* Runs on the loop when that is allowed and quick. */
static bool try_inline(struct job *j)
{
    const struct speed *speed = &j->disk->speed;
    if (!j->op.inline_ok)
        return false;
    if (j->op.kind == ZC_DISK_READ || j->op.kind == ZC_DISK_INDEX_READ) {
        j->result = zc_disk_io_read_now(j->disk->dir.fd, &j->op, &j->fd);
        return j->result >= 0;
    }
    if (j->file == NULL)
        return false;
    uint64_t usual_ns = j->op.sync ? speed->sync_ns : speed->write_ns;
    uint64_t fast_ns = j->op.sync ? FAST_SYNC_NS : FAST_NS;
    if (j->op.kind != ZC_DISK_WRITE || j->op.sync_dir || usual_ns == 0 || usual_ns >= fast_ns)
        return false;
    job_run(j);
    return true;
}

void zc_disk_submit(struct zc_disk *disk, const struct zc_disk_op *op, zc_disk_done_fn done,
                    void *arg)
{
    struct job *j = job_new(disk);
    ZC_ASSERT(disk->loop != NULL);
    if (j == NULL) {
        done(arg, &(struct zc_disk_completion){.id = op->id, .result = ZC_ENOMEM});
        return;
    }
    *j = (struct job){.disk = disk, .op = *op, .done = done, .arg = arg, .fd = -1};
    disk->busy++;
    j->file =
        op->kind == ZC_DISK_READ || op->kind == ZC_DISK_WRITE ? file_find(disk, op->segment) : NULL;
    if (j->file != NULL) {
        j->file->refs++;
        j->file->used = ++disk->uses;
        j->file->written = j->file->written || op->kind == ZC_DISK_WRITE;
        j->fd = j->file->fd;
    }
    if (op->kind == ZC_DISK_REMOVE)
        j->fd = file_take(disk, op->segment);
    if (try_inline(j)) {
        job_finish(j);
        return;
    }
    syncing_add(j);
    job_queue(j);
}

int zc_disk_open(const char *path, struct zc_disk **ret_disk, const uint32_t **ret_segments,
                 uint32_t *ret_count, char ret_why[ZC_WHY_MAX])
{
    struct zc_disk *disk = calloc(1, sizeof(*disk));
    if (disk == NULL) {
        zc_why_set(ret_why, ZC_ENOMEM, "cannot be opened: out of memory");
        return ZC_ENOMEM;
    }
    int err = zc_disk_dir_open(path, &disk->dir, ret_why);
    if (err != 0) {
        free(disk);
        return err;
    }
    disk->spare_fd = -1;
    spare_take(disk);
    *ret_disk = disk;
    *ret_segments = disk->dir.segments;
    *ret_count = disk->dir.count;
    return 0;
}

void zc_disk_start(struct zc_disk *disk, uv_loop_t *loop)
{
    ZC_ASSERT(disk->loop == NULL);
    disk->loop = loop;
}

void zc_disk_close(struct zc_disk *disk)
{
    if (disk == NULL || disk->busy > 0)
        return;
    for (size_t i = 0; i < FILES_MAX; i++)
        if (disk->files[i].number != 0)
            file_close(&disk->files[i]);
    if (disk->spare_fd >= 0)
        close(disk->spare_fd);
    while (disk->spare_jobs != NULL) {
        struct job *j = disk->spare_jobs;
        disk->spare_jobs = j->next;
        free(j);
    }
    zc_disk_dir_done(&disk->dir);
    free(disk);
}
