/* Packed messages: what comes out is what went in, byte by byte. */
#include <string.h>

#include "base/rng.h"
#include "test.h"
#include "zmqc/pack.h"

static struct zc_rng rng;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(zc_rng_u64(&rng) % n);
}

/* Random bytes of a length that is mostly small; sometimes those of `same`. */
static struct zc_slice some(uint8_t *room, uint32_t most, struct zc_slice same)
{
    if (below(3) == 0 && same.len <= most)
        return same;
    uint32_t len = below(below(3) == 0 ? most + 1 : 20);
    for (uint32_t i = 0; i < len; i++)
        room[i] = i < same.len && below(8) > 0 ? same.data[i] : (uint8_t)zc_rng_u64(&rng);
    return zc_slice(room, len);
}

static void one(struct zc_buf *out, struct zc_pack_like *like, bool first)
{
    static uint8_t id[ZC_MSG_MESSAGE_ID_MAX], from[ZC_MSG_STRING_MAX], by[ZC_MSG_STRING_MAX];
    static uint8_t payload[4096], text[300];
    struct zc_header headers[ZC_MSG_HEADERS_CAP];
    struct zc_slice none = zc_slice(NULL, 0);
    struct zc_item item = {.name = zc_slice_str("jobs"),
                           .id = some(id, sizeof(id), like->id),
                           .from = some(from, sizeof(from), like->from),
                           .by = some(by, sizeof(by), like->by),
                           .payload = some(payload, sizeof(payload), none),
                           .request = below(2) == 0,
                           .at_ms = (int64_t)below(1000000)};
    uint32_t count = below(2) == 0 ? 0 : below(ZC_MSG_HEADERS_CAP + 1);
    zc_rng_bytes(&rng, text, sizeof(text));
    for (uint32_t i = 0; i < count; i++) {
        headers[i].key = zc_slice(text, below(9));
        headers[i].value = zc_slice(text + 9, below(sizeof(text) - 9));
    }
    struct zc_block *body = zc_item_encode(&item, headers, count);
    CHECK_INT(zc_item_decode(zc_block_slice(body), &item), 0);
    size_t at = out->len, strings;
    CHECK_INT(zc_buf_reserve(out, zc_pack_size(&item)), 0);
    zc_pack(out, &item, like, &strings);
    CHECK(out->len - at <= zc_pack_size(&item));
    struct zc_block *back = zc_pack_open(out->data + at, like, item.name, item.at_ms);
    CHECK(zc_slice_eq(zc_block_slice(back), zc_block_slice(body)));
    if (first) {
        const uint8_t *p = out->data + strings;
        CHECK(zc_slice_eq(zc_slice(p, item.id.len), item.id));
        CHECK(zc_slice_eq(zc_slice(p + item.id.len, item.from.len), item.from));
        CHECK(zc_slice_eq(zc_slice(p + item.id.len + item.from.len, item.by.len), item.by));
    }
    zc_block_unref(back);
    zc_block_unref(body);
}

TEST(what_is_packed_comes_back)
{
    uint8_t seed[32] = {5}, texts[3][64];
    zc_rng_init(&rng, seed);
    zc_rng_bytes(&rng, texts, sizeof(texts));
    for (int round = 0; round < 200; round++) {
        struct zc_buf out = {0};
        struct zc_pack_like like = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
        one(&out, &like, true);
        like.id = zc_slice(texts[0], 1 + below(64));
        like.from = zc_slice(texts[1], below(65));
        like.by = zc_slice(texts[2], below(65));
        for (int i = 0; i < 10; i++)
            one(&out, &like, false);
        zc_buf_done(&out);
    }
}

TEST(a_usual_message_takes_little_more_than_its_payload)
{
    struct zc_pack_like like = {zc_slice_str("s1234567890123456:4f1d2c3b5a000001-17"),
                                zc_slice_str("@"), zc_slice_str("uid:1000")};
    uint8_t payload[100] = {0};
    struct zc_item item = {.name = zc_slice_str("jobs"),
                           .id = zc_slice_str("s1234567890123456:4f1d2c3b5a000001-42"),
                           .from = like.from,
                           .by = like.by,
                           .payload = zc_slice(payload, sizeof(payload))};
    struct zc_buf out = {0};
    size_t strings;
    CHECK_INT(zc_buf_reserve(&out, zc_pack_size(&item)), 0);
    zc_pack(&out, &item, &like, &strings);
    CHECK_INT(out.len, 100 + 6 + 2);
    zc_buf_done(&out);
}
