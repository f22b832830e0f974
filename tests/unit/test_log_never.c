/* The log that syncs only what it leaves: a clean stop leaves all on disk, whatever went before. */
#include "store_user.h"

static struct user u;

TEST(never_mode_syncs_what_it_leaves)
{
    for (int steps = 0; steps < 2; steps++) {
        user_init(&u, 11);
        u.sync = ZC_LOG_SYNC_NEVER;
        u.no_durable_check = true;
        u.steps = steps == 1;
        user_open(&u);
        uint64_t creates = u.disk.creates, syncs = u.disk.syncs;
        for (int i = 0; i < 1500; i++) {
            CHECK(user_put(&u) > 0);
            user_run(&u);
        }
        CHECK_INT(u.synced, 1500);
        CHECK(u.disk.creates - creates >= 3);
        /* One for each segment left, one for the head of each made. */
        uint64_t left = (u.msgs[1500].place >> 32) - (u.msgs[1].place >> 32);
        CHECK_INT(u.disk.syncs - syncs, left + u.disk.creates - creates);
        user_close(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK_INT(user_live(&u), 1500);
        CHECK_INT(user_status(&u).damaged, 0);
        user_done(&u);
    }
}

TEST(never_mode_syncs_what_failed)
{
    /* A write fails: the segment is left for another one, and what it holds is synced. */
    for (int n = 0; n < 2; n++) {
        user_init(&u, 12);
        u.sync = ZC_LOG_SYNC_NEVER;
        u.no_durable_check = true;
        user_open(&u);
        for (int i = 0; i < 20; i++) {
            user_put(&u);
            user_run(&u);
        }
        user_put(&u);
        CHECK(user_ops(&u));
        u.disk.fail_err = ZC_EIO;
        u.disk.fail_writes = true;
        user_complete(&u, 0);
        u.disk.fail_writes = n == 1;
        user_events(&u);
        if (n == 1)
            u.damage_expected = true; /* nothing can be written, not even synced */
        user_run(&u);
        CHECK_INT(u.failed_events, n == 1);
        user_close(&u);
        fd_crash(&u.disk);
        u.disk.fail_writes = false;
        user_open(&u);
        CHECK(u.ready);
        if (n == 0)
            CHECK_INT(user_live(&u), 21);
        user_done(&u);
    }
}

TEST(never_mode_syncs_what_failed_while_closing)
{
    user_init(&u, 13);
    u.sync = ZC_LOG_SYNC_NEVER;
    u.no_durable_check = true;
    user_open(&u);
    u.disk.fail_creates = true;
    u.disk.fail_err = ZC_ENOSPC;
    while (u.state == ZC_LOG_OK) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    uint64_t live = user_live(&u);
    CHECK_INT(user_remove(&u, 1), 0);
    CHECK(user_ops(&u) && u.disk.queued == 1);
    zc_log_close(u.log, u.now);
    u.disk.fail_writes = true;
    user_complete(&u, 0);
    u.disk.fail_writes = false;
    user_run(&u);
    CHECK(u.closed && u.failed_events == 1);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK(user_live(&u) == live || user_live(&u) == live - 1);
    CHECK_INT(user_status(&u).damaged, 0);
    user_done(&u);
}
