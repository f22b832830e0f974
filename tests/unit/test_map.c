/* base/map.h: against a plain array, with wanted and unwanted equal hashes. */
#include "base/map.h"
#include "base/rng.h"
#include "test.h"

#define ITEMS 3000

struct item {
    struct zc_map_node node;
    uint64_t hash;
    bool in;
};

static struct item items[ITEMS];

/* All nodes of one hash that the map gives, each of which must be in the model; returns how many.
 */
static size_t count_of(const struct zc_map *m, uint64_t hash)
{
    size_t n = 0;
    for (struct zc_map_node *i = zc_map_first(m, hash); i != NULL; i = zc_map_next(i)) {
        struct item *item = (struct item *)i;
        CHECK(item->in && item->hash == hash);
        n++;
    }
    return n;
}

static void run_model(uint64_t hashes, uint8_t seed, int rounds)
{
    struct zc_rng rng;
    zc_rng_init(&rng, (const uint8_t[32]){seed});
    struct zc_map m = {0};
    memset(items, 0, sizeof(items));
    uint32_t len = 0;
    for (int round = 0; round < rounds; round++) {
        /* Waves: the map fills up and runs empty several times. */
        bool filling = (round / 4000) % 2 == 0;
        struct item *item = &items[zc_rng_u64(&rng) % ITEMS];
        if (!item->in && (filling || zc_rng_u64(&rng) % 8 == 0)) {
            item->hash = zc_rng_u64(&rng) % hashes * UINT64_C(0x9e3779b97f4a7c15);
            CHECK_INT(zc_map_insert(&m, &item->node, item->hash), 0);
            item->in = true;
            len++;
        } else if (item->in && (!filling || zc_rng_u64(&rng) % 8 == 0)) {
            zc_map_remove(&m, &item->node);
            item->in = false;
            len--;
        }
        CHECK_INT(m.len, len);
        CHECK(len == 0 ? m.cap == 0 : m.cap >= len && (m.cap <= 8 || len >= m.cap / 4));
        if (round % 61 == 0) {
            size_t want = 0;
            for (int i = 0; i < ITEMS; i++)
                want += items[i].in && items[i].hash == item->hash;
            CHECK_INT(count_of(&m, item->hash), want);
        }
    }
    zc_map_done(&m);
}

TEST(map_spread_hashes)
{
    run_model(UINT64_C(1) << 62, 1, 40000);
}

TEST(map_many_equal_hashes)
{
    run_model(7, 2, 40000);
}

TEST(map_one_hash_for_all_stays_fast)
{
    /* Insertion and removal are O(1) whatever the chain: half a million of each ends at once. */
    enum { N = 500000 };
    struct zc_map_node *nodes = calloc(N, sizeof(*nodes));
    struct zc_map m = {0};
    for (int i = 0; i < N; i++)
        CHECK_INT(zc_map_insert(&m, &nodes[i], 42), 0);
    for (int i = 0; i < N; i++)
        zc_map_remove(&m, &nodes[i]);
    CHECK(m.len == 0 && m.cap == 8); /* a large table did not stay */
    zc_map_done(&m);
    free(nodes);
}

TEST(map_empty)
{
    struct zc_map m = {0};
    CHECK(zc_map_first(&m, 0) == NULL);
    zc_map_done(&m);
    zc_map_done(&m);
}

TEST(map_hash_is_siphash_2_4)
{
    /* Vectors of the SipHash paper's reference code: key 00..0f, messages 00..(n-1). */
    uint8_t key[16], data[64];
    for (int i = 0; i < 64; i++)
        data[i] = (uint8_t)i;
    memcpy(key, data, 16);
    CHECK(zc_map_hash(key, zc_slice(data, 0)) == UINT64_C(0x726fdb47dd0e0e31));
    CHECK(zc_map_hash(key, zc_slice(data, 1)) == UINT64_C(0x74f839c593dc67fd));
    CHECK(zc_map_hash(key, zc_slice(data, 8)) == UINT64_C(0x93f5f5799a932462));
    CHECK(zc_map_hash(key, zc_slice(data, 15)) == UINT64_C(0xa129ca6149be45e5));
    CHECK(zc_map_hash(key, zc_slice(NULL, 0)) == UINT64_C(0x726fdb47dd0e0e31));
}

TEST(map_hash_wide_is_siphash_2_4_128)
{
    /* Vectors of the reference code for 128 bits of output, as little-endian words. */
    uint8_t data[16];
    uint64_t hash[2];
    for (int i = 0; i < 16; i++)
        data[i] = (uint8_t)i;
    zc_map_hash_wide(data, zc_slice(data, 0), hash);
    CHECK(hash[0] == UINT64_C(0xe6a825ba047f81a3) && hash[1] == UINT64_C(0x930255c71472f66d));
    zc_map_hash_wide(data, zc_slice(data, 1), hash);
    CHECK(hash[0] == UINT64_C(0x44af996bd8c187da) && hash[1] == UINT64_C(0x45fc229b11597634));
}
