/* crypto/blake2s.h: the vectors, RFC 7693's self-test, and any cut of the input. */
#include "crypto/blake2s.h"

#include "base/check.h"
#include "base/rng.h"
#include "test.h"
#include "vector.h"

TEST(blake2s_vectors)
{
    struct vec_each it = vec_each(vec_section("blake2s"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        uint8_t in[1024], key[32], out[32];
        struct zc_slice text = zc_slice(in, vec_hex(&v, "input", in, sizeof(in)));
        zc_blake2s_hash2(text, zc_slice(NULL, 0), out);
        CHECK(vec_is(&v, "blake2s_256", out, 32));
        for (size_t cut = 0; cut <= text.len; cut++) {
            zc_blake2s_hash2(zc_slice(in, cut), zc_slice(in + cut, text.len - cut), out);
            CHECK(vec_is(&v, "blake2s_256", out, 32));
        }
        CHECK_INT(vec_hex(&v, "keyed_blake2s_128_key", key, 32), 32);
        zc_blake2s_mac16(key, 32, text, out);
        CHECK(vec_is(&v, "keyed_blake2s_128", out, 16));
        CHECK_INT(vec_hex(&v, "hmac_blake2s_key", key, 32), 32);
        zc_blake2s_hmac(key, text, zc_slice(NULL, 0), out);
        CHECK(vec_is(&v, "hmac_blake2s", out, 32));
        zc_blake2s_hmac(key, zc_slice(in, text.len / 3),
                        zc_slice(in + text.len / 3, text.len - text.len / 3), out);
        CHECK(vec_is(&v, "hmac_blake2s", out, 32));
        seen++;
    }
    CHECK_INT(seen, 5);
}

TEST(blake2s_kdf_vectors)
{
    struct vec_each it = vec_each(vec_section("kdf"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        uint8_t in[64];
        struct zc_secret ck, want[3], out[3];
        struct zc_slice text = zc_slice(in, vec_hex(&v, "input", in, sizeof(in)));
        CHECK_INT(vec_hex(&v, "key", ck.b, 32), 32);
        struct vec_each outs = vec_each(vec_get(&v, "kdf3"));
        for (size_t i = 0; i < 3 && vec_next(&outs, &value); i++)
            CHECK_INT(vec_unhex(value.text, want[i].b, 32), 32);
        CHECK(vec_is(&v, "kdf1", want[0].b, 32));
        outs = vec_each(vec_get(&v, "kdf2"));
        size_t pair = 0;
        while (vec_next(&outs, &value)) {
            struct zc_secret one;
            CHECK_INT(vec_unhex(value.text, one.b, 32), 32);
            CHECK(pair < 2 && memcmp(&one, &want[pair], 32) == 0);
            pair++;
        }
        CHECK_INT(pair, 2);
        for (int n = 1; n <= 3; n++) {
            memset(out, 0xee, sizeof(out));
            zc_blake2s_kdf(&ck, text, n, &out[0], n > 1 ? &out[1] : NULL, n > 2 ? &out[2] : NULL);
            CHECK(memcmp(out, want, 32 * (size_t)n) == 0);
        }
        /* The chaining key is replaced by any of the outputs. */
        struct zc_secret chain = ck;
        zc_blake2s_kdf(&chain, text, 3, &chain, &out[1], &out[2]);
        CHECK(memcmp(&chain, &want[0], 32) == 0 && memcmp(&out[1], &want[1], 64) == 0);
        chain = ck;
        zc_blake2s_kdf(&chain, text, 2, &out[0], &chain, NULL);
        CHECK(memcmp(&chain, &want[1], 32) == 0);
        seen++;
    }
    CHECK_INT(seen, 3);
}

static void sequence(uint8_t *out, size_t len, uint32_t seed)
{
    uint32_t a = 0xdead4bad * seed, b = 1;
    for (size_t i = 0; i < len; i++) {
        uint32_t t = a + b;
        a = b;
        b = t;
        out[i] = (uint8_t)(t >> 24);
    }
}

/* RFC 7693 appendix E: a hash over hashes of many lengths, with and without a key. */
TEST(blake2s_rfc_self_test)
{
    static const uint8_t want[32] = {0x6a, 0x41, 0x1f, 0x08, 0xce, 0x25, 0xad, 0xcd,
                                     0xfb, 0x02, 0xab, 0xa6, 0x41, 0x45, 0x1c, 0xec,
                                     0x53, 0xc5, 0x98, 0xb2, 0x4f, 0x4f, 0xc7, 0x87,
                                     0xfb, 0xdc, 0x88, 0x79, 0x7f, 0x4c, 0x1d, 0xfe};
    static const size_t out_lens[] = {16, 20, 28, 32}, in_lens[] = {0, 3, 64, 65, 255, 1024};
    uint8_t in[1024], key[32], md[32];
    struct zc_blake2s all, one;
    zc_blake2s_init(&all, 32, NULL, 0);
    for (size_t i = 0; i < ZC_ARRAY_LEN(out_lens); i++) {
        for (size_t j = 0; j < ZC_ARRAY_LEN(in_lens); j++) {
            sequence(in, in_lens[j], (uint32_t)in_lens[j]);
            sequence(key, out_lens[i], (uint32_t)out_lens[i]);
            for (int keyed = 0; keyed < 2; keyed++) {
                zc_blake2s_init(&one, out_lens[i], key, keyed ? out_lens[i] : 0);
                zc_blake2s_update(&one, in, in_lens[j]);
                zc_blake2s_final(&one, md);
                zc_blake2s_update(&all, md, out_lens[i]);
            }
        }
    }
    zc_blake2s_final(&all, md);
    CHECK(memcmp(md, want, 32) == 0);
}

TEST(blake2s_any_cut_is_the_same)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){21});
    for (int run = 0; run < 300; run++) {
        uint8_t in[400], whole[32], parts[32];
        size_t len = zc_rng_u64(&rng) % sizeof(in), at = 0;
        struct zc_blake2s s;
        zc_rng_bytes(&rng, in, len);
        zc_blake2s_hash2(zc_slice(in, len), zc_slice(NULL, 0), whole);
        zc_blake2s_init(&s, 32, NULL, 0);
        while (at < len) {
            size_t n = zc_rng_u64(&rng) % 130;
            n = n > len - at ? len - at : n;
            zc_blake2s_update(&s, in + at, n);
            at += n;
        }
        zc_blake2s_final(&s, parts);
        CHECK(memcmp(whole, parts, 32) == 0);
        static const struct zc_blake2s wiped;
        CHECK(memcmp(&s, &wiped, sizeof(s)) == 0);
    }
}
