/*
 * BLAKE2s by RFC 7693, HMAC by RFC 2104 and HKDF by RFC 5869 over it: see blake2s.h. Portable code:
 * only handshakes use it, never the bulk data.
 */
#include "crypto/blake2s.h"

#include <string.h>

#include "base/check.h"

static const uint32_t iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint8_t sigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint32_t load32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void mix(uint32_t v[16], const uint8_t at[4], uint32_t x, uint32_t y)
{
    uint32_t a = v[at[0]], b = v[at[1]], c = v[at[2]], d = v[at[3]];
    a += b + x;
    d = rotate(d ^ a, 16);
    c += d;
    b = rotate(b ^ c, 12);
    a += b + y;
    d = rotate(d ^ a, 8);
    c += d;
    b = rotate(b ^ c, 7);
    v[at[0]] = a, v[at[1]] = b, v[at[2]] = c, v[at[3]] = d;
}

static void compress(struct zc_blake2s *s, const uint8_t *block, bool last)
{
    static const uint8_t lanes[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14},
                                        {3, 7, 11, 15}, {0, 5, 10, 15}, {1, 6, 11, 12},
                                        {2, 7, 8, 13},  {3, 4, 9, 14}};
    uint32_t v[16], m[16];
    for (int i = 0; i < 16; i++)
        m[i] = load32(block + 4 * i);
    for (int i = 0; i < 8; i++) {
        v[i] = s->h[i];
        v[i + 8] = iv[i];
    }
    v[12] ^= (uint32_t)s->count;
    v[13] ^= (uint32_t)(s->count >> 32);
    v[14] ^= last ? UINT32_MAX : 0;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 8; i++)
            mix(v, lanes[i], m[sigma[round][2 * i]], m[sigma[round][2 * i + 1]]);
    }
    for (int i = 0; i < 8; i++)
        s->h[i] ^= v[i] ^ v[i + 8];
    zc_secret_wipe(v, sizeof(v));
    zc_secret_wipe(m, sizeof(m));
}

void zc_blake2s_init(struct zc_blake2s *s, size_t out_len, const void *key, size_t key_len)
{
    ZC_ASSERT(out_len >= 1 && out_len <= ZC_BLAKE2S_BYTES && key_len <= 32);
    memset(s, 0, sizeof(*s));
    memcpy(s->h, iv, sizeof(s->h));
    s->h[0] ^= 0x01010000 ^ (uint32_t)key_len << 8 ^ (uint32_t)out_len;
    s->out_len = (uint32_t)out_len;
    if (key_len > 0) {
        memcpy(s->block, key, key_len);
        s->filled = ZC_BLAKE2S_BLOCK;
    }
}

void zc_blake2s_update(struct zc_blake2s *s, const void *data, size_t len)
{
    const uint8_t *in = data;
    while (len > 0) {
        /* A full block waits until more comes: the last one is compressed as such. */
        if (s->filled == ZC_BLAKE2S_BLOCK) {
            s->count += ZC_BLAKE2S_BLOCK;
            compress(s, s->block, false);
            s->filled = 0;
        }
        size_t n = ZC_BLAKE2S_BLOCK - s->filled;
        if (n > len)
            n = len;
        memcpy(s->block + s->filled, in, n);
        s->filled += (uint32_t)n;
        in += n;
        len -= n;
    }
}

void zc_blake2s_final(struct zc_blake2s *s, uint8_t *ret_out)
{
    s->count += s->filled;
    memset(s->block + s->filled, 0, ZC_BLAKE2S_BLOCK - s->filled);
    compress(s, s->block, true);
    for (uint32_t i = 0; i < s->out_len; i++)
        ret_out[i] = (uint8_t)(s->h[i / 4] >> 8 * (i % 4));
    zc_secret_wipe(s, sizeof(*s));
}

void zc_blake2s_hash2(struct zc_slice a, struct zc_slice b, uint8_t ret_hash[ZC_BLAKE2S_BYTES])
{
    struct zc_blake2s s;
    zc_blake2s_init(&s, ZC_BLAKE2S_BYTES, NULL, 0);
    zc_blake2s_update(&s, a.data, a.len);
    zc_blake2s_update(&s, b.data, b.len);
    zc_blake2s_final(&s, ret_hash);
}

void zc_blake2s_mac16(const uint8_t *key, size_t key_len, struct zc_slice data, uint8_t ret_mac[16])
{
    struct zc_blake2s s;
    zc_blake2s_init(&s, 16, key, key_len);
    zc_blake2s_update(&s, data.data, data.len);
    zc_blake2s_final(&s, ret_mac);
}

void zc_blake2s_hmac(const uint8_t key[32], struct zc_slice a, struct zc_slice b,
                     uint8_t ret_mac[ZC_BLAKE2S_BYTES])
{
    struct zc_blake2s s;
    uint8_t pad[ZC_BLAKE2S_BLOCK], inner[ZC_BLAKE2S_BYTES];
    memset(pad, 0x36, sizeof(pad));
    for (int i = 0; i < 32; i++)
        pad[i] ^= key[i];
    zc_blake2s_init(&s, ZC_BLAKE2S_BYTES, NULL, 0);
    zc_blake2s_update(&s, pad, sizeof(pad));
    zc_blake2s_update(&s, a.data, a.len);
    zc_blake2s_update(&s, b.data, b.len);
    zc_blake2s_final(&s, inner);
    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] ^= 0x36 ^ 0x5c;
    zc_blake2s_init(&s, ZC_BLAKE2S_BYTES, NULL, 0);
    zc_blake2s_update(&s, pad, sizeof(pad));
    zc_blake2s_update(&s, inner, sizeof(inner));
    zc_blake2s_final(&s, ret_mac);
    zc_secret_wipe(pad, sizeof(pad));
    zc_secret_wipe(inner, sizeof(inner));
}

void zc_blake2s_kdf(const struct zc_secret *ck, struct zc_slice input, int n,
                    struct zc_secret *ret_1, struct zc_secret *ret_2, struct zc_secret *ret_3)
{
    ZC_ASSERT(n >= 1 && n <= 3);
    struct zc_secret *outs[3] = {ret_1, ret_2, ret_3};
    struct zc_secret prk, t;
    zc_blake2s_hmac(ck->b, input, zc_slice(NULL, 0), prk.b);
    for (int i = 0; i < n; i++) {
        uint8_t number = (uint8_t)(i + 1);
        zc_blake2s_hmac(prk.b, zc_slice(t.b, i == 0 ? 0 : sizeof(t.b)), zc_slice(&number, 1), t.b);
        *outs[i] = t;
    }
    zc_secret_done(&prk);
    zc_secret_done(&t);
}
