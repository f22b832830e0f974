/* The log against crashes, damage and failing disks: what was acknowledged stays, what was removed
 * or refused stays away. The checks are in store_user.h. */
#include "store/segment.h"
#include "store_user.h"

static struct user u;

/* Copies the files of another disk. */
static void disk_copy(struct fd *to, struct fd *from)
{
    fd_done(to);
    for (int i = 0; i < from->count; i++) {
        struct fd_file *f = fd_add(to, from->files[i].number, from->files[i].size);
        fd_poke(f, 0, from->files[i].cache, from->files[i].size);
        f->durable = true;
    }
    to->capacity = 0;
}

static struct fd image;

/* A log with n messages, every third removed, and its image. Sequences 1..n. */
static void make_image(uint64_t seed, int n)
{
    user_init(&u, seed);
    user_open(&u);
    for (int i = 1; i <= n; i++) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
        if (i % 3 == 0)
            CHECK_INT(user_remove(&u, (uint64_t)i), 0);
        user_run(&u);
    }
    user_close(&u);
    memset(&image, 0, sizeof(image));
    disk_copy(&image, &u.disk);
}

/* Ends of records in segment 1 of the image, in order; and which message each is about. */
struct mark {
    uint64_t end, seq;
    uint64_t zeros; /* of its last bytes: cut off and replaced by zeros they are whole */
    bool put;
};

static int marks(struct mark *ret_marks, int max)
{
    struct fd_file *f = fd_find(&image, 1);
    struct zc_segment s = {.number = 1};
    struct zc_record r;
    int n = 0;
    CHECK_INT(zc_segment_head_decode(f->cache, &s), 0);
    for (uint64_t at = 128; n < max && zc_record_decode(f->cache + at, s.salt, at, &r) == 0;) {
        bool put = r.type == ZC_RECORD_PUT;
        ret_marks[n].put = put;
        ret_marks[n].seq = put ? r.seq : zc_record_get64(f->cache + at + ZC_RECORD_HEAD);
        /* A record is whole before its padding. */
        ret_marks[n].end = at + ZC_RECORD_HEAD + r.len;
        ret_marks[n].zeros = 0;
        while (f->cache[ret_marks[n].end - ret_marks[n].zeros - 1] == 0)
            ret_marks[n].zeros++;
        n++;
        at += zc_record_size(r.len);
    }
    return n;
}

/* After opening: exactly what the records ending at or before `end` say. */
static void check_prefix(const struct mark *m, int n, uint64_t end, bool zeros)
{
    static bool want[USER_SEQS];
    memset(want, 0, sizeof(want));
    for (int i = 0; i < n && m[i].end - (zeros ? m[i].zeros : 0) <= end; i++)
        want[m[i].seq] = m[i].put;
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (want[seq] != u.msgs[seq].known) {
            test_faults++;
            printf("cut at %llu: message %llu %s\n", (unsigned long long)end,
                   (unsigned long long)seq, want[seq] ? "missing" : "extra");
        }
}

TEST(crash_torn_at_every_byte)
{
    static struct mark m[1000];
    make_image(1, 40);
    int n = marks(m, 1000);
    uint64_t last = m[n - 1].end;
    CHECK(n == 40 + 13 && last < 30000);
    u.damage_expected = true; /* check_prefix knows better */
    for (uint64_t end = 128; end <= last; end++) {
        disk_copy(&u.disk, &image);
        struct fd_file *f = fd_find(&u.disk, 1);
        memset(f->cache + end, 0, f->size - end);
        /* Every other time something else than zeros follows the cut. */
        if (end % 2 == 1)
            for (uint64_t i = end; i < end + 700; i++)
                f->cache[i] = (uint8_t)fd_rand(&u.disk);
        memcpy(f->stable, f->cache, f->size);
        u.seq_next = 41;
        user_open(&u);
        CHECK(u.ready);
        check_prefix(m, n, end, end % 2 == 0);
        CHECK_INT(user_status(&u).damaged, 0);
        /* The torn bytes are gone for good: what is appended now is the end. */
        u.seq_next = 41;
        CHECK_INT(user_put(&u), 41);
        user_run(&u);
        CHECK_INT(u.synced, 1);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK(u.msgs[41].known);
        u.msgs[41] = (struct user_msg){0};
        u.seq_next = 41;
        check_prefix(m, n, end, end % 2 == 0);
        CHECK_INT(user_status(&u).torn_bytes, 0);
        CHECK_INT(user_status(&u).damaged, 0);
        user_kill(&u);
        if (test_faults > 20)
            break;
    }
    fd_done(&image);
    user_done(&u);
}

TEST(crash_file_cut_short)
{
    static struct mark m[1000];
    make_image(2, 40);
    int n = marks(m, 1000);
    uint64_t last = m[n - 1].end;
    u.damage_expected = true;
    for (uint64_t size = 0; size <= last + 16; size++) {
        disk_copy(&u.disk, &image);
        fd_find(&u.disk, 1)->size = size;
        user_open(&u);
        CHECK(u.ready);
        check_prefix(m, n, size < 64 ? 0 : size, false);
        user_close(&u);
    }
    fd_done(&image);
    user_done(&u);
}

TEST(crash_random_bit_flips)
{
    make_image(3, 600);
    CHECK(image.count > 3);
    static struct user_msg before[USER_SEQS];
    memcpy(before, u.msgs, sizeof(before));
    u.damage_expected = true;
    for (int i = 0; i < 500; i++) {
        disk_copy(&u.disk, &image);
        memcpy(u.msgs, before, sizeof(before));
        struct fd_file *f = &u.disk.files[fd_rand(&u.disk) % (uint64_t)u.disk.count];
        /* Half of them among the records, where all bytes of the file are as likely. */
        uint64_t bit = fd_rand(&u.disk) % (f->size * 8);
        fd_flip(f, bit);
        u.missing = 0;
        user_open(&u);
        CHECK(u.ready && u.in_order);
        int back = 0;
        for (uint64_t seq = 1; seq < u.seq_next; seq++)
            back += before[seq].state == U_GONE && u.msgs[seq].known;
        CHECK(u.missing + (uint64_t)back <= 1);
        struct zc_log_status st = user_status(&u);
        CHECK(u.missing + (uint64_t)back <= st.damaged + (st.torn_bytes > 0));
        CHECK(st.damaged <= 1);
        /* Damage stays where it is: the second opening misses the same, and says nothing. */
        uint64_t missing = u.missing;
        memcpy(u.msgs, before, sizeof(before));
        u.missing = 0;
        user_close(&u);
        user_open(&u);
        CHECK_INT(u.missing, missing);
        CHECK_INT(user_status(&u).damaged, 0);
        user_kill(&u);
    }
    fd_done(&image);
    user_done(&u);
}

TEST(crash_damage_is_set_aside)
{
    make_image(4, 600);
    disk_copy(&u.disk, &image);
    fd_flip(fd_find(&u.disk, 1), (128 + 24) * 8); /* message 1 */
    /* Both heads of segment 2: all in it is lost, nothing else is. */
    fd_flip(fd_find(&u.disk, 2), 20 * 8);
    fd_flip(fd_find(&u.disk, 2), 84 * 8);
    u.damage_expected = true;
    user_open(&u);
    CHECK(u.ready);
    CHECK_INT(u.msgs[1].known, false);
    CHECK(u.missing > 50 && u.missing < 300);
    CHECK_INT(user_status(&u).damaged, 2);
    CHECK_INT(u.disk.asides, 1);
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (u.msgs[seq].state == U_LIVE)
            CHECK_INT(user_remove(&u, seq), 0);
    user_run(&u);
    CHECK_INT(u.disk.asides, 2);
    CHECK_INT(fd_segments(&u.disk), 2);
    fd_done(&image);
    user_done(&u);
}

TEST(crash_unreadable_block)
{
    make_image(5, 600);
    disk_copy(&u.disk, &image);
    static struct user_msg before[USER_SEQS];
    memcpy(before, u.msgs, sizeof(before));
    u.damage_expected = true;
    u.disk.fail_reads = true;
    u.disk.fail_from = 8192;
    u.disk.fail_to = 8193;
    user_open(&u);
    CHECK(u.ready && u.missing > 0);
    CHECK(user_status(&u).damaged > 0);
    for (uint64_t seq = 1; seq < u.seq_next; seq++) {
        uint32_t at = (uint32_t)before[seq].place;
        if (before[seq].state == U_LIVE && (at > 12288 || at + 24 + user_len(&u, seq) <= 8192))
            CHECK(u.msgs[seq].known);
    }
    user_close(&u);
    /* A head that cannot be read, or a whole disk: not opened at all. */
    u.disk.fail_from = 0;
    user_open(&u);
    CHECK(u.unusable && strstr(u.unusable_text, "cannot be read") != NULL);
    user_kill(&u);
    u.disk.fail_from = 300;
    u.disk.fail_to = UINT64_MAX;
    user_open(&u);
    CHECK(u.unusable);
    fd_done(&image);
    user_done(&u);
}

/* A busy life of `steps`; ends the process in the middle of things. */
static void live(int steps, int puts, bool marking)
{
    for (int i = 0; i < steps; i++) {
        uint64_t pick = fd_rand(&u.disk) % 100;
        if (u.ready && !u.unusable && pick < (uint64_t)puts) {
            if (u.seq_next < USER_SEQS - 1)
                (void)!user_put(&u);
        } else if (u.ready && pick < 75) {
            /* Mostly the oldest, sometimes any. */
            uint64_t seq = u.seq_base;
            if (fd_rand(&u.disk) % 4 == 0 && u.seq_next > seq)
                seq += fd_rand(&u.disk) % (u.seq_next - seq);
            if (seq < u.seq_next && u.msgs[seq].state == U_LIVE)
                (void)!user_remove(&u, seq);
            else if (seq < u.seq_next && u.msgs[seq].state == U_PENDING &&
                     fd_rand(&u.disk) % 8 == 0)
                (void)!user_remove(&u, seq);
        } else if (u.ready && marking && pick < 78 && u.seq_base < u.seq_next) {
            (void)!user_mark(&u, u.seq_base);
        } else if (pick < 80) {
            u.now.mono.ns += (int64_t)(fd_rand(&u.disk) % 400) * ZC_NS_PER_MS;
            zc_log_tick(u.log, u.now);
        } else {
            user_step(&u);
        }
    }
}

/* Opens without faults, and checks that the log rests and works. */
static void calm(void)
{
    u.disk.fail_rate = 0;
    u.disk.fail_at = 0;
    u.disk.fail_syncs = u.disk.fail_creates = u.disk.fail_writes = false;
    u.disk.capacity = 0;
    user_open(&u);
    if (u.unusable)
        printf("%s\n", u.unusable_text);
    CHECK(u.ready && !u.unusable);
}

TEST(crash_at_each_request)
{
    /* The same short life again and again; power fails at request k, the disk keeps any of it. */
    for (uint64_t k = 1; k < 400; k++) {
        user_init(&u, 10 + k % 7);
        u.steps = k % 2 == 0;
        user_open_quiet(&u);
        uint64_t puts = 0;
        while (u.disk.ops < k && puts < 3000) {
            if (u.ready && puts++ % 4 < 3)
                CHECK(user_put(&u) > 0);
            else if (u.ready && u.msgs[u.seq_base].state == U_LIVE)
                CHECK_INT(user_remove(&u, u.seq_base), 0);
            if (u.ready && u.steps)
                CHECK(user_mark(&u, u.seq_base) > 0);
            user_step(&u);
            if (puts % 3 == 0)
                user_step(&u);
        }
        user_kill(&u);
        u.disk.seed = k * 77;
        fd_crash(&u.disk);
        calm();
        CHECK_INT(user_status(&u).damaged > 0 && u.missing > 0, 0);
        user_put(&u);
        user_run(&u);
        user_kill(&u);
        fd_crash(&u.disk);
        calm();
        user_done(&u);
        if (test_faults > 20)
            break;
    }
}

TEST(crash_fault_at_each_request)
{
    /* Request k fails, during opening as well. */
    for (uint64_t k = 1; k < 300; k++) {
        for (int err = 0; err < 2; err++) {
            user_init(&u, 40 + k % 5);
            u.steps = k % 2 == 0;
            u.disk.fail_at = k;
            u.disk.fail_err = err == 0 ? ZC_EIO : ZC_ENOSPC;
            user_open_quiet(&u);
            for (int i = 0; i < 3000 && u.disk.ops < k + 40 && !u.unusable; i++) {
                if (u.ready && i % 4 < 3)
                    (void)!user_put(&u);
                else if (u.ready && u.msgs[u.seq_base].state == U_LIVE)
                    (void)!user_remove(&u, u.seq_base);
                if (u.ready && u.steps)
                    (void)!user_mark(&u, u.seq_base);
                user_step(&u);
            }
            if (!u.unusable) {
                user_wait(&u, 3000);
                CHECK_INT(u.state, ZC_LOG_OK);
                CHECK(user_put(&u) > 0);
                user_run(&u);
                CHECK_INT(u.msgs[u.seq_next - 1].state, U_LIVE);
            }
            user_kill(&u);
            fd_crash(&u.disk);
            calm();
            user_done(&u);
        }
        if (test_faults > 20)
            break;
    }
}

/* Any mixture of lives, ends and faults. */
static void property(uint64_t seed, bool faults)
{
    user_init(&u, seed);
    u.steps = seed % 3 > 0;
    uint64_t rand = seed * 7919;
    for (int life = 0; life < 12 && test_faults == 0; life++) {
        rand = rand * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t pick = rand >> 33;
        if (faults) {
            u.disk.fail_rate = pick % 5 == 0 ? 30 : pick % 5 == 1 ? 5 : 0;
            u.disk.fail_err = pick % 3 == 0 ? ZC_ENOSPC : ZC_EIO;
            u.disk.capacity = pick % 4 == 0 ? fd_bytes(&u.disk) + 65536 * (pick % 3) : 0;
        }
        user_open_quiet(&u);
        live(200 + (int)(pick % 1500), 20 + (int)(pick % 40), true);
        if (pick % 7 == 0 && !u.unusable) {
            user_wait(&u, 2500);
            live(300, 40, true);
        }
        if (pick % 3 == 0) {
            zc_log_close(u.log, u.now);
            user_run(&u);
            CHECK(u.closed || u.unusable);
        }
        user_kill(&u);
        if (pick % 2 == 0)
            fd_crash(&u.disk);
        for (int i = 0; i < u.disk.count; i++)
            if (pick % 2 == 1)
                fd_flush(&u.disk.files[i]), u.disk.files[i].durable = true;
        if (pick % 4 == 1) {
            calm();
            user_kill(&u);
        }
    }
    calm();
    CHECK_INT(user_status(&u).state, ZC_LOG_OK);
    /* All is taken: nothing of it stays on the disk. */
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (u.msgs[seq].state == U_LIVE)
            CHECK_INT(user_remove(&u, seq), 0);
    user_wait(&u, 2500);
    CHECK_INT(user_live(&u), 0);
    CHECK(user_status(&u).segments <= 2);
    user_done(&u);
    if (test_faults > 0)
        printf("seed %llu\n", (unsigned long long)seed);
}

/* Seeds to try; ZC_TEST_SEEDS in the environment for a longer search. */
static uint64_t seeds(uint64_t usual)
{
    const char *text = getenv("ZC_TEST_SEEDS");
    return text != NULL ? strtoull(text, NULL, 10) : usual;
}

TEST(crash_property)
{
    for (uint64_t seed = 1; seed <= seeds(50) && test_faults == 0; seed++)
        property(seed, false);
}

TEST(crash_property_with_faults)
{
    for (uint64_t seed = 1000; seed < 1000 + seeds(100) && test_faults == 0; seed++)
        property(seed, true);
}

TEST(crash_kill_keeps_weaker_modes)
{
    /* kill -9 loses nothing in any mode: it was written. */
    for (uint64_t seed = 1; seed < 40; seed++) {
        user_init(&u, seed);
        u.no_durable_check = true;
        u.steps = seed % 2 == 0;
        for (int life = 0; life < 6; life++) {
            u.sync = (enum zc_log_sync)(seed % 3);
            user_open_quiet(&u);
            live(600, 40, true);
            user_kill(&u);
        }
        calm();
        user_done(&u);
    }
}

/* Segments are removed from the oldest on, so a hole or an emptied file in the middle is damage. */
TEST(crash_lost_segments_are_counted)
{
    for (int emptied = 0; emptied < 2; emptied++) {
        make_image(4, 900);
        disk_copy(&u.disk, &image);
        struct fd_file *lost = fd_find(&u.disk, 2);
        if (emptied)
            lost->size = 0;
        else
            fd_drop(&u.disk, lost);
        u.damage_expected = true;
        user_open(&u);
        CHECK(u.ready);
        CHECK(u.missing > 0);
        CHECK(user_status(&u).damaged > 0);
        user_kill(&u);
        fd_done(&image);
        user_done(&u);
    }
}
