/* zmqc/msg.h: encoding, exact bytes, and encode then decode of random messages. */
#include "base/rng.h"
#include "base/text.h"
#include "test.h"
#include "zmqc/msg.h"

static struct zc_msg msg, back;

static bool encodes_to(const char *want)
{
    int err = 0;
    struct zc_block *b = zc_msg_encode(&msg, &err);
    if (b == NULL)
        return false;
    uint8_t header[ZC_FRAME_HEADER];
    zc_frame_header(header, strlen(want));
    bool ok = b->len == ZC_FRAME_HEADER + strlen(want) && memcmp(b->data, header, 8) == 0 &&
              memcmp(b->data + 8, want, strlen(want)) == 0;
    if (!ok)
        printf("  got  %.*s\n  want %s\n", (int)b->len - 8, (const char *)b->data + 8, want);
    zc_block_unref(b);
    return ok;
}

/* What the original wrote. */
TEST(encode_as_recorded)
{
    zc_msg_clear(&msg);
    msg.op = zc_slice_str("pong");
    CHECK(encodes_to("{\"v\":1,\"op\":\"pong\"}"));
    msg.op = zc_slice_str("ok");
    msg.id = zc_slice_str("h1");
    msg.from = zc_slice_str("alice");
    CHECK(encodes_to("{\"v\":1,\"op\":\"ok\",\"id\":\"h1\",\"from\":\"alice\"}"));
    zc_msg_clear(&msg);
    msg.op = zc_slice_str("ok");
    msg.id = zc_slice_str("<a>&b");
    msg.name = zc_slice_str("j<>&");
    CHECK(encodes_to("{\"v\":1,\"op\":\"ok\",\"id\":\"\\u003ca\\u003e\\u0026b\","
                     "\"name\":\"j\\u003c\\u003e\\u0026\"}"));
    msg.id = zc_slice_str("tab\tnl\nq\"bs\\u0001\x01\x7f");
    msg.name = zc_slice_str("n\xe2\x80\xa8\xe2\x80\xa9");
    CHECK(encodes_to("{\"v\":1,\"op\":\"ok\",\"id\":\"tab\\tnl\\nq\\\"bs\\\\u0001\\u0001\x7f\","
                     "\"name\":\"n\\u2028\\u2029\"}"));
    zc_msg_clear(&msg);
    msg.op = zc_slice_str("msg");
    msg.id = zc_slice_str("r1");
    msg.name = zc_slice_str("q");
    msg.from = zc_slice_str("@");
    msg.lease = 1796064985;
    msg.delivery = zc_slice_str("2c2f258e58a237f0752a2aca");
    zc_msg_set_payload(&msg, zc_slice_str("one"));
    CHECK(encodes_to("{\"v\":1,\"op\":\"msg\",\"id\":\"r1\",\"name\":\"q\",\"from\":\"@\","
                     "\"text\":\"one\",\"body\":\"b25l\",\"lease\":1796064985,"
                     "\"delivery\":\"2c2f258e58a237f0752a2aca\"}"));
    zc_msg_clear(&msg);
    msg.op = zc_slice_str("err");
    msg.error = zc_slice_str("unknown op <b>");
    CHECK(encodes_to("{\"v\":1,\"op\":\"err\",\"error\":\"unknown op \\u003cb\\u003e\"}"));
}

TEST(encode_additions_in_order)
{
    zc_msg_clear(&msg);
    msg.has = ZC_MSG_HAS_ATTEMPT | ZC_MSG_HAS_AT | ZC_MSG_HAS_SUBS | ZC_MSG_HAS_COUNT;
    msg.headers[0] = (struct zc_header){zc_slice_str("z"), zc_slice_str("1<")};
    msg.headers[1] = (struct zc_header){zc_slice_str("a\n"), zc_slice_str("")};
    msg.headers_count = 2;
    msg.attempt = 1;
    msg.at = -9;
    msg.by = zc_slice_str("uid:0");
    msg.end = msg.peek = true;
    msg.epoch = zc_slice_str("00ff");
    msg.failed[0] = zc_slice_str("f\"");
    msg.failed_count = 1;
    msg.code = zc_slice_str("full");
    msg.result = zc_slice_str("{\"x\":[1]}");
    CHECK(encodes_to("{\"v\":1,\"headers\":{\"z\":\"1\\u003c\",\"a\\n\":\"\"},\"attempt\":1,"
                     "\"at\":-9,\"by\":\"uid:0\",\"end\":true,\"peek\":true,\"subs\":0,"
                     "\"epoch\":\"00ff\",\"count\":0,\"failed\":[\"f\\\"\"],\"code\":\"full\","
                     "\"result\":{\"x\":[1]}}"));
}

TEST(encode_request_fields)
{
    zc_msg_clear(&msg);
    msg.has = ZC_MSG_HAS_DELAY | ZC_MSG_HAS_TTL | ZC_MSG_HAS_EXPIRES | ZC_MSG_HAS_WAIT |
              ZC_MSG_HAS_MAX | ZC_MSG_HAS_ON;
    msg.delay_ms = 1;
    msg.ttl_ms = 61250;
    msg.expires = INT64_MAX;
    msg.max = 1024;
    msg.deliveries[0] = zc_slice_str("d1");
    msg.deliveries[1] = zc_slice_str("d2");
    msg.deliveries_count = 2;
    msg.topic = zc_slice_str("tp");
    msg.to = zc_slice_str("t");
    msg.scope = zc_slice_str("s");
    msg.condition = zc_slice_str("consumer");
    msg.after = zc_slice_str("z");
    CHECK(encodes_to("{\"v\":1,\"delay\":0.001,\"ttl\":61.25,\"expires\":9223372036854775807,"
                     "\"wait\":0,\"max\":1024,\"deliveries\":[\"d1\",\"d2\"],\"topic\":\"tp\","
                     "\"to\":\"t\",\"scope\":\"s\",\"if\":\"consumer\",\"after\":\"z\","
                     "\"on\":false}"));
    zc_msg_clear(&msg);
    msg.has = ZC_MSG_HAS_DELAY | ZC_MSG_HAS_TTL | ZC_MSG_HAS_WAIT | ZC_MSG_HAS_ON;
    msg.delay_ms = 100;
    msg.ttl_ms = 2010;
    msg.wait_ms = 315360000000;
    msg.on = true;
    CHECK(encodes_to("{\"v\":1,\"delay\":0.1,\"ttl\":2.01,\"wait\":315360000,\"on\":true}"));
}

TEST(encode_too_large)
{
    uint8_t *text = malloc(ZC_FRAME_BODY_MAX);
    memset(text, 'x', ZC_FRAME_BODY_MAX);
    size_t most = ZC_FRAME_BODY_MAX - strlen("{\"v\":1,\"text\":\"\"}");
    int err = 0;
    zc_msg_clear(&msg);
    msg.text = zc_slice(text, most);
    struct zc_block *b = zc_msg_encode(&msg, &err);
    CHECK(b != NULL && b->len == ZC_FRAME_HEADER + ZC_FRAME_BODY_MAX);
    zc_block_unref(b);
    msg.text.len++;
    CHECK(zc_msg_encode(&msg, &err) == NULL && err == ZC_ELIMIT);
    free(text);
}

/* text goes along exactly when it is valid UTF-8 and the frame fits. */
TEST(set_payload)
{
    zc_msg_clear(&msg);
    msg.text = zc_slice_str("left over");
    zc_msg_set_payload(&msg, zc_slice(NULL, 0));
    CHECK(msg.text.len == 0 && msg.body.len == 0);
    zc_msg_set_payload(&msg, zc_slice("\xff", 1));
    CHECK(msg.text.len == 0 && msg.body.len == 1);
    zc_msg_set_payload(&msg, zc_slice("\0", 1));
    CHECK(msg.text.len == 1 && msg.body.len == 1);

    static const char *chars[] = {"x", "<", "\n", "\xc3\xa9"};
    uint8_t *data = malloc(1 << 21);
    for (size_t k = 0; k < 4; k++) {
        size_t width = strlen(chars[k]), n = (1 << 20) / width;
        for (size_t i = 0; i < n; i++)
            memcpy(data + i * width, chars[k], width);
        size_t low = 0, high = n; /* largest count that still has its text */
        while (low < high) {
            size_t middle = (low + high + 1) / 2;
            zc_msg_set_payload(&msg, zc_slice(data, middle * width));
            if (msg.text.len > 0)
                low = middle;
            else
                high = middle - 1;
        }
        for (size_t count = low - 1; count <= low + 1; count++) {
            int err = 0;
            zc_msg_set_payload(&msg, zc_slice(data, count * width));
            CHECK_INT(msg.text.len > 0, count <= low);
            struct zc_block *b = zc_msg_encode(&msg, &err); /* either way it can be delivered */
            CHECK(b != NULL);
            zc_block_unref(b);
            msg.text = msg.body; /* with the text, it must be the first that does not fit */
            b = zc_msg_encode(&msg, &err);
            CHECK_INT(b != NULL, count <= low);
            zc_block_unref(b);
        }
    }
    free(data);
}

/* Memory that random messages point into. */
static uint8_t pool[1 << 16];
static size_t pool_used;

static struct zc_slice random_text(struct zc_rng *rng, size_t most)
{
    static const char *parts[] = {"a",  "Z9",   "<&>",       "\"",           "\\",
                                  "\n", "\x01", "\xc3\xa9",  "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
                                  "/",  "\x7f", "1234567890"};
    size_t start = pool_used, want = zc_rng_u64(rng) % (most + 1);
    while (pool_used - start < want) {
        const char *part = parts[zc_rng_u64(rng) % 13];
        memcpy(pool + pool_used, part, strlen(part));
        pool_used += strlen(part);
    }
    return zc_slice(pool + start, pool_used - start);
}

static bool coin(struct zc_rng *rng)
{
    return zc_rng_u64(rng) % 4 == 0;
}

static int64_t random_int(struct zc_rng *rng)
{
    return (int64_t)(zc_rng_u64(rng) >> zc_rng_u64(rng) % 64) * (coin(rng) ? -1 : 1);
}

static void random_msg(struct zc_rng *rng)
{
    static struct zc_slice *const strings[] = {
        &msg.op,    &msg.id,       &msg.name,      &msg.from,  &msg.text,
        &msg.error, &msg.delivery, &msg.by,        &msg.code,  &msg.topic,
        &msg.to,    &msg.scope,    &msg.condition, &msg.after, &msg.epoch};
    pool_used = 0;
    zc_msg_clear(&msg);
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        if (coin(rng))
            *strings[i] = random_text(rng, 40);
    }
    if (coin(rng)) {
        size_t len = zc_rng_u64(rng) % 50;
        zc_rng_bytes(rng, pool + pool_used, len);
        msg.body = zc_slice(pool + pool_used, len);
        pool_used += len;
    }
    msg.has = (uint32_t)zc_rng_u64(rng) & 0xfff;
    msg.has &= ~(uint32_t)(ZC_MSG_HAS_LEASE | ZC_MSG_HAS_DELIVERIES);
    if (coin(rng) && (msg.lease = random_int(rng)) != 0)
        msg.has |= ZC_MSG_HAS_LEASE;
    msg.attempt = random_int(rng);
    msg.at = random_int(rng);
    msg.subs = random_int(rng);
    msg.count = random_int(rng);
    msg.expires = random_int(rng);
    msg.delay_ms = (int64_t)(zc_rng_u64(rng) % 315360000001);
    msg.ttl_ms = (int64_t)(zc_rng_u64(rng) % 3000);
    msg.wait_ms = (int64_t)(zc_rng_u64(rng) % 100000);
    msg.max = 1 + (int64_t)(zc_rng_u64(rng) % 1024);
    msg.on = coin(rng);
    msg.end = coin(rng);
    msg.peek = coin(rng);
    if (coin(rng))
        msg.result = zc_slice_str("{\"a\": {\"b\":\"\\u0041<\"}}");
    msg.headers_count = coin(rng) ? (uint32_t)(zc_rng_u64(rng) % 9) : 0;
    for (uint32_t i = 0; i < msg.headers_count; i++) {
        struct zc_slice key = random_text(rng, 12);
        pool[pool_used++] = (uint8_t)('0' + i); /* tells equal names apart */
        key.len++;
        struct zc_slice value = random_text(rng, 12);
        msg.headers[i] = (struct zc_header){key, value};
        msg.headers_bytes += key.len + value.len;
    }
    if (coin(rng)) {
        msg.deliveries_count = (uint32_t)(zc_rng_u64(rng) % 6);
        msg.has |= msg.deliveries_count > 0 ? ZC_MSG_HAS_DELIVERIES : 0;
    }
    for (uint32_t i = 0; i < msg.deliveries_count; i++)
        msg.deliveries[i] = random_text(rng, 10);
    msg.failed_count = coin(rng) ? (uint32_t)(zc_rng_u64(rng) % 6) : 0;
    for (uint32_t i = 0; i < msg.failed_count; i++)
        msg.failed[i] = random_text(rng, 10);
}

static bool same_strings(const struct zc_slice *a, const struct zc_slice *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!zc_slice_eq(a[i], b[i]))
            return false;
    }
    return true;
}

/* Everything that travels is equal in msg and back. */
static void check_same(void)
{
    CHECK_INT(back.has, msg.has);
    CHECK(zc_slice_eq(back.op, msg.op) && zc_slice_eq(back.id, msg.id));
    CHECK(zc_slice_eq(back.name, msg.name) && zc_slice_eq(back.from, msg.from));
    CHECK(zc_slice_eq(back.text, msg.text) && zc_slice_eq(back.body, msg.body));
    CHECK(zc_slice_eq(back.error, msg.error) && zc_slice_eq(back.delivery, msg.delivery));
    CHECK(zc_slice_eq(back.by, msg.by) && zc_slice_eq(back.code, msg.code));
    CHECK(zc_slice_eq(back.topic, msg.topic) && zc_slice_eq(back.to, msg.to));
    CHECK(zc_slice_eq(back.scope, msg.scope) && zc_slice_eq(back.condition, msg.condition));
    CHECK(zc_slice_eq(back.after, msg.after) && zc_slice_eq(back.epoch, msg.epoch));
    CHECK(zc_slice_eq(back.result, msg.result));
    CHECK(back.lease == msg.lease && back.end == msg.end && back.peek == msg.peek);
    CHECK(!(msg.has & ZC_MSG_HAS_ATTEMPT) || back.attempt == msg.attempt);
    CHECK(!(msg.has & ZC_MSG_HAS_AT) || back.at == msg.at);
    CHECK(!(msg.has & ZC_MSG_HAS_SUBS) || back.subs == msg.subs);
    CHECK(!(msg.has & ZC_MSG_HAS_COUNT) || back.count == msg.count);
    CHECK(!(msg.has & ZC_MSG_HAS_DELAY) || back.delay_ms == msg.delay_ms);
    CHECK(!(msg.has & ZC_MSG_HAS_TTL) || back.ttl_ms == msg.ttl_ms);
    CHECK(!(msg.has & ZC_MSG_HAS_WAIT) || back.wait_ms == msg.wait_ms);
    CHECK(!(msg.has & ZC_MSG_HAS_EXPIRES) || back.expires == msg.expires);
    CHECK(!(msg.has & ZC_MSG_HAS_MAX) || back.max == msg.max);
    CHECK(!(msg.has & ZC_MSG_HAS_ON) || back.on == msg.on);
    CHECK(back.headers_count == msg.headers_count && back.headers_bytes == msg.headers_bytes);
    for (uint32_t i = 0; i < msg.headers_count && back.headers_count == msg.headers_count; i++)
        CHECK(zc_slice_eq(back.headers[i].key, msg.headers[i].key) &&
              zc_slice_eq(back.headers[i].value, msg.headers[i].value));
    CHECK(back.deliveries_count == msg.deliveries_count &&
          same_strings(back.deliveries, msg.deliveries, msg.deliveries_count));
    CHECK(back.failed_count == msg.failed_count &&
          same_strings(back.failed, msg.failed, msg.failed_count));
}

TEST(encode_then_decode)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){31});
    for (int round = 0; round < 20000; round++) {
        int err = 0;
        size_t size = 0;
        const char *reason = NULL;
        random_msg(&rng);
        struct zc_block *b = zc_msg_encode(&msg, &err);
        CHECK(b != NULL);
        if (b == NULL)
            return;
        CHECK_INT(zc_frame_peek(b->data, b->len, &size), ZC_FRAME_WHOLE);
        CHECK_INT(size, b->len);
        size -= ZC_FRAME_HEADER;
        uint8_t *json = malloc(size); /* exact, for AddressSanitizer */
        memcpy(json, b->data + ZC_FRAME_HEADER, size);
        zc_block_unref(b);
        memset(&back, 0xa5, sizeof(back));
        CHECK_INT(zc_msg_decode(&back, json, size, &reason), 0);
        if (reason == NULL && back.invalid == NULL)
            check_same();
        else
            printf("  %s\n", reason != NULL ? reason : back.invalid);
        CHECK(back.invalid == NULL && !back.id_bad);
        free(json);
        if (test_faults > 0)
            return; /* one such message says enough */
    }
}

/* All fields at once, numbers at their longest, every character an escape: what is promised to fit
 * does, and both ways of encoding give as many bytes. */
TEST(small_frames_keep_their_bound)
{
    static uint8_t small[ZC_MSG_SMALL_MAX + 64], controls[120];
    size_t fitted = 0;
    memset(controls, 1, sizeof(controls));
    for (size_t len = 0; len < sizeof(controls); len++) {
        struct zc_slice s = zc_slice(controls, len);
        zc_msg_clear(&msg);
        msg.has = UINT32_MAX & ~(uint32_t)ZC_MSG_HAS_FILTER_OBJECT;
        msg.op = msg.id = msg.name = msg.from = msg.text = msg.body = msg.error = msg.delivery = s;
        msg.by = msg.epoch = msg.code = msg.topic = msg.to = msg.scope = msg.condition = s;
        msg.filter = msg.after = s;
        msg.result = zc_slice_str("{}");
        msg.lease = msg.attempt = msg.at = msg.subs = msg.count = INT64_MIN;
        msg.delay_ms = msg.ttl_ms = msg.wait_ms = INT64_MAX;
        msg.expires = msg.max = INT64_MIN;
        msg.end = msg.peek = true;
        memset(small + ZC_MSG_SMALL_MAX, 0x5a, 64);
        size_t n = zc_msg_encode_small(&msg, small);
        CHECK(n <= ZC_MSG_SMALL_MAX && small[ZC_MSG_SMALL_MAX] == 0x5a);
        if (n == 0)
            continue;
        fitted++;
        msg.headers_count = 1; /* the other way */
        msg.headers[0] = (struct zc_header){zc_slice_str("k"), zc_slice_str("v")};
        int err;
        struct zc_block *b = zc_msg_encode(&msg, &err);
        CHECK(b != NULL && b->len == n + sizeof(",\"headers\":{\"k\":\"v\"}") - 1);
        zc_block_unref(b);
    }
    CHECK(fitted > 50);
}
