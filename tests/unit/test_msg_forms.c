/* zmqc/msg.h: frames in the form that nearly all have, which is read by shorter ways, against the
 * same frames with white space, which are not. */
#include "base/rng.h"
#include "loosen.h"
#include "test.h"
#include "zmqc/msg.h"

#define TEXT_MAX 256

/* A copy at the very end of its memory, for AddressSanitizer. */
static uint8_t *exact(const char *text, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (len > 0)
        memcpy(copy, text, len);
    return copy;
}

static struct zc_msg first, second;

/* Both are refused, or both are the same message. */
static bool agree(const char *text, size_t len, int *accepted)
{
    char loose[3 * TEXT_MAX];
    const char *why;
    int err;
    size_t loose_len = loosen(text, len, loose);
    uint8_t *a = exact(text, len), *b = exact(loose, loose_len);
    bool ok = zc_msg_decode(&first, a, len, &why) == 0;
    bool same = ok == (zc_msg_decode(&second, b, loose_len, &why) == 0);
    if (ok && same) {
        struct zc_block *x = zc_msg_encode(&first, &err), *y = zc_msg_encode(&second, &err);
        same = x != NULL && y != NULL && zc_slice_eq(zc_block_slice(x), zc_block_slice(y)) &&
               first.invalid == second.invalid && first.id_bad == second.id_bad &&
               first.has == second.has;
        zc_block_unref(x);
        zc_block_unref(y);
        ++*accepted;
    }
    free(a);
    free(b);
    return same;
}

static void mutate(struct zc_rng *rng, char *text, size_t *len)
{
    static const char bytes[] = "{}\":,\\v1opidtextname \n\x01\xff";
    size_t at = zc_rng_u64(rng) % *len;
    char c = bytes[zc_rng_u64(rng) % (sizeof(bytes) - 1)];
    switch (zc_rng_u64(rng) % 4) {
    case 0:
        text[at] = c;
        break;
    case 1:
        memmove(text + at + 1, text + at, (*len)++ - at);
        text[at] = c;
        break;
    case 2:
        memmove(text + at, text + at + 1, --*len - at);
        break;
    default:
        *len = at + 1;
    }
}

TEST(msg_usual_form_is_read_as_any_other)
{
    static const char *const seeds[] = {
        "{\"v\":1,\"op\":\"put\",\"id\":\"a-1\",\"name\":\"q\",\"text\":\"0123456789abcdefgh\"}",
        "{\"v\":1,\"op\":\"ack\",\"delivery\":\"0123456789\",\"id\":\"\",\"from\":\"\\u0041\"}",
        "{\"v\":1,\"headers\":{\"a\":\"b\",\"c\":\"d\"},\"attempt\":3,\"v\":1}",
        "{\"v\":1,\"other\":\"x\",\"epoch12\":\"y\",\"epoch123\":\"z\",\"body\":\"QUJD\"}",
        "{\"v\":1}",
        "{\"op\":\"take\",\"name\":\"caf\xc3\xa9\"}",
    };
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){31});
    int accepted = 0;
    for (int round = 0; round < 200000; round++) {
        char text[TEXT_MAX];
        const char *seed = seeds[zc_rng_u64(&rng) % (sizeof(seeds) / sizeof(seeds[0]))];
        size_t len = strlen(seed);
        memcpy(text, seed, len);
        for (uint64_t n = zc_rng_u64(&rng) % 4; n > 0 && len > 1; n--)
            mutate(&rng, text, &len);
        if (!agree(text, len, &accepted)) {
            CHECK(!"both forms are the same message");
            printf("  %.*s\n", (int)len, text);
        }
    }
    CHECK(accepted > 50000);
}

/* The shorter ways end inside the frame, wherever it is cut. */
TEST(msg_usual_form_cut_anywhere)
{
    static const char text[] =
        "{\"v\":1,\"op\":\"put\",\"name\":\"q\",\"text\":\"0123456789abcdef\"}";
    int accepted = 0;
    for (size_t len = 0; len < sizeof(text); len++) {
        uint8_t *copy = exact(text, len);
        const char *why;
        accepted += zc_msg_decode(&first, copy, len, &why) == 0;
        free(copy);
    }
    CHECK_INT(accepted, 1);
}
