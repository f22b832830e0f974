/* Damaged files that the disk does not let be set aside: the one request for it fails, at the start
 * or when the last message of the file is gone. The checks are in store_user.h. */
#include "store/segment.h"
#include "store_user.h"

static struct user u;

/* Four segments, in which message 1 is damaged and both heads of segment 2. */
static void make_damaged(uint64_t seed, bool steps)
{
    user_init(&u, seed);
    u.steps = steps;
    user_open(&u);
    for (int i = 0; i < 600; i++) {
        CHECK(user_put(&u) > 0);
        if (i % 7 == 0)
            user_run(&u);
    }
    user_run(&u);
    user_close(&u);
    CHECK(fd_segments(&u.disk) >= 4);
    fd_flip(fd_find(&u.disk, 1), (128 + 24) * 8);
    fd_flip(fd_find(&u.disk, 2), 20 * 8);
    fd_flip(fd_find(&u.disk, 2), 84 * 8);
    u.damage_expected = true;
}

/* Runs until a file is to be set aside, and lets that fail. False: none was. */
static bool fail_aside(int err)
{
    for (int n = 0; n < 100000; n++) {
        user_events(&u);
        bool more = user_ops(&u);
        for (int i = 0; i < u.disk.queued; i++) {
            const struct zc_disk_op *op = &u.disk.queue[i];
            if (op->kind != ZC_DISK_REMOVE || !op->aside)
                continue;
            u.disk.fail_at = u.disk.ops + 1;
            u.disk.fail_err = err;
            user_complete(&u, i);
            CHECK_INT(u.disk.ops, u.disk.fail_at);
            u.disk.fail_at = 0;
            return true;
        }
        if (!more)
            return false;
        user_step(&u);
    }
    return false;
}

/* The log goes on, and the next process finds what this one had. */
static void goes_on(void)
{
    CHECK(u.ready && !u.unusable);
    u.damage_expected = false;
    int64_t seq = user_put(&u);
    user_run(&u);
    CHECK(seq > 0 && u.msgs[seq].state == U_LIVE);
    CHECK_INT(u.state, ZC_LOG_OK);
    user_check_readable(&u);
    uint64_t live = user_live(&u);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK(u.ready);
    CHECK_INT(user_live(&u), live);
    user_check_readable(&u);
}

TEST(aside_fails_while_opening)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_damaged(seed, seed % 2 == 0);
        user_open_quiet(&u);
        CHECK(fail_aside(seed % 4 < 2 ? ZC_EIO : ZC_ENOSPC));
        user_run(&u);
        CHECK_INT(user_status(&u).damaged, 2);
        CHECK(u.missing > 50 && u.missing < 500);
        CHECK_INT(u.disk.asides, 0);
        CHECK(fd_find(&u.disk, 2) != NULL);
        /* The next start tries again. */
        goes_on();
        CHECK_INT(u.disk.asides, 1);
        CHECK(fd_find(&u.disk, 2) == NULL);
        user_done(&u);
    }
}

TEST(aside_fails_when_all_is_consumed)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_damaged(seed, seed % 2 == 0);
        user_open(&u);
        CHECK_INT(u.disk.asides, 1);
        for (uint64_t seq = 1; seq + 5 < u.seq_next; seq++)
            if (u.msgs[seq].state == U_LIVE)
                CHECK_INT(user_remove(&u, seq), 0);
        int err = seed % 4 < 2 ? ZC_EIO : ZC_ENOSPC;
        CHECK(fail_aside(err));
        user_run(&u);
        CHECK_INT(user_status(&u).last_err, err);
        CHECK_INT(user_status(&u).last_err_segment, 1);
        CHECK_INT(u.disk.asides, 1);
        /* Nothing is deleted in its place, and it is tried again by the clock. */
        CHECK(fd_find(&u.disk, 1) != NULL);
        if (seed % 3 == 0) {
            user_wait(&u, 2000);
            CHECK_INT(u.disk.asides, 2);
            CHECK(fd_find(&u.disk, 1) == NULL);
        }
        goes_on();
        user_done(&u);
    }
}
