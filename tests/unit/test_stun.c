/* tunnel/stun.h: every vector both ways, every length and bit of them, and responses of random
 * attributes against what was put into them. */
#include "tunnel/stun.h"

#include <arpa/inet.h>

#include "base/address.h"
#include "test.h"
#include "vector.h"

static const uint8_t txid[ZC_STUN_TXID] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static struct zc_disco_endpoint endpoint(const char *text)
{
    struct zc_disco_endpoint e = {.address = {[10] = 0xff, 0xff}};
    struct zc_address a;
    char why[ZC_ADDRESS_WHY_MAX];
    vec_need(zc_address_parse(text, &a, why) == 0 && a.kind == ZC_ADDRESS_TCP, "no address");
    vec_need(inet_pton(AF_INET, a.host, e.address + 12) == 1 ||
                 inet_pton(AF_INET6, a.host, e.address) == 1,
             "no address");
    e.port = a.port;
    return e;
}

static bool same(const struct zc_disco_endpoint *a, const struct zc_disco_endpoint *b)
{
    return memcmp(a->address, b->address, sizeof(a->address)) == 0 && a->port == b->port;
}

/* Decodes from memory of the exact size. What is refused leaves the results as they were. */
static bool response(const uint8_t *packet, size_t len, uint8_t *ret_txid,
                     struct zc_disco_endpoint *ret_mapped)
{
    uint8_t id[ZC_STUN_TXID], *exact = malloc(len + 1);
    struct zc_disco_endpoint mapped;
    memset(id, 0xa5, sizeof(id));
    memset(&mapped, 0xa5, sizeof(mapped));
    uint8_t before[sizeof(mapped)];
    memcpy(before, &mapped, sizeof(mapped));
    memcpy(exact + 1, packet, len);
    bool good = zc_stun_decode_response(zc_slice(exact + 1, len), id, &mapped);
    free(exact);
    if (!good) {
        CHECK(id[0] == 0xa5 && memcmp(id, id + 1, sizeof(id) - 1) == 0);
        CHECK(memcmp(before, &mapped, sizeof(mapped)) == 0);
        return false;
    }
    memcpy(ret_txid, id, sizeof(id));
    *ret_mapped = mapped;
    return true;
}

static bool request(const uint8_t *packet, size_t len)
{
    uint8_t id[ZC_STUN_TXID] = {0xa5}, *exact = malloc(len + 1);
    memcpy(exact + 1, packet, len);
    bool good = zc_stun_decode_request(zc_slice(exact + 1, len), id);
    free(exact);
    CHECK(good ? memcmp(id, packet + 8, sizeof(id)) == 0 : id[0] == 0xa5);
    return good;
}

/* The response is this address for our txid. */
static bool says(const uint8_t *packet, size_t len, const char *text)
{
    uint8_t id[ZC_STUN_TXID];
    struct zc_disco_endpoint mapped, want = endpoint(text);
    return response(packet, len, id, &mapped) && same(&mapped, &want) &&
           memcmp(id, txid, sizeof(id)) == 0;
}

static bool refused(const uint8_t *packet, size_t len)
{
    uint8_t id[ZC_STUN_TXID];
    struct zc_disco_endpoint mapped;
    return !response(packet, len, id, &mapped);
}

/* ---- messages put together by hand ---- */

struct message {
    uint8_t b[2048];
    size_t len;
};

static void stated(struct message *m, size_t len)
{
    m->b[2] = (uint8_t)(len >> 8);
    m->b[3] = (uint8_t)len;
}

static struct message message(uint16_t type)
{
    struct message m = {.b = {(uint8_t)(type >> 8), (uint8_t)type, 0, 0, 0x21, 0x12, 0xa4, 0x42},
                        .len = 20};
    memcpy(m.b + 8, txid, sizeof(txid));
    return m;
}

static void add(struct message *m, uint16_t type, const void *value, size_t len)
{
    uint8_t *p = m->b + m->len;
    p[0] = (uint8_t)(type >> 8);
    p[1] = (uint8_t)type;
    p[2] = (uint8_t)(len >> 8);
    p[3] = (uint8_t)len;
    memcpy(p + 4, value, len);
    memset(p + 4 + len, 0xee, 3); /* padding may be anything */
    m->len += 4 + (len + 3) / 4 * 4;
    stated(m, m->len - 20);
}

static void add_address(struct message *m, uint16_t type, const struct zc_disco_endpoint *e)
{
    static const uint8_t zero[16];
    const uint8_t *mask = type == 0x0001 ? zero : m->b + 4;
    uint8_t value[20] = {0x77, 2};
    size_t skip = e->address[10] == 0xff ? 12 : 0;
    if (skip > 0)
        value[1] = 1;
    value[2] = (uint8_t)(e->port >> 8 ^ mask[0]);
    value[3] = (uint8_t)(e->port ^ mask[1]);
    for (size_t i = 0; i < 16 - skip; i++)
        value[4 + i] = e->address[skip + i] ^ mask[i];
    add(m, type, value, 4 + 16 - skip);
}

static void add_text(struct message *m, uint16_t type, const char *text)
{
    struct zc_disco_endpoint e = endpoint(text);
    add_address(m, type, &e);
}

/* CRC-32 as a division of polynomials, the highest power first: nothing of it is as in stun.c. */
static uint32_t crc(const uint8_t *p, size_t len)
{
    uint32_t rest = UINT32_MAX, mirrored = 0;
    for (size_t i = 0; i < 8 * len; i++) {
        uint32_t out = rest >> 31 ^ (p[i / 8] >> i % 8 & 1);
        rest = rest << 1 ^ (out ? 0x04c11db7 : 0);
    }
    for (int i = 0; i < 32; i++)
        mirrored |= (rest >> i & 1) << (31 - i);
    return ~mirrored;
}

/* A right FINGERPRINT in a value of len bytes, and behind it `more` bytes that are no attribute. */
static void add_fingerprint_of(struct message *m, size_t len, size_t more)
{
    size_t start = m->len, end = start + 4 + (len + 3) / 4 * 4 + more;
    stated(m, end - 20);
    uint32_t v[2] = {htonl(crc(m->b, start) ^ 0x5354554e), 0};
    add(m, 0x8028, v, len);
    memcpy(m->b + start + 4, v, 4); /* what a short value leaves out is the padding */
    m->len = end;
    stated(m, end - 20);
}

static void add_fingerprint(struct message *m)
{
    add_fingerprint_of(m, 4, 0);
}

/* ---- vectors ---- */

static void check_request(const struct vec *v, const uint8_t *packet, size_t len)
{
    uint8_t id[ZC_STUN_TXID], again[ZC_STUN_REQUEST_LEN], copy[ZC_STUN_REQUEST_LEN];
    CHECK_INT(len, ZC_STUN_REQUEST_LEN);
    CHECK(zc_stun_is(zc_slice(packet, len)) && request(packet, len));
    CHECK(zc_stun_decode_request(zc_slice(packet, len), id));
    CHECK(vec_is(v, "txid", id, sizeof(id)));
    zc_stun_encode_request(id, again);
    CHECK(memcmp(again, packet, sizeof(again)) == 0);
    CHECK(refused(packet, len));
    for (size_t i = 0; i < len; i++)
        CHECK(!request(packet, i));
    for (size_t bit = 0; bit < 8 * len; bit++) {
        memcpy(copy, packet, len);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!request(copy, len));
    }
}

/* What a changed bit of a response with one address does is known from its place. */
static void check_bit(const uint8_t *packet, size_t len, size_t bit,
                      const struct zc_disco_endpoint *mapped)
{
    uint8_t copy[ZC_STUN_RESPONSE_MAX], id[ZC_STUN_TXID];
    struct zc_disco_endpoint got, want = *mapped;
    size_t at = bit / 8, skip = len == 32 ? 12 : 0;
    uint8_t mask = (uint8_t)(1 << bit % 8);
    bool masked = packet[21] == 0x20;
    memcpy(copy, packet, len);
    copy[at] ^= mask;
    bool good = response(copy, len, id, &got);
    if (at < 8 || (at >= 20 && at != 24 && at < 26)) {
        bool is_old_type = masked && at == 20 && mask == 0x80;
        CHECK_INT(good, is_old_type);
    } else {
        CHECK(good && memcmp(id, copy + 8, sizeof(id)) == 0);
    }
    if (!good)
        return;
    if (at >= 28)
        want.address[at - 28 + skip] ^= mask;
    else if (at >= 26)
        want.port ^= (uint16_t)(at == 26 ? mask << 8 : mask);
    else if (masked && skip == 0 && at >= 8 && at < 20)
        want.address[at - 4] ^= mask;
    CHECK(same(&got, &want));
}

static void check_response(const struct vec *v, const uint8_t *packet, size_t len)
{
    uint8_t id[ZC_STUN_TXID], again[ZC_STUN_RESPONSE_MAX];
    struct zc_slice text = vec_text(v, "mapped");
    struct zc_disco_endpoint mapped, want;
    char name[64] = "";
    memcpy(name, text.data, text.len);
    want = endpoint(name);
    CHECK(zc_stun_is(zc_slice(packet, len)) && response(packet, len, id, &mapped));
    CHECK(same(&mapped, &want) && vec_is(v, "txid", id, sizeof(id)));
    CHECK_INT(zc_stun_encode_response(id, &want, again), len);
    if (packet[21] == 0x20) {
        CHECK(memcmp(again, packet, len) == 0);
    } else { /* MAPPED-ADDRESS, which we do not send: ours says the same with 0020 */
        struct message m = message(0x0101);
        add_address(&m, 0x0001, &want);
        m.b[24] = 0;
        CHECK(m.len == len && memcmp(m.b, packet, len) == 0);
        CHECK(says(again, len, name));
    }
    CHECK(!request(packet, len));
    for (size_t i = 0; i < len; i++)
        CHECK(refused(packet, i));
    for (size_t bit = 0; bit < 8 * len; bit++)
        check_bit(packet, len, bit, &mapped);
}

/* Each is refused for its one fault: with that mended it is a response. */
static void check_reject(struct zc_slice name, const uint8_t *packet, size_t len)
{
    struct message m = {.len = len};
    memcpy(m.b, packet, len);
    CHECK(refused(packet, len) && !request(packet, len));
    if (zc_slice_is(name, "reject: too short")) {
        m = message(0x0101);
        CHECK(memcmp(m.b + 4, packet + 4, len - 4) == 0);
        add_text(&m, 0x0001, "127.0.0.1:49261");
    } else if (zc_slice_is(name, "reject: wrong magic cookie")) {
        CHECK(!zc_stun_is(zc_slice(packet, len)));
        memcpy(m.b + 4, "\x21\x12\xa4\x42", 4);
    } else if (zc_slice_is(name, "reject: error response class")) {
        m.b[1] = 0x01;
    } else if (zc_slice_is(name, "reject: length field beyond packet")) {
        stated(&m, len - 20);
    } else {
        CHECK(zc_slice_is(name, "reject: no address attribute"));
        add_text(&m, 0x0001, "127.0.0.1:49261");
    }
    CHECK(says(m.b, m.len, "127.0.0.1:49261"));
}

TEST(stun_vectors)
{
    struct vec_each it = vec_each(vec_section("stun"));
    struct zc_json_value value;
    int requests = 0, responses = 0, rejects = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        struct zc_slice name = vec_text(&v, "name");
        uint8_t packet[128];
        size_t len = vec_hex(&v, "packet", packet, sizeof(packet));
        if (zc_slice_is(name, "binding request")) {
            check_request(&v, packet, len);
            requests++;
        } else if (zc_slice_starts(name, zc_slice_str("reject: "))) {
            check_reject(name, packet, len);
            rejects++;
        } else {
            check_response(&v, packet, len);
            responses++;
        }
    }
    CHECK_INT(requests, 1);
    CHECK_INT(responses, 4);
    CHECK_INT(rejects, 5);
}

/* ---- rules ---- */

TEST(stun_response_forms)
{
    struct message m = message(0x0101);
    add_text(&m, 0x8020, "[2001:db8::1]:5");
    CHECK(says(m.b, m.len, "[2001:db8::1]:5"));
    m = message(0x0101);
    add_text(&m, 0x0001, "[2001:db8::1]:5");
    CHECK(says(m.b, m.len, "[2001:db8::1]:5"));
    /* The XORed one wins wherever it stands, the first of a kind wins, strangers are stepped over.
     */
    add(&m, 0x0004, "\0\1\0\7abcd", 8);
    add(&m, 0x8022, "server", 6);
    add_text(&m, 0x0020, "192.0.2.1:6");
    add_text(&m, 0x8020, "192.0.2.2:7");
    add_text(&m, 0x0001, "192.0.2.3:8");
    add(&m, 0x8028, "", 0);
    CHECK(says(m.b, m.len, "192.0.2.1:6"));
    /* Bytes behind the stated length are none of it, up to the longest packet. */
    memset(m.b + m.len, 0x01, 100);
    CHECK(says(m.b, m.len + 1, "192.0.2.1:6") && says(m.b, m.len + 100, "192.0.2.1:6"));
    CHECK(says(m.b, ZC_STUN_PACKET_MAX, "192.0.2.1:6"));
    CHECK(refused(m.b, ZC_STUN_PACKET_MAX + 1));
    for (size_t len = 0; len < m.len - 20; len++) {
        struct message cut = m;
        stated(&cut, len); /* good only where an attribute ends */
        bool good = len == 24 || len == 36 || len == 48 || len == 60 || len == 72 || len == 84;
        CHECK_INT(!refused(cut.b, cut.len), good);
    }
    /* IPv4 inside IPv6 is IPv4. */
    m = message(0x0101);
    add(&m, 0x0001, "\0\2\0\5\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 20);
    CHECK(says(m.b, m.len, "127.0.0.1:5"));
}

TEST(stun_malformed_address)
{
    static const uint16_t types[] = {0x0001, 0x0020, 0x8020};
    uint8_t value[32] = {0};
    for (size_t t = 0; t < 3; t++) {
        for (int family = 0; family < 256; family++) {
            for (size_t len = 0; len <= sizeof(value); len++) {
                struct message m = message(0x0101);
                bool good = (family == 1 && len == 8) || (family == 2 && len == 20);
                value[1] = (uint8_t)family;
                add(&m, types[t], value, len);
                CHECK_INT(!refused(m.b, m.len), good);
                /* A good one beside it does not help. */
                add_text(&m, types[(t + 1) % 3], "192.0.2.1:6");
                CHECK_INT(!refused(m.b, m.len), good);
            }
        }
    }
}

TEST(stun_request_rules)
{
    struct message m = message(0x0001), cut;
    add(&m, 0x0003, "ignored", 7);
    add(&m, 0x8022, "tailnode", 8);
    add(&m, 0x8022, "second", 6);
    CHECK(!request(m.b, m.len)); /* without fingerprint */
    for (size_t len = 1; len <= 8; len++) {
        for (size_t more = 0; more < 4; more++) {
            cut = m;
            add_fingerprint_of(&cut, len, more);
            CHECK_INT(request(cut.b, cut.len), len == 4 && more == 0);
        }
    }
    add_fingerprint(&m);
    CHECK(request(m.b, m.len));
    m.b[m.len] = 0;
    CHECK(!request(m.b, m.len + 1));
    CHECK(!request(m.b, m.len + 4));
    add(&m, 0x8022, "", 0); /* not the last */
    CHECK(!request(m.b, m.len));
    add_fingerprint(&m); /* only the last one is looked at */
    CHECK(request(m.b, m.len));

    static const char *const softwares[] = {"", "tailnod", "tailnode ", "Tailnode", "tailnodf"};
    for (size_t i = 0; i < sizeof(softwares) / sizeof(softwares[0]); i++) {
        m = message(0x0001);
        add(&m, 0x8022, softwares[i], strlen(softwares[i]));
        add(&m, 0x8022, "tailnode", 8); /* the first counts */
        add_fingerprint(&m);
        CHECK(!request(m.b, m.len));
    }
    m = message(0x0001);
    add_fingerprint(&m);
    CHECK(!request(m.b, m.len)); /* no software */
    m = message(0x0001);
    CHECK(!request(m.b, m.len));
    m = message(0x0101); /* a response, fingerprint or not */
    add(&m, 0x8022, "tailnode", 8);
    add_fingerprint(&m);
    CHECK(!request(m.b, m.len));
}

/* The longest request, and one attribute more. */
TEST(stun_request_length)
{
    static const uint8_t zero[ZC_STUN_PACKET_MAX];
    for (size_t more = 0; more <= 4; more += 4) {
        struct message m = message(0x0001);
        add(&m, 0x8022, "tailnode", 8);
        add(&m, 0x8000, zero, ZC_STUN_PACKET_MAX - 20 - 12 - 4 - 8 + more);
        add_fingerprint(&m);
        CHECK_INT(m.len, ZC_STUN_PACKET_MAX + more);
        CHECK_INT(request(m.b, m.len), more == 0);
    }
}

TEST(stun_is)
{
    struct message m = message(0x0001);
    for (int type = 0; type < 65536; type++) {
        m.b[0] = (uint8_t)(type >> 8);
        m.b[1] = (uint8_t)type;
        CHECK_INT(zc_stun_is(zc_slice(m.b, 20)), type < 0x4000 && type % 256 == 1);
    }
    CHECK(!zc_stun_is(zc_slice(NULL, 0)));
    CHECK(!zc_stun_is(zc_slice("TS\xf0\x9f\x92\xac and what follows it", 24)));
    CHECK(!zc_stun_is(zc_slice("\1\0\0\0 a handshake of WireGuard", 30)));
}

/* ---- random ---- */

static struct zc_disco_endpoint random_endpoint(struct zc_rng *rng)
{
    struct zc_disco_endpoint e;
    zc_rng_bytes(rng, e.address, sizeof(e.address));
    e.address[10] = 0;
    if (zc_rng_u64(rng) % 2 == 0)
        memcpy(e.address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
    e.port = (uint16_t)zc_rng_u64(rng);
    return e;
}

TEST(stun_round_trips)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){7});
    for (int i = 0; i < 20000; i++) {
        uint8_t id[ZC_STUN_TXID], got_id[ZC_STUN_TXID], packet[ZC_STUN_RESPONSE_MAX];
        struct zc_disco_endpoint e = random_endpoint(&rng), got;
        zc_rng_bytes(&rng, id, sizeof(id));
        size_t len = zc_stun_encode_response(id, &e, packet);
        CHECK_INT(len, e.address[10] == 0xff ? 32 : 44);
        CHECK(response(packet, len, got_id, &got) && same(&got, &e));
        CHECK(memcmp(got_id, id, sizeof(id)) == 0);
        zc_stun_encode_request(id, packet);
        CHECK(request(packet, ZC_STUN_REQUEST_LEN));
        uint32_t v = htonl(crc(packet, 32) ^ 0x5354554e);
        CHECK(memcmp(packet + 36, &v, sizeof(v)) == 0);
    }
}

TEST(stun_random_attributes)
{
    static const uint16_t types[] = {0x0020, 0x8020, 0x0001, 0x0004, 0x8022, 0x8028};
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){8});
    int seen[2] = {0};
    for (int i = 0; i < 20000; i++) {
        struct message m = message(0x0101);
        struct zc_disco_endpoint want[2], got; /* without XOR, with it */
        uint8_t id[ZC_STUN_TXID], noise[64];
        bool has[2] = {false}, bad = false;
        for (uint64_t n = zc_rng_u64(&rng) % 8; n > 0; n--) {
            uint16_t type = types[zc_rng_u64(&rng) % 6];
            bool address = type == 0x0001 || type % 0x8000 == 0x0020, masked = type != 0x0001;
            if (address && zc_rng_u64(&rng) % 16 > 0) {
                struct zc_disco_endpoint e = random_endpoint(&rng);
                add_address(&m, type, &e);
                if (!has[masked])
                    want[masked] = e;
                has[masked] = true;
            } else {
                zc_rng_bytes(&rng, noise, sizeof(noise));
                noise[1] |= 4; /* no family that there is */
                add(&m, type, noise, zc_rng_u64(&rng) % sizeof(noise));
                bad |= address;
            }
        }
        bool good = response(m.b, m.len, id, &got);
        CHECK_INT(good, !bad && (has[0] || has[1]));
        seen[good]++;
        if (good)
            CHECK(same(&got, &want[has[1]]));
    }
    CHECK(seen[0] > 2000 && seen[1] > 2000);
}

/* Noise, and noise behind a good header; AddressSanitizer looks on. */
TEST(stun_noise)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){9});
    for (int i = 0; i < 50000; i++) {
        struct message m = message(i % 4 < 2 ? 0x0001 : 0x0101);
        uint8_t noise[96];
        size_t len = zc_rng_u64(&rng) % sizeof(noise);
        zc_rng_bytes(&rng, noise, len);
        CHECK(refused(noise, len) && !request(noise, len));
        memcpy(m.b + 20, noise, len);
        stated(&m, i % 2 ? len : noise[0]);
        CHECK(!request(m.b, 20 + len));
        uint8_t id[ZC_STUN_TXID];
        struct zc_disco_endpoint e;
        if (response(m.b, 20 + len, id, &e))
            CHECK(memcmp(id, txid, sizeof(id)) == 0);
    }
}
