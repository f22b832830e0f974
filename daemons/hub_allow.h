/*
 * Which spokes may come in: --allow and --allow-file together, without the keys that were revoked.
 * These are kept in a file of the same form, so that they stay out whatever the lists say.
 */
#ifndef ZC_DAEMONS_HUB_ALLOW_H
#define ZC_DAEMONS_HUB_ALLOW_H

#include <limits.h>

#include "hub_keys.h"
#include "hub_options.h"

#define ZC_HUB_ALLOW_WHY_MAX (ZC_HUB_KEYS_WHY_MAX + 512)

struct zc_hub_allow {
    const struct zc_hub_options *o;
    char path[PATH_MAX];        /* of the revoked keys; "": there is no place for them */
    struct zc_hub_keys allowed; /* as the options and the file say */
    struct zc_hub_keys stored;  /* revoked, in the file */
    struct zc_hub_keys unsaved; /* revoked, until this process ends */
    struct zc_hub_keys in;      /* what counts */
};

/* revoked_path may be "". Then zc_hub_allow_load. */
void zc_hub_allow_init(struct zc_hub_allow *a, const struct zc_hub_options *o,
                       const char *revoked_path);
/* There is a list: only those on it may come in. */
bool zc_hub_allow_on(const struct zc_hub_allow *a);
/* Reads the files anew. An error: nothing changed, and why says which file and line. */
ZC_MUST_CHECK int zc_hub_allow_load(struct zc_hub_allow *a, char ret_why[ZC_HUB_ALLOW_WHY_MAX]);
/* What is odd about the lists, or NULL. */
const char *zc_hub_allow_warning(const struct zc_hub_allow *a);
/* The key is out from here on, after an error other than ZC_ENOMEM too: it could not be stored
 * then, and why says why. *ret_stored false: there is no place for it. */
ZC_MUST_CHECK int zc_hub_allow_revoke(struct zc_hub_allow *a, const struct zc_key *key,
                                      bool *ret_stored, char ret_why[ZC_HUB_ALLOW_WHY_MAX]);
bool zc_hub_allow_is_revoked(const struct zc_hub_allow *a, const struct zc_key *key);
void zc_hub_allow_done(struct zc_hub_allow *a);

#endif
