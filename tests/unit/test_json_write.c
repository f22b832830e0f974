/* base/json.h: numbers and the writer. */
#include "base/json.h"
#include "base/rng.h"
#include "test.h"

TEST(json_int_table)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t want;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"7", true, 7},
        {"-7", true, -7},
        {"9007199254740993", true, 9007199254740993},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"1.0", false, 0},
        {"1e0", false, 0},
        {"1E2", false, 0},
        {"", false, 0},
        {"-", false, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t got = 123;
        CHECK_INT(zc_json_int(zc_slice_str(rows[i].text), &got), rows[i].ok);
        CHECK_INT(got, rows[i].ok ? rows[i].want : 123);
    }
}

TEST(json_seconds_table)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } rows[] = {
        {"0", 0},
        {"-0", 0},
        {"-0.000e5", 0},
        {"0e999999999999999999", 0},
        {"1", 1000},
        {"0.5", 500},
        {"0.001", 1},
        {"0.0001", 1},
        {"1e-3", 1},
        {"1e-999999999999999", 1},
        {"0.0010000", 1},
        {"0.0010001", 2},
        {"2.5e1", 25000},
        {"25E-1", 2500},
        {"0.30", 300},
        {"1.0005", 1001},
        {"1.00050", 1001},
        {"1.001", 1001},
        {"00.1", 100},
        {"10000", 10000000},
        {"10000.0", 10000000},
        {"1e4", 10000000},
        {"10000.0001", -1},
        {"10001", -1},
        {"1e5", -1},
        {"1e999", -1},
        {"1e99999999999999999999", -1},
        {"-1", -1},
        {"-0.0000001", -1},
        {"-1e-999", -1},
        {"0.00000000000000000000000000000000000001e40", 100000},
        {"100000000000000000000000000e-24", 100000},
        {"1234.567000000000000000000000000000000001", 1234568},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t got = -1;
        bool ok = zc_json_seconds_ms(zc_slice_str(rows[i].text), 10000, &got);
        CHECK_INT(got, rows[i].want);
        CHECK_INT(ok, rows[i].want >= 0);
        if (got != rows[i].want)
            printf("  %s\n", rows[i].text);
    }
}

TEST(json_seconds_forms_agree)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){21});
    for (int round = 0; round < 20000; round++) {
        /* micros microseconds, written in three ways. */
        int64_t micros = (int64_t)(zc_rng_u64(&rng) % UINT64_C(10000000000)), got;
        char text[3][64];
        snprintf(text[0], 64, "%lld.%06lld", (long long)(micros / 1000000),
                 (long long)(micros % 1000000));
        snprintf(text[1], 64, "%llde-6", (long long)micros);
        snprintf(text[2], 64, "0.%020llde14", (long long)micros);
        for (int i = 0; i < 3; i++) {
            CHECK(zc_json_seconds_ms(zc_slice_str(text[i]), 10000, &got));
            CHECK_INT(got, (micros + 999) / 1000);
        }
    }
}

/* A document copied to the very end of its memory, for AddressSanitizer. */
static uint8_t *exact(const void *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

static bool escapes(const char *in, size_t len, const char *want)
{
    uint8_t *copy = exact(in, len), out[200];
    size_t n = zc_json_escaped_len(zc_slice(copy, len));
    uint8_t *end = zc_json_escape(out, zc_slice(copy, len));
    bool ok = end == out + n && n == strlen(want) && memcmp(out, want, n) == 0;
    if (!ok)
        printf("  got %.*s, want %s\n", (int)(end - out), (const char *)out, want);
    free(copy);
    return ok;
}

TEST(json_escape_table)
{
    CHECK(escapes("", 0, ""));
    CHECK(escapes("plain text of some length / ~\x7f", 30, "plain text of some length / ~\x7f"));
    CHECK(escapes("\"\\", 2, "\\\"\\\\"));
    CHECK(escapes("\b\t\n\f\r", 5, "\\b\\t\\n\\f\\r"));
    CHECK(escapes("\0\x01\x0b\x1f", 4, "\\u0000\\u0001\\u000b\\u001f"));
    CHECK(escapes("<a>&", 4, "\\u003ca\\u003e\\u0026"));
    CHECK(escapes("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa", 12,
                  "\xe2\x80\xa7\\u2028\\u2029\xe2\x80\xaa"));
    CHECK(escapes("caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "caf\xc3\xa9 \xf0\x9f\x98\x80"));
    CHECK(escapes("a\xff\xc3", 3, "a\\ufffd\\ufffd"));
    CHECK(escapes("\xe2\x80", 2, "\\ufffd\\ufffd"));
    /* Each special byte at each place of a word. */
    for (size_t at = 0; at < 20; at++) {
        static const char specials[] = "\"\\<>&\n\x01";
        for (size_t k = 0; k < sizeof(specials) - 1; k++) {
            char text[21], want[40];
            memset(text, 'x', 20);
            text[at] = specials[k];
            uint8_t one[6];
            size_t n = (size_t)(zc_json_escape(one, zc_slice(specials + k, 1)) - one);
            memset(want, 'x', at);
            memcpy(want + at, one, n);
            memset(want + at + n, 'x', 19 - at);
            want[19 + n] = '\0';
            CHECK(n > 1 && escapes(text, 20, want));
        }
    }
}

TEST(json_write_then_read)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){22});
    static const char *parts[] = {
        "a",        "<", "\"",  "\\", "\n", "\x01", "\xc3\xa9", "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
        "12345678", "&", "\x7f"};
    for (int round = 0; round < 20000; round++) {
        uint8_t text[200];
        size_t len = 0;
        for (uint64_t n = zc_rng_u64(&rng) % 24; n > 0; n--) {
            const char *part = parts[zc_rng_u64(&rng) % 12];
            memcpy(text + len, part, strlen(part));
            len += strlen(part);
            if (zc_rng_u64(&rng) % 9 == 0)
                text[len++] = 0;
        }
        struct zc_buf b = {0};
        CHECK_INT(zc_json_put_string(&b, zc_slice(text, len)), 0);
        CHECK_INT(b.len, zc_json_escaped_len(zc_slice(text, len)) + 2);
        uint8_t *copy = exact(b.data, b.len);
        struct zc_json j;
        zc_json_init(&j, copy, b.len);
        struct zc_json_value v = zc_json_value(&j, 0);
        CHECK(v.type == ZC_JSON_STRING && !v.utf8_bad && zc_json_at_end(&j));
        CHECK(zc_slice_eq(v.text, zc_slice(text, len)));
        free(copy);
        zc_buf_done(&b);
    }
}

TEST(json_put)
{
    struct zc_buf b = {0};
    CHECK_INT(zc_json_put_raw(&b, "["), 0);
    CHECK_INT(zc_json_put_int(&b, 0), 0);
    CHECK_INT(zc_json_put_raw(&b, ","), 0);
    CHECK_INT(zc_json_put_int(&b, INT64_MIN), 0);
    CHECK_INT(zc_json_put_raw(&b, ","), 0);
    CHECK_INT(zc_json_put_int(&b, INT64_MAX), 0);
    CHECK_INT(zc_json_put_raw(&b, "]"), 0);
    CHECK(zc_slice_is(zc_slice(b.data, b.len), "[0,-9223372036854775808,9223372036854775807]"));
    zc_buf_done(&b);
}
