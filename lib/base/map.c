/*
 * Intrusive hash map with chained buckets. A node knows the link that points at it, so that removal
 * is O(1) even when many nodes share one hash on purpose.
 *
 * Most look-ups of the broker find nothing (a new id is no duplicate), and in a large map each node
 * of a chain is a miss of the processor's caches. So each bucket has a byte with one bit for each
 * of the eight kinds of hash that its chain may hold, which answers most of them.
 * Deliberately absent: iteration over all nodes (owners keep lists) and key storage.
 */
#include <sodium.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/map.h"
#include "base/word.h"

#define MAP_CAP_MIN 8
#define MAP_CAP_MAX (UINT32_C(1) << 31)

_Static_assert(crypto_shorthash_KEYBYTES == 16, "SipHash key size");
_Static_assert(crypto_shorthash_BYTES == 8, "SipHash output size");
_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == 16, "SipHash key size");
_Static_assert(crypto_shorthash_siphashx24_BYTES == 16, "SipHash output size");

uint64_t zc_map_hash(const uint8_t key[16], struct zc_slice data)
{
    uint8_t out[crypto_shorthash_BYTES];
    crypto_shorthash(out, data.data, data.len, key);
    return zc_word_load(out);
}

void zc_map_hash_wide(const uint8_t key[16], struct zc_slice data, uint64_t ret_hash[2])
{
    uint8_t out[crypto_shorthash_siphashx24_BYTES];
    crypto_shorthash_siphashx24(out, data.data, data.len, key);
    ret_hash[0] = zc_word_load(out);
    ret_hash[1] = zc_word_load(out + 8);
}

/* From bits of the hash that do not choose the bucket. */
static uint8_t map_mark(uint64_t hash)
{
    return (uint8_t)(1u << (hash >> 61));
}

static void map_link(struct zc_map_node **bucket, struct zc_map_node *n)
{
    n->next = *bucket;
    n->link = bucket;
    if (n->next != NULL)
        n->next->link = &n->next;
    *bucket = n;
}

/* Moves all nodes into a table of cap buckets. ZC_ENOMEM leaves the map as it was. */
static int map_resize(struct zc_map *m, uint32_t cap)
{
    struct zc_map_node **buckets = calloc(cap, sizeof(struct zc_map_node *) + 1);
    if (buckets == NULL)
        return ZC_ENOMEM;
    uint8_t *marks = (uint8_t *)(buckets + cap);
    for (uint32_t i = 0; i < m->cap; i++) {
        struct zc_map_node *n = m->buckets[i];
        while (n != NULL) {
            struct zc_map_node *next = n->next;
            map_link(&buckets[n->hash & (cap - 1)], n);
            marks[n->hash & (cap - 1)] |= map_mark(n->hash);
            n = next;
        }
    }
    free(m->buckets);
    m->buckets = buckets;
    m->marks = marks;
    m->cap = cap;
    return 0;
}

int zc_map_insert(struct zc_map *m, struct zc_map_node *n, uint64_t hash)
{
    if (m->len >= m->cap && m->cap < MAP_CAP_MAX) {
        int err = map_resize(m, m->cap == 0 ? MAP_CAP_MIN : m->cap * 2);
        /* A refused doubling only makes chains longer. */
        if (err != 0 && m->cap == 0)
            return err;
    }
    ZC_ASSERT(m->len < UINT32_MAX);
    n->hash = hash;
    map_link(&m->buckets[hash & (m->cap - 1)], n);
    m->marks[hash & (m->cap - 1)] |= map_mark(hash);
    m->len++;
    return 0;
}

void zc_map_remove(struct zc_map *m, struct zc_map_node *n)
{
    ZC_ASSERT(m->len > 0 && n->link != NULL && *n->link == n);
    *n->link = n->next;
    if (n->next != NULL)
        n->next->link = n->link;
    n->next = NULL;
    n->link = NULL;
    m->len--;
    /* Marks of others in the chain are not known without a walk: they stay until it is empty. */
    uint32_t bucket = (uint32_t)n->hash & (m->cap - 1);
    if (m->buckets[bucket] == NULL)
        m->marks[bucket] = 0;
    if (m->cap > MAP_CAP_MIN && m->len < m->cap / 4)
        (void)map_resize(m, m->cap / 2); /* refused memory: the large table stays */
}

static struct zc_map_node *map_match(struct zc_map_node *n, uint64_t hash)
{
    while (n != NULL && n->hash != hash)
        n = n->next;
    return n;
}

struct zc_map_node *zc_map_first(const struct zc_map *m, uint64_t hash)
{
    uint32_t bucket = (uint32_t)hash & (m->cap - 1);
    if (m->cap == 0)
        return NULL;
    /* Who finds nothing mostly inserts next. */
    __builtin_prefetch(&m->buckets[bucket], 1);
    if ((m->marks[bucket] & map_mark(hash)) == 0)
        return NULL;
    return map_match(m->buckets[bucket], hash);
}

struct zc_map_node *zc_map_next(const struct zc_map_node *n)
{
    return map_match(n->next, n->hash);
}

void zc_map_done(struct zc_map *m)
{
    free(m->buckets);
    *m = (struct zc_map){0};
}
