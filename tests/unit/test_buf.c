/* base/buf.h: slices, growable buffers, blocks. */
#include "base/buf.h"
#include "base/rng.h"
#include "test.h"

TEST(slice_compare)
{
    struct zc_slice none = {NULL, 0}, a = zc_slice_str("a"), ab = zc_slice_str("ab");
    CHECK(zc_slice_eq(none, zc_slice_str("")));
    CHECK(!zc_slice_eq(none, a));
    CHECK(!zc_slice_eq(a, zc_slice_str("b")));
    CHECK(zc_slice_eq(zc_slice("a\0b", 3), zc_slice("a\0b", 3)));
    CHECK(!zc_slice_eq(zc_slice("a\0b", 3), zc_slice("a\0c", 3)));
    CHECK(zc_slice_is(ab, "ab") && !zc_slice_is(ab, "a") && !zc_slice_is(a, "ab"));
    CHECK(zc_slice_is(none, ""));
    CHECK(zc_slice_cmp(none, none) == 0);
    CHECK(zc_slice_cmp(none, a) < 0 && zc_slice_cmp(a, none) > 0);
    CHECK(zc_slice_cmp(a, ab) < 0 && zc_slice_cmp(ab, a) > 0);
    CHECK(zc_slice_cmp(zc_slice_str("b"), ab) > 0);
    CHECK(zc_slice_cmp(zc_slice("\xff", 1), zc_slice("\x01", 1)) > 0);
    CHECK(zc_slice_starts(ab, a) && zc_slice_starts(ab, none) && zc_slice_starts(none, none));
    CHECK(!zc_slice_starts(a, ab) && !zc_slice_starts(ab, zc_slice_str("b")));
}

TEST(buf_append_and_consume_as_a_model)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){1});
    struct zc_buf b = {0};
    static uint8_t model[1 << 16];
    size_t len = 0;
    for (int round = 0; round < 5000; round++) {
        uint8_t piece[97];
        size_t n = zc_rng_u64(&rng) % sizeof(piece);
        if (zc_rng_u64(&rng) % 2 == 0 && len + n <= sizeof(model)) {
            zc_rng_bytes(&rng, piece, n);
            CHECK_INT(zc_buf_append(&b, piece, n), 0);
            memcpy(model + len, piece, n);
            len += n;
        } else {
            size_t drop = len == 0 ? 0 : zc_rng_u64(&rng) % (len < 120 ? len + 1 : 120);
            zc_buf_consume(&b, drop);
            memmove(model, model + drop, len - drop);
            len -= drop;
        }
        CHECK_INT(b.len, len);
        CHECK(b.len <= b.cap);
        CHECK(len == 0 || memcmp(b.data, model, len) == 0);
    }
    zc_buf_done(&b);
    CHECK(b.data == NULL && b.len == 0 && b.cap == 0);
    zc_buf_done(&b);
}

TEST(buf_reserve_gives_room_and_doubles)
{
    struct zc_buf b = {0};
    CHECK_INT(zc_buf_reserve(&b, 0), 0);
    CHECK_INT(zc_buf_reserve(&b, 1000), 0);
    CHECK(b.cap >= 1000 && b.len == 0);
    size_t moves = 0;
    for (size_t i = 0; i < 100000; i++) {
        size_t cap = b.cap;
        CHECK_INT(zc_buf_append(&b, "x", 1), 0);
        moves += b.cap != cap;
    }
    CHECK(moves < 10);
    zc_buf_done(&b);
}

TEST(buf_refuses_what_cannot_be)
{
    struct zc_buf b = {0};
    CHECK_INT(zc_buf_append(&b, "abc", 3), 0);
    CHECK_INT(zc_buf_reserve(&b, SIZE_MAX), ZC_ENOMEM);
    CHECK_INT(zc_buf_reserve(&b, SIZE_MAX - 3), ZC_ENOMEM);
    CHECK(b.len == 3 && memcmp(b.data, "abc", 3) == 0);
    zc_buf_done(&b);
}

TEST(block_references)
{
    struct zc_block *b = zc_block_new(5);
    CHECK(b != NULL && b->refs == 1 && b->len == 5);
    memcpy(b->data, "hello", 5);
    CHECK(zc_block_ref(b) == b && b->refs == 2);
    zc_block_unref(b);
    CHECK_INT(b->refs, 1);
    CHECK(zc_slice_is(zc_block_slice(b), "hello"));
    zc_block_unref(b); /* AddressSanitizer sees a leak or a second free */
    zc_block_unref(NULL);
    b = zc_block_new(0);
    CHECK(b != NULL && b->len == 0);
    zc_block_unref(b);
    CHECK(zc_block_new((size_t)UINT32_MAX + 1) == NULL);
    CHECK(zc_block_new(SIZE_MAX) == NULL);
}

TEST(err_texts)
{
    for (int err = ZC_EMFILE; err <= 0; err++) {
        CHECK(strcmp(zc_err_text(err), "unknown error") != 0);
        for (int other = ZC_EMFILE; other < err; other++)
            CHECK(strcmp(zc_err_text(err), zc_err_text(other)) != 0);
    }
    CHECK(strcmp(zc_err_text(-1000), "unknown error") == 0);
    CHECK(strcmp(zc_err_text(1), "unknown error") == 0);
}
