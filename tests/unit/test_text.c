/* base/text.h: UTF-8, base64 (RFC 4648 section 10), hex, escaping. */
#include "base/rng.h"
#include "base/text.h"
#include "test.h"

/* A copy that ends where its memory ends, so that AddressSanitizer sees a read past it. */
static struct zc_slice exact(const void *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    memcpy(copy, data, len);
    return zc_slice(copy + (len > 0 ? 0 : 1), len);
}

static void drop(struct zc_slice s)
{
    free((void *)(uintptr_t)(s.len > 0 ? s.data : s.data - 1));
}

/* UTF-8 by the book: decode, then judge the code point. */
static bool model_utf8(const uint8_t *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = s[i] < 0x80       ? 1
                   : s[i] >> 5 == 6  ? 2
                   : s[i] >> 4 == 14 ? 3
                   : s[i] >> 3 == 30 ? 4
                                     : 0;
        if (n == 0 || n > len - i)
            return false;
        uint32_t code = n == 1 ? s[i] : s[i] & (0xffu >> (n + 1));
        for (size_t k = 1; k < n; k++) {
            if (s[i + k] >> 6 != 2)
                return false;
            code = code << 6 | (s[i + k] & 63);
        }
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
        i += n;
    }
    return true;
}

TEST(utf8_table)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool valid;
    } rows[] = {
        {"", 0, true},
        {"plain text that is longer than a word", 37, true},
        {"\0", 1, true},
        {"12345678\0", 9, true},
        {"\x7f", 1, true},
        {"\xc2\x80", 2, true},
        {"\xdf\xbf", 2, true},
        {"\xe0\xa0\x80", 3, true},
        {"\xed\x9f\xbf", 3, true},
        {"\xee\x80\x80", 3, true},
        {"\xef\xbf\xbf", 3, true},
        {"\xf0\x90\x80\x80", 4, true},
        {"\xf4\x8f\xbf\xbf", 4, true},
        {"1234567\xc3\xa9", 9, true},
        {"\x80", 1, false},
        {"\xbf", 1, false},
        {"\xc0\x80", 2, false},
        {"\xc1\xbf", 2, false},
        {"\xc2", 1, false},
        {"\xe0\x9f\xbf", 3, false},
        {"\xed\xa0\x80", 3, false},
        {"\xed\xbf\xbf", 3, false},
        {"\xe2\x82", 2, false},
        {"\xf0\x8f\xbf\xbf", 4, false},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xf5\x80\x80\x80", 4, false},
        {"\xf0\x9f\x98", 3, false},
        {"\xff", 1, false},
        {"12345678\xff", 9, false},
        {"1234567\xff", 8, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct zc_slice s = exact(rows[i].bytes, rows[i].len);
        CHECK_INT(zc_text_utf8_valid(s), rows[i].valid);
        CHECK_INT(model_utf8(s.data, s.len), rows[i].valid);
        drop(s);
    }
    CHECK(zc_text_utf8_valid(zc_slice(NULL, 0)));
}

TEST(utf8_as_a_model)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){5});
    /* All strings of two bytes, then mixtures of bytes that matter. */
    for (unsigned v = 0; v < 65536; v++) {
        uint8_t two[2] = {(uint8_t)(v >> 8), (uint8_t)v};
        CHECK_INT(zc_text_utf8_valid(zc_slice(two, 2)), model_utf8(two, 2));
    }
    static const uint8_t parts[] = {0,    'a',  0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                    0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1,
                                    0xed, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff};
    for (int round = 0; round < 200000; round++) {
        uint8_t s[6];
        size_t len = zc_rng_u64(&rng) % (sizeof(s) + 1);
        for (size_t i = 0; i < len; i++)
            s[i] = parts[zc_rng_u64(&rng) % sizeof(parts)];
        CHECK_INT(zc_text_utf8_valid(zc_slice(s, len)), model_utf8(s, len));
    }
}

static bool decodes_to(const char *text, size_t len, const char *want, size_t want_len)
{
    struct zc_slice s = exact(text, len);
    uint8_t *apart = malloc(len / 4 * 3 > 0 ? len / 4 * 3 : 1); /* exact, too */
    size_t n = 0, in_place = 0;
    bool ok = zc_text_base64_decode(s, apart, &n) && n == want_len && memcmp(apart, want, n) == 0;
    /* In place the result must be the same. */
    ok = ok && zc_text_base64_decode(s, (uint8_t *)(uintptr_t)s.data, &in_place) && in_place == n &&
         memcmp(s.data, want, n) == 0;
    free(apart);
    drop(s);
    return ok;
}

static bool refused(const char *text, size_t len)
{
    struct zc_slice s = exact(text, len);
    uint8_t *out = malloc(len / 4 * 3 > 0 ? len / 4 * 3 : 1);
    size_t n = 77;
    bool ok = !zc_text_base64_decode(s, out, &n) && n == 77;
    free(out);
    drop(s);
    return ok;
}

TEST(base64_vectors)
{
    static const char *rows[][2] = {{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xfb\xff\xbf", "+/+/"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t out[16];
        size_t len = strlen(rows[i][1]);
        CHECK_INT(zc_text_base64_len(strlen(rows[i][0])), len);
        CHECK(zc_text_base64_encode(out, zc_slice_str(rows[i][0])) == out + len);
        CHECK(memcmp(out, rows[i][1], len) == 0);
        CHECK(decodes_to(rows[i][1], len, rows[i][0], strlen(rows[i][0])));
    }
}

TEST(base64_leniences)
{
    CHECK(decodes_to("Zm9v\r\nYmFy", 10, "foobar", 6));
    CHECK(decodes_to("\nZ\rm\n9\nv\n", 9, "foo", 3));
    CHECK(decodes_to("Zg=\n=\r\n", 7, "f", 1));
    CHECK(decodes_to("\r\n\n", 3, "", 0));
    CHECK(decodes_to("Zh==", 4, "f", 1));  /* padding bits not zero */
    CHECK(decodes_to("Zm9=", 4, "fo", 2)); /* likewise */
    CHECK(decodes_to("////", 4, "\xff\xff\xff", 3));
}

TEST(base64_refusals)
{
    static const char *rows[] = {"****",    "Z",       "Zg",   "Zg=",   "Zm8",       "Zm9vY",
                                 "=",       "====",    "Z===", "Zg==x", "Zg==Zg==",  "Zm8==",
                                 "Zm8=m",   "Zm9v=",   "Z g=", "-_-_",  "Zm9v Zm9v", "Zm9v\tZm9v",
                                 "Zg==\n=", "Zg\x80=", "Z=g="};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(refused(rows[i], strlen(rows[i])));
        if (!refused(rows[i], strlen(rows[i])))
            printf("  accepted %s\n", rows[i]);
    }
    CHECK(refused("Zm9\0", 4));
    for (int c = 0; c < 256; c++) {
        char group[4] = {'A', 'A', (char)c, 'A'};
        bool digit = c < 128 && (strchr("+/\r\n", c) != NULL || (c >= '0' && c <= '9') ||
                                 (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
        if (c == 0 || c == '\r' || c == '\n' || !digit)
            CHECK(refused(group, 4)); /* a line end leaves a group of three */
        else
            CHECK(!refused(group, 4));
    }
}

/* One wrong byte anywhere in a long text is found, and a line end anywhere is not. */
TEST(base64_one_odd_byte)
{
    char text[81], want[61];
    memset(text, 'A', sizeof(text));
    memset(want, 0, sizeof(want));
    for (size_t at = 0; at < 80; at++) {
        for (int c = 0; c < 256; c++) {
            bool digit = c > 0 && c < 128 &&
                         strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                                c) != NULL;
            text[at] = (char)c;
            if (!digit && !(c == '=' && at == 79))
                CHECK(refused(text, 80));
        }
        memset(text, 'A', sizeof(text));
        text[at] = '\n';
        CHECK(decodes_to(text, 81, want, 60));
        memset(text, 'A', sizeof(text));
    }
}

TEST(base64_round_trip)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){6});
    for (size_t len = 0; len < 200; len++) {
        uint8_t data[200], text[272], wrapped[600];
        zc_rng_bytes(&rng, data, len);
        size_t n = zc_text_base64_len(len), w = 0;
        CHECK(zc_text_base64_encode(text, zc_slice(data, len)) == text + n);
        CHECK(decodes_to((char *)text, n, (char *)data, len));
        for (size_t i = 0; i < n; i++) { /* line ends anywhere change nothing */
            if (zc_rng_u64(&rng) % 5 == 0)
                wrapped[w++] = zc_rng_u64(&rng) % 2 == 0 ? '\r' : '\n';
            wrapped[w++] = text[i];
        }
        CHECK(decodes_to((char *)wrapped, w, (char *)data, len));
    }
}

TEST(hex)
{
    char out[9] = "????????";
    zc_text_hex(out, zc_slice("\x00\x9f\xff", 3));
    CHECK(strcmp(out, "009fff??") == 0);
}

static bool escapes_to(const char *in, size_t len, size_t cap, const char *want)
{
    struct zc_slice s = exact(in, len);
    char *out = malloc(cap > 0 ? cap : 1); /* exact, for AddressSanitizer */
    out[0] = '\0';
    size_t n = zc_text_escape(out, cap, s);
    bool ok = n == strlen(want) && strcmp(out, want) == 0;
    if (!ok)
        printf("  escape gave \"%s\" (%zu), want \"%s\"\n", out, n, want);
    free(out);
    drop(s);
    return ok;
}

TEST(escape_table)
{
    static const struct {
        const char *in;
        size_t len;
        const char *want;
    } rows[] = {
        {"", 0, ""},
        {"plain", 5, "plain"},
        {"a\nb\x1b[31m", 8, "a\\x0ab\\x1b[31m"},
        {"\0\x7f", 2, "\\x00\\x7f"},
        {"C:\\dir", 6, "C:\\\\dir"},
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "caf\xc3\xa9 \xf0\x9f\x98\x80"},
        {"\xc2\x9b", 2, "\\u{9b}"},
        {"\xc2\xa0", 2, "\xc2\xa0"},
        {"\xe2\x80\xa8\xe2\x80\xa9", 6, "\\u{2028}\\u{2029}"},
        {"\xe2\x80\xae", 3, "\\u{202e}"},
        {"\xe2\x81\xa6\xe2\x81\xa9", 6, "\\u{2066}\\u{2069}"},
        {"\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", 8, "\\u{61c}\\u{200e}\\u{200f}"},
        {"\xff\xfe", 2, "\\xff\\xfe"},
        {"\xe2\x82", 2, "\\xe2\\x82"},
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(escapes_to(rows[i].in, rows[i].len, strlen(rows[i].want) + 1, rows[i].want));
        CHECK(escapes_to(rows[i].in, rows[i].len, 100, rows[i].want));
    }
}

TEST(escape_cuts)
{
    CHECK(escapes_to("abcdef", 6, 7, "abcdef"));
    CHECK(escapes_to("abcdef", 6, 6, "ab..."));
    CHECK(escapes_to("abcdef", 6, 4, "..."));
    CHECK(escapes_to("abcdef", 6, 3, ".."));
    CHECK(escapes_to("abcdef", 6, 1, ""));
    CHECK(escapes_to("abcdef", 6, 0, ""));
    CHECK(escapes_to("abc", 3, 4, "abc"));
    CHECK(escapes_to("ab\n\n", 4, 10, "ab\\x0a..."));
    CHECK(escapes_to("ab\n\n", 4, 9, "ab...")); /* an escape is never cut in two */
    CHECK(escapes_to("a\xc3\xa9\xc3\xa9zz", 7, 7, "a\xc3\xa9...")); /* nor a character */
}

TEST(decimal_digits_as_printf)
{
    const int64_t edges[] = {0, 9, 10, 99, 100, 999, 1000, INT64_MAX, INT64_MIN, -1, -10};
    char got[ZC_TEXT_INT_MAX + 1], want[32];
    uint64_t v = 1;
    for (size_t i = 0; i < 400; i++, v = v * 3 + i % 4) {
        int64_t n = i < sizeof(edges) / sizeof(*edges) ? edges[i] : (int64_t)v;
        got[zc_text_uint(got, (uint64_t)n)] = '\0';
        snprintf(want, sizeof(want), "%llu", (unsigned long long)n);
        CHECK(strcmp(got, want) == 0);
        got[zc_text_int(got, n)] = '\0';
        snprintf(want, sizeof(want), "%lld", (long long)n);
        CHECK(strcmp(got, want) == 0);
    }
}
