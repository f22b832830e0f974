/* base/rng.h: the published key stream, and independence from how it is cut. */
#include "base/rng.h"
#include "test.h"

TEST(rng_is_chacha20)
{
    /* Key and nonce zero, block 0: draft-agl-tls-chacha20poly1305-04, section 7, first vector. */
    static const uint8_t want[64] = {
        0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53,
        0x86, 0xbd, 0x28, 0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36,
        0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7, 0xda, 0x41, 0x59, 0x7c, 0x51, 0x57, 0x48,
        0x8d, 0x77, 0x24, 0xe0, 0x3f, 0xb8, 0xd8, 0x4a, 0x37, 0x6a, 0x43, 0xb8, 0xf4,
        0x15, 0x18, 0xa1, 0x1c, 0xc3, 0x87, 0xb6, 0x69, 0xb2, 0xee, 0x65, 0x86};
    struct zc_rng r;
    uint8_t got[64];
    zc_rng_init(&r, (const uint8_t[32]){0});
    zc_rng_bytes(&r, got, sizeof(got));
    CHECK(memcmp(got, want, sizeof(want)) == 0);
    zc_rng_init(&r, (const uint8_t[32]){0});
    CHECK(zc_rng_u64(&r) == UINT64_C(0x903df1a0ade0b876));
}

TEST(rng_same_bytes_however_cut)
{
    static uint8_t whole[5000], cut[5000];
    struct zc_rng a, b;
    zc_rng_init(&a, (const uint8_t[32]){7, 8, 9});
    zc_rng_init(&b, (const uint8_t[32]){7, 8, 9});
    zc_rng_bytes(&a, whole, sizeof(whole));
    for (size_t i = 0, n = 0; i < sizeof(cut); i += n) {
        n = i % 301 + 1 < sizeof(cut) - i ? i % 301 + 1 : sizeof(cut) - i;
        zc_rng_bytes(&b, cut + i, n);
    }
    CHECK(memcmp(whole, cut, sizeof(whole)) == 0);
    zc_rng_bytes(&a, whole, 0);
    CHECK(zc_rng_u64(&a) == zc_rng_u64(&b));
}

TEST(rng_does_not_repeat_a_block)
{
    static uint8_t data[64 * 1024];
    struct zc_rng r;
    zc_rng_init(&r, (const uint8_t[32]){1});
    zc_rng_bytes(&r, data, sizeof(data));
    for (size_t i = 64; i < sizeof(data); i += 64)
        CHECK(memcmp(data, data + i, 64) != 0);
}

TEST(rng_hex)
{
    struct zc_rng r;
    char hex[9] = "????????";
    zc_rng_init(&r, (const uint8_t[32]){0});
    zc_rng_hex(&r, hex, 8);
    CHECK(strcmp(hex, "76b8e0ad") == 0);
    zc_rng_init(&r, (const uint8_t[32]){0});
    memset(hex, '?', 8);
    zc_rng_hex(&r, hex, 3); /* odd lengths write no more than asked */
    CHECK(strcmp(hex, "76b?????") == 0);
    zc_rng_hex(&r, hex, 0);
    CHECK(strcmp(hex, "76b?????") == 0);
}
