/* Indexes of sealed segments: opening by them gives the same as reading the segments, and one that
 * is damaged, stale, cut or missing is no harm. The checks of each message are in store_user.h. */
#include "store/index.h"
#include "store_user.h"

static struct user u;
static struct user_msg before[USER_SEQS];

/* A log of several segments with indexes, one message of three removed, all heads only. */
static void make(uint64_t seed)
{
    user_init(&u, seed);
    u.heads = true;
    user_open(&u);
    for (int i = 0; i < 1500; i++) {
        CHECK(user_put(&u) > 0);
        if (i % 7 == 0)
            user_run(&u);
        if (i % 3 == 0 && u.msgs[u.seq_next - 1].state != U_NONE)
            CHECK_INT(user_remove(&u, u.seq_next - 1), 0);
    }
    user_run(&u);
    CHECK(u.disk.indexes >= 3);
    memcpy(before, u.msgs, sizeof(before));
}

static void again(void)
{
    memcpy(u.msgs, before, sizeof(before));
    u.missing = 0;
    user_open(&u);
    CHECK(u.ready && u.in_order);
}

static struct fd_file *index_file(int n)
{
    for (int i = 0; i < u.disk.count; i++)
        if ((u.disk.files[i].number & FD_INDEX) != 0 && n-- == 0)
            return &u.disk.files[i];
    return NULL;
}

static int indexes(void)
{
    int n = 0;
    while (index_file(n) != NULL)
        n++;
    return n;
}

TEST(index_opens_the_same)
{
    make(1);
    uint64_t reads = u.disk.reads;
    user_kill(&u);
    again();
    uint32_t indexed = user_status(&u).indexed;
    CHECK(indexed >= 3);
    /* One request for each index and one for the size, less than for the segments. */
    CHECK(u.disk.reads - reads < 12u * (uint32_t)fd_segments(&u.disk));
    /* All can be read back, moved and removed. */
    user_check_readable(&u);
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (u.msgs[seq].state == U_LIVE && seq % 50 != 0)
            CHECK_INT(user_remove(&u, seq), 0);
    user_wait(&u, 1000);
    CHECK(u.moves > 0);
    user_kill(&u);
    fd_crash(&u.disk);
    user_open(&u);
    CHECK(u.ready);
    for (uint64_t seq = 1; seq < u.seq_next; seq++)
        if (u.msgs[seq].state == U_LIVE)
            CHECK_INT(user_remove(&u, seq), 0);
    user_wait(&u, 1000);
    /* With a segment goes its index. */
    CHECK_INT(u.disk.count, 2);
    user_done(&u);
}

TEST(index_with_any_bit_flipped)
{
    make(2);
    user_kill(&u);
    for (int i = 0; i < 500; i++) {
        struct fd_file *f = index_file((int)(fd_rand(&u.disk) % 3));
        uint64_t bit = fd_rand(&u.disk) % (f->size * 8);
        if (i % 4 == 0)
            bit %= ZC_INDEX_HEAD * 8;
        fd_flip(f, bit);
        again();
        CHECK_INT(user_status(&u).damaged, 0);
        CHECK_INT(u.missing, 0);
        /* It was refused, and has been made again. */
        CHECK_INT(user_status(&u).indexed, indexes() - 1);
        user_kill(&u);
        if (test_faults > 5)
            break;
    }
    user_done(&u);
}

TEST(index_cut_at_any_place)
{
    make(3);
    user_kill(&u);
    struct fd_file *f = index_file(0);
    size_t size = f->size;
    for (size_t n = 0; n < size; n += 1 + fd_rand(&u.disk) % 97) {
        f = index_file(0);
        if (n >= f->size)
            break;
        f->size = n;
        again();
        CHECK_INT(user_status(&u).damaged, 0);
        CHECK_INT(user_status(&u).indexed, indexes() - 1);
        user_kill(&u);
    }
    user_done(&u);
}

TEST(index_of_another_segment)
{
    /* Stale or swapped: each is bound to its segment by number, salt and end. */
    make(4);
    user_kill(&u);
    struct fd_file *a = index_file(0), *b = index_file(1);
    uint32_t number = a->number;
    a->number = b->number;
    b->number = number;
    again();
    CHECK_INT(user_status(&u).damaged, 0);
    CHECK_INT(user_status(&u).indexed, indexes() - 2);
    user_done(&u);
}

TEST(index_of_a_segment_cut_short)
{
    make(5);
    user_kill(&u);
    struct fd_file *f = fd_find(&u.disk, 1);
    f->size -= 100;
    fd_find(&u.disk, 2)->size = 20000;
    u.damage_expected = true;
    again();
    CHECK(u.missing > 30);
    CHECK(user_status(&u).damaged > 0);
    user_done(&u);
}

TEST(index_missing_or_unreadable)
{
    make(6);
    user_kill(&u);
    fd_drop(&u.disk, index_file(1));
    again();
    uint32_t indexed = user_status(&u).indexed;
    CHECK(indexed >= 2);
    user_kill(&u);
    /* Made again by the life before. */
    again();
    CHECK_INT(user_status(&u).indexed, indexed + 1);
    user_done(&u);
}

TEST(index_damage_shows_when_it_is_read)
{
    /* The record of an indexed message is damaged: nobody looks at it until somebody wants it. */
    make(7);
    user_kill(&u);
    uint64_t seq = 50;
    while (before[seq].state != U_LIVE || user_len(&u, seq) < 30)
        seq++;
    fd_flip(fd_find(&u.disk, (uint32_t)(before[seq].place >> 32)),
            ((uint32_t)before[seq].place + 40) * 8);
    again();
    CHECK_INT(user_status(&u).damaged, 0);
    CHECK_INT(zc_log_read(u.log, u.msgs[seq].place, user_len(&u, seq), (void *)(uintptr_t)seq), 0);
    user_run(&u);
    CHECK_INT(u.read_err, ZC_EBADMSG);
    CHECK_INT(user_status(&u).damaged, 1);
    user_done(&u);
}

TEST(index_failing_disk)
{
    for (int n = 0; n < 150; n++) {
        user_init(&u, 80 + (uint64_t)n % 4);
        u.heads = n % 2 == 0;
        user_open(&u);
        for (int i = 0; i < 900; i++) {
            CHECK(user_put(&u) > 0);
            user_step(&u);
        }
        user_ops(&u);
        u.disk.fail_at = u.disk.ops + (uint64_t)n;
        u.disk.fail_err = n % 3 == 0 ? ZC_ENOSPC : ZC_EIO;
        user_wait(&u, 3000);
        u.disk.fail_at = 0;
        CHECK_INT(u.state, ZC_LOG_OK);
        user_kill(&u);
        fd_crash(&u.disk);
        user_open(&u);
        CHECK(u.ready);
        CHECK_INT(u.missing, 0);
        user_done(&u);
    }
}

TEST(index_is_tried_again_when_the_next_segment_is_sealed)
{
    user_init(&u, 17);
    user_open(&u);
    u.disk.fail_indexes = true;
    while (fd_segments(&u.disk) < 8) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    CHECK_INT(u.disk.indexes, 0);
    /* Once for each seal: it is read, and nothing more happens until there is a reason. */
    uint64_t reads = u.disk.reads;
    CHECK(reads < 8 * 8);
    user_wait(&u, 60000);
    CHECK_INT(u.disk.reads, reads);
    u.disk.fail_indexes = false;
    int segments = fd_segments(&u.disk);
    while (fd_segments(&u.disk) <= segments) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    CHECK_INT(indexes(), 4);
    user_done(&u);
}

TEST(index_is_not_made_for_what_is_consumed)
{
    /* A queue that is consumed in order: no segment is read twice. */
    user_init(&u, 9);
    user_open(&u);
    for (int i = 0; i < 6000; i++) {
        CHECK(user_put(&u) > 0);
        if (i > 300)
            CHECK_INT(user_remove(&u, u.seq_next - 300), 0);
        user_run(&u);
    }
    CHECK_INT(u.disk.indexes, 0);
    user_done(&u);
}

TEST(index_codec_refuses_what_is_not_sound)
{
    /* Entries with right checksums that lie about places, lengths or types. */
    struct zc_segment s = {.number = 7, .salt = 99, .end = 4096, .limit = 4096, .size = 65536};
    struct zc_index index = {0}, out;
    struct zc_buf b = {0};
    struct zc_index_entry e = {.type = ZC_RECORD_PUT, .seq = 5, .offset = 128, .body_len = 40};
    e.body = zc_slice("0123456789", 10);
    CHECK_INT(zc_index_begin(&b), 0);
    CHECK_INT(zc_index_add(&b, &index, &e), 0);
    zc_index_end(&b, &index, &s);
    struct zc_slice file = zc_slice(b.data, b.len);
    CHECK_INT(zc_index_open(file, &s, &out), 0);
    CHECK_INT(out.count, 1);
    for (int other = 0; other < 3; other++) {
        struct zc_segment t = s;
        t.number += other == 0;
        t.salt += other == 1;
        t.limit += other == 2;
        CHECK_INT(zc_index_open(file, &t, &out), ZC_EBADMSG);
    }
    for (int bad = 0; bad < 8; bad++) {
        struct zc_index n = {0};
        struct zc_index_entry x = e;
        x.type = bad == 0 ? ZC_RECORD_SEAL : bad == 1 ? ZC_RECORD_REMOVE : x.type;
        x.type = bad == 2 ? (enum zc_record_type)200 : x.type;
        x.offset = bad == 3 ? 64 : bad == 4 ? 4096 : x.offset;
        x.body_len = bad == 5 ? 5 : bad == 6 ? ZC_RECORD_BODY_MAX + 1 : x.body_len;
        CHECK_INT(zc_index_begin(&b), 0);
        CHECK_INT(zc_index_add(&b, &n, &x), 0);
        n.count += bad == 7;
        zc_index_end(&b, &n, &s);
        CHECK_INT(zc_index_open(zc_slice(b.data, b.len), &s, &out), ZC_EBADMSG);
    }
    zc_buf_done(&b);
}

TEST(index_is_not_made_over_damage_nobody_knows)
{
    /* A bit of a sealed segment turns over before its index is made: the next start reports it. */
    user_init(&u, 16);
    user_open(&u);
    while (fd_find(&u.disk, 3) == NULL) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    CHECK_INT(u.disk.indexes, 0);
    fd_flip(fd_find(&u.disk, 1), ((u.msgs[9].place & UINT32_MAX) + 16) * 8);
    while (fd_find(&u.disk, 7) == NULL) {
        CHECK(user_put(&u) > 0);
        user_run(&u);
    }
    CHECK(u.disk.indexes > 0 && fd_find(&u.disk, 1 | FD_INDEX) == NULL);
    u.damage_expected = true;
    user_kill(&u);
    user_open(&u);
    CHECK_INT(user_status(&u).damaged, 1);
    CHECK_INT(u.missing, 1);
    user_done(&u);
}

TEST(index_has_a_limit)
{
    static uint8_t bytes[1 << 20];
    struct zc_index index = {0};
    struct zc_buf b = {0};
    struct zc_index_entry e = {.type = ZC_RECORD_BIND, .seq = 1, .body_len = sizeof(bytes)};
    e.body = zc_slice(bytes, sizeof(bytes));
    CHECK_INT(zc_index_begin(&b), 0);
    for (int i = 0; i < 15; i++)
        CHECK_INT(zc_index_add(&b, &index, &e), 0);
    CHECK_INT(zc_index_add(&b, &index, &e), ZC_ELIMIT);
    CHECK_INT(index.count, 15);
    CHECK(b.len <= ZC_INDEX_MAX);
    zc_buf_done(&b);
}
