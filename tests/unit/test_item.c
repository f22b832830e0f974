/* The stored form of a message: round trips, and refusal of every cut or bent form. */
#include "test.h"
#include "zmqc/item.h"

static struct zc_block *sample(struct zc_item *ret_item)
{
    static const struct zc_header headers[2] = {
        {{(const uint8_t *)"k1", 2}, {(const uint8_t *)"value", 5}},
        {{(const uint8_t *)"", 0}, {(const uint8_t *)"v\0w", 3}},
    };
    *ret_item = (struct zc_item){.name = zc_slice_str("jobs"),
                                 .id = zc_slice_str("s5:a"),
                                 .from = zc_slice_str("al"),
                                 .by = zc_slice_str("uid:1"),
                                 .payload = zc_slice("p\0q", 3),
                                 .request = true,
                                 .at_ms = 1700000000123,
                                 .expires_ms = -5,
                                 .due_ms = INT64_MAX};
    return zc_item_encode(ret_item, headers, 2);
}

TEST(round_trip)
{
    struct zc_item in, out;
    struct zc_block *b = sample(&in);
    CHECK_INT(zc_item_decode(zc_block_slice(b), &out), 0);
    CHECK(zc_slice_eq(in.name, out.name));
    CHECK(zc_slice_eq(in.id, out.id));
    CHECK(zc_slice_eq(in.from, out.from));
    CHECK(zc_slice_eq(in.by, out.by));
    CHECK(zc_slice_eq(in.payload, out.payload));
    CHECK(out.request);
    CHECK_INT(out.at_ms, in.at_ms);
    CHECK_INT(out.expires_ms, -5);
    CHECK_INT(out.due_ms, INT64_MAX);
    struct zc_header headers[ZC_MSG_HEADERS_CAP];
    CHECK_INT(out.headers_count, 2);
    CHECK_INT(zc_item_headers(&out, headers), 10);
    CHECK(zc_slice_is(headers[0].key, "k1"));
    CHECK(zc_slice_eq(headers[1].value, zc_slice("v\0w", 3)));
    zc_block_unref(b);
}

TEST(every_cut_is_refused)
{
    struct zc_item in, out;
    struct zc_block *b = sample(&in);
    for (size_t len = 0; len < b->len; len++) {
        uint8_t *copy = malloc(len + 1); /* its own block, so that a sanitizer sees a read behind */
        memcpy(copy, b->data, len);
        CHECK_INT(zc_item_decode(zc_slice(copy, len), &out), ZC_EBADMSG);
        free(copy);
    }
    zc_block_unref(b);
}

TEST(bent_lengths_never_read_outside)
{
    struct zc_item in, out;
    struct zc_block *b = sample(&in);
    for (size_t i = 0; i < b->len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            uint8_t *copy = malloc(b->len);
            memcpy(copy, b->data, b->len);
            copy[i] ^= (uint8_t)(1 << bit);
            struct zc_header headers[ZC_MSG_HEADERS_CAP];
            if (zc_item_decode(zc_slice(copy, b->len), &out) == 0)
                zc_item_headers(&out, headers);
            free(copy);
        }
    }
    zc_block_unref(b);
}

TEST(head_is_enough_but_for_headers_and_payload)
{
    struct zc_item in, out;
    struct zc_block *b = sample(&in);
    size_t head = zc_item_head(zc_block_slice(b));
    CHECK_INT(head, ZC_ITEM_FIXED + 4 + 4 + 2 + 5);
    for (size_t len = 0; len <= b->len; len++) {
        uint8_t *copy = malloc(len + 1);
        memcpy(copy, b->data, len);
        int err = zc_item_decode_head(zc_slice(copy, len), b->len, &out);
        CHECK_INT(err, len < head ? ZC_EBADMSG : 0);
        if (err == 0) {
            CHECK(zc_slice_eq(out.name, in.name) && zc_slice_eq(out.id, in.id));
            CHECK(zc_slice_eq(out.from, in.from) && zc_slice_eq(out.by, in.by));
            CHECK_INT(out.payload.len, 3);
            CHECK_INT(out.due_ms, INT64_MAX);
            CHECK((out.payload.data != NULL) == (len == b->len));
        }
        /* A length that does not fit. */
        CHECK_INT(zc_item_decode_head(zc_slice(copy, len), b->len - 1, &out), ZC_EBADMSG);
        CHECK_INT(zc_item_head(zc_slice(copy, len)), len < head ? len : head);
        free(copy);
    }
    zc_block_unref(b);
}
