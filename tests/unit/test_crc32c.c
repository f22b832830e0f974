/* base/crc32c.h: vectors of RFC 3720 appendix B.4, and both paths against a bitwise model. */
#include "base/crc32c.h"
#include "base/rng.h"
#include "test.h"

static uint32_t model(uint32_t crc, const uint8_t *p, size_t len)
{
    crc = ~crc;
    for (; len > 0; len--, p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

/* The RFC prints the CRC in the order it is sent, its lowest byte first. */
TEST(crc32c_rfc3720)
{
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    static const uint8_t read_pdu[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02};
    CHECK_INT(zc_crc32c(0, zeros, 32), 0x8a9136aa);
    CHECK_INT(zc_crc32c(0, ones, 32), 0x62a8ab43);
    CHECK_INT(zc_crc32c(0, up, 32), 0x46dd794e);
    CHECK_INT(zc_crc32c(0, down, 32), 0x113fdb5c);
    CHECK_INT(zc_crc32c(0, read_pdu, 48), 0xd9963a56);
    CHECK_INT(zc_crc32c(0, "123456789", 9), 0xe3069283);
    CHECK_INT(zc_crc32c(0, NULL, 0), 0);
    CHECK_INT(zc_crc32c(0x12345678, NULL, 0), 0x12345678);
}

TEST(crc32c_both_paths_are_the_model)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){11});
    for (size_t len = 0; len < 300; len++) {
        uint8_t *data = malloc(len > 0 ? len : 1); /* exact, for AddressSanitizer */
        zc_rng_bytes(&rng, data, len);
        uint32_t start = (uint32_t)zc_rng_u64(&rng);
        uint32_t want = model(start, data, len);
        CHECK_INT(zc_crc32c(start, data, len), want);
        CHECK_INT(zc_crc32c_table(start, data, len), want);
        if (len > 0) { /* also from an odd address */
            CHECK_INT(zc_crc32c(start, data + 1, len - 1), model(start, data + 1, len - 1));
            CHECK_INT(zc_crc32c_table(start, data + 1, len - 1), model(start, data + 1, len - 1));
        }
        free(data);
    }
}

TEST(crc32c_continues)
{
    static uint8_t data[4096];
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){12});
    zc_rng_bytes(&rng, data, sizeof(data));
    uint32_t want = zc_crc32c(0, data, sizeof(data));
    for (size_t cut = 0; cut <= sizeof(data); cut += 37) {
        uint32_t crc = zc_crc32c(0, data, cut);
        CHECK_INT(zc_crc32c(crc, data + cut, sizeof(data) - cut), want);
        crc = zc_crc32c_table(0, data, cut);
        CHECK_INT(zc_crc32c_table(crc, data + cut, sizeof(data) - cut), want);
    }
}

TEST(crc32c_sees_every_bit)
{
    uint8_t data[64] = {1, 2, 3};
    uint32_t whole = zc_crc32c(0, data, sizeof(data));
    for (size_t bit = 0; bit < 8 * sizeof(data); bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(zc_crc32c(0, data, sizeof(data)) != whole);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
