/* Rounds of cleaning that go over several segments, each of which holds little: what fails or
 * crashes in them, with segments that one read covers and with larger ones. */
#include "store/log_priv.h"
#include "store_user.h"

static struct user u;

static const struct {
    uint64_t segment_bytes;
    int messages, every, cases;
} sizes[] = {
    {UINT64_C(64) << 10, 4000, 90, 60},
    {UINT64_C(256) << 10, 9000, 400, 30},
    {UINT64_C(2) << 20, 40000, 1700, 12},
};

/* Many segments of which the removals of nearly all are about to be written. */
static void begin(int size, uint64_t seed)
{
    user_init(&u, seed);
    u.segment_bytes = sizes[size].segment_bytes;
    user_open(&u);
    for (int i = 0; i < sizes[size].messages; i++) {
        CHECK(user_put(&u) > 0);
        if (i % 500 == 0)
            user_run(&u);
    }
    user_run(&u);
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (seq % (uint64_t)sizes[size].every != 0)
            CHECK_INT(user_remove(&u, seq), 0);
}

/* Copies of this many segments are on their way. */
static int under_way(void)
{
    const struct zc_log_clean *c = &u.log->clean;
    int n = 0;
    for (uint32_t i = 0; i < c->moves_len; i++) {
        const struct zc_log_move *m = &c->moves[c->moves_first + i];
        CHECK(i == 0 || (m[-1].from < m->from && m[-1].ticket < m->ticket));
        n += i == 0 || m[-1].from >> 32 != m->from >> 32;
    }
    return n;
}

/* One step; a message is put or taken now and then. */
static void step(int i, bool taking)
{
    if (taking && i % 3 == 0) {
        uint64_t at = u.seq_base + fd_rand(&u.disk) % (u.seq_next - u.seq_base);
        if (u.msgs[at].state == U_LIVE)
            (void)!user_remove(&u, at);
    }
    if (taking && i % 4 == 0)
        (void)!user_put(&u);
    u.now.mono.ns += ZC_NS_PER_MS;
    user_step(&u);
}

/* The same on a disk whose answer to cleaning comes late. */
static void step_late(int i)
{
    if (i % 2 == 0)
        (void)!user_put(&u);
    u.now.mono.ns += ZC_NS_PER_MS;
    user_events(&u);
    if (!user_ops(&u))
        return;
    int k = (int)(fd_rand(&u.disk) % (uint64_t)u.disk.queued);
    if (u.disk.queue[k].id == ZC_LOG_SLOT_CLEAN && u.disk.queued > 1 && fd_rand(&u.disk) % 8 != 0)
        k = (k + 1) % u.disk.queued;
    if (fd_rand(&u.disk) % 2 == 0 || !user_begin(&u, k))
        user_complete(&u, k);
    user_events(&u);
}

static void check_small(void)
{
    uint64_t live = user_live_bytes(&u);
    CHECK_INT(user_status(&u).live_bytes, live);
    CHECK(user_status(&u).bytes <= 2 * live + 4 * u.segment_bytes);
}

TEST(crash_in_a_round_of_several_segments)
{
    for (int size = 0; size < 3; size++) {
        int several = 0;
        for (int n = 0; n < sizes[size].cases && test_faults == 0; n++) {
            int most = 0;
            begin(size, 500 + (uint64_t)n);
            u.steps = n % 2 == 0;
            for (int i = 0; most < 2 && i < 3000; i++) {
                step(i, n % 3 != 0);
                most = under_way() > most ? under_way() : most;
            }
            for (int i = 0; i < n % 40; i++)
                step(i, n % 3 != 0);
            several += under_way() > 1;
            user_kill(&u);
            if (n % 5 != 0)
                fd_crash(&u.disk);
            user_open(&u);
            CHECK(u.ready && u.missing == 0);
            CHECK(u.steps || user_status(&u).damaged == 0);
            user_wait(&u, 1000);
            check_small();
            user_kill(&u);
            fd_crash(&u.disk);
            user_open(&u);
            CHECK(u.ready && u.missing == 0);
            user_check_readable(&u);
            user_done(&u);
        }
        CHECK(several > sizes[size].cases / 4);
    }
}

TEST(fault_in_a_round_of_several_segments)
{
    for (int size = 0; size < 3; size++) {
        int hit = 0;
        for (int n = 0; n < sizes[size].cases && test_faults == 0; n++) {
            begin(size, 800 + (uint64_t)n);
            u.steps = n % 2 == 0;
            u.sync = n % 5 == 0 ? ZC_LOG_SYNC_BATCH : ZC_LOG_SYNC_ALWAYS;
            bool late = n % 3 > 0;
            for (int i = 0; under_way() < 2 && i < 3000; i++)
                step(i, false);
            u.disk.fail_at = u.disk.ops + 1 + (uint64_t)n % 20;
            u.disk.fail_err = n % 5 == 0 ? ZC_ENOSPC : ZC_EIO;
            for (int i = 0; i < 100; i++) {
                if (late)
                    step_late(i);
                else
                    step(i, n % 4 != 0);
                under_way();
            }
            user_wait(&u, 3000);
            hit += u.disk.ops >= u.disk.fail_at;
            u.disk.fail_at = 0;
            CHECK_INT(u.state, ZC_LOG_OK);
            CHECK_INT(user_status(&u).damaged, 0);
            check_small();
            user_check_readable(&u);
            user_kill(&u);
            fd_crash(&u.disk);
            user_open(&u);
            CHECK(u.ready && u.missing == 0);
            user_check_readable(&u);
            user_done(&u);
        }
        CHECK(hit > sizes[size].cases * 3 / 4);
    }
}

TEST(segments_share_a_sync)
{
    /* What lives in many segments takes few writes with sync, and few requests are out at once. */
    begin(0, 7);
    int before = fd_segments(&u.disk), least;
    while (u.moves == 0)
        user_step(&u);
    uint64_t syncs = u.disk.syncs;
    for (int i = 0; i < 5000; i++) {
        int beside = 0;
        user_ops(&u);
        for (int k = 0; k < u.disk.queued; k++)
            beside += u.disk.queue[k].id > ZC_LOG_SLOT_BEHIND;
        CHECK(beside <= 3);
        if (u.disk.queued > 0)
            user_complete(&u, 0);
        user_events(&u);
        u.now.mono.ns += ZC_NS_PER_MS / 10;
    }
    least = fd_segments(&u.disk);
    CHECK(before > 15 && least < 5);
    CHECK(u.disk.syncs - syncs < (uint64_t)(before - least) / 2);
    check_small();
    user_done(&u);
}
