/* The record codec, segment heads and the table of segments. */
#include "base/crc32c.h"
#include "store/disk.h"
#include "store/record.h"
#include "store/segment.h"
#include "test.h"

TEST(record_bytes)
{
    /* The picture of zmqcat-log.5, byte by byte. */
    uint8_t got[64];
    memset(got, 0xee, sizeof(got));
    zc_record_encode(got, ZC_RECORD_PUT, 0x0102030405060708u, zc_slice("hello", 5));
    zc_record_stamp(got, 0x1122334455667788u, 128);
    const uint8_t rest[] = {29, 0, 0, 0, 2,   0,   0,   0,   8,   7, 6, 5,
                            4,  3, 2, 1, 'h', 'e', 'l', 'l', 'o', 0, 0, 0};
    CHECK_INT(zc_record_size(5), 32);
    CHECK(memcmp(got + 8, rest, sizeof(rest)) == 0);
    CHECK_INT(got[32], 0xee);
    CHECK_INT(zc_record_get32(got + 4), zc_crc32c(0, "hello", 5));
    uint8_t covered[36] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 128};
    memcpy(covered + 16, got + 4, 20);
    CHECK_INT(zc_record_get32(got), zc_crc32c(0, covered, sizeof(covered)));
}

TEST(record_roundtrip)
{
    static uint8_t body[5000], out[6000];
    for (size_t len = 0; len < 5000; len += 1 + len / 7) {
        for (size_t i = 0; i < len; i++)
            body[i] = (uint8_t)(i * 7 + len);
        zc_record_encode(out, ZC_RECORD_PUT, len, zc_slice(body, len));
        zc_record_stamp(out, 42, 4096);
        struct zc_record r;
        CHECK_INT(zc_record_decode(out, 42, 4096, &r), 0);
        CHECK(r.type == ZC_RECORD_PUT && r.seq == len && r.len == len);
        CHECK(zc_record_body_ok(&r, out + ZC_RECORD_HEAD));
        CHECK_INT(zc_record_decode(out, 43, 4096, &r), ZC_EBADMSG);
        CHECK_INT(zc_record_decode(out, 42, 4104, &r), ZC_EBADMSG);
    }
}

TEST(record_every_bit)
{
    uint8_t out[64];
    struct zc_record r;
    zc_record_encode(out, ZC_RECORD_PUT, 77, zc_slice("abcdefghijk", 11));
    zc_record_stamp(out, 99, 256);
    for (int bit = 0; bit < (ZC_RECORD_HEAD + 11) * 8; bit++) {
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        bool passes =
            zc_record_decode(out, 99, 256, &r) == 0 && zc_record_body_ok(&r, out + ZC_RECORD_HEAD);
        CHECK(!passes);
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK_INT(zc_record_decode(out, 99, 256, &r), 0);
}

TEST(record_shapes)
{
    static const struct {
        int type;
        size_t len;
        bool ok;
    } cases[] = {
        {0, 0, false},
        {1, 16, true},
        {1, 15, false},
        {2, 0, true},
        {2, 1, true},
        {3, 0, false},
        {3, 8, true},
        {3, 12, false},
        {3, 16, true},
        {4, 12, true},
        {4, 11, false},
        {5, 12, true},
        {5, ZC_RECORD_BODY_MAX + 1, false},
        {6, 24, true},
        {7, 12, false},
        {255, 8, false},
        {2, ZC_RECORD_BODY_MAX, true},
        {2, ZC_RECORD_BODY_MAX + 1, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_INT(zc_record_shape_ok((enum zc_record_type)cases[i].type, cases[i].len),
                  cases[i].ok);
    uint8_t zeros[ZC_RECORD_HEAD] = {0};
    struct zc_record r;
    CHECK_INT(zc_record_decode(zeros, 0, 0, &r), ZC_EBADMSG);
}

TEST(segment_head)
{
    uint8_t head[ZC_SEGMENT_HEAD];
    struct zc_segment s = {.number = 7, .salt = 0xabcdef, .seq = 12345};
    zc_segment_head_encode(head, &s);
    for (int bit = -1; bit < ZC_SEGMENT_HEAD * 8; bit++) {
        struct zc_segment t = {.number = 7};
        if (bit >= 0)
            head[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_INT(zc_segment_head_decode(head, &t), 0);
        CHECK(t.salt == s.salt && t.seq == s.seq);
        if (bit >= 0)
            head[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    struct zc_segment other = {.number = 8};
    CHECK_INT(zc_segment_head_decode(head, &other), ZC_EBADMSG);
    head[8] = 2;
    zc_record_set32(head + 60, zc_crc32c(0, head, 60));
    CHECK_INT(zc_segment_head_decode(head, &s), ZC_EINVAL);
    memset(head, 0, sizeof(head));
    CHECK_INT(zc_segment_head_decode(head, &s), ZC_EBADMSG);
}

TEST(segment_seals)
{
    uint8_t seals[ZC_SEGMENT_SEALS];
    struct zc_segment s = {.number = 9, .salt = 5};
    uint64_t seq, end;
    uint32_t number;
    zc_segment_seals_encode(seals, &s, 1000, 8, 65432);
    for (int bit = 0; bit < ZC_SEGMENT_SEALS * 8; bit++) {
        seals[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_INT(zc_segment_seals_decode(seals, &s, &seq, &number, &end), 0);
        CHECK(seq == 1000 && number == 8 && end == 65432);
        seals[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    s.salt = 6;
    CHECK_INT(zc_segment_seals_decode(seals, &s, &seq, &number, &end), ZC_EBADMSG);
}

TEST(segment_table)
{
    struct zc_segments t = {0};
    uint32_t order[] = {5, 1, 9, 3, 7, 2};
    for (size_t i = 0; i < 6; i++) {
        CHECK_INT(zc_segment_reserve(&t), 0);
        zc_segment_add(&t, order[i])->salt = order[i] * 10u;
    }
    for (uint32_t n = 0; n < 12; n++) {
        struct zc_segment *s = zc_segment_find(&t, n);
        bool there = n == 1 || n == 2 || n == 3 || n == 5 || n == 7 || n == 9;
        CHECK((s != NULL) == there);
        CHECK(s == NULL || s->salt == n * 10u);
    }
    zc_segment_drop(&t, 3);
    zc_segment_drop(&t, 4);
    CHECK(t.len == 5 && zc_segment_find(&t, 3) == NULL && t.items[2].number == 5);
    zc_segment_done(&t);
}

TEST(disk_names)
{
    char name[ZC_DISK_NAME_MAX];
    zc_disk_name(1, name);
    CHECK(strcmp(name, "00000001.zlog") == 0);
    zc_disk_name(UINT32_MAX, name);
    CHECK(strcmp(name, "4294967295.zlog") == 0);
    for (uint32_t n = 1; n < 4000000000u; n += n / 3 + 1) {
        zc_disk_name(n, name);
        CHECK_INT(zc_disk_number(name), n);
    }
    static const char *const bad[] = {"",
                                      "1.zlog",
                                      "00000001.zlogx",
                                      "00000000.zlog",
                                      "x0000001.zlog",
                                      "4000000001.zlog",
                                      "4294967295.zlog",
                                      "4294967296.zlog",
                                      "000000001.zlog",
                                      "00000001",
                                      "lock"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(zc_disk_number(bad[i]), 0);
}
