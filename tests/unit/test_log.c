/* The log, case by case. */
#include "base/crc32c.h"
#include "store/record.h"
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
    CHECK_INT(fd_segments(&u.disk), 2);
    CHECK(u.disk.files[0].durable && u.disk.files[1].durable);
    user_close(&u);
    user_open(&u);
    CHECK(u.ready && fd_segments(&u.disk) == 2);
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
    CHECK(fd_segments(&u.disk) > 5);
    CHECK_INT(user_status(&u).segments, fd_segments(&u.disk));
    user_close(&u);
    user_open(&u);
    CHECK_INT(user_live(&u), 2000);
    CHECK(u.in_order);
    CHECK_INT(zc_log_seq_max(u.log), 2000);
    /* All but the first go: it moves on, and its segment goes too. */
    for (uint64_t seq = 2; seq <= 2000; seq++)
        CHECK_INT(user_remove(&u, seq), 0);
    user_wait(&u, 200);
    CHECK(fd_segments(&u.disk) <= 3);
    CHECK(u.moves >= 1 && (u.msgs[1].place >> 32) > 1);
    CHECK_INT(user_status(&u).live_bytes, zc_record_size(user_len(&u, 1)));
    CHECK_INT(user_remove(&u, 1), 0);
    user_run(&u);
    CHECK_INT(fd_segments(&u.disk), 2);
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

/* Whoever remembers an old place may ask for it at any time. */
TEST(log_read_while_its_segment_goes)
{
    user_init(&u, 9);
    user_open(&u);
    for (int i = 0; i < 2000; i++)
        CHECK(user_put(&u) > 0);
    user_run(&u);
    uint64_t place = u.msgs[1].place;
    for (uint64_t seq = 1; seq <= 2000; seq++)
        CHECK_INT(user_remove(&u, seq), 0);
    int k = 0;
    for (int i = 0; i < 10000; i++) {
        user_events(&u);
        user_ops(&u);
        for (k = 0; k < u.disk.queued && u.disk.queue[k].kind != ZC_DISK_REMOVE; k++)
            ;
        if (k < u.disk.queued || u.disk.queued == 0)
            break;
        user_complete(&u, 0);
    }
    CHECK(k < u.disk.queued && u.disk.queue[k].segment == (uint32_t)(place >> 32));
    CHECK_INT(zc_log_read(u.log, place, user_len(&u, 1), NULL), 0);
    user_complete(&u, k);
    user_run(&u);
    CHECK_INT(u.read_answers, 1);
    CHECK_INT(u.read_err, ZC_ENOENT);
    user_done(&u);
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
    CHECK(fd_segments(&u.disk) < 10);
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
