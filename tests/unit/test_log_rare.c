/* What hardly ever happens to a log: calls at the wrong time, names twice, a disk that gives back
 * other bytes than it was given, and a file that may not be read. */
#include "store/record.h"
#include "store_user.h"
#include "test.h"

TEST(calls_before_it_is_open_and_after_it_is_closed)
{
    struct user u;
    uint8_t body[8] = {0};
    uint64_t place;
    user_init(&u, 1);
    user_open_quiet(&u);
    CHECK_INT(zc_log_append(u.log, ZC_RECORD_PUT, 1, zc_slice(body, 8), true, &place), ZC_EAGAIN);
    zc_log_compact(u.log);
    CHECK(!zc_log_compacting(u.log));
    user_run(&u);
    CHECK(user_put(&u) > 0);
    user_run(&u);
    CHECK_INT(zc_log_read(u.log, u.msgs[1].place, ZC_RECORD_BODY_MAX + 1, NULL), ZC_EINVAL);
    zc_log_close(u.log, u.now);
    user_run(&u);
    CHECK(u.closed);
    CHECK_INT(zc_log_append(u.log, ZC_RECORD_PUT, 2, zc_slice(body, 8), true, &place), ZC_ECLOSED);
    CHECK_INT(zc_log_deadline(u.log).ns, ZC_NEVER.ns);
    user_done(&u);
}

TEST(an_event_that_waits_is_due_now)
{
    struct user u;
    user_init(&u, 1);
    user_open_quiet(&u);
    while (user_ops(&u)) {
        struct zc_disk_op op = u.disk.queue[0];
        struct zc_disk_completion done = {.id = op.id, .result = fd_do(&u.disk, &op, false)};
        u.disk.queue[0] = u.disk.queue[--u.disk.queued];
        zc_log_input(u.log, u.now, &done);
    }
    CHECK(!u.ready);
    CHECK_INT(zc_log_deadline(u.log).ns, 0);
    user_events(&u);
    CHECK(u.ready);
    CHECK(zc_log_deadline(u.log).ns > 0);
    user_done(&u);
}

/* Numbers that are there twice, or are none, change nothing. */
TEST(names_that_come_twice)
{
    struct user u;
    user_init(&u, 2);
    user_open(&u);
    CHECK(user_put(&u) > 0);
    user_run(&u);
    user_close(&u);
    uint32_t found[FD_FILES], numbers[FD_FILES * 2 + 1], n = 0, count = fd_list(&u.disk, found);
    numbers[n++] = 0;
    for (uint32_t i = 0; i < count; i++)
        numbers[n] = numbers[n + 1] = found[i], n += 2;
    struct zc_log_config config = {
        .segment_bytes = 65536, .segments = numbers, .segments_count = n};
    u.ready = false;
    u.disk.spare_reads = true;
    u.log = zc_log_new(&config, &u.rng);
    user_run(&u);
    CHECK(u.ready);
    CHECK_INT(user_live(&u), 1);
    CHECK_INT(user_status(&u).segments, fd_segments(&u.disk));
    user_done(&u);
}

static uint64_t size_made(uint64_t asked)
{
    struct user u;
    uint64_t size = 0;
    user_init(&u, 3);
    u.segment_bytes = asked;
    user_open_quiet(&u);
    CHECK(user_ops(&u));
    for (int i = 0; i < u.disk.queued; i++)
        if (u.disk.queue[i].kind == ZC_DISK_CREATE)
            size = u.disk.queue[i].size;
    u.disk.queued = 0;
    user_done(&u);
    return size;
}

TEST(sizes_of_segments_have_bounds)
{
    CHECK_INT(size_made(1), 65536);
    CHECK_INT(size_made(UINT64_C(1) << 40), 1 << 30);
}

/* The log works, and the read number `lie` past the cache gives a byte that was not written. */
static int run_lying(struct user *u, int lie)
{
    int reads = 0;
    for (int step = 0; step < 100000; step++) {
        user_events(u);
        if (!user_ops(u)) {
            struct zc_mono at = zc_log_deadline(u->log);
            if (at.ns > u->now.mono.ns + 5 * ZC_NS_PER_S)
                return reads;
            u->now.mono.ns = at.ns > u->now.mono.ns ? at.ns : u->now.mono.ns + 1000;
            zc_log_tick(u->log, u->now);
            continue;
        }
        struct zc_disk_op *op = &u->disk.queue[0];
        struct fd_file *f = fd_find(&u->disk, op->segment);
        bool lies = op->kind == ZC_DISK_READ && op->uncached && reads++ == lie;
        uint64_t at = op->offset;
        if (lies)
            f->stable[at] ^= 4, f->cache[at] ^= 4;
        u->disk.fail_writes = false;
        user_complete(u, 0);
        if (lies)
            f->stable[at] ^= 4, f->cache[at] ^= 4;
    }
    CHECK(!"it never rests");
    return reads;
}

/* After a write that failed, what is written is read back; where that differs, it is written
 * elsewhere. */
TEST(a_disk_that_gives_back_other_bytes)
{
    int honest = 0;
    for (int lie = -1; lie < honest; lie++) {
        struct user u;
        user_init(&u, 4);
        user_open(&u);
        for (int i = 0; i < 5; i++)
            CHECK(user_put(&u) > 0);
        u.disk.fail_writes = true;
        CHECK(user_ops(&u));
        user_complete(&u, 0);
        user_events(&u);
        u.disk.fail_writes = false;
        int reads = run_lying(&u, lie);
        if (lie < 0)
            honest = reads;
        CHECK((u.failed_events > 0) == (lie >= 0)); /* it was noticed: not what was promised */
        CHECK_INT(user_status(&u).state, ZC_LOG_OK);
        for (int i = 0; i < 5; i++)
            CHECK(user_put(&u) > 0);
        run_lying(&u, -1);
        CHECK(user_live(&u) >= 5);
        user_close(&u);
        user_open(&u);
        CHECK(u.ready);
        CHECK_INT(u.missing, 0);
        user_done(&u);
    }
    CHECK(honest > 1);
}

TEST(a_file_that_may_not_be_read)
{
    for (int at = 1; at <= 4; at++) { /* those that an opening reads */
        struct user u;
        user_init(&u, 5);
        user_open(&u);
        CHECK(user_put(&u) > 0);
        user_run(&u);
        user_close(&u);
        u.disk.fail_at = u.disk.ops + (uint64_t)at;
        u.disk.fail_err = ZC_EACCES;
        user_open(&u);
        CHECK(u.unusable && strstr(u.unusable_text, "cannot be read") != NULL);
        user_kill(&u);
        u.disk.fail_at = 0;
        user_open(&u);
        CHECK(u.ready);
        CHECK_INT(u.missing, 0);
        user_done(&u);
    }
}

static void read_fails_once(int err)
{
    struct user u;
    user_init(&u, 6);
    user_open(&u);
    CHECK(user_put(&u) > 0);
    user_run(&u);
    u.disk.fail_at = u.disk.ops + 1;
    u.disk.fail_err = err;
    CHECK_INT(zc_log_read(u.log, u.msgs[1].place, user_len(&u, 1), (void *)1), 0);
    user_run(&u);
    CHECK(u.disk.ops > u.disk.fail_at);
    CHECK_INT(u.read_answers, 1);
    CHECK_INT(u.read_err, 0);
    user_done(&u);
}

TEST(a_read_without_memory_is_tried_again)
{
    read_fails_once(ZC_ENOMEM);
}

TEST(a_read_that_the_disk_refuses_is_tried_again)
{
    read_fails_once(ZC_EIO);
}
