/* Keys, their text forms, wiping and comparing: see secret.h. */
#include "crypto/secret.h"

#include <sodium.h>
#include <string.h>

#include "base/check.h"

static const char *const prefixes[] = {
    [ZC_SECRET_PRIVATE] = "privkey:",
    [ZC_SECRET_NODE_KEY] = "nodekey:",
    [ZC_SECRET_DISCO_KEY] = "discokey:",
    [ZC_SECRET_PRESHARED] = "psk:",
};

void zc_secret_wipe(void *data, size_t len)
{
    if (len > 0)
        sodium_memzero(data, len);
}

void zc_secret_done(struct zc_secret *s)
{
    zc_secret_wipe(s->b, sizeof(s->b));
}

bool zc_secret_equal(const void *a, const void *b, size_t len)
{
    return len == 0 || sodium_memcmp(a, b, len) == 0;
}

bool zc_secret_is_zero(const void *data, size_t len)
{
    return len == 0 || sodium_is_zero(data, len) == 1;
}

void zc_secret_encode(enum zc_secret_kind kind, const uint8_t bytes[ZC_SECRET_BYTES],
                      char ret_text[ZC_SECRET_TEXT_MAX])
{
    ZC_ASSERT(kind < ZC_ARRAY_LEN(prefixes));
    size_t prefix = strlen(prefixes[kind]);
    memcpy(ret_text, prefixes[kind], prefix);
    /* libsodium's, because it looks nothing up by secret bytes. */
    sodium_bin2hex(ret_text + prefix, 2 * ZC_SECRET_BYTES + 1, bytes, ZC_SECRET_BYTES);
}

/* Value of a hex digit, 16 for anything else, without a branch on it. */
static unsigned digit_value(uint8_t byte)
{
    unsigned c = byte, letter = c | 32;
    unsigned is_number = (('0' - 1 - c) & (c - '9' - 1)) >> 31;
    unsigned is_letter = (('a' - 1 - letter) & (letter - 'f' - 1)) >> 31;
    return ((c - '0') & (0 - is_number)) | ((letter - 'a' + 10) & (0 - is_letter)) |
           ((1 ^ is_number ^ is_letter) << 4);
}

int zc_secret_parse(enum zc_secret_kind kind, struct zc_slice text,
                    uint8_t ret_bytes[ZC_SECRET_BYTES])
{
    ZC_ASSERT(kind < ZC_ARRAY_LEN(prefixes));
    struct zc_slice prefix = zc_slice_str(prefixes[kind]);
    if (text.len != prefix.len + 2 * ZC_SECRET_BYTES || !zc_slice_starts(text, prefix))
        return ZC_EINVAL;
    struct zc_secret bytes;
    unsigned bad = 0;
    for (size_t i = 0; i < ZC_SECRET_BYTES; i++) {
        unsigned high = digit_value(text.data[prefix.len + 2 * i]);
        unsigned low = digit_value(text.data[prefix.len + 2 * i + 1]);
        bad |= (high | low) & 16;
        bytes.b[i] = (uint8_t)(high << 4 | (low & 15));
    }
    if (bad == 0)
        memcpy(ret_bytes, bytes.b, sizeof(bytes.b));
    zc_secret_done(&bytes);
    return bad == 0 ? 0 : ZC_EINVAL;
}
