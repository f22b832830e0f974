/* zmqc/frame.h: limits of the length, magic from the first byte on, any cut. */
#include "test.h"
#include "zmqc/frame.h"

static enum zc_frame_status peek(const void *data, size_t len, size_t *ret_size)
{
    uint8_t *copy = malloc(len > 0 ? len : 1); /* exact, for AddressSanitizer */
    if (len > 0)
        memcpy(copy, data, len);
    enum zc_frame_status status = zc_frame_peek(len > 0 ? copy : NULL, len, ret_size);
    free(copy);
    return status;
}

TEST(frame_any_cut)
{
    static const char frame[] = "ZMQC\0\0\0\x0d{\"op\":\"ping\"}ZMQC";
    size_t whole = 8 + 13;
    for (size_t len = 0; len < sizeof(frame); len++) {
        size_t size = 0;
        enum zc_frame_status status = peek(frame, len, &size);
        CHECK_INT(status, len < whole ? ZC_FRAME_PARTIAL : ZC_FRAME_WHOLE);
        CHECK_INT(size, len < 8 ? ZC_FRAME_HEADER : whole);
    }
}

TEST(frame_magic)
{
    size_t size = 99;
    static const char *bad[] = {"X", "ZX", "ZMX", "ZMQX", "zmqc", "GET / HTTP", "\x16\x03\x01"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(peek(bad[i], strlen(bad[i]), &size), ZC_FRAME_BAD_MAGIC);
    CHECK_INT(peek("\0", 1, &size), ZC_FRAME_BAD_MAGIC);
    CHECK_INT(peek("ZMQC\0\0\0\0", 8, &size), ZC_FRAME_BAD_LENGTH);
    CHECK_INT(size, 99);
}

TEST(frame_lengths)
{
    static const struct {
        uint32_t length;
        enum zc_frame_status want;
    } rows[] = {
        {0, ZC_FRAME_BAD_LENGTH},
        {1, ZC_FRAME_PARTIAL},
        {2, ZC_FRAME_PARTIAL},
        {2097151, ZC_FRAME_PARTIAL},
        {2097152, ZC_FRAME_PARTIAL},
        {2097153, ZC_FRAME_BAD_LENGTH},
        {0x01000000, ZC_FRAME_BAD_LENGTH},
        {0x7fffffff, ZC_FRAME_BAD_LENGTH},
        {0x80000000, ZC_FRAME_BAD_LENGTH},
        {0xffffffff, ZC_FRAME_BAD_LENGTH},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t n = rows[i].length;
        uint8_t header[8] = {
            'Z',       'M', 'Q', 'C', (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
            (uint8_t)n};
        size_t size = 0;
        CHECK_INT(peek(header, 8, &size), rows[i].want);
        if (rows[i].want == ZC_FRAME_PARTIAL) {
            CHECK_INT(size, (size_t)n + 8);
            uint8_t made[8];
            zc_frame_header(made, n);
            CHECK(memcmp(made, header, 8) == 0);
        }
    }
}
