/*
 * The fixed handshakes step by step, as the WireGuard paper has them, from the primitives alone:
 * every value of the trace, from the initiator's secrets and from the responder's. noise.c, which
 * shows only some of them, writes and reads the same messages: their sealed parts open with the
 * keys of the trace.
 */
#include "base/check.h"
#include "crypto/aead.h"
#include "crypto/blake2s.h"
#include "crypto/x25519.h"
#include "test.h"
#include "tunnel/noise.h"
#include "vector.h"

/* Both ends' secrets, and the state of the one that is walked. */
struct walk {
    struct vec v, trace;
    struct zc_secret i_static, r_static, i_ephemeral, r_ephemeral, chain, key;
    struct zc_key i_public, r_public, i_point, r_point;
    uint8_t hash[32], initiation[148], response[92];
    bool initiator;
};

static struct zc_secret secret_of(const struct vec *v, const char *name)
{
    struct zc_secret s;
    CHECK_INT(vec_hex(v, name, s.b, sizeof(s.b)), 32);
    return s;
}

static void walk_open(struct walk *w, struct zc_json_value value, bool initiator)
{
    memset(w, 0, sizeof(*w));
    w->initiator = initiator;
    w->v = vec_object(value);
    w->trace = vec_object(vec_get(&w->v, "trace"));
    w->i_static = secret_of(&w->v, "initiator_static_private");
    w->r_static = secret_of(&w->v, "responder_static_private");
    w->i_ephemeral = secret_of(&w->v, "initiator_ephemeral_private");
    w->r_ephemeral = secret_of(&w->v, "responder_ephemeral_private");
    zc_x25519_public(&w->i_static, &w->i_public);
    zc_x25519_public(&w->r_static, &w->r_public);
    zc_x25519_public(&w->i_ephemeral, &w->i_point);
    zc_x25519_public(&w->r_ephemeral, &w->r_point);
    CHECK_INT(vec_hex(&w->v, "initiation", w->initiation, 148), 148);
    CHECK_INT(vec_hex(&w->v, "response", w->response, 92), 92);
}

static void mix_hash(struct walk *w, const void *data, size_t len)
{
    zc_blake2s_hash2(zc_slice(w->hash, 32), zc_slice(data, len), w->hash);
}

static void mix_point(struct walk *w, const struct zc_key *point)
{
    mix_hash(w, point->b, 32);
    zc_blake2s_kdf(&w->chain, zc_slice(point->b, 32), 1, &w->chain, NULL, NULL);
}

/* The walker's own half of a shared secret and the other's point; n outputs. */
static void mix_shared(struct walk *w, const struct zc_secret *i, const struct zc_key *i_point,
                       const struct zc_secret *r, const struct zc_key *r_point, int n)
{
    struct zc_secret shared;
    CHECK_INT(w->initiator ? zc_x25519_shared(i, r_point, &shared)
                           : zc_x25519_shared(r, i_point, &shared),
              0);
    zc_blake2s_kdf(&w->chain, zc_slice(shared.b, 32), n, &w->chain, n > 1 ? &w->key : NULL, NULL);
}

/* text sealed under the walk's key and hash is what the message has, and the message opens to it.
 */
static void sealed(struct walk *w, const uint8_t *message, const void *text, size_t len)
{
    uint8_t box[32 + ZC_AEAD_TAG];
    memcpy(box, text, len);
    zc_aead_seal(&w->key, 0, zc_slice(w->hash, 32), box, len);
    CHECK(memcmp(box, message, len + ZC_AEAD_TAG) == 0);
    CHECK_INT(zc_aead_open(&w->key, 0, zc_slice(w->hash, 32), box, len + ZC_AEAD_TAG), 0);
    CHECK(memcmp(box, text, len) == 0);
    mix_hash(w, message, len + ZC_AEAD_TAG);
}

static void walk_initiation(struct walk *w)
{
    static const char construction[] = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
    static const char identifier[] = "WireGuard v1 zx2c4 Jason@zx2c4.com";
    uint8_t stamp[12];
    zc_blake2s_hash2(zc_slice_str(construction), zc_slice(NULL, 0), w->chain.b);
    CHECK(vec_is(&w->trace, "initial_chain_key", w->chain.b, 32));
    zc_blake2s_hash2(zc_slice(w->chain.b, 32), zc_slice_str(identifier), w->hash);
    CHECK(vec_is(&w->trace, "initial_hash", w->hash, 32));
    mix_hash(w, w->r_public.b, 32);
    CHECK(vec_is(&w->trace, "i_hash_after_responder_static", w->hash, 32));
    mix_point(w, &w->i_point);
    CHECK(vec_is(&w->trace, "i_ck_after_e", w->chain.b, 32));
    mix_shared(w, &w->i_ephemeral, &w->i_point, &w->r_static, &w->r_public, 2);
    CHECK(vec_is(&w->trace, "i_ck_after_es", w->chain.b, 32));
    CHECK(vec_is(&w->trace, "i_key_static", w->key.b, 32));
    sealed(w, w->initiation + 40, w->i_public.b, 32);
    mix_shared(w, &w->i_static, &w->i_public, &w->r_static, &w->r_public, 2);
    CHECK(vec_is(&w->trace, "i_ck_after_ss", w->chain.b, 32));
    CHECK(vec_is(&w->trace, "i_key_timestamp", w->key.b, 32));
    CHECK_INT(vec_hex(&w->v, "tai64n", stamp, 12), 12);
    sealed(w, w->initiation + 88, stamp, 12);
    CHECK(vec_is(&w->trace, "i_hash_final", w->hash, 32));
}

static void walk_response(struct walk *w)
{
    struct zc_secret psk = secret_of(&w->v, "psk"), tau, send, receive;
    mix_point(w, &w->r_point);
    CHECK(vec_is(&w->trace, "r_ck_after_e", w->chain.b, 32));
    mix_shared(w, &w->i_ephemeral, &w->i_point, &w->r_ephemeral, &w->r_point, 1);
    CHECK(vec_is(&w->trace, "r_ck_after_ee", w->chain.b, 32));
    mix_shared(w, &w->i_static, &w->i_public, &w->r_ephemeral, &w->r_point, 1);
    CHECK(vec_is(&w->trace, "r_ck_after_se", w->chain.b, 32));
    zc_blake2s_kdf(&w->chain, zc_slice(psk.b, 32), 3, &w->chain, &tau, &w->key);
    CHECK(vec_is(&w->trace, "r_ck_after_psk", w->chain.b, 32));
    CHECK(vec_is(&w->trace, "r_tau", tau.b, 32));
    CHECK(vec_is(&w->trace, "r_key_empty", w->key.b, 32));
    mix_hash(w, tau.b, 32);
    sealed(w, w->response + 44, "", 0);
    CHECK(vec_is(&w->trace, "r_hash_final", w->hash, 32));
    zc_blake2s_kdf(&w->chain, zc_slice(NULL, 0), 2, &send, &receive, NULL);
    CHECK(vec_is(&w->v, "initiator_send_key", send.b, 32));
    CHECK(vec_is(&w->v, "initiator_recv_key", receive.b, 32));
}

/* The points are those of the vectors, and lie bare in the messages. */
static void points(struct walk *w)
{
    CHECK(vec_is(&w->v, "initiator_static_public", w->i_public.b, 32));
    CHECK(vec_is(&w->v, "responder_static_public", w->r_public.b, 32));
    CHECK(vec_is(&w->v, "initiator_ephemeral_public", w->i_point.b, 32));
    CHECK(vec_is(&w->v, "initiator_ephemeral_public", w->initiation + 8, 32));
    CHECK(vec_is(&w->v, "responder_ephemeral_public", w->r_point.b, 32));
    CHECK(vec_is(&w->v, "responder_ephemeral_public", w->response + 12, 32));
}

TEST(noise_trace_step_by_step)
{
    static struct walk w;
    for (int initiator = 0; initiator < 2; initiator++) {
        struct vec_each it = vec_each(vec_section("wireguard"));
        struct zc_json_value value;
        int seen = 0;
        while (vec_next(&it, &value)) {
            walk_open(&w, value, initiator);
            points(&w);
            walk_initiation(&w);
            walk_response(&w);
            seen++;
        }
        CHECK_INT(seen, 2);
    }
}

/* The first 16 bytes of a transport packet: type, the receiver's index, the counter. */
TEST(noise_transport_heads)
{
    struct vec_each it = vec_each(vec_section("wireguard"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec handshake = vec_object(value);
        struct vec_each packets = vec_each(vec_get(&handshake, "transport"));
        while (vec_next(&packets, &value)) {
            struct vec v = vec_object(value);
            uint64_t index = vec_int(&v, "receiver_index"), counter = vec_int(&v, "counter");
            uint8_t packet[256], head[16] = {4};
            CHECK(vec_hex(&v, "packet", packet, sizeof(packet)) >= 32);
            CHECK_INT(index, vec_int(&handshake, "responder_index"));
            for (int i = 0; i < 8; i++) {
                if (i < 4)
                    head[4 + i] = (uint8_t)(index >> 8 * i);
                head[8 + i] = (uint8_t)(counter >> 8 * i);
            }
            CHECK(memcmp(packet, head, sizeof(head)) == 0);
            seen++;
        }
    }
    CHECK_INT(seen, 6);
}
