/* Bodies of BIND, SEEN and STATE records against the bytes that zmqcat-log(5) draws. */
#include "test.h"
#include "zmqc/stored.h"

/* Calls decode with a body in a block of its own, so that a sanitizer sees a read behind it. */
#define DECODE(kind, bytes, size, ret)                                                             \
    do {                                                                                           \
        uint8_t *copy = malloc((size) > 0 ? (size) : 1);                                           \
        memcpy(copy, bytes, size);                                                                 \
        err = zc_stored_##kind##_decode(zc_slice(copy, size), ret);                                \
        free(copy);                                                                                \
    } while (0)

TEST(bind)
{
    uint8_t body[ZC_STORED_BIND_MAX], mixed[64];
    struct zc_stored_bind in = {zc_slice_str("events"), zc_slice_str("ev.")}, out;
    struct zc_slice b = zc_stored_bind_encode(&in, body);
    CHECK(zc_slice_eq(b, zc_slice("\6\0\3\0eventsev.", 13)));
    CHECK_INT(zc_stored_bind_decode(b, &out), 0);
    CHECK(zc_slice_eq(out.name, in.name) && zc_slice_eq(out.topic, in.topic));
    int err;
    for (size_t len = 0; len < b.len; len++) {
        DECODE(bind, b.data, len, &out);
        CHECK_INT(err, ZC_EBADMSG);
    }
    memcpy(mixed, b.data, b.len);
    DECODE(bind, mixed, b.len + 1, &out);
    CHECK_INT(err, ZC_EBADMSG);
    memcpy(mixed, "\0\0\11\0", 4); /* no name */
    DECODE(bind, mixed, b.len, &out);
    CHECK_INT(err, ZC_EBADMSG);
    in.topic.len = 0;
    b = zc_stored_bind_encode(&in, body);
    CHECK_INT(zc_stored_bind_decode(b, &out), 0);
    CHECK_INT(out.topic.len, 0);
}

TEST(bind_lengths)
{
    static uint8_t text[ZC_MSG_STRING_MAX + 1], body[ZC_STORED_BIND_MAX + 1];
    struct zc_stored_bind in = {zc_slice(text, ZC_MSG_STRING_MAX), zc_slice(text, 0)}, out;
    for (int i = 0; i < 2; i++, in.topic.len = ZC_MSG_STRING_MAX) {
        struct zc_slice b = zc_stored_bind_encode(&in, body);
        CHECK_INT(zc_stored_bind_decode(b, &out), 0);
        CHECK_INT(out.name.len + out.topic.len, b.len - 4);
        body[2 * i]++; /* one byte more than a name, or a topic, may have */
        CHECK_INT(zc_stored_bind_decode(zc_slice(body, b.len + 1), &out), ZC_EBADMSG);
    }
}

TEST(seen)
{
    static const char want[] = "\x88\x77\x66\x55\x44\x33\x22\x11"
                               "\1\0\0\0\0\0\0\xff"
                               "\xfe\xff\xff\xff\xff\xff\xff\xff\0";
    uint8_t body[ZC_STORED_SEEN_LEN];
    struct zc_stored_seen in = {0x1122334455667788, 0xff00000000000001, -2}, out;
    struct zc_slice b = zc_stored_seen_encode(&in, body);
    CHECK(zc_slice_eq(b, zc_slice(want, 24)));
    CHECK_INT(zc_stored_seen_decode(b, &out), 0);
    CHECK(out.name == in.name && out.id == in.id && out.until_ms == -2);
    int err;
    for (size_t len = 0; len <= 25; len++) {
        DECODE(seen, want, len, &out);
        CHECK_INT(err, len == 24 ? 0 : ZC_EBADMSG);
    }
}

TEST(state)
{
    static const char want[] = "\4\3\2\xff\x08\7\6\5\4\3\2\x80\0";
    uint8_t body[ZC_STORED_STATE_LEN];
    struct zc_stored_state in = {0xff020304, (int64_t)0x8002030405060708}, out;
    struct zc_slice b = zc_stored_state_encode(&in, body);
    CHECK(zc_slice_eq(b, zc_slice(want, 12)));
    CHECK_INT(zc_stored_state_decode(b, &out), 0);
    CHECK(out.attempt == in.attempt && out.due_ms == in.due_ms);
    int err;
    for (size_t len = 0; len <= 13; len++) {
        DECODE(state, want, len, &out);
        CHECK_INT(err, len == 12 ? 0 : ZC_EBADMSG);
    }
}
