/* The disk with real files while an fsync goes on. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <stdatomic.h>

#include "store_dir.h"

#ifdef __linux__
/* Stands before libc's: the disk is as slow as the test wants. */
static atomic_bool slow, in_sync, napping;
static atomic_int nap_us;

int fdatasync(int fd)
{
    if (atomic_load(&napping)) {
        int us = atomic_load(&nap_us);
        return us > 0 ? usleep((useconds_t)us) : 0;
    }
    while (atomic_load(&slow)) {
        atomic_store(&in_sync, true);
        usleep(500);
    }
    return fsync(fd);
}

static struct zc_disk_completion told[8];
static int told_count;

static void on_told(void *arg, const struct zc_disk_completion *done)
{
    (void)arg;
    if (told_count < 8)
        told[told_count++] = *done;
}

static void wait_told(int n)
{
    while (told_count < n)
        uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(told_count, n);
}

/* One synced write of a client that is alone, on a disk that takes so long; true: on the loop. */
static bool sync_took(int us)
{
    static uint8_t byte = 'x';
    struct zc_disk_op op = {.kind = ZC_DISK_WRITE,
                            .segment = 1,
                            .data = &byte,
                            .len = 1,
                            .sync = true,
                            .inline_ok = true};
    atomic_store(&nap_us, us);
    told_count = 0;
    zc_disk_submit(disk, &op, on_told, NULL);
    bool on_loop = told_count > 0;
    while (told_count == 0)
        uv_run(&loop, UV_RUN_ONCE);
    return on_loop;
}

TEST(disk_leaves_the_loop_when_syncs_are_slow_and_not_for_one)
{
    int slow_ones = 0, fast_ones = 0;
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(op_create(1), 0);
    atomic_store(&napping, true);
    sync_took(0);
    for (int i = 0; i < 50; i++)
        sync_took(0);
    CHECK(sync_took(0));
    CHECK(sync_took(10000));
    CHECK(sync_took(0));
    /* Many of them, or one that takes long, send the next ones to the pool. */
    while (slow_ones < 50 && sync_took(10000))
        slow_ones++;
    CHECK(slow_ones > 0 && slow_ones < 12);
    while (fast_ones < 50 && !sync_took(0))
        fast_ones++;
    CHECK(fast_ones > 0 && fast_ones < 12);
    for (int i = 0; i < 50; i++)
        sync_took(0);
    CHECK(sync_took(200000));
    for (int i = 0; i < 10; i++)
        CHECK(!sync_took(0));
    atomic_store(&napping, false);
    teardown();
}

TEST(disk_tells_what_is_written_before_a_slow_sync)
{
    uint8_t text[] = "first,behind", got[16];
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(op_create(1), 0);
    struct zc_disk_op op = {
        .kind = ZC_DISK_WRITE, .id = 5, .segment = 1, .data = text, .len = 6, .sync = true};
    zc_disk_poll(NULL);
    zc_disk_poll(disk);
    told_count = 0;
    atomic_store(&slow, true);
    zc_disk_submit(disk, &op, on_told, NULL);
    while (!atomic_load(&in_sync))
        usleep(100);
    CHECK_INT(told_count, 0);
    zc_disk_poll(disk);
    zc_disk_poll(disk);
    CHECK_INT(told_count, 1);
    CHECK(told[0].id == 5 && told[0].result == 6 && told[0].written);
    /* Others are served meanwhile, also writes to the same file. */
    struct zc_disk_op behind = {
        .kind = ZC_DISK_WRITE, .id = 6, .segment = 1, .offset = 6, .data = text + 6, .len = 6};
    zc_disk_submit(disk, &behind, on_told, NULL);
    wait_told(2);
    CHECK(told[1].id == 6 && told[1].result == 6 && !told[1].written);
    struct zc_disk_op back = {
        .kind = ZC_DISK_READ, .id = 7, .segment = 1, .data = got, .len = sizeof(got)};
    zc_disk_submit(disk, &back, on_told, NULL);
    wait_told(3);
    CHECK(told[2].id == 7 && memcmp(got, "first,behind", 12) == 0);
    zc_disk_poll(disk);
    CHECK_INT(told_count, 3);
    atomic_store(&slow, false);
    wait_told(4);
    CHECK(told[3].id == 5 && told[3].result == 6 && !told[3].written);
    zc_disk_poll(disk);
    CHECK_INT(told_count, 4);
    /* A write that fails was never written. */
    op.segment = 2;
    zc_disk_submit(disk, &op, on_told, NULL);
    while (told_count < 5) {
        zc_disk_poll(disk);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    CHECK(told[4].result == ZC_ENOENT && !told[4].written);
    teardown();
}
#else
TEST(disk_tells_what_is_written_before_a_slow_sync)
{
    printf("  SKIP: there is no fdatasync to stand before\n");
}
#endif
