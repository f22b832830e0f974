/*
 * Intrusive hash map: the caller embeds a zc_map_node and brings a 64-bit hash of a keyed function
 * (zc_map_hash, SipHash-2-4), so strangers cannot aim for one bucket. Equal hashes may occur, also
 * wanted ones: zc_map_first/zc_map_next walk all nodes of one hash, the caller compares the key.
 */
#ifndef ZC_BASE_MAP_H
#define ZC_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct zc_map_node {
    struct zc_map_node *next;
    struct zc_map_node **link; /* what points at this node; NULL: in no map */
    uint64_t hash;
};

struct zc_map {
    struct zc_map_node **buckets;
    uint8_t *marks; /* of each bucket: a bit for each kind of hash that may be in it */
    uint32_t cap;   /* power of two, or 0 */
    uint32_t len;
};

/* SipHash-2-4 of data under a 16-byte key. */
uint64_t zc_map_hash(const uint8_t key[16], struct zc_slice data);
/* SipHash-2-4 with 128 bits of output, at little more than the cost of 64. */
void zc_map_hash_wide(const uint8_t key[16], struct zc_slice data, uint64_t ret_hash[2]);

/* Inserts n under hash. ZC_ENOMEM: not inserted. Grows by doubling; shrinks on removal, down to
 * 8 buckets: one that is empty now and then does not come and go each time. */
ZC_MUST_CHECK int zc_map_insert(struct zc_map *m, struct zc_map_node *n, uint64_t hash);
/* n must be in m. */
void zc_map_remove(struct zc_map *m, struct zc_map_node *n);
/* First node with this hash, or NULL. */
struct zc_map_node *zc_map_first(const struct zc_map *m, uint64_t hash);
/* Next node with the hash of n, or NULL. */
struct zc_map_node *zc_map_next(const struct zc_map_node *n);
/* Frees the table; the nodes belong to their owners. */
void zc_map_done(struct zc_map *m);

#endif
