/* The log while an fsync goes on: what wants none is written behind it, and what an fsync proves.
 */
#include "store/segment.h"
#include "store_user.h"

static struct user u;

/* A log with one put whose write is done and whose sync goes on. */
static void syncing(uint64_t seed)
{
    user_init(&u, seed);
    user_open(&u);
    CHECK_INT(user_put(&u), 1);
    user_run(&u);
    CHECK_INT(user_put(&u), 2);
    CHECK(user_ops(&u));
    CHECK(u.disk.queued == 1 && u.disk.queue[0].sync);
    CHECK(user_begin(&u, 0));
    user_events(&u);
}

/* The one request at the disk that is not the sync under way. */
static const struct zc_disk_op *newest(void)
{
    CHECK(user_ops(&u));
    CHECK_INT(u.disk.queued, 2);
    return &u.disk.queue[1];
}

TEST(behind_goes_on)
{
    syncing(1);
    CHECK_INT(u.written, 2);
    CHECK_INT(u.synced, 1);
    for (int i = 0; i < 3; i++) {
        CHECK(user_mark(&u, 1) > 0);
        const struct zc_disk_op *op = newest();
        CHECK(op->kind == ZC_DISK_WRITE && !op->sync && !op->inline_ok);
        CHECK_INT(op->offset, u.disk.queue[0].offset + u.disk.queue[0].len + (uint64_t)i * 40);
        user_complete(&u, 1);
        user_events(&u);
        CHECK_INT(u.written, 3 + i);
        CHECK_INT(u.synced, 1);
    }
    /* What wants a sync waits for the next one, and so does what follows it. */
    CHECK_INT(user_put(&u), 3);
    CHECK(user_mark(&u, 1) > 0);
    CHECK(user_ops(&u));
    CHECK_INT(u.disk.queued, 1);
    CHECK_INT(zc_log_deadline(u.log).ns, ZC_NEVER.ns);
    /* The sync is for what was written before it began. */
    user_complete(&u, 0);
    user_events(&u);
    CHECK_INT(u.synced, 2);
    CHECK_INT(u.written, 5);
    CHECK(user_ops(&u));
    CHECK(u.disk.queued == 1 && u.disk.queue[0].sync);
    user_run(&u);
    CHECK_INT(u.synced, 7);
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), 3);
    CHECK_INT(u.states_seen, 4);
    user_done(&u);
}

TEST(behind_is_synced_by_the_close)
{
    syncing(2);
    CHECK(user_mark(&u, 1) > 0);
    newest();
    user_complete(&u, 1);
    zc_log_close(u.log, u.now);
    user_complete(&u, 0);
    user_run(&u);
    CHECK(u.closed);
    CHECK_INT(u.synced, 3);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(u.states_seen, 1);
    user_done(&u);
}

TEST(behind_asks_the_host_again)
{
    /* Nobody waits for the write alone: no tick. Somebody does: one each millisecond. */
    user_init(&u, 3);
    user_open(&u);
    user_put(&u);
    CHECK(user_ops(&u));
    CHECK_INT(zc_log_deadline(u.log).ns, ZC_NEVER.ns);
    CHECK(user_mark(&u, 1) > 0);
    for (int i = 0; i < 3; i++) {
        CHECK(user_ops(&u) && u.disk.queued == 1);
        CHECK_INT(zc_log_deadline(u.log).ns, u.now.mono.ns + ZC_NS_PER_MS);
        u.now.mono.ns += ZC_NS_PER_MS;
        zc_log_tick(u.log, u.now);
    }
    CHECK(user_begin(&u, 0));
    newest();
    CHECK_INT(zc_log_deadline(u.log).ns, ZC_NEVER.ns);
    user_run(&u);
    CHECK_INT(u.synced, 1);
    CHECK_INT(u.written, 2);
    /* In one write with a put it is the same. */
    user_put(&u);
    CHECK(user_mark(&u, 1) > 0);
    CHECK(user_ops(&u) && u.disk.queued == 1);
    CHECK_INT(zc_log_deadline(u.log).ns, u.now.mono.ns + ZC_NS_PER_MS);
    CHECK(user_begin(&u, 0));
    user_events(&u);
    CHECK_INT(u.written, 4);
    CHECK_INT(u.synced, 1);
    user_run(&u);
    CHECK_INT(u.synced, 4);
    CHECK_INT(zc_log_deadline(u.log).ns, ZC_NEVER.ns);
    user_done(&u);
}

TEST(behind_keeps_the_others_together)
{
    /* Those that want a sync share one, although one among them went ahead. */
    user_init(&u, 4);
    user_open(&u);
    user_put(&u);
    CHECK(user_ops(&u));
    CHECK(user_mark(&u, 1) > 0);
    for (int i = 0; i < 20; i++)
        user_put(&u);
    CHECK(user_begin(&u, 0));
    CHECK_INT(newest()->len, 40);
    for (int i = 0; i < 20; i++)
        user_put(&u);
    user_complete(&u, 1);
    user_complete(&u, 0);
    user_events(&u);
    CHECK_INT(u.synced, 1);
    uint64_t syncs = u.disk.syncs;
    user_run(&u);
    CHECK_INT(u.synced, 42);
    CHECK_INT(u.disk.syncs, syncs + 1);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 41);
    CHECK(u.in_order && u.states_seen == 1);
    user_done(&u);
}

TEST(behind_a_sync_that_fails)
{
    /* All that was not synced is written again elsewhere, the mark too. The write behind may be
     * back by then or not. */
    for (int back = 0; back < 2; back++) {
        syncing(5);
        CHECK(user_mark(&u, 1) > 0);
        newest();
        if (back == 1)
            user_complete(&u, 1);
        user_put(&u);
        u.disk.fail_syncs = true;
        user_complete(&u, 0);
        u.disk.fail_syncs = false;
        user_events(&u);
        CHECK_INT(u.synced, 1);
        CHECK(user_ops(&u));
        /* The next segment is not touched while the disk still reads from the batch. */
        CHECK_INT(u.disk.queue[0].segment, back == 0 ? 1 : 2);
        CHECK_INT(u.disk.queued, 1);
        user_run(&u);
        CHECK_INT(u.synced, 4);
        CHECK_INT(u.failed_events, 0);
        CHECK_INT(u.msgs[2].place >> 32, 2);
        CHECK_INT(u.marks[0].place >> 32, 2);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK_INT(user_live(&u), 3);
        CHECK_INT(u.states_seen, 1);
        CHECK_INT(user_status(&u).damaged, 0);
        user_done(&u);
    }
}

TEST(behind_that_fails_itself)
{
    /* The sync is still good for what it was for. */
    for (int sync_fails = 0; sync_fails < 2; sync_fails++) {
        syncing(6);
        CHECK(user_mark(&u, 1) > 0);
        newest();
        u.disk.fail_writes = true;
        user_complete(&u, 1);
        u.disk.fail_writes = false;
        CHECK(user_mark(&u, 1) > 0);
        CHECK(user_ops(&u));
        CHECK_INT(u.disk.queued, 1);
        u.disk.fail_syncs = sync_fails == 1;
        user_complete(&u, 0);
        u.disk.fail_syncs = false;
        user_events(&u);
        CHECK_INT(u.synced, sync_fails == 1 ? 1 : 2);
        user_run(&u);
        CHECK_INT(u.synced, 4);
        CHECK_INT(u.msgs[2].place >> 32, sync_fails == 1 ? 2 : 1);
        CHECK_INT(u.marks[0].place >> 32, 2);
        CHECK_INT(user_status(&u).failures, 1);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK_INT(user_live(&u), 2);
        CHECK_INT(u.states_seen, 2);
        user_done(&u);
    }
}

TEST(behind_and_no_segment_left)
{
    /* Refused only once both writes are back, and only what was not synced. */
    syncing(7);
    CHECK(user_mark(&u, 1) > 0);
    newest();
    u.disk.fail_creates = u.disk.fail_syncs = true;
    u.disk.fail_err = ZC_EIO;
    user_complete(&u, 0);
    user_events(&u);
    CHECK_INT(u.failed_events, 0);
    user_run(&u);
    CHECK_INT(u.state, ZC_LOG_ERROR);
    CHECK_INT(u.failed_events, 1);
    CHECK_INT(u.synced, 1);
    u.disk.fail_creates = u.disk.fail_syncs = false;
    user_wait(&u, 3000);
    CHECK_INT(u.state, ZC_LOG_OK);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 1);
    user_done(&u);
}

/* Sectors of segment 1 in [from, to) reach the platter, or become zeros there. */
static void fate(uint64_t from, uint64_t to, bool kept)
{
    struct fd_file *f = fd_find(&u.disk, 1);
    memcpy(f->stable + from, f->cache + from, to - from);
    if (!kept)
        memset(f->stable + from, 0, to - from);
}

TEST(behind_power_fails)
{
    /* Of the write that syncs and of the one behind it any part is found. */
    for (int n = 0; n < 16; n++) {
        syncing(8);
        uint64_t from = u.disk.queue[0].offset, middle = from + u.disk.queue[0].len;
        uint64_t half = from + u.disk.queue[0].len / 2;
        CHECK(user_mark(&u, 1) > 0);
        uint64_t end = middle + newest()->len;
        user_complete(&u, 1);
        user_events(&u);
        user_kill(&u);
        fate(from, half, n & 1);
        fate(half, middle, n & 2);
        fate(middle, middle + 16, n & 4);
        fate(middle + 16, end, n & 8);
        memset(fd_find(&u.disk, 1)->dirty, 0, 65536 / FD_SECTOR);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK(u.ready && u.msgs[1].known);
        CHECK(u.msgs[2].known == ((n & 3) == 3));
        CHECK_INT(u.states_seen, (n & 12) == 12);
        /* And what is appended now is found as well. */
        int64_t seq = user_put(&u);
        user_run(&u);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK(u.msgs[seq].known);
        user_done(&u);
    }
}

TEST(behind_not_into_the_next_segment)
{
    /* The segment is full: what follows waits until all in it is synced. */
    user_init(&u, 9);
    user_open(&u);
    uint64_t creates = u.disk.creates;
    while (u.disk.creates == creates) {
        CHECK(user_put(&u) > 0);
        CHECK(user_ops(&u));
        uint32_t segment = u.disk.queue[0].segment;
        CHECK(user_begin(&u, 0));
        for (int i = 0; i < 100; i++)
            CHECK(user_mark(&u, 1) > 0);
        while (user_ops(&u) && u.disk.queued > 1) {
            CHECK_INT(u.disk.queue[1].segment, segment);
            CHECK(u.disk.queue[1].offset + u.disk.queue[1].len <= 65536);
            user_complete(&u, 1);
        }
        user_run(&u);
    }
    uint64_t syncs = u.disk.syncs;
    CHECK(user_put(&u) > 0);
    user_run(&u);
    CHECK(u.disk.syncs > syncs);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), u.seq_next - 1);
    CHECK_INT(user_status(&u).damaged, 0);
    user_done(&u);
}

TEST(behind_in_batch_mode)
{
    /* Nobody waits for the fsync, so puts go on during it; those that it was not for are kept for
     * the next one. */
    for (int fails = 0; fails < 3; fails++) {
        user_init(&u, 10);
        u.sync = ZC_LOG_SYNC_BATCH;
        u.no_durable_check = true;
        user_open(&u);
        user_put(&u);
        user_run(&u);
        u.now.mono = zc_log_deadline(u.log);
        zc_log_tick(u.log, u.now);
        CHECK(user_ops(&u));
        CHECK(u.disk.queue[0].sync && u.disk.queue[0].len == 0);
        user_put(&u);
        CHECK(user_begin(&u, 0));
        for (uint64_t i = 2; i < 12; i++) {
            newest();
            user_complete(&u, 1);
            user_events(&u);
            CHECK_INT(u.synced, i);
            user_put(&u);
        }
        newest();
        if (fails < 2)
            user_complete(&u, 1);
        u.disk.fail_syncs = fails > 0;
        user_complete(&u, 0);
        u.disk.fail_syncs = false;
        /* Of a segment whose sync failed nothing more counts. */
        if (fails == 2)
            user_complete(&u, 0);
        user_events(&u);
        CHECK_INT(u.synced, fails == 2 ? 11 : 12);
        CHECK(fails > 0 || zc_log_deadline(u.log).ns <= u.now.mono.ns + 50 * ZC_NS_PER_MS);
        user_wait(&u, 60);
        CHECK_INT(u.failed_events, 0);
        CHECK_INT(u.msgs[12].place >> 32, fails == 2 ? 2 : 1);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK_INT(user_live(&u), 12);
        user_done(&u);
    }
}
