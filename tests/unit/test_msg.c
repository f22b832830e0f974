/* zmqc/msg.h: decoding, sentence by sentence of docs/man/zmqc.5 section FRAME. */
#include "test.h"
#include "zmqc/msg.h"

static struct zc_msg msg;
static uint8_t *held; /* the last decoded frame, which msg points into */

/* Decodes a copy that ends where its memory ends, so that AddressSanitizer sees a read past it. */
static int decode_bytes(const void *data, size_t len, const char **ret_reason)
{
    free(held);
    held = malloc(len > 0 ? len : 1);
    if (len > 0)
        memcpy(held, data, len);
    memset(&msg, 0xa5, sizeof(msg)); /* what was in it must not matter */
    return zc_msg_decode(&msg, held, len, ret_reason);
}

static int decode(const char *json)
{
    const char *reason = NULL;
    int err = decode_bytes(json, strlen(json), &reason);
    CHECK((err == 0) == (reason == NULL));
    return err;
}

/* The reason of a structural fault; "" when there is none. */
static const char *reason_of(const char *json)
{
    const char *reason = "";
    CHECK_INT(decode_bytes(json, strlen(json), &reason), *reason == '\0' ? 0 : ZC_EBADMSG);
    return reason;
}

static bool is_bad(const char *json)
{
    bool bad = decode(json) == ZC_EBADMSG;
    if (!bad)
        printf("  accepted %s\n", json);
    return bad;
}

static bool is_sound(const char *json)
{
    bool sound = decode(json) == 0 && msg.invalid == NULL && !msg.id_bad;
    if (!sound)
        printf("  refused %s: %s\n", json, msg.invalid != NULL ? msg.invalid : reason_of(json));
    return sound;
}

/* Sound JSON, but invalid for this reason. */
static bool is_invalid(const char *json, const char *why)
{
    bool right = decode(json) == 0 && msg.invalid != NULL && strcmp(msg.invalid, why) == 0;
    if (!right)
        printf("  %s: %s\n", json, msg.invalid != NULL ? msg.invalid : "-");
    return right;
}

TEST(msg_known_fields)
{
    CHECK(
        is_sound("{\"v\":1,\"op\":\"o\",\"id\":\"i\",\"name\":\"n\",\"from\":\"f\",\"text\":\"t\","
                 "\"body\":\"Ym9keQ==\",\"error\":\"e\",\"lease\":-3,\"delivery\":\"d\"}"));
    CHECK(zc_slice_is(msg.op, "o") && zc_slice_is(msg.id, "i") && zc_slice_is(msg.name, "n"));
    CHECK(zc_slice_is(msg.from, "f") && zc_slice_is(msg.text, "t") && zc_slice_is(msg.error, "e"));
    CHECK(zc_slice_is(msg.body, "body") && zc_slice_is(msg.delivery, "d") && msg.lease == -3);
    CHECK_INT(msg.has, ZC_MSG_HAS_LEASE);
    CHECK(is_sound("{\"headers\":{\"a\":\"1\",\"B\":\"\",\"\":\"x\"},\"attempt\":2,\"at\":5,\"by\":"
                   "\"y\",\"end\":true,"
                   "\"peek\":true,\"subs\":0,\"epoch\":\"ep\",\"count\":9,\"failed\":[\"g\",\"h\"],"
                   "\"code\":\"c\",\"result\":{\"n\":[1, 2]}}"));
    CHECK(msg.headers_count == 3 && zc_slice_is(msg.headers[0].key, "a") &&
          zc_slice_is(msg.headers[0].value, "1") && zc_slice_is(msg.headers[1].key, "B") &&
          zc_slice_is(msg.headers[1].value, "") && zc_slice_is(msg.headers[2].value, "x"));
    CHECK_INT(msg.headers_bytes, 4);
    CHECK(msg.attempt == 2 && msg.at == 5 && zc_slice_is(msg.by, "y") && msg.end && msg.peek);
    CHECK(msg.subs == 0 && zc_slice_is(msg.epoch, "ep") && msg.count == 9);
    CHECK(msg.failed_count == 2 && zc_slice_is(msg.failed[1], "h"));
    CHECK(zc_slice_is(msg.code, "c") && zc_slice_is(msg.result, "{\"n\":[1, 2]}"));
    CHECK_INT(msg.has, ZC_MSG_HAS_ATTEMPT | ZC_MSG_HAS_AT | ZC_MSG_HAS_SUBS | ZC_MSG_HAS_COUNT);
    CHECK(is_sound("{\"delay\":0.5,\"ttl\":1e1,\"expires\":12345,\"wait\":0,\"max\":7,"
                   "\"deliveries\":[\"x\"],\"topic\":\"tp\",\"to\":\"to\",\"scope\":\"sc\","
                   "\"if\":\"consumer\",\"after\":\"af\",\"on\":false,\"filter\":\"!x\"}"));
    CHECK(msg.delay_ms == 500 && msg.ttl_ms == 10000 && msg.expires == 12345 && msg.wait_ms == 0);
    CHECK(msg.max == 7 && msg.deliveries_count == 1 && zc_slice_is(msg.deliveries[0], "x"));
    CHECK(zc_slice_is(msg.topic, "tp") && zc_slice_is(msg.to, "to") &&
          zc_slice_is(msg.scope, "sc"));
    CHECK(zc_slice_is(msg.condition, "consumer") && zc_slice_is(msg.after, "af") && !msg.on);
    CHECK_INT(msg.has, ZC_MSG_HAS_DELAY | ZC_MSG_HAS_TTL | ZC_MSG_HAS_EXPIRES | ZC_MSG_HAS_WAIT |
                           ZC_MSG_HAS_MAX | ZC_MSG_HAS_DELIVERIES | ZC_MSG_HAS_ON);
}

/* Every field, with a value of its type, of which null and absence mean the same. */
static const struct {
    const char *name;
    const char *value;
    const char *wrong; /* a value of a type it must not have */
} fields[] = {
    {"v", "1", "true"},           {"op", "\"x\"", "1"},      {"id", "\"x\"", "7"},
    {"name", "\"x\"", "[]"},      {"from", "\"x\"", "{}"},   {"text", "\"x\"", "false"},
    {"body", "\"\"", "[104]"},    {"error", "\"x\"", "0"},   {"lease", "5", "\"5\""},
    {"delivery", "\"x\"", "1"},   {"headers", "{}", "[]"},   {"attempt", "1", "1.5"},
    {"at", "1", "\"1\""},         {"by", "\"x\"", "1"},      {"end", "true", "1"},
    {"peek", "true", "\"true\""}, {"subs", "1", "1e3"},      {"epoch", "\"x\"", "1"},
    {"count", "1", "[]"},         {"failed", "[]", "{}"},    {"code", "\"x\"", "1"},
    {"result", "{}", "[]"},       {"delay", "1.5", "\"1\""}, {"ttl", "1", "true"},
    {"expires", "1", "1.0"},      {"wait", "1", "{}"},       {"max", "1", "1.5"},
    {"deliveries", "[]", "\"\""}, {"topic", "\"x\"", "1"},   {"to", "\"x\"", "1"},
    {"scope", "\"x\"", "1"},      {"if", "\"x\"", "true"},   {"after", "\"x\"", "1"},
    {"on", "true", "1"},          {"filter", "{}", "[]"},
};

TEST(msg_every_field_by_itself)
{
    char json[200], odd[20];
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const char *name = fields[i].name, *value = fields[i].value;
        snprintf(json, sizeof(json), "{\"%s\":%s}", name, value);
        CHECK(is_sound(json));
        snprintf(json, sizeof(json), "{\"%s\":null,\"id\":null }", name);
        if (strcmp(name, "id") != 0)
            CHECK(is_sound(json) && msg.has == 0 && msg.id.len == 0);
        snprintf(json, sizeof(json), "{\"%s\":%s}", name, fields[i].wrong);
        CHECK(is_bad(json) && strncmp(reason_of(json), name, strlen(name)) == 0);
        snprintf(json, sizeof(json), "{\"%s\":%s,\"%s\":%s}", name, value, name, value);
        CHECK(is_bad(json) && strcmp(reason_of(json), "a key stands twice") == 0);
        snprintf(json, sizeof(json), "{\"%s\":null,\"x\":1,\"%s\":%s}", name, name, value);
        CHECK(is_bad(json));
        snprintf(json, sizeof(json), "{\"\\u%04x%s\":%s}", name[0], name + 1, value);
        CHECK(is_sound(json)); /* an escaped key is the same key */
        for (size_t at = 0; at < strlen(name); at++) {
            strcpy(odd, name);
            odd[at] -= 32;
            snprintf(json, sizeof(json), "{\"%s\":%s}", odd, value);
            CHECK(is_bad(json) && strcmp(reason_of(json), "a key is not in lower case") == 0);
        }
        snprintf(json, sizeof(json), "{\"%sx\":[],\"x%s\":[],\"%.*s\":[]}", name, name,
                 (int)strlen(name) - 1, name);
        if (strcmp(name, "to") != 0 && strcmp(name, "at") != 0)
            CHECK(is_sound(json)); /* near names are unknown fields */
    }
}

TEST(msg_object_only)
{
    static const char *bad[] = {"",
                                " ",
                                "[1]",
                                "[]",
                                "null",
                                "\"ping\"",
                                "5",
                                "true",
                                "{",
                                "}",
                                "{\"v\":1,\"op\":",
                                "{\"v\":1,\"op\":\"ping\"}x",
                                "{}{}",
                                "{},",
                                "{} {}",
                                "\xef\xbb\xbf{}",
                                "{\"op\":\"ping\",}",
                                "{'op':'ping'}",
                                "{\"lease\":NaN}",
                                "{\"lease\":Infinity}",
                                "{\"x\":nul}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(is_bad(bad[i]));
    CHECK(is_sound("{}") && msg.op.len == 0 && msg.has == 0);
    CHECK(is_sound(" \t\r\n{ \"op\" : \"ping\" , \"v\":1 } \n"));
    const char *reason;
    CHECK_INT(decode_bytes("{}\0", 3, &reason), ZC_EBADMSG);
}

TEST(msg_version)
{
    static const char *good[] = {"0", "1", "null", "-0"};
    static const char *bad[] = {"2",   "-1",   "\"1\"", "1.0", "1e0",
                                "0.0", "true", "[1]",   "01",  "1000000000000000000000"};
    char json[64];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(json, sizeof(json), "{\"v\":%s,\"op\":\"ping\"}", good[i]);
        CHECK(is_sound(json));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(json, sizeof(json), "{\"v\":%s,\"op\":\"ping\"}", bad[i]);
        CHECK(is_bad(json));
    }
}

TEST(msg_lease_is_an_int64)
{
    static const struct {
        const char *text;
        int64_t want;
    } good[] = {{"0", 0},
                {"-1", -1},
                {"9007199254740993", 9007199254740993},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *bad[] = {"0.5",    "1e3",  "1e999", "9223372036854775808",  "1e19",
                                "\"30\"", "true", "NaN",   "99999999999999999999", "[30]"};
    char json[64];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(json, sizeof(json), "{\"lease\":%s}", good[i].text);
        CHECK(is_sound(json) && msg.lease == good[i].want && (msg.has & ZC_MSG_HAS_LEASE));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(json, sizeof(json), "{\"lease\":%s}", bad[i]);
        CHECK(is_bad(json));
    }
    CHECK(is_sound("{\"lease\":null}") && msg.has == 0);
}

TEST(msg_max)
{
    static const char *why = "max is not between 1 and 1,024";
    CHECK(is_sound("{\"max\":1}") && msg.max == 1);
    CHECK(is_sound("{\"max\":1024}") && msg.max == 1024);
    CHECK(is_invalid("{\"max\":0}", why));
    CHECK(is_invalid("{\"max\":1025}", why));
    CHECK(is_invalid("{\"max\":-1}", why));
    CHECK(is_bad("{\"max\":1e1}"));
    CHECK(is_bad("{\"max\":10000000000000000000}"));
}

TEST(msg_seconds)
{
    static const char *names[] = {"delay", "ttl", "wait"};
    char json[64], why[64];
    for (int i = 0; i < 3; i++) {
        const char *name = names[i];
        snprintf(why, sizeof(why), "%s is not between 0 and ten years", name);
        static const struct {
            const char *text;
            int64_t want; /* ms; -1: invalid */
        } rows[] = {{"0", 0},     {"0.5", 500},  {"0.0001", 1},        {"1e2", 100000},
                    {"-0", 0},    {"-1", -1},    {"-0.001", -1},       {"315360000", 315360000000},
                    {"1e10", -1}, {"1e999", -1}, {"315360000.001", -1}};
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            snprintf(json, sizeof(json), "{\"%s\":%s}", name, rows[k].text);
            if (rows[k].want < 0) {
                CHECK(is_invalid(json, why) && msg.has == 0);
                continue;
            }
            CHECK(is_sound(json) && msg.has != 0);
            CHECK_INT(i == 0 ? msg.delay_ms : i == 1 ? msg.ttl_ms : msg.wait_ms, rows[k].want);
        }
        snprintf(json, sizeof(json), "{\"%s\":\"1\"}", name);
        CHECK(is_bad(json));
    }
}

TEST(msg_body)
{
    CHECK(is_sound("{\"body\":\"aGVs\\r\\nbG8=\"}") && zc_slice_is(msg.body, "hello"));
    CHECK(is_sound("{\"body\":\"aGVsbG9=\"}") && zc_slice_is(msg.body, "hello"));
    CHECK(is_sound("{\"body\":\"\\u0061GVsbG8=\"}") && zc_slice_is(msg.body, "hello"));
    CHECK(is_sound("{\"text\":\"t\",\"body\":\"Yg==\"}") && zc_slice_is(zc_msg_payload(&msg), "b"));
    CHECK(is_sound("{\"body\":\"\",\"text\":\"t\"}") && zc_slice_is(zc_msg_payload(&msg), "t"));
    CHECK(is_sound("{\"body\":null,\"text\":\"t\"}") && zc_slice_is(zc_msg_payload(&msg), "t"));
    CHECK(is_sound("{\"body\":\"AAEC\"}") && zc_slice_eq(msg.body, zc_slice("\0\1\2", 3)));
    static const char *bad[] = {"****", "aGVsbG8", "-_-_",     "@@@",     "aGVs bG8=",
                                "a",    "=",       "\xff\xff", "\\ud800", "aGVsbG8=aGVsbG8="};
    char json[64];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(json, sizeof(json), "{\"body\":\"%s\"}", bad[i]);
        CHECK(is_bad(json) &&
              strcmp(reason_of(json), "body is not a string of padded base64") == 0);
    }
    CHECK(is_bad("{\"body\":[104,105]}"));
}

TEST(msg_text)
{
    static const char *why = "text is not valid UTF-8: send it as body";
    CHECK(is_sound("{\"text\":\"a\\u0000b\"}") && zc_slice_eq(msg.text, zc_slice("a\0b", 3)));
    CHECK(is_sound("{\"text\":\"\\u00e9\\ud83d\\ude42\\/\"}") &&
          zc_slice_is(msg.text, "\xc3\xa9\xf0\x9f\x99\x82/"));
    CHECK(is_sound("{\"text\":\"gr\xc3\xbc\xc3\x9f\x65 \xe2\x80\xa8\"}"));
    CHECK(is_invalid("{\"id\":\"i\",\"text\":\"a\xff\xfe"
                     "b\"}",
                     why) &&
          zc_slice_is(msg.id, "i"));
    CHECK(!msg.id_bad && msg.text.len == 0);
    CHECK(is_invalid("{\"text\":\"\\ud800x\\udc00\"}", why));
    CHECK(is_invalid("{\"text\":\"\xed\xa0\x80\"}", why));
}

TEST(msg_bad_utf8_elsewhere)
{
    static const char *names[] = {"op",       "id",    "name",  "from",  "error",
                                  "delivery", "by",    "epoch", "code",  "topic",
                                  "to",       "scope", "if",    "after", "filter"};
    char json[64], why[64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(json, sizeof(json), "{\"%s\":\"a\xff\"}", names[i]);
        snprintf(why, sizeof(why), "%s is not valid UTF-8", names[i]);
        CHECK(is_invalid(json, why));
        CHECK_INT(msg.id_bad, strcmp(names[i], "id") == 0);
        CHECK(msg.id.len == 0);
    }
    CHECK(is_invalid("{\"headers\":{\"a\":\"\\udc00\"}}", "headers is not valid UTF-8"));
    CHECK(is_invalid("{\"headers\":{\"\xff\":\"\"}}", "headers is not valid UTF-8"));
    CHECK(is_invalid("{\"deliveries\":[\"\xff\"]}", "deliveries is not valid UTF-8"));
    CHECK(is_invalid("{\"failed\":[\"\xff\"]}", "failed is not valid UTF-8"));
    CHECK(is_invalid("{\"result\":{\"a\":\"\xff\"}}", "result is not valid UTF-8"));
    /* In values that nobody looks at it does not matter; in their names it ends the session. */
    CHECK(is_sound("{\"zzz\":\"\xff\",\"yyy\":[\"\xff\",\"\\ud800\"]}"));
    CHECK(is_bad("{\"\xff\":1}"));
    CHECK(is_bad("{\"op\\ud800\":1}"));
}
