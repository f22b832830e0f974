/* Output chunks of a session: every byte once and in order, however little the kernel takes. */
#include "base/rng.h"
#include "test.h"
#include "zmqc/session.h"

TEST(bytes_in_order)
{
    uint8_t seed[32] = {3};
    struct zc_rng rng;
    zc_rng_init(&rng, seed);
    struct zc_session *s = zc_session_new("uid:1", "@");
    uint8_t written = 0, read = 0;
    uint64_t frames = 0;
    for (int step = 0; step < 5000; step++) {
        if (zc_rng_u64(&rng) % 2 == 0 && zc_session_out_bytes(s) < 100000) {
            size_t len = zc_rng_u64(&rng) % (step % 17 == 0 ? 6000 : 200) + 1;
            struct zc_block *f = zc_block_new(len);
            for (size_t i = 0; i < len; i++)
                f->data[i] = written++;
            CHECK_INT(zc_session_write(s, f), 0);
            CHECK_INT(zc_session_mark(s), 0);
            zc_block_unref(f);
            frames++;
            continue;
        }
        struct zc_slice slices[8];
        size_t n = zc_session_slices(s, slices, 8), all = 0;
        for (size_t i = 0; i < n; i++)
            all += slices[i].len;
        size_t take = all == 0 ? 0 : zc_rng_u64(&rng) % (all + 1), left = take;
        for (size_t i = 0; i < n && left > 0; i++) {
            for (size_t k = 0; k < slices[i].len && left > 0; k++, left--)
                CHECK_INT(slices[i].data[k], read++);
        }
        zc_session_sent(s, take);
    }
    struct zc_slice slice;
    while (zc_session_slices(s, &slice, 1) == 1)
        zc_session_sent(s, slice.len);
    CHECK_INT(zc_session_out_bytes(s), 0);
    CHECK_INT(s->marks.len, 0);
    CHECK(frames > 1000);
    zc_session_free(s);
}

TEST(marks_count_frames_not_taken)
{
    struct zc_session *s = zc_session_new("uid:1", "@");
    struct zc_block *f = zc_block_new(10);
    memset(f->data, 0, 10);
    for (int i = 0; i < 100; i++) {
        CHECK_INT(zc_session_write(s, f), 0);
        CHECK_INT(zc_session_mark(s), 0);
    }
    CHECK_INT(s->marks.len, 100);
    zc_session_sent(s, 95);
    CHECK_INT(s->marks.len, 91);
    zc_session_drop_output(s);
    CHECK_INT(s->marks.len, 0);
    zc_block_unref(f);
    zc_session_free(s);
}

TEST(shared_bytes_side_by_side_are_one_slice)
{
    struct zc_session *s = zc_session_new("uid:1", "@");
    struct zc_block *b = zc_block_new(100), *other = zc_block_new(100);
    struct zc_slice slices[8];
    CHECK_INT(zc_session_refer(s, b, 10, 20), 0);
    CHECK_INT(zc_session_refer(s, b, 30, 5), 0);
    CHECK_INT(b->refs, 2);
    CHECK_INT(zc_session_refer(s, b, 40, 5), 0); /* a gap */
    CHECK_INT(zc_session_refer(s, other, 45, 5), 0);
    CHECK_INT(zc_session_copy(s, zc_slice("reply", 5)), 0);
    CHECK_INT(zc_session_refer(s, other, 50, 5), 0); /* a reply between */
    CHECK_INT(zc_session_slices(s, slices, 8), 5);
    CHECK(slices[0].data == b->data + 10 && slices[0].len == 25);
    CHECK(slices[1].data == b->data + 40 && slices[1].len == 5);
    CHECK(slices[2].data == other->data + 45 && slices[4].data == other->data + 50);
    zc_session_sent(s, 24);
    CHECK_INT(zc_session_refer(s, other, 55, 1), 0);
    CHECK_INT(zc_session_slices(s, slices, 8), 5);
    CHECK(slices[0].data == b->data + 34 && slices[0].len == 1);
    CHECK(slices[4].len == 6);
    CHECK_INT(zc_session_out_bytes(s), 1 + 5 + 5 + 5 + 6);
    zc_session_drop_output(s);
    CHECK_INT(b->refs + other->refs, 2);
    zc_block_unref(b);
    zc_block_unref(other);
    zc_session_free(s);
}
