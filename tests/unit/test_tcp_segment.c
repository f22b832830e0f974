/* TCP segments as bytes: known packets, round trips, and everything that must be refused. */
#include "base/rng.h"
#include "test.h"
#include "tunnel/tcp_segment.h"

static const struct zc_ip6_addr A = {{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0, 1}};
static const struct zc_ip6_addr B = {{0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0, 2}};

static const struct zc_slice NOTHING;

static int parse(const uint8_t *p, size_t len, struct zc_tcp_segment *ret)
{
    struct zc_ip6 ip;
    int err = zc_ip6_parse(p, len, &ip);
    return err != 0 ? err : zc_tcp_segment_parse(&ip, ret);
}

/* Options in the order that the other implementations of the tunnel use. */
TEST(syn_on_the_wire)
{
    static const uint8_t want[] = {
        0x30, 0x39, 0x00, 0x07, 1,    2, 3, 4,  0, 0, 0, 0, 0xa0, 0x02, 0x5f, 0x00, 0, 0, 0, 0,
        0x02, 0x04, 0x04, 0xc4, 0x04, 2, 8, 10, 9, 8, 7, 6, 0,    0,    0,    0,    1, 3, 3, 8};
    struct zc_tcp_segment s = {.src_port = 12345,
                               .dst_port = 7,
                               .seq = 0x01020304,
                               .flags = ZC_TCP_SYN,
                               .window = 24320,
                               .mss = 1220,
                               .sack_ok = true,
                               .has_stamp = true,
                               .stamp = 0x09080706,
                               .has_scale = true,
                               .scale = 8};
    uint8_t buf[ZC_IP6_MTU];
    CHECK_INT(zc_tcp_segment_header(&s), 40);
    CHECK_INT(zc_tcp_segment_write(&s, NOTHING, &A, &B, buf, sizeof(buf)), 80);
    buf[40 + 16] = buf[40 + 17] = 0;
    CHECK(memcmp(buf + 40, want, 40) == 0);
}

TEST(headers_by_options)
{
    struct zc_tcp_segment s = {.flags = ZC_TCP_ACK};
    CHECK_INT(zc_tcp_segment_header(&s), 20);
    s.has_stamp = true;
    CHECK_INT(zc_tcp_segment_header(&s), 32);
    s.sack_count = 3;
    CHECK_INT(zc_tcp_segment_header(&s), 60);
    s.has_stamp = false;
    s.sack_count = 4;
    CHECK_INT(zc_tcp_segment_header(&s), 56);
    /* Every mix of options in a SYN is a multiple of four. */
    for (unsigned mix = 0; mix < 16; mix++) {
        struct zc_tcp_segment syn = {.flags = ZC_TCP_SYN,
                                     .mss = mix & 1 ? 1220 : 0,
                                     .sack_ok = (mix & 2) != 0,
                                     .has_stamp = (mix & 4) != 0,
                                     .has_scale = (mix & 8) != 0};
        CHECK_INT(zc_tcp_segment_header(&syn) % 4, 0);
    }
}

static struct zc_tcp_segment random_segment(struct zc_rng *r, uint8_t *data)
{
    struct zc_tcp_segment s = {.src_port = (uint16_t)zc_rng_u64(r),
                               .dst_port = (uint16_t)zc_rng_u64(r),
                               .seq = (uint32_t)zc_rng_u64(r),
                               .ack = (uint32_t)zc_rng_u64(r),
                               .flags = zc_rng_u64(r) & 0x3f,
                               .window = (uint16_t)zc_rng_u64(r),
                               .has_stamp = zc_rng_u64(r) % 2};
    if (s.has_stamp) {
        s.stamp = (uint32_t)zc_rng_u64(r);
        s.echo = (uint32_t)zc_rng_u64(r);
    }
    if ((s.flags & ZC_TCP_SYN) != 0) {
        s.mss = (uint16_t)zc_rng_u64(r);
        s.sack_ok = zc_rng_u64(r) % 2;
        s.has_scale = zc_rng_u64(r) % 2;
        s.scale = s.has_scale ? zc_rng_u64(r) % 15 : 0;
    } else {
        s.sack_count = zc_rng_u64(r) % (s.has_stamp ? 4 : 5);
        for (unsigned i = 0; i < s.sack_count; i++) {
            s.sacks[i].start = (uint32_t)zc_rng_u64(r);
            s.sacks[i].end = s.sacks[i].start + 1 + zc_rng_u64(r) % 100000;
        }
    }
    s.data = zc_slice(data, zc_rng_u64(r) % 1180);
    return s;
}

static bool same(const struct zc_tcp_segment *a, const struct zc_tcp_segment *b)
{
    bool sacks = a->sack_count == b->sack_count &&
                 memcmp(a->sacks, b->sacks, a->sack_count * sizeof(a->sacks[0])) == 0;
    return a->src_port == b->src_port && a->dst_port == b->dst_port && a->seq == b->seq &&
           a->ack == b->ack && a->flags == b->flags && a->window == b->window && a->mss == b->mss &&
           a->sack_ok == b->sack_ok && a->has_scale == b->has_scale && a->scale == b->scale &&
           a->has_stamp == b->has_stamp && a->stamp == b->stamp && a->echo == b->echo && sacks &&
           zc_slice_eq(a->data, b->data);
}

TEST(round_trips)
{
    uint8_t seed[32] = {2}, data[1220], buf[ZC_IP6_MTU];
    struct zc_rng r;
    zc_rng_init(&r, seed);
    zc_rng_bytes(&r, data, sizeof(data));
    for (int i = 0; i < 3000; i++) {
        struct zc_tcp_segment s = random_segment(&r, data), got;
        size_t n = zc_tcp_segment_write(&s, NOTHING, &A, &B, buf, sizeof(buf));
        CHECK_INT(parse(buf, n, &got), 0);
        CHECK(same(&s, &got));
        /* Data in two parts makes the same packet. */
        uint8_t other[ZC_IP6_MTU];
        size_t cut = s.data.len / 3;
        struct zc_slice more = zc_slice(s.data.data + cut, s.data.len - cut);
        s.data.len = cut;
        CHECK_INT(zc_tcp_segment_write(&s, more, &A, &B, other, sizeof(other)), n);
        CHECK(memcmp(buf, other, n) == 0);
    }
}

TEST(damage_is_noticed)
{
    uint8_t seed[32] = {3}, data[1220] = {0}, buf[ZC_IP6_MTU];
    struct zc_rng r;
    zc_rng_init(&r, seed);
    for (int i = 0; i < 100; i++) {
        struct zc_tcp_segment s = random_segment(&r, data), got;
        size_t n = zc_tcp_segment_write(&s, NOTHING, &A, &B, buf, sizeof(buf));
        for (size_t bit = 8 * 8; bit < 8 * n; bit++) {
            buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
            CHECK_INT(parse(buf, n, &got), ZC_EBADMSG);
            buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t len = 0; len < n; len++) {
            uint8_t *copy = malloc(len > 0 ? len : 1);
            memcpy(copy, buf, len);
            CHECK_INT(parse(copy, len, &got), ZC_EBADMSG);
            free(copy);
        }
    }
}

/* A segment with the given option bytes and a right checksum. */
static int parse_options(const uint8_t *options, size_t len, struct zc_tcp_segment *ret)
{
    uint8_t buf[ZC_IP6_HEADER + 60] = {0}, *tcp = buf + ZC_IP6_HEADER;
    size_t header = 20 + (len + 3) / 4 * 4;
    zc_ip6_header(buf, &A, &B, ZC_IP6_TCP, header);
    tcp[12] = (uint8_t)(header / 4 << 4);
    tcp[13] = ZC_TCP_SYN;
    memcpy(tcp + 20, options, len);
    uint16_t sum = zc_ip6_checksum(&A, &B, ZC_IP6_TCP, zc_slice(tcp, header));
    tcp[16] = (uint8_t)(sum >> 8);
    tcp[17] = (uint8_t)sum;
    return parse(buf, ZC_IP6_HEADER + header, ret);
}

TEST(options_that_are_wrong)
{
    static const struct {
        uint8_t bytes[40];
        size_t len;
    } bad[] = {
        {{2, 3, 5}, 3},          {{2, 5, 5, 5, 5}, 5}, {{3, 2}, 2},
        {{3, 4, 1, 1}, 4},       {{4, 3, 1}, 3},       {{5, 2}, 2},
        {{5, 6, 1, 1, 1, 1}, 6}, {{5, 9}, 9},          {{8, 9}, 9},
        {{8, 11}, 11},           {{1, 1, 1, 2}, 4},    {{2, 0, 0, 0}, 4},
        {{2, 1, 0, 0}, 4},       {{2, 40, 0, 0}, 4},   {{77, 1, 0, 0}, 4},
        {{77, 0, 0, 0}, 4},      {{77, 200, 0, 0}, 4}, {{8, 10, 1, 2, 3, 4, 5, 6}, 8},
    };
    struct zc_tcp_segment s;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_INT(parse_options(bad[i].bytes, bad[i].len, &s), ZC_EBADMSG);
}

TEST(options_that_are_fine)
{
    struct zc_tcp_segment s;
    static const uint8_t end[] = {0, 255, 255, 255}; /* nothing counts after the end */
    CHECK_INT(parse_options(end, 4, &s), 0);
    static const uint8_t unknown[] = {77, 4, 1, 2, 2, 4, 1, 44}; /* skipped */
    CHECK_INT(parse_options(unknown, 8, &s), 0);
    CHECK_INT(s.mss, 300);
    static const uint8_t scale[] = {3, 3, 200, 1}; /* RFC 7323 2.3: as if it were 14 */
    CHECK_INT(parse_options(scale, 4, &s), 0);
    CHECK(s.has_scale && s.scale == 14);
    static const uint8_t sack[] = {5, 18, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 10, 0, 0, 0, 20};
    CHECK_INT(parse_options(sack, 18, &s), 0); /* the one that runs backwards is left out */
    CHECK(s.sack_count == 1 && s.sacks[0].start == 10 && s.sacks[0].end == 20);
}

TEST(offset_that_is_wrong)
{
    uint8_t buf[ZC_IP6_MTU], *tcp = buf + ZC_IP6_HEADER;
    struct zc_tcp_segment s = {.flags = ZC_TCP_ACK}, got;
    size_t n = zc_tcp_segment_write(&s, NOTHING, &A, &B, buf, sizeof(buf));
    for (unsigned offset = 0; offset < 16; offset++) {
        tcp[12] = (uint8_t)(offset << 4);
        tcp[16] = tcp[17] = 0;
        uint16_t sum = zc_ip6_checksum(&A, &B, ZC_IP6_TCP, zc_slice(tcp, n - ZC_IP6_HEADER));
        tcp[16] = (uint8_t)(sum >> 8);
        tcp[17] = (uint8_t)sum;
        CHECK_INT(parse(buf, n, &got), offset == 5 ? 0 : ZC_EBADMSG);
    }
}

TEST(answer_to_a_stray)
{
    struct zc_tcp_segment s = {.src_port = 1,
                               .dst_port = 2,
                               .seq = 100,
                               .ack = 200,
                               .flags = ZC_TCP_ACK,
                               .data = zc_slice("abc", 3)};
    struct zc_tcp_segment r = zc_tcp_segment_reset(&s);
    CHECK(r.src_port == 2 && r.dst_port == 1 && r.flags == ZC_TCP_RST && r.seq == 200);
    s.flags = ZC_TCP_SYN;
    r = zc_tcp_segment_reset(&s);
    CHECK(r.flags == (ZC_TCP_RST | ZC_TCP_ACK) && r.seq == 0 && r.ack == 104);
}

TEST(sequence_numbers_wrap)
{
    static const struct {
        uint32_t a, b;
        bool less;
    } cases[] = {
        {0, 1, true},          {1, 0, false},          {5, 5, false},
        {0xffffffff, 0, true}, {0, 0xffffffff, false}, {0xfffffff0, 0x10, true},
        {0, 0x7fffffff, true}, {0x7fffffff, 0, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t a = cases[i].a, b = cases[i].b;
        CHECK_INT(zc_tcp_seq_lt(a, b), cases[i].less);
        CHECK_INT(zc_tcp_seq_le(a, b), cases[i].less || a == b);
        CHECK_INT(zc_tcp_seq_max(a, b), cases[i].less ? b : a);
        CHECK_INT(zc_tcp_seq_min(a, b), cases[i].less ? a : b);
    }
}
