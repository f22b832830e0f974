/* Lists of node keys, and files of them: one `nodekey:HEX` a line, # begins a comment. */
#ifndef ZC_DAEMONS_HUB_KEYS_H
#define ZC_DAEMONS_HUB_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "crypto/secret.h"

#define ZC_HUB_KEYS_FILE_MAX (8u << 20)
#define ZC_HUB_KEYS_WHY_MAX 400

/* All zero is an empty one. */
struct zc_hub_keys {
    struct zc_key *keys;
    size_t count, cap;
};

/* ZC_ENOMEM. */
ZC_MUST_CHECK int zc_hub_keys_add(struct zc_hub_keys *l, const struct zc_key *key);
bool zc_hub_keys_has(const struct zc_hub_keys *l, const struct zc_key *key);
/* Sorts it: from then on, and until the next key, zc_hub_keys_find does what zc_hub_keys_has
 * does. */
void zc_hub_keys_sort(struct zc_hub_keys *l);
bool zc_hub_keys_find(const struct zc_hub_keys *l, const struct zc_key *key);
/* Adds the keys of a file; ret_text, if not NULL, is the file's text, the caller's to free. Errors
 * of zc_secretfile_read, and ZC_EINVAL: a line is no key. why goes on behind the path ("line 3 is
 * no ..."); the list may have some keys then. */
ZC_MUST_CHECK int zc_hub_keys_read(struct zc_hub_keys *l, const char *path, struct zc_buf *ret_text,
                                   char ret_why[ZC_HUB_KEYS_WHY_MAX]);
void zc_hub_keys_done(struct zc_hub_keys *l);

#endif
