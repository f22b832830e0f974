/* base/json.h: the scanner against a byte-by-byte model over mutated documents. */
#include "base/json.h"
#include "base/rng.h"
#include "test.h"

/* A document copied to the very end of its memory, for AddressSanitizer. */
static uint8_t *exact(const void *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

static bool whole(const char *text, size_t len)
{
    uint8_t *copy = exact(text, len);
    struct zc_json j;
    zc_json_init(&j, copy, len);
    struct zc_json_value v = zc_json_value(&j, 0);
    bool ok = v.type != ZC_JSON_BAD && zc_json_at_end(&j);
    CHECK((v.type == ZC_JSON_BAD) == (j.error != NULL));
    free(copy);
    return ok;
}

/*
 * The model: a validator that looks at one byte at a time and keeps nothing. Returns what follows
 * the value, or NULL.
 */
static const char *model_value(const char *p, const char *end, int depth);

static const char *model_space(const char *p, const char *end)
{
    while (p < end && *p != 0 && strchr(" \t\r\n", *p) != NULL)
        p++;
    return p;
}

static const char *model_string(const char *p, const char *end)
{
    if (p == end || *p++ != '"')
        return NULL;
    for (; p < end; p++) {
        if (*p == '"')
            return p + 1;
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p != '\\')
            continue;
        if (++p == end || *p == 0 || strchr("\"\\/bfnrtu", *p) == NULL)
            return NULL;
        for (int i = *p == 'u' ? 4 : 0; i > 0; i--) {
            if (++p == end || *p == 0 || strchr("0123456789abcdefABCDEF", *p) == NULL)
                return NULL;
        }
    }
    return NULL;
}

static const char *model_digits(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > start ? p : NULL;
}

static const char *model_number(const char *p, const char *end)
{
    p += p < end && *p == '-';
    const char *start = p;
    p = model_digits(p, end);
    if (p == NULL || (*start == '0' && p > start + 1))
        return NULL;
    if (p < end && *p == '.' && (p = model_digits(p + 1, end)) == NULL)
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        p = model_digits(p, end);
    }
    return p;
}

static const char *model_list(const char *p, const char *end, int depth)
{
    char close = *p == '{' ? '}' : ']';
    if (depth >= 32)
        return NULL;
    p = model_space(p + 1, end);
    if (p < end && *p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = model_string(model_space(p, end), end);
            p = p == NULL ? NULL : model_space(p, end);
            if (p == NULL || p == end || *p++ != ':')
                return NULL;
        }
        p = model_value(model_space(p, end), end, depth + 1);
        p = p == NULL ? NULL : model_space(p, end);
        if (p == NULL || p == end || (*p != ',' && *p != close))
            return NULL;
        if (*p++ == close)
            return p;
    }
}

static const char *model_value(const char *p, const char *end, int depth)
{
    static const char *words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - p) >= n && memcmp(p, words[i], n) == 0)
            return p + n;
    }
    if (p < end && *p == '"')
        return model_string(p, end);
    if (p < end && (*p == '{' || *p == '['))
        return model_list(p, end, depth);
    return model_number(p, end);
}

TEST(json_as_a_model)
{
    static const char seed[] = "{\"v\":1,\"op\":\"put\\n\",\"x\":[-1.5e+3,{\"a\":null},true],"
                               "\"text\":\"\\u0041\\ud83d\\ude00 caf\xc3\xa9\"}";
    static const char bytes[] = "{}[]\":,\\u0159eE+-. \ntfn/a\x01\xff";
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){23});
    int accepted = 0;
    for (int round = 0; round < 300000; round++) {
        char text[128];
        size_t len = sizeof(seed) - 1;
        memcpy(text, seed, len);
        for (uint64_t n = zc_rng_u64(&rng) % 4; n > 0 && len > 1; n--) {
            size_t at = zc_rng_u64(&rng) % len;
            char c = bytes[zc_rng_u64(&rng) % (sizeof(bytes) - 1)];
            switch (zc_rng_u64(&rng) % 4) {
            case 0:
                text[at] = c;
                break;
            case 1:
                memmove(text + at + 1, text + at, len++ - at);
                text[at] = c;
                break;
            case 2:
                memmove(text + at, text + at + 1, --len - at);
                break;
            default:
                len = at + 1;
            }
        }
        const char *end = model_value(model_space(text, text + len), text + len, 0);
        bool want = end != NULL && model_space(end, text + len) == text + len;
        accepted += want;
        if (whole(text, len) != want) {
            CHECK(!"model and scanner agree");
            printf("  %.*s\n", (int)len, text);
        }
    }
    CHECK(accepted > 10000);
}
