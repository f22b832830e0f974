/*
 * CRC32C (Castagnoli, reflected polynomial 0x82f63b78; RFC 3720 appendix B.4). With the processor's
 * instruction where there is one: SSE4.2 is looked for at run time, ARMv8 CRC when compiling. Else
 * slicing by eight (Kounavis and Berry, 2005).
 */
#include <string.h>

#include "base/crc32c.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

/*
 * Row k holds the effect of one byte followed by k zero bytes. A CRC is linear, so an entry is the
 * sum of the entries of its bits, and 8 constants make a row: from bit 7 down, each is the one
 * before shifted one step further.
 */
#define CRC_1(i, b7, b6, b5, b4, b3, b2, b1, b0)                                                   \
    (((i)&128 ? b7 : 0u) ^ ((i)&64 ? b6 : 0u) ^ ((i)&32 ? b5 : 0u) ^ ((i)&16 ? b4 : 0u) ^          \
     ((i)&8 ? b3 : 0u) ^ ((i)&4 ? b2 : 0u) ^ ((i)&2 ? b1 : 0u) ^ ((i)&1 ? b0 : 0u))
#define CRC_4(i, ...)                                                                              \
    CRC_1((i), __VA_ARGS__), CRC_1((i) + 1, __VA_ARGS__), CRC_1((i) + 2, __VA_ARGS__),             \
        CRC_1((i) + 3, __VA_ARGS__)
#define CRC_16(i, ...)                                                                             \
    CRC_4((i), __VA_ARGS__), CRC_4((i) + 4, __VA_ARGS__), CRC_4((i) + 8, __VA_ARGS__),             \
        CRC_4((i) + 12, __VA_ARGS__)
#define CRC_64(i, ...)                                                                             \
    CRC_16((i), __VA_ARGS__), CRC_16((i) + 16, __VA_ARGS__), CRC_16((i) + 32, __VA_ARGS__),        \
        CRC_16((i) + 48, __VA_ARGS__)
#define CRC_256(...)                                                                               \
    CRC_64(0, __VA_ARGS__), CRC_64(64, __VA_ARGS__), CRC_64(128, __VA_ARGS__),                     \
        CRC_64(192, __VA_ARGS__)

static const uint32_t crc_rows[8][256] = {
    {CRC_256(0x82f63b78, 0x417b1dbc, 0x20bd8ede, 0x105ec76f, 0x8ad958cf, 0xc79a971f, 0xe13b70f7,
             0xf26b8303)},
    {CRC_256(0xfbc3faf9, 0xff17c604, 0x7f8be302, 0x3fc5f181, 0x9d14c3b8, 0x4e8a61dc, 0x274530ee,
             0x13a29877)},
    {CRC_256(0x8b277743, 0xc76580d9, 0xe144fb14, 0x70a27d8a, 0x38513ec5, 0x9edea41a, 0x4f6f520d,
             0xa541927e)},
    {CRC_256(0x52a0c93f, 0xaba65fe7, 0xd725148b, 0xe964b13d, 0xf64463e6, 0x7b2231f3, 0xbf672381,
             0xdd45aab8)},
    {CRC_256(0x6ea2d55c, 0x37516aae, 0x1ba8b557, 0x8f2261d3, 0xc5670b91, 0xe045beb0, 0x7022df58,
             0x38116fac)},
    {CRC_256(0x1c08b7d6, 0x0e045beb, 0x85f4168d, 0xc00c303e, 0x6006181f, 0xb2f53777, 0xdb8ca0c3,
             0xef306b19)},
    {CRC_256(0xf56e0ef4, 0x7ab7077a, 0x3d5b83bd, 0x9c5bfaa6, 0x4e2dfd53, 0xa5e0c5d1, 0xd0065990,
             0x68032cc8)},
    {CRC_256(0x34019664, 0x1a00cb32, 0x0d006599, 0x847609b4, 0x423b04da, 0x211d826d, 0x9278fa4e,
             0x493c7d27)},
};

static uint32_t crc_byte(uint32_t crc, uint8_t byte)
{
    return crc >> 8 ^ crc_rows[0][(crc ^ byte) & 255];
}

static uint32_t crc_word(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t zc_crc32c_table(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t a = crc ^ crc_word(p), b = crc_word(p + 4);
        crc = crc_rows[7][a & 255] ^ crc_rows[6][a >> 8 & 255] ^ crc_rows[5][a >> 16 & 255] ^
              crc_rows[4][a >> 24] ^ crc_rows[3][b & 255] ^ crc_rows[2][b >> 8 & 255] ^
              crc_rows[1][b >> 16 & 255] ^ crc_rows[0][b >> 24];
    }
    for (; len > 0; len--, p++)
        crc = crc_byte(crc, *p);
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
                                                            size_t len)
{
    uint64_t wide = (uint32_t)~crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; len > 0; len--, p++)
        crc = _mm_crc32_u8(crc, *p);
    return ~crc;
}

uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len)
{
    if (__builtin_cpu_supports("sse4.2"))
        return crc_sse42(crc, data, len);
    return zc_crc32c_table(crc, data, len);
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        crc = __crc32cd(crc, word);
    }
    for (; len > 0; len--, p++)
        crc = __crc32cb(crc, *p);
    return ~crc;
}

#else

uint32_t zc_crc32c(uint32_t crc, const void *data, size_t len)
{
    return zc_crc32c_table(crc, data, len);
}

#endif
