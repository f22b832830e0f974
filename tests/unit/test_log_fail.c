/* The log on a disk that is full, slow or failing, case by case. */
#include "store_user.h"

static struct user u;

TEST(log_full_and_room_again)
{
    user_init(&u, 9);
    u.disk.capacity = 4 * 65536 + 1000;
    user_open(&u);
    int64_t seq = 0;
    for (int i = 0; i < 5000 && seq >= 0; i++) {
        seq = user_put(&u);
        user_run(&u);
    }
    CHECK_INT(seq, ZC_ENOSPC);
    CHECK_INT(zc_log_would_put(u.log, 10), ZC_ENOSPC);
    CHECK_INT(u.state, ZC_LOG_FULL);
    CHECK_INT(user_status(&u).last_err, ZC_ENOSPC);
    CHECK_INT(fd_segments(&u.disk), 4);
    /* It is full after a restart as well, and the messages are there. */
    uint64_t live = user_live(&u);
    user_close(&u);
    user_open(&u);
    CHECK(u.ready);
    CHECK_INT(u.state, ZC_LOG_FULL);
    CHECK_INT(user_live(&u), live);
    CHECK_INT(user_put(&u), ZC_ENOSPC);
    /* Marks and removals go on; room made by them ends it. */
    CHECK(user_mark(&u, 1) > 0);
    for (uint64_t s = 1; s < live && u.state == ZC_LOG_FULL; s++) {
        CHECK_INT(user_remove(&u, s), 0);
        user_run(&u);
    }
    CHECK_INT(u.state, ZC_LOG_OK);
    CHECK(user_put(&u) > 0);
    user_run(&u);
    user_close(&u);
    user_open(&u);
    user_done(&u);
}

TEST(log_full_by_the_clock)
{
    user_init(&u, 10);
    user_open(&u);
    u.disk.fail_creates = true;
    u.disk.fail_err = ZC_ENOSPC;
    while (u.state == ZC_LOG_OK) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    CHECK_INT(u.state, ZC_LOG_FULL);
    user_wait(&u, 5000);
    CHECK_INT(u.state, ZC_LOG_FULL);
    u.disk.fail_creates = false;
    user_wait(&u, 1000);
    CHECK_INT(u.state, ZC_LOG_OK);
    CHECK(user_put(&u) > 0);
    user_run(&u);
    CHECK_INT(u.failed_events, 0);
    user_done(&u);
}

TEST(log_slow_create)
{
    /* A next segment that takes its time: appends wait in memory, then all is well. */
    user_init(&u, 11);
    user_open(&u);
    int64_t seq = 0;
    while (u.disk.creates < 3 && seq < 5000) {
        seq = user_put(&u);
        user_events(&u);
        user_ops(&u);
        for (int i = 0; i < u.disk.queued; i++)
            if (u.disk.queue[i].kind != ZC_DISK_CREATE) {
                user_complete(&u, i);
                break;
            }
        if (zc_log_backlogged(u.log) || seq > 4000)
            break;
    }
    CHECK(seq > 1000);
    uint64_t synced = u.synced;
    CHECK(synced < (uint64_t)seq);
    CHECK_INT(u.state, ZC_LOG_OK);
    user_run(&u);
    CHECK_INT(u.synced, seq);
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), seq);
    user_done(&u);
}

TEST(log_slow_create_then_full)
{
    /* The same, but it fails: what finds no room in the current segment fails, no more. */
    user_init(&u, 12);
    user_open(&u);
    int64_t seq = 0;
    u.disk.fail_err = ZC_ENOSPC;
    for (int n = 0; n < 3000; n++) {
        seq = user_put(&u);
        user_events(&u);
        user_ops(&u);
        for (int i = 0; i < u.disk.queued; i++)
            if (u.disk.queue[i].kind != ZC_DISK_CREATE) {
                user_complete(&u, i);
                break;
            }
    }
    u.disk.fail_creates = true;
    user_run(&u);
    CHECK_INT(u.state, ZC_LOG_FULL);
    CHECK_INT(u.failed_events, 1);
    uint64_t live = user_live(&u);
    CHECK(live > 200 && live < (uint64_t)seq);
    u.disk.fail_creates = false;
    user_wait(&u, 1100);
    CHECK_INT(u.state, ZC_LOG_OK);
    for (int i = 0; i < 100; i++)
        CHECK(user_put(&u) > 0);
    user_run(&u);
    CHECK_INT(user_live(&u), live + 100);
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), live + 100);
    user_done(&u);
}

/* Completes what is with the disk, but no CREATE. */
static void all_but_create(void)
{
    user_events(&u);
    user_ops(&u);
    for (int i = 0; i < u.disk.queued;) {
        if (u.disk.queue[i].kind == ZC_DISK_CREATE) {
            i++;
            continue;
        }
        user_complete(&u, i);
        user_events(&u);
        user_ops(&u);
        i = 0;
    }
}

/* A small put is with the disk and a large one, which may not fit any more, waits alone when it
 * turns out that there is no next segment. True: the large one was refused. */
static bool full_behind_a_write(int puts)
{
    user_init(&u, 21);
    user_open(&u);
    u.disk.fail_creates = true;
    u.disk.fail_err = ZC_ENOSPC;
    for (int i = 0; i < puts; i++) {
        CHECK(user_put(&u) > 0);
        all_but_create();
    }
    user_put(&u);
    user_ops(&u);
    while (user_len(&u, u.seq_next) < 9000)
        u.seq_next++;
    user_put(&u);
    for (int i = 0; i < u.disk.queued; i++)
        if (u.disk.queue[i].kind == ZC_DISK_CREATE) {
            user_complete(&u, i);
            break;
        }
    user_run(&u);
    bool refused = u.failed_events > 0;
    CHECK_INT(u.state, ZC_LOG_FULL);
    CHECK_INT(user_remove(&u, 1), 0);
    user_run(&u);
    CHECK_INT(u.msgs[1].state, U_GONE);
    user_done(&u);
    return refused;
}

TEST(log_full_cuts_behind_a_write)
{
    int refused = 0;
    for (int puts = 200; puts < 480; puts++)
        refused += full_behind_a_write(puts);
    CHECK(refused > 3);
}

TEST(log_failed_sync_moves)
{
    user_init(&u, 13);
    user_open(&u);
    for (int i = 0; i < 20; i++)
        user_put(&u);
    user_run(&u);
    /* One fsync fails, as Linux does it: the second would succeed with the data gone. */
    for (int i = 0; i < 20; i++)
        user_put(&u);
    CHECK(user_ops(&u));
    u.disk.fail_syncs = true;
    user_complete(&u, 0);
    u.disk.fail_syncs = false;
    user_events(&u);
    CHECK_INT(u.synced, 20);
    user_run(&u);
    CHECK_INT(u.synced, 40);
    CHECK_INT(u.failed_events, 0);
    CHECK_INT(user_status(&u).last_err, ZC_EIO);
    CHECK_INT(user_status(&u).last_err_segment, 1);
    CHECK_INT(u.msgs[40].place >> 32, 2);
    CHECK_INT(u.msgs[20].place >> 32, 1);
    /* Each write in that segment is read back. */
    uint64_t reads = u.disk.reads;
    user_put(&u);
    user_run(&u);
    CHECK_INT(u.disk.reads, reads + 1);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 41);
    user_done(&u);
}

TEST(log_failed_twice_refuses)
{
    user_init(&u, 14);
    user_open(&u);
    for (int i = 0; i < 20; i++)
        user_put(&u);
    user_run(&u);
    CHECK_INT(user_remove(&u, 3), 0);
    for (int i = 0; i < 20; i++)
        user_put(&u);
    u.disk.fail_syncs = true;
    user_run(&u);
    CHECK_INT(u.state, ZC_LOG_ERROR);
    CHECK_INT(u.failed_events, 1);
    CHECK_INT(u.synced, 20);
    CHECK_INT(u.msgs[25].state, U_REFUSED);
    CHECK_INT(user_put(&u), ZC_EIO);
    CHECK_INT(zc_log_would_put(u.log, 0), ZC_EIO);
    CHECK_INT(zc_log_append(u.log, ZC_RECORD_REMOVE, 0, zc_slice("12345678", 8), true, NULL),
              ZC_EIO);
    user_wait(&u, 10000);
    CHECK_INT(u.state, ZC_LOG_ERROR);
    CHECK(fd_segments(&u.disk) <= 4);
    /* What is known good can be read meanwhile. */
    CHECK_INT(zc_log_read(u.log, u.msgs[7].place, user_len(&u, 7), (void *)7), 0);
    user_run(&u);
    CHECK(u.read_answers == 1 && u.read_err == 0);
    u.disk.fail_syncs = false;
    user_wait(&u, 2500);
    CHECK_INT(u.state, ZC_LOG_OK);
    CHECK(user_put(&u) > 0);
    user_run(&u);
    CHECK_INT(user_live(&u), 21);
    user_kill(&u);
    fd_crash(&u.disk);
    /* user_ready checks that none of the refused came back and that 3 is still there. */
    user_open(&u);
    CHECK_INT(user_live(&u), 21);
    user_done(&u);
}

TEST(log_refused_do_not_come_back)
{
    /* Written in full, refused because of the fsync: the bytes are valid, only the SEAL hides them.
     */
    user_init(&u, 15);
    user_open(&u);
    for (int i = 0; i < 5; i++)
        user_put(&u);
    user_run(&u);
    u.disk.fail_creates = true;
    u.disk.fail_err = ZC_EIO;
    for (int i = 0; i < 5; i++)
        user_put(&u);
    u.disk.fail_syncs = true;
    user_run(&u);
    CHECK_INT(u.state, ZC_LOG_ERROR);
    fd_flush(fd_find(&u.disk, 1));
    memcpy(fd_find(&u.disk, 1)->stable, fd_find(&u.disk, 1)->cache, 65536);
    u.disk.fail_syncs = u.disk.fail_creates = false;
    user_wait(&u, 3000);
    CHECK_INT(u.state, ZC_LOG_OK);
    user_kill(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), 5);
    CHECK_INT(user_status(&u).damaged, 0);
    user_done(&u);
}

TEST(log_batch_mode_failed_sync)
{
    /* ok was given before the fsync: the records are kept until it, and written again. */
    user_init(&u, 18);
    u.sync = ZC_LOG_SYNC_BATCH;
    u.no_durable_check = true;
    user_open(&u);
    for (int i = 0; i < 30; i++) {
        user_put(&u);
        user_run(&u);
    }
    CHECK_INT(u.synced, 30);
    CHECK_INT(user_remove(&u, 5), 0);
    user_run(&u);
    u.disk.fail_at = u.disk.ops + 1;
    user_wait(&u, 60);
    CHECK_INT(u.failed_events, 0);
    CHECK_INT(u.state, ZC_LOG_OK);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 29);
    user_done(&u);
}

TEST(log_head_only_in_the_cache)
{
    /* The head of the next segment was refused by the disk, and so was the removal of the file: a
     * new process sees a head in the cache that a power loss would take away. */
    user_init(&u, 19);
    user_open(&u);
    while (user_status(&u).segments < 3) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    while (u.disk.creates < 4) {
        CHECK(user_put(&u) > 0);
        user_ops(&u);
        for (int i = 0; i < u.disk.queued; i++)
            if (u.disk.queue[i].kind == ZC_DISK_CREATE || !u.disk.queue[i].sync_dir) {
                user_complete(&u, i);
                break;
            }
        user_events(&u);
    }
    u.disk.fail_syncs = u.disk.fail_removes = true;
    user_run(&u);
    user_kill(&u);
    u.disk.fail_syncs = u.disk.fail_removes = false;
    user_open(&u);
    CHECK(u.ready);
    for (int i = 0; i < 600; i++)
        CHECK(user_put(&u) > 0);
    user_run(&u);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_status(&u).damaged, 0);
    user_done(&u);
}

TEST(log_close_in_each_state)
{
    for (int n = 0; n < 40; n++) {
        user_init(&u, 100 + (uint64_t)n);
        user_open_quiet(&u);
        for (int i = 0; i < n % 10; i++)
            user_step(&u);
        u.disk.fail_err = n % 3 == 0 ? ZC_ENOSPC : ZC_EIO;
        u.disk.fail_syncs = n % 4 == 1;
        u.disk.fail_creates = n % 4 == 2;
        u.disk.fail_writes = n % 4 == 3;
        if (u.ready)
            for (int i = 0; i < 100 * n && user_put(&u) > 0; i++)
                if (i % 50 == 0)
                    user_step(&u);
        zc_log_close(u.log, u.now);
        user_run(&u);
        CHECK(u.closed || u.unusable);
        user_done(&u);
    }
}
