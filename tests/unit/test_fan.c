/* zmqc/fan.h: what was given out stays as it was while somebody holds it, and room is used again.
 */
#include "test.h"
#include "zmqc/fan.h"

static struct zc_block *frame(size_t len, int fill)
{
    struct zc_block *f = zc_block_new(len);
    memset(f->data, fill, len);
    return f;
}

TEST(held_parts_do_not_change)
{
    enum { N = 300 };
    struct zc_fan fan = {0};
    struct zc_fan_part parts[N];
    for (int i = 0; i < N; i++) {
        struct zc_block *f = frame(100 + (size_t)i, i);
        parts[i] = zc_fan_add(&fan, f);
        zc_block_unref(f);
        CHECK(parts[i].block != NULL && parts[i].len == 100 + (uint32_t)i);
        zc_block_ref(parts[i].block);
    }
    for (int i = 0; i < N; i++) {
        const uint8_t *data = parts[i].block->data + parts[i].start;
        for (uint32_t k = 0; k < parts[i].len; k++)
            CHECK_INT(data[k], i & 255);
        zc_block_unref(parts[i].block);
    }
    zc_fan_done(&fan);
}

TEST(parts_lie_side_by_side)
{
    struct zc_fan fan = {0};
    struct zc_block *f = frame(1000, 1);
    struct zc_fan_part first = zc_fan_add(&fan, f);
    zc_block_ref(first.block);
    struct zc_fan_part second = zc_fan_add(&fan, f);
    CHECK(second.block == first.block && second.start == first.start + first.len);
    zc_block_unref(first.block);
    CHECK_INT(zc_fan_add(&fan, f).start, 0); /* everybody has read: from the beginning */
    zc_block_unref(f);
    f = frame(ZC_FAN_FRAME_MAX + 1, 2);
    CHECK(zc_fan_add(&fan, f).block == NULL);
    zc_block_unref(f);
    zc_fan_done(&fan);
}
