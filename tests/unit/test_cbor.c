/* tunnel/cbor.h: heads of all sizes, strictness, bounds; random trees written, read and skipped. */
#include "tunnel/cbor.h"

#include "base/check.h"
#include "base/rng.h"
#include "test.h"

static struct zc_cbor cbor;
static struct zc_cbor_item item;

static bool next(const void *data, size_t len)
{
    zc_cbor_init(&cbor, zc_slice(data, len));
    return zc_cbor_next(&cbor, &item);
}

#define NEXT(text) next(text, sizeof(text) - 1)

TEST(cbor_integers_both_ways)
{
    static const int64_t values[] = {
        0,         1,  23,  24,  255,  256,  65535,  65536,  UINT32_MAX, 1LL << 32,
        INT64_MAX, -1, -24, -25, -256, -257, -65536, -65537, INT64_MIN,  INT64_MIN + 1};
    for (size_t i = 0; i < ZC_ARRAY_LEN(values); i++) {
        uint8_t data[9];
        int64_t back = 0;
        struct zc_cbor_out out = {.data = data, .cap = sizeof(data)};
        zc_cbor_put_int(&out, values[i]);
        CHECK(!out.full);
        CHECK(next(data, out.len) && zc_cbor_int(&item, &back));
        CHECK_INT(back, values[i]);
        CHECK_INT(cbor.rest.len, 0);
        for (size_t n = 0; n < out.len; n++) {
            CHECK(!next(data, n));
            CHECK(cbor.cut && cbor.error != NULL);
            struct zc_cbor_out small = {.data = data, .cap = n};
            zc_cbor_put_int(&small, values[i]);
            CHECK(small.full && small.len == 0);
        }
    }
}

TEST(cbor_strictness)
{
    int64_t v;
    CHECK(!NEXT("\x18\x17") && !cbor.cut); /* 23 in two bytes */
    CHECK(NEXT("\x18\x18") && item.value == 24);
    CHECK(!NEXT("\x19\x00\xff")); /* 255 in three */
    CHECK(!NEXT("\x1a\x00\x00\xff\xff"));
    CHECK(!NEXT("\x1b\x00\x00\x00\x00\xff\xff\xff\xff"));
    CHECK(!NEXT("\x58\x01x"));                  /* length 1 in two bytes */
    CHECK(!NEXT("\x5f\x41x\xff") && !cbor.cut); /* indefinite */
    CHECK(!NEXT("\xbf\xff"));
    CHECK(!NEXT("\xff"));
    CHECK(!NEXT("\x1c"));
    CHECK(!NEXT("\x62\xff\xfe")); /* no UTF-8 */
    CHECK(NEXT("\x42\xff\xfe") && item.bytes.len == 2);
    CHECK(NEXT("\xf5") && item.value == ZC_CBOR_TRUE && !item.number);
    CHECK(!NEXT("\xf8\x15")); /* true in two bytes */
    CHECK(NEXT("\xf9\x3c\x00") && item.number);
    CHECK(NEXT("\x1b\x80\x00\x00\x00\x00\x00\x00\x00") && !zc_cbor_int(&item, &v));
    CHECK(NEXT("\x3b\x80\x00\x00\x00\x00\x00\x00\x00") && !zc_cbor_int(&item, &v));
    CHECK(!NEXT("\x7b\xff\xff\xff\xff\xff\xff\xff\xff") && cbor.cut);
}

TEST(cbor_skip_bounds)
{
    uint8_t data[64];
    for (unsigned depth = 0; depth < 40; depth++) {
        for (unsigned n = 0; n < 40; n++) {
            memset(data, 0x81, n);
            data[n] = 0x01;
            CHECK(next(data, n + 1));
            bool good = zc_cbor_skip(&cbor, &item, depth);
            CHECK_INT(good, n == 0 || depth + n <= ZC_CBOR_DEPTH_MAX);
            if (good)
                CHECK_INT(cbor.rest.len, 0);
        }
    }
    /* A count that the input cannot hold is refused at once. */
    CHECK(NEXT("\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02"));
    CHECK(!zc_cbor_skip(&cbor, &item, 0) && cbor.cut);
    CHECK(NEXT("\xbb\x7f\xff\xff\xff\xff\xff\xff\xff\x01\x02"));
    CHECK(!zc_cbor_skip(&cbor, &item, 0) && cbor.cut);
    CHECK(NEXT("\xc1\x01\x02") && zc_cbor_skip(&cbor, &item, 0)); /* a tag */
    CHECK_INT(cbor.rest.len, 1);
}

/* A random tree; returns how many items it has. */
static int put_tree(struct zc_cbor_out *out, struct zc_rng *rng, unsigned depth)
{
    unsigned kind = (unsigned)(zc_rng_u64(rng) % (depth < 6 ? 6 : 4));
    int n = 1;
    if (kind == 0) {
        zc_cbor_put_int(out, (int64_t)(zc_rng_u64(rng) >> zc_rng_u64(rng) % 64));
    } else if (kind == 1) {
        zc_cbor_put_text(out, "some text");
    } else if (kind == 2) {
        zc_cbor_put_bytes(out, zc_slice("\0\1\2\xff", zc_rng_u64(rng) % 5));
    } else if (kind == 3) {
        zc_cbor_put_head(out, ZC_CBOR_SIMPLE, 20 + zc_rng_u64(rng) % 3);
    } else {
        unsigned count = (unsigned)(zc_rng_u64(rng) % 5);
        zc_cbor_put_head(out, kind == 4 ? ZC_CBOR_ARRAY : ZC_CBOR_MAP, count);
        for (unsigned i = 0; i < count * (kind - 3); i++)
            n += put_tree(out, rng, depth + 1);
    }
    return n;
}

TEST(cbor_random_trees)
{
    static uint8_t data[1 << 20];
    struct zc_rng rng;
    uint8_t seed[32] = "cbor trees";
    zc_rng_init(&rng, seed);
    for (int round = 0; round < 2000; round++) {
        struct zc_cbor_out out = {.data = data, .cap = sizeof(data)};
        int want = put_tree(&out, &rng, 0), got = 0;
        CHECK(!out.full);
        zc_cbor_init(&cbor, zc_slice(data, out.len));
        while (cbor.rest.len > 0 && zc_cbor_next(&cbor, &item))
            got++;
        CHECK_INT(got, want);
        CHECK(next(data, out.len) && zc_cbor_skip(&cbor, &item, 0));
        CHECK_INT(cbor.rest.len, 0);
        size_t cut = (size_t)(zc_rng_u64(&rng) % out.len);
        CHECK(!next(data, cut) || !zc_cbor_skip(&cbor, &item, 0));
        CHECK(cbor.cut);
    }
}
