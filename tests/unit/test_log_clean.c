/* Cleaning: what lives leaves the oldest segment, whatever fails or crashes meanwhile, and the disk
 * stays as small as promised. The checks of each message are in store_user.h. */
#include "store/record.h"
#include "store/segment.h"
#include "store_user.h"

static struct user u;

#define SEGMENT UINT64_C(65536)

/* n messages are put and taken again at once, in rounds that the disk finishes. */
static void churn(int n)
{
    for (int i = 0; i < n; i++) {
        int64_t seq = user_put(&u);
        CHECK(seq > 0);
        if (seq <= 0)
            return;
        user_run(&u);
        CHECK_INT(user_remove(&u, (uint64_t)seq), 0);
        if (i % 5 == 0)
            user_run(&u);
    }
    user_wait(&u, 200);
}

/* Twice what lives, a segment of tolerance, the current one, the next one and the reserve. */
static void check_small(void)
{
    CHECK_INT(user_status(&u).live_bytes, user_live_bytes(&u));
    if (user_status(&u).bytes > 2 * user_live_bytes(&u) + 4 * SEGMENT) {
        test_faults++;
        printf("%llu bytes on the disk for %llu that live\n",
               (unsigned long long)user_status(&u).bytes, (unsigned long long)user_live_bytes(&u));
    }
}

TEST(clean_one_message_pins_nothing)
{
    for (int sync = ZC_LOG_SYNC_ALWAYS; sync <= ZC_LOG_SYNC_NEVER; sync++) {
        user_init(&u, 1);
        u.sync = (enum zc_log_sync)sync;
        u.no_durable_check = sync != ZC_LOG_SYNC_ALWAYS;
        user_open(&u);
        CHECK_INT(user_put(&u), 1);
        user_run(&u);
        for (int i = 0; i < 10; i++) {
            churn(1000);
            check_small();
        }
        CHECK(u.disk.creates > 20 && u.moves > 0);
        user_check_readable(&u);
        user_close(&u);
        user_open(&u);
        CHECK_INT(user_live(&u), 1);
        user_done(&u);
    }
}

TEST(clean_in_order_copies_nothing)
{
    /* A queue that is consumed in order costs no copies, however long it is. */
    for (int depth = 10; depth < 2000; depth *= 4) {
        user_init(&u, 2);
        user_open(&u);
        for (int i = 0; i < 8000; i++) {
            CHECK(user_put(&u) > 0);
            if (i >= depth)
                CHECK_INT(user_remove(&u, u.seq_next - 1 - (uint64_t)depth), 0);
            user_run(&u);
        }
        user_wait(&u, 1000);
        CHECK_INT(u.moves_told, 0);
        user_done(&u);
    }
}

TEST(clean_writes_at_most_twice)
{
    /* Taken at random, with much and with little alive: one byte is copied for each byte given. */
    for (uint64_t deep = 50; deep < 3000; deep *= 3) {
        user_init(&u, 3 + deep);
        user_open(&u);
        uint64_t live = 0, given = 0;
        for (int i = 0; i < 12000; i++) {
            int64_t seq = user_put(&u);
            CHECK(seq > 0);
            given += zc_record_size(user_len(&u, (uint64_t)seq)) + 32;
            user_run(&u);
            for (live++; live > deep; live--) {
                uint64_t at = u.seq_base + fd_rand(&u.disk) % (u.seq_next - u.seq_base);
                while (u.msgs[at].state != U_LIVE)
                    at = at + 1 == u.seq_next ? u.seq_base : at + 1;
                CHECK_INT(user_remove(&u, at), 0);
            }
            if (i % 500 == 499) {
                user_wait(&u, 200);
                check_small();
            }
        }
        struct zc_log_status st = user_status(&u);
        CHECK(st.moved > 0);
        CHECK(st.moved_bytes <= given);
        user_kill(&u);
        user_open(&u);
        CHECK_INT(user_live(&u), deep);
        user_done(&u);
    }
}

/* A log that has just begun to clean: much is strewn over several segments. */
static void begin(uint64_t seed, bool steps)
{
    user_init(&u, seed);
    user_open(&u);
    u.steps = steps;
    for (int i = 0; i < 900; i++) {
        CHECK(user_put(&u) > 0);
        if (i % 30 == 0)
            user_run(&u);
    }
    user_run(&u);
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (seq % 5 != 0)
            CHECK_INT(user_remove(&u, seq), 0);
}

/* Carries on with the work at hand for some steps, with removals in between. */
static void on(int steps, bool taking)
{
    for (int i = 0; i < steps; i++) {
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
}

TEST(clean_crash_at_each_request)
{
    uint64_t moves = 0, crashed = 0;
    for (int steps = 1; steps < 200; steps++) {
        begin(20 + (uint64_t)steps % 3, steps % 4 < 2);
        /* Somewhere before, or right behind the first copies. */
        if (steps % 2 == 0)
            on(steps, steps % 3 != 0);
        else
            for (int i = 0; u.moves == 0 || i < steps % 8; i++)
                user_step(&u);
        moves += u.moves;
        crashed += u.moves > user_status(&u).moved;
        user_kill(&u);
        u.disk.seed = (uint64_t)steps * 31;
        if (steps % 4 != 1)
            fd_crash(&u.disk);
        user_open(&u);
        CHECK(u.ready);
        /* Records behind a sync that was cut short may stand behind torn ones. */
        CHECK(u.missing == 0 && (u.steps || user_status(&u).damaged == 0));
        user_wait(&u, 500);
        check_small();
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        user_check_readable(&u);
        user_done(&u);
        if (test_faults > 20)
            break;
    }
    CHECK(moves > 1000 && crashed > 50);
}

TEST(clean_fault_at_each_request)
{
    for (int n = 1; n < 200; n++) {
        for (int err = 0; err < 2; err++) {
            begin(30 + (uint64_t)n % 3, n % 2 == 0);
            u.sync = n % 5 == 0 ? ZC_LOG_SYNC_BATCH : ZC_LOG_SYNC_ALWAYS;
            u.disk.fail_at = u.disk.ops + (uint64_t)n;
            u.disk.fail_err = err == 0 ? ZC_EIO : ZC_ENOSPC;
            on(n + 60, n % 3 != 0);
            user_wait(&u, 3000);
            u.disk.fail_at = 0;
            CHECK_INT(u.state, ZC_LOG_OK);
            check_small();
            user_check_readable(&u);
            user_kill(&u);
            fd_crash(&u.disk);
            user_open(&u);
            CHECK(u.ready);
            user_check_readable(&u);
            user_done(&u);
        }
        if (test_faults > 20)
            break;
    }
}

TEST(clean_failing_disk_refuses_and_heals)
{
    begin(7, true);
    on(20, false);
    u.disk.fail_syncs = true;
    on(200, true);
    CHECK_INT(u.state, ZC_LOG_ERROR);
    user_wait(&u, 3000);
    u.disk.fail_syncs = false;
    user_wait(&u, 3000);
    CHECK_INT(u.state, ZC_LOG_OK);
    user_wait(&u, 1000);
    check_small();
    user_check_readable(&u);
    user_close(&u);
    user_open(&u);
    CHECK(u.ready);
    user_done(&u);
}

TEST(clean_close_in_the_middle)
{
    for (int steps = 0; steps < 60; steps++) {
        begin(40, steps % 2 == 0);
        on(steps, true);
        user_close(&u);
        user_open(&u);
        CHECK(u.ready);
        user_wait(&u, 500);
        check_small();
        user_done(&u);
    }
}

TEST(clean_makes_room_on_a_full_disk)
{
    /* 1 MiB is full; what was taken here and there is room for new messages. */
    user_init(&u, 8);
    u.disk.capacity = UINT64_C(1) << 20;
    user_open(&u);
    for (int i = 0; i < 20000 && u.state != ZC_LOG_FULL; i++) {
        (void)!user_put(&u);
        user_run(&u);
    }
    CHECK_INT(u.state, ZC_LOG_FULL);
    CHECK_INT(user_put(&u), ZC_ENOSPC);
    /* One of each segment's stays, so that no segment is useless. */
    uint32_t kept = 0;
    for (uint64_t seq = 1; seq < u.seq_next; seq++) {
        uint32_t segment = (uint32_t)(u.msgs[seq].place >> 32);
        if (u.msgs[seq].state == U_LIVE && segment == kept)
            CHECK_INT(user_remove(&u, seq), 0);
        kept = u.msgs[seq].state == U_LIVE ? segment : kept;
        if (seq % 50 == 0)
            user_run(&u);
    }
    user_wait(&u, 2000);
    CHECK_INT(u.state, ZC_LOG_OK);
    CHECK(u.moves > 0);
    check_small();
    user_check_readable(&u);
    for (int i = 0; i < 1000; i++) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK(u.ready);
    user_done(&u);
}

TEST(clean_full_disk_for_ever)
{
    /* At the edge of a small disk: refused or not, nothing is lost and it always heals. */
    uint64_t full = 0, moved = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        user_init(&u, 900 + seed);
        u.disk.capacity = (5 + seed % 5) * SEGMENT + 1000;
        u.steps = seed % 2 == 0;
        user_open(&u);
        for (int i = 0; i < 14000; i++) {
            uint64_t at = u.seq_base + fd_rand(&u.disk) % (u.seq_next - u.seq_base + 1);
            full += user_put(&u) == ZC_ENOSPC;
            if (at < u.seq_next && u.msgs[at].state == U_LIVE)
                (void)!user_remove(&u, at);
            u.now.mono.ns += ZC_NS_PER_MS;
            user_step(&u);
            user_step(&u);
        }
        user_run(&u);
        moved += user_status(&u).moved;
        for (uint64_t seq = 1; seq < u.seq_next; seq++)
            if (u.msgs[seq].state == U_LIVE && seq % 16 != 0) {
                CHECK_INT(user_remove(&u, seq), 0);
                user_run(&u);
            }
        user_wait(&u, 3000);
        CHECK_INT(u.state, ZC_LOG_OK);
        CHECK(user_put(&u) > 0);
        user_run(&u);
        user_check_readable(&u);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK(u.ready);
        user_done(&u);
    }
    CHECK(full > 1000 && moved > 500);
}

TEST(clean_keeps_damaged_bytes)
{
    user_init(&u, 9);
    user_open(&u);
    for (int i = 0; i < 600; i++)
        CHECK(user_put(&u) > 0);
    user_run(&u);
    /* A bit of message 5 turns over; the caller has its body still. */
    struct fd_file *f = fd_find(&u.disk, 1);
    fd_flip(f, (u.msgs[5].place & 0xffffffff) * 8 + (u.disk.seed % 20) * 8);
    u.damage_expected = true;
    for (uint64_t seq = 1; seq <= 600; seq++)
        if (seq != 5 && seq != 6 && seq != 300)
            CHECK_INT(user_remove(&u, seq), 0);
    user_wait(&u, 1000);
    CHECK_INT(u.disk.asides, 1);
    CHECK_INT(user_status(&u).damaged, 1);
    CHECK(fd_find(&u.disk, 1) == NULL && fd_segments(&u.disk) <= 4);
    user_check_readable(&u);
    u.damage_expected = false;
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 3);
    CHECK_INT(user_status(&u).damaged, 0);
    user_done(&u);
}

TEST(clean_block_that_cannot_be_read)
{
    /* Messages in it are moved when the caller has them, the others of the segment in any case. */
    begin(10, false);
    u.damage_expected = true;
    u.disk.fail_reads = true;
    u.disk.fail_from = 8192;
    u.disk.fail_to = 10000;
    user_wait(&u, 2000);
    CHECK(u.moves > 50);
    CHECK(u.disk.asides >= 1);
    CHECK(fd_find(&u.disk, 1) == NULL);
    u.disk.fail_reads = false;
    user_check_readable(&u);
    user_done(&u);
}

TEST(clean_reads_under_way_keep_their_segment)
{
    begin(11, false);
    /* Reads of what lives are asked for before anything moves, and carried out last. A third would
     * leave no room beside it. */
    uint64_t asked = 0;
    for (uint64_t seq = 5; asked < 2; seq += 5, asked++)
        CHECK_INT(zc_log_read(u.log, u.msgs[seq].place, user_len(&u, seq), (void *)(uintptr_t)seq),
                  0);
    for (int i = 0; i < 2000; i++) {
        user_events(&u);
        user_ops(&u);
        int k = 0;
        while (k < u.disk.queued && u.disk.queue[k].kind == ZC_DISK_READ &&
               u.disk.queue[k].id >= 16)
            k++;
        if (k == u.disk.queued)
            break;
        user_complete(&u, k);
    }
    CHECK(u.moves > 10 && u.read_answers == 0);
    CHECK(fd_find(&u.disk, 1) != NULL);
    user_run(&u);
    CHECK_INT(u.read_answers, asked);
    CHECK_INT(u.read_err, 0);
    user_wait(&u, 500);
    CHECK(fd_find(&u.disk, 1) == NULL);
    check_small();
    user_done(&u);
}

TEST(clean_rounds_are_bounded)
{
    /* No write carries more than a round of copies besides what was put. */
    user_init(&u, 12);
    u.segment_bytes = UINT64_C(4) << 20;
    user_open(&u);
    user_strew(&u, 50000, 4);
    size_t most = 0, writes = 0;
    for (int i = 0; i < 5000 && user_ops(&u); i++) {
        if (u.disk.queue[0].kind == ZC_DISK_WRITE && u.moves > 0) {
            most = u.disk.queue[0].len > most ? u.disk.queue[0].len : most;
            writes++;
        }
        user_complete(&u, 0);
        user_events(&u);
        u.now.mono.ns += ZC_NS_PER_MS;
    }
    CHECK(most <= (1u << 20) + 65536);
    CHECK(u.moves > 0);
    user_done(&u);
}

TEST(clean_all_on_demand)
{
    /* Most of it lives: nothing is cleaned by itself, all of it when asked. */
    for (int again = 0; again < 3; again++) {
        user_init(&u, 13);
        u.sync = (enum zc_log_sync)again;
        u.no_durable_check = again > 0;
        user_open(&u);
        user_strew(&u, 1500, 1);
        CHECK_INT(u.moves_told, 0);
        for (uint64_t seq = 3; seq < u.seq_next; seq += 3)
            CHECK_INT(user_remove(&u, seq), 0);
        user_wait(&u, 500);
        uint64_t before = user_status(&u).bytes;
        uint32_t last = (uint32_t)(u.msgs[u.seq_next - 2].place >> 32);
        CHECK(!zc_log_compacting(u.log));
        zc_log_compact(u.log);
        CHECK(zc_log_compacting(u.log));
        user_wait(&u, 5000);
        CHECK(!zc_log_compacting(u.log));
        CHECK_INT(user_status(&u).moved, user_live(&u));
        CHECK(user_status(&u).bytes < before && before > user_live_bytes(&u) + 3 * SEGMENT);
        CHECK(user_status(&u).bytes <= user_live_bytes(&u) + 4 * SEGMENT);
        for (uint64_t seq = 1; seq < u.seq_next; seq++)
            if (u.msgs[seq].state == U_LIVE)
                CHECK(u.msgs[seq].place >> 32 > last);
        user_check_readable(&u);
        /* An empty log: nothing to do. */
        for (uint64_t seq = 1; seq < u.seq_next; seq++)
            if (u.msgs[seq].state == U_LIVE)
                CHECK_INT(user_remove(&u, seq), 0);
        user_wait(&u, 500);
        zc_log_compact(u.log);
        CHECK(!zc_log_compacting(u.log));
        user_close(&u);
        user_open(&u);
        CHECK_INT(user_live(&u), 0);
        user_done(&u);
    }
}

TEST(clean_records_of_nobody)
{
    /* What nobody owns cannot be judged, so it is carried along. */
    user_init(&u, 14);
    user_open(&u);
    CHECK(zc_log_append(u.log, ZC_RECORD_BIND, 59999, zc_slice("bound", 5), true, NULL) > 0);
    user_run(&u);
    churn(4000);
    CHECK(fd_segments(&u.disk) <= 4);
    CHECK(user_status(&u).moved > 0);
    CHECK_INT(u.moves_told, 0);
    CHECK_INT(user_status(&u).live_bytes, zc_record_size(5));
    user_done(&u);
}

TEST(clean_damaged_record_of_nobody)
{
    /* It is counted, and its bytes are kept aside. */
    user_init(&u, 15);
    user_open(&u);
    CHECK(zc_log_append(u.log, ZC_RECORD_BIND, 59999, zc_slice("bound", 5), true, NULL) > 0);
    user_run(&u);
    fd_flip(fd_find(&u.disk, 1), (ZC_SEGMENT_HEAD + ZC_RECORD_HEAD) * 8);
    churn(3000);
    CHECK_INT(user_status(&u).damaged, 1);
    CHECK_INT(user_status(&u).live_bytes, 0);
    CHECK_INT(u.disk.asides, 1);
    CHECK_INT(fd_segments(&u.disk), 2);
    user_done(&u);
}

TEST(clean_syncs_before_it_deletes)
{
    /* Whatever the mode: when the old segment is gone the copies are on disk. */
    static bool moved[USER_SEQS];
    for (uint64_t seed = 0; seed < 40; seed++) {
        user_init(&u, 60 + seed);
        u.sync = seed % 2 == 0 ? ZC_LOG_SYNC_BATCH : ZC_LOG_SYNC_NEVER;
        u.no_durable_check = true;
        user_open(&u);
        user_strew(&u, 900, 1);
        u.steps = true;
        for (uint64_t seq = 1; seq < u.seq_next; seq++) {
            moved[seq] = seq % 5 == 0 && u.msgs[seq].place >> 32 == 1;
            if (seq % 5 != 0)
                CHECK_INT(user_remove(&u, seq), 0);
        }
        for (int i = 0; i < 100000 && fd_find(&u.disk, 1) != NULL; i++) {
            /* Some are written behind a sync that goes on, which does not cover them. */
            if (i % 4 == 0 && u.seq_next < 20000)
                (void)!user_put(&u);
            user_step(&u);
            u.now.mono.ns += ZC_NS_PER_MS / 4 * (int64_t)(1 + seed % 5);
        }
        CHECK(fd_find(&u.disk, 1) == NULL && u.moves > 10);
        user_kill(&u);
        fd_crash(&u.disk);
        u.damage_expected = true; /* what was not synced may be lost, and removals too */
        user_open(&u);
        for (uint64_t seq = 1; seq < u.seq_next; seq++)
            CHECK(!moved[seq] || u.msgs[seq].known);
        user_done(&u);
    }
}

TEST(clean_what_is_removed_meanwhile)
{
    /* In the weaker modes a message can go between the write of its copy and the sync. */
    uint64_t moved = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        begin(200 + seed, seed % 4 < 2);
        user_close(&u);
        u.sync = seed % 2 == 0 ? ZC_LOG_SYNC_BATCH : ZC_LOG_SYNC_NEVER;
        u.no_durable_check = true;
        user_open(&u);
        for (int i = 0; i < 60; i++) {
            on(10, true);
            for (uint64_t seq = 5; seq < u.seq_next; seq += 5 + fd_rand(&u.disk) % 50)
                if (u.msgs[seq].state == U_LIVE && u.moves_told > 0)
                    CHECK_INT(user_remove(&u, seq), 0);
        }
        user_wait(&u, 500);
        moved += user_status(&u).moved;
        check_small();
        user_check_readable(&u);
        user_kill(&u);
        user_open(&u);
        CHECK(u.ready);
        user_check_readable(&u);
        user_done(&u);
    }
    CHECK(moved > 1000);
}
