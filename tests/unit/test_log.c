/* The log, case by case. */
#include "base/crc32c.h"
#include "store_user.h"

static struct user u;

TEST(log_empty_directory)
{
    user_init(&u, 1);
    user_open(&u);
    CHECK(u.ready && !u.unusable);
    struct zc_log_status st = user_status(&u);
    CHECK_INT(st.state, ZC_LOG_OK);
    CHECK_INT(st.segments, 2);
    CHECK_INT(st.bytes, 2 * 65536);
    CHECK_INT(u.disk.count, 2);
    CHECK(u.disk.files[0].durable && u.disk.files[1].durable);
    user_close(&u);
    user_open(&u);
    CHECK(u.ready && u.disk.count == 2);
    user_done(&u);
}

TEST(log_cannot_begin)
{
    user_init(&u, 1);
    u.disk.fail_creates = true;
    u.disk.fail_err = ZC_EACCES;
    user_open(&u);
    CHECK(!u.ready && u.unusable);
    CHECK(strstr(u.unusable_text, "first segment cannot be made") != NULL);
    user_done(&u);
}

TEST(log_group_commit)
{
    user_init(&u, 2);
    user_open(&u);
    uint64_t writes = u.disk.writes, syncs = u.disk.syncs;
    for (int i = 0; i < 50; i++)
        CHECK(user_put(&u) > 0);
    user_run(&u);
    CHECK_INT(u.disk.writes - writes, 1);
    CHECK_INT(u.disk.syncs - syncs, 1);
    CHECK_INT(u.synced, 50);
    /* What arrives while a write is with the disk shares the next one. */
    user_put(&u);
    CHECK(user_ops(&u));
    CHECK_INT(u.disk.queued, 1);
    CHECK(u.disk.queue[0].sync && u.disk.queue[0].inline_ok);
    for (int i = 0; i < 10; i++)
        user_put(&u);
    struct zc_disk_op op;
    CHECK(!zc_log_op(u.log, u.now, &op));
    user_complete(&u, 0);
    user_events(&u);
    CHECK_INT(u.synced, 51);
    CHECK(user_ops(&u));
    CHECK(u.disk.queue[0].sync && !u.disk.queue[0].inline_ok);
    user_run(&u);
    CHECK_INT(u.synced, 61);
    CHECK_INT(u.disk.writes - writes, 3);
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), 61);
    CHECK(u.in_order);
    user_done(&u);
}

TEST(log_nothing_before_the_sync)
{
    user_init(&u, 3);
    user_open(&u);
    int64_t seq = user_put(&u);
    CHECK(user_ops(&u));
    user_events(&u);
    CHECK_INT(u.msgs[seq].state, U_PENDING);
    CHECK_INT(u.msgs[seq].place, 0);
    user_complete(&u, 0);
    user_events(&u);
    CHECK_INT(u.msgs[seq].state, U_LIVE);
    CHECK(u.msgs[seq].place != 0);
    user_done(&u);
}

TEST(log_state_alone_is_not_synced)
{
    user_init(&u, 4);
    user_open(&u);
    user_put(&u);
    user_run(&u);
    uint64_t syncs = u.disk.syncs, synced = u.synced;
    CHECK(user_mark(&u, 1) > 0);
    CHECK(user_ops(&u));
    CHECK(!u.disk.queue[0].sync && u.disk.queue[0].inline_ok);
    user_run(&u);
    CHECK_INT(u.disk.syncs, syncs);
    CHECK_INT(u.synced, synced);
    CHECK_INT(u.written, synced + 1);
    /* The next sync covers it; so does closing. */
    user_put(&u);
    user_run(&u);
    CHECK_INT(u.synced, synced + 2);
    CHECK(user_mark(&u, 1) > 0);
    user_run(&u);
    zc_log_close(u.log, u.now);
    user_run(&u);
    CHECK(u.closed);
    CHECK_INT(u.synced, synced + 3);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(u.states_seen, 2);
    user_done(&u);
}

TEST(log_many_states_get_synced)
{
    /* Records nobody waits for do not gather without bound. */
    user_init(&u, 4);
    u.segment_bytes = 8 << 20;
    user_open(&u);
    for (int i = 0; i < 40000; i++) {
        CHECK(user_mark(&u, 1) > 0);
        user_run(&u);
    }
    CHECK(u.synced > 20000);
    user_done(&u);
}

TEST(log_modes)
{
    user_init(&u, 5);
    u.sync = ZC_LOG_SYNC_BATCH;
    u.no_durable_check = true;
    user_open(&u);
    uint64_t syncs = u.disk.syncs;
    for (int i = 0; i < 10; i++) {
        user_put(&u);
        user_run(&u);
    }
    CHECK_INT(u.synced, 10);
    CHECK_INT(u.disk.syncs, syncs);
    struct zc_mono due = zc_log_deadline(u.log);
    CHECK(due.ns > u.now.mono.ns && zc_mono_diff_ms(u.now.mono, due) < 50);
    user_wait(&u, 50);
    CHECK_INT(u.disk.syncs, syncs + 1);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 10);
    user_kill(&u);
    u.sync = ZC_LOG_SYNC_NEVER;
    user_open(&u);
    syncs = u.disk.syncs;
    for (int i = 0; i < 10; i++)
        user_put(&u);
    user_wait(&u, 5000);
    CHECK_INT(u.disk.syncs, syncs);
    CHECK_INT(u.synced, 10);
    user_close(&u);
    CHECK_INT(u.disk.syncs, syncs + 1);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK_INT(user_live(&u), 20);
    user_done(&u);
}

TEST(log_segments_turn_and_are_deleted)
{
    user_init(&u, 6);
    user_open(&u);
    for (int i = 0; i < 2000; i++) {
        CHECK(user_put(&u) > 0);
        if (i % 7 == 0)
            user_run(&u);
    }
    user_run(&u);
    CHECK(u.disk.count > 5);
    CHECK_INT(user_status(&u).segments, u.disk.count);
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), 2000);
    CHECK(u.in_order);
    CHECK_INT(zc_log_seq_max(u.log), 2000);
    /* All but the first go: nothing can be deleted, the order of segments keeps removals valid. */
    int before = u.disk.count;
    for (uint64_t seq = 2; seq <= 2000; seq++)
        CHECK_INT(user_remove(&u, seq), 0);
    user_run(&u);
    CHECK(u.disk.count >= before);
    CHECK_INT(user_remove(&u, 1), 0);
    user_run(&u);
    CHECK_INT(u.disk.count, 2);
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), 0);
    CHECK_INT(zc_log_seq_max(u.log), 2000);
    user_done(&u);
}

TEST(log_big_record)
{
    static uint8_t body[300000];
    user_init(&u, 7);
    user_open(&u);
    user_put(&u);
    user_run(&u);
    memset(body, 'x', sizeof(body));
    uint64_t place = 0;
    int64_t t = zc_log_append(u.log, ZC_RECORD_PUT, 0, zc_slice(body, sizeof(body)), true, &place);
    CHECK(t > 0);
    user_put(&u);
    user_run(&u);
    CHECK_INT(u.synced, t + 1);
    CHECK_INT((uint32_t)place, 208);
    CHECK(fd_find(&u.disk, (uint32_t)(place >> 32))->size > sizeof(body));
    struct zc_log_event ev;
    CHECK_INT(zc_log_read(u.log, place, sizeof(body), &u), 0);
    CHECK(user_ops(&u));
    user_complete(&u, 0);
    CHECK(zc_log_event(u.log, &ev));
    CHECK(ev.kind == ZC_LOG_READ && ev.err == 0 && ev.cookie == &u);
    CHECK(ev.block != NULL && ev.block->len == sizeof(body) &&
          memcmp(ev.block->data, body, sizeof(body)) == 0);
    zc_block_unref(ev.block);
    user_done(&u);
}

TEST(log_reads)
{
    user_init(&u, 8);
    user_open(&u);
    for (int i = 0; i < 300; i++)
        user_put(&u);
    user_run(&u);
    for (uint64_t seq = 1; seq <= 300; seq++)
        CHECK_INT(zc_log_read(u.log, u.msgs[seq].place, user_len(&u, seq), (void *)(uintptr_t)seq),
                  0);
    user_run(&u);
    CHECK_INT(u.read_answers, 300);
    CHECK_INT(u.read_err, 0);
    /* Wrong length, wrong place, no such segment, damage. */
    CHECK_INT(zc_log_read(u.log, u.msgs[1].place, user_len(&u, 1) + 1, NULL), 0);
    user_run(&u);
    CHECK_INT(u.read_err, ZC_EBADMSG);
    CHECK_INT(zc_log_read(u.log, u.msgs[2].place + 8, 4, NULL), 0);
    user_run(&u);
    CHECK_INT(u.read_err, ZC_EBADMSG);
    CHECK_INT(zc_log_read(u.log, UINT64_C(99) << 32 | 128, 4, NULL), 0);
    user_run(&u);
    CHECK_INT(u.read_err, ZC_ENOENT);
    struct fd_file *f = fd_find(&u.disk, (uint32_t)(u.msgs[5].place >> 32));
    f->cache[(uint32_t)u.msgs[5].place + 24] ^= 1;
    CHECK_INT(zc_log_read(u.log, u.msgs[5].place, user_len(&u, 5), NULL), 0);
    user_run(&u);
    CHECK_INT(u.read_err, ZC_EBADMSG);
    CHECK_INT(user_status(&u).damaged, 3);
    u.disk.fail_reads = true;
    u.disk.fail_to = UINT64_MAX;
    CHECK_INT(zc_log_read(u.log, u.msgs[6].place, user_len(&u, 6), NULL), 0);
    user_run(&u);
    CHECK_INT(u.read_err, ZC_EIO);
    CHECK_INT(zc_log_read(u.log, u.msgs[7].place, user_len(&u, 7), NULL), 0);
    user_done(&u);
}

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
    CHECK_INT(u.disk.count, 4);
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
    CHECK(u.disk.count <= 4);
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

TEST(log_reopened_many_times)
{
    user_init(&u, 16);
    for (int n = 0; n < 200; n++) {
        user_open(&u);
        CHECK(u.ready);
        CHECK_INT(user_live(&u), n * 3 - n / 2);
        for (int i = 0; i < 3; i++)
            CHECK(user_put(&u) > 0);
        if (n % 2 == 1)
            CHECK_INT(user_remove(&u, (uint64_t)n), 0);
        user_run(&u);
        if (n % 3 == 0)
            user_kill(&u);
        else
            user_close(&u);
    }
    CHECK(u.disk.count < 10);
    u.disk.fail_creates = true;
    u.disk.fail_err = ZC_ENOSPC;
    user_open(&u);
    CHECK(u.ready);
    user_done(&u);
}

TEST(log_newer_version)
{
    user_init(&u, 17);
    user_open(&u);
    user_close(&u);
    struct fd_file *f = fd_find(&u.disk, 1);
    for (int copy = 0; copy < 128; copy += 64) {
        f->cache[copy + 8] = 2;
        uint32_t crc = zc_crc32c(0, f->cache + copy, 60);
        memcpy(f->cache + copy + 60, &crc, 4);
        fd_poke(f, 0, f->cache, 128);
    }
    user_open(&u);
    CHECK(u.unusable && strstr(u.unusable_text, "newer version") != NULL);
    CHECK(strstr(u.unusable_text, "00000001.zlog") != NULL);
    user_done(&u);
}
