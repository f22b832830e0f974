/* A directory for the disk with real files, and requests one at a time. Include it first. */
#ifndef ZC_TESTS_UNIT_STORE_DIR_H
#define ZC_TESTS_UNIT_STORE_DIR_H

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* nftw */
#endif
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "host/disk.h"
#include "test.h"

static char base[64], path[128];
static uv_loop_t loop;
static struct zc_disk *disk;
static const uint32_t *segments;
static uint32_t count;
static char why[ZC_WHY_MAX];

static inline void setup(void)
{
    snprintf(base, sizeof(base), "/tmp/zcdisk.XXXXXX");
    if (mkdtemp(base) == NULL)
        abort();
    snprintf(path, sizeof(path), "%s/m", base);
    why[0] = '\0';
    disk = NULL;
    if (uv_loop_init(&loop) != 0)
        abort();
}

static inline int rm_one(const char *p, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(p);
}

static inline void teardown(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    zc_disk_close(disk);
    CHECK_INT(uv_loop_close(&loop), 0);
    nftw(base, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int open_disk(void)
{
    int err = zc_disk_open(path, &disk, &segments, &count, why);
    if (err == 0)
        zc_disk_start(disk, &loop);
    return err;
}

static inline void reopen(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    zc_disk_close(disk);
    disk = NULL;
    CHECK_INT(open_disk(), 0);
}

static inline void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    if (f == NULL)
        abort();
    fputs(text, f);
    fclose(f);
}

static int64_t result;
static int completions;

static inline void on_done(void *arg, const struct zc_disk_completion *done)
{
    CHECK(arg == &result);
    result = done->result;
    completions++;
}

static inline int64_t run(struct zc_disk_op op)
{
    int before = completions;
    op.id = 77;
    zc_disk_submit(disk, &op, on_done, &result);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(completions, before + 1);
    return result;
}

static inline int64_t op_create(uint32_t n)
{
    return run((struct zc_disk_op){.kind = ZC_DISK_CREATE, .segment = n, .size = 65536});
}

static inline int64_t op_write(uint32_t n, uint64_t offset, const char *text)
{
    return run((struct zc_disk_op){.kind = ZC_DISK_WRITE,
                                   .segment = n,
                                   .offset = offset,
                                   .data = (uint8_t *)(uintptr_t)text,
                                   .len = strlen(text),
                                   .sync = true,
                                   .sync_dir = true});
}

#endif
