/* The handshake: see noise.h. Symbols as in the WireGuard paper: C chain, H hash. */
#include "tunnel/noise.h"

#include <string.h>

#include "crypto/aead.h"
#include "crypto/blake2s.h"
#include "crypto/x25519.h"

#define CONSTRUCTION "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
#define IDENTIFIER "WireGuard v1 zx2c4 Jason@zx2c4.com"

/* Offsets, and lengths of what is sealed. */
enum {
    SENDER = 4,
    I_EPHEMERAL = 8,
    I_STATIC = 40,
    I_STATIC_LEN = 48,
    I_STAMP = 88,
    I_STAMP_LEN = 28,
    R_RECEIVER = 8,
    R_EPHEMERAL = 12,
    R_EMPTY = 44,
};

static struct zc_slice key_slice(const struct zc_key *key)
{
    return zc_slice(key->b, sizeof(key->b));
}

static void put_header(uint8_t *msg, uint8_t type, uint32_t index)
{
    const uint8_t header[8] = {type,
                               0,
                               0,
                               0,
                               (uint8_t)index,
                               (uint8_t)(index >> 8),
                               (uint8_t)(index >> 16),
                               (uint8_t)(index >> 24)};
    memcpy(msg, header, sizeof(header));
}

static uint32_t get_index(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_index(uint8_t *p, uint32_t index)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(index >> 8 * i);
}

void zc_noise_self_init(struct zc_noise_self *s, const struct zc_secret *private)
{
    s->private = *private;
    zc_x25519_public(private, &s->public);
    zc_cookie_keys(&s->public, &s->cookie_keys);
}

void zc_noise_self_done(struct zc_noise_self *s)
{
    zc_secret_wipe(s, sizeof(*s));
}

int zc_noise_peer_init(struct zc_noise_peer *p, const struct zc_noise_self *self,
                       const struct zc_key *public, const struct zc_secret *psk)
{
    struct zc_secret shared;
    int err = zc_x25519_shared(&self->private, public, &shared);
    if (err != 0)
        return err;
    memset(p, 0, sizeof(*p));
    p->public = *public;
    p->static_static = shared;
    if (psk != NULL)
        p->psk = *psk;
    zc_cookie_keys(public, &p->cookie_keys);
    zc_secret_done(&shared);
    return 0;
}

void zc_noise_peer_done(struct zc_noise_peer *p)
{
    zc_secret_wipe(p, sizeof(*p));
}

void zc_noise_done(struct zc_noise *n)
{
    zc_secret_wipe(n, sizeof(*n));
}

static void mix_hash(struct zc_noise *n, struct zc_slice data)
{
    zc_blake2s_hash2(zc_slice(n->hash, sizeof(n->hash)), data, n->hash);
}

static void mix_key(struct zc_noise *n, struct zc_slice input)
{
    zc_blake2s_kdf(&n->chain, input, 1, &n->chain, NULL, NULL);
}

/* Mixes a shared secret into the chain and gives a key, if one is wanted. */
static void mix_shared(struct zc_noise *n, const struct zc_secret *shared,
                       struct zc_secret *ret_key)
{
    struct zc_slice input = zc_slice(shared->b, sizeof(shared->b));
    zc_blake2s_kdf(&n->chain, input, ret_key != NULL ? 2 : 1, &n->chain, ret_key, NULL);
}

static int mix_dh(struct zc_noise *n, const struct zc_secret *private, const struct zc_key *public,
                  struct zc_secret *ret_key)
{
    struct zc_secret shared;
    int err = zc_x25519_shared(private, public, &shared);
    if (err != 0)
        return err;
    mix_shared(n, &shared, ret_key);
    zc_secret_done(&shared);
    return 0;
}

/* Seals text[0..len) to out, len + 16 bytes, bound to the hash so far, and hashes it. */
static void seal_hash(struct zc_noise *n, const struct zc_secret *key, const void *text, size_t len,
                      uint8_t *out)
{
    if (len > 0)
        memcpy(out, text, len);
    zc_aead_seal(key, 0, zc_slice(n->hash, sizeof(n->hash)), out, len);
    mix_hash(n, zc_slice(out, len + ZC_AEAD_TAG));
}

/* The reverse of seal_hash; len counts the tag, at most 48. */
static int open_hash(struct zc_noise *n, const struct zc_secret *key, const uint8_t *sealed,
                     size_t len, uint8_t *ret_text)
{
    uint8_t text[I_STATIC_LEN];
    memcpy(text, sealed, len);
    int err = zc_aead_open(key, 0, zc_slice(n->hash, sizeof(n->hash)), text, len);
    if (err != 0)
        return err;
    if (len > ZC_AEAD_TAG)
        memcpy(ret_text, text, len - ZC_AEAD_TAG);
    mix_hash(n, zc_slice(sealed, len));
    return 0;
}

/* C0, then H with the responder's key. */
static void start(struct zc_noise *n, const struct zc_key *responder)
{
    memset(n, 0, sizeof(*n));
    zc_blake2s_hash2(zc_slice_str(CONSTRUCTION), zc_slice(NULL, 0), n->chain.b);
    zc_blake2s_hash2(zc_slice(n->chain.b, sizeof(n->chain.b)), zc_slice_str(IDENTIFIER), n->hash);
    mix_hash(n, key_slice(responder));
}

int zc_noise_create_initiation(struct zc_noise *n, const struct zc_noise_self *self,
                               const struct zc_noise_peer *peer, const struct zc_secret *ephemeral,
                               uint32_t index, const uint8_t stamp[ZC_NOISE_STAMP_BYTES],
                               uint8_t ret_msg[ZC_NOISE_INITIATION_BYTES])
{
    struct zc_secret key;
    struct zc_key public;
    zc_x25519_public(ephemeral, &public);
    start(n, &peer->public);
    n->ephemeral = *ephemeral;
    mix_key(n, key_slice(&public));
    mix_hash(n, key_slice(&public));
    int err = mix_dh(n, ephemeral, &peer->public, &key);
    if (err != 0) {
        zc_noise_done(n);
        return err;
    }
    put_header(ret_msg, 1, index);
    memcpy(ret_msg + I_EPHEMERAL, public.b, sizeof(public.b));
    seal_hash(n, &key, self->public.b, sizeof(self->public.b), ret_msg + I_STATIC);
    mix_shared(n, &peer->static_static, &key);
    seal_hash(n, &key, stamp, ZC_NOISE_STAMP_BYTES, ret_msg + I_STAMP);
    zc_secret_done(&key);
    return 0;
}

int zc_noise_read_static(struct zc_noise *n, const struct zc_noise_self *self,
                         const uint8_t msg[ZC_NOISE_INITIATION_BYTES], struct zc_key *ret_static)
{
    struct zc_secret key = {0};
    start(n, &self->public);
    n->remote_index = get_index(msg + SENDER);
    memcpy(n->remote_ephemeral.b, msg + I_EPHEMERAL, sizeof(n->remote_ephemeral.b));
    mix_key(n, key_slice(&n->remote_ephemeral));
    mix_hash(n, key_slice(&n->remote_ephemeral));
    int err = mix_dh(n, &self->private, &n->remote_ephemeral, &key);
    if (err == 0)
        err = open_hash(n, &key, msg + I_STATIC, I_STATIC_LEN, ret_static->b);
    zc_secret_done(&key);
    if (err != 0)
        zc_noise_done(n);
    return err;
}

int zc_noise_read_stamp(struct zc_noise *n, const struct zc_noise_peer *peer,
                        const uint8_t msg[ZC_NOISE_INITIATION_BYTES],
                        uint8_t ret_stamp[ZC_NOISE_STAMP_BYTES])
{
    struct zc_secret key;
    mix_shared(n, &peer->static_static, &key);
    int err = open_hash(n, &key, msg + I_STAMP, I_STAMP_LEN, ret_stamp);
    zc_secret_done(&key);
    if (err != 0)
        zc_noise_done(n);
    return err;
}

/* The pre-shared key enters; ret_key seals the empty text. */
static void mix_psk(struct zc_noise *n, const struct zc_secret *psk, struct zc_secret *ret_key)
{
    struct zc_secret tau;
    zc_blake2s_kdf(&n->chain, zc_slice(psk->b, sizeof(psk->b)), 3, &n->chain, &tau, ret_key);
    mix_hash(n, zc_slice(tau.b, sizeof(tau.b)));
    zc_secret_done(&tau);
}

int zc_noise_create_response(struct zc_noise *n, const struct zc_noise_peer *peer,
                             const struct zc_secret *ephemeral, uint32_t index,
                             uint8_t ret_msg[ZC_NOISE_RESPONSE_BYTES])
{
    struct zc_secret key;
    struct zc_key public;
    zc_x25519_public(ephemeral, &public);
    mix_hash(n, key_slice(&public));
    mix_key(n, key_slice(&public));
    int err = mix_dh(n, ephemeral, &n->remote_ephemeral, NULL);
    if (err == 0)
        err = mix_dh(n, ephemeral, &peer->public, NULL);
    if (err != 0) {
        zc_noise_done(n);
        return err;
    }
    mix_psk(n, &peer->psk, &key);
    put_header(ret_msg, 2, index);
    put_index(ret_msg + R_RECEIVER, n->remote_index);
    memcpy(ret_msg + R_EPHEMERAL, public.b, sizeof(public.b));
    seal_hash(n, &key, NULL, 0, ret_msg + R_EMPTY);
    zc_secret_done(&key);
    return 0;
}

int zc_noise_consume_response(struct zc_noise *n, const struct zc_noise_self *self,
                              const struct zc_noise_peer *peer,
                              const uint8_t msg[ZC_NOISE_RESPONSE_BYTES])
{
    struct zc_noise next = *n;
    struct zc_secret key = {0};
    struct zc_key public;
    memcpy(public.b, msg + R_EPHEMERAL, sizeof(public.b));
    next.remote_index = get_index(msg + SENDER);
    mix_hash(&next, key_slice(&public));
    mix_key(&next, key_slice(&public));
    int err = mix_dh(&next, &n->ephemeral, &public, NULL);
    if (err == 0)
        err = mix_dh(&next, &self->private, &public, NULL);
    if (err == 0) {
        mix_psk(&next, &peer->psk, &key);
        err = open_hash(&next, &key, msg + R_EMPTY, ZC_AEAD_TAG, NULL);
    }
    if (err == 0)
        *n = next;
    zc_noise_done(&next);
    zc_secret_done(&key);
    return err;
}

void zc_noise_keys(struct zc_noise *n, bool initiator, struct zc_secret *ret_send,
                   struct zc_secret *ret_receive)
{
    struct zc_secret *first = initiator ? ret_send : ret_receive;
    struct zc_secret *second = initiator ? ret_receive : ret_send;
    zc_blake2s_kdf(&n->chain, zc_slice(NULL, 0), 2, first, second, NULL);
    zc_noise_done(n);
}
