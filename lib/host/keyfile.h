/*
 * The identity of a hub or spoke in a file, in tailcat's own JSON form (mode 0600):
 *
 *   {"Private":"privkey:<hex>","Public":{"ServerPublic":"nodekey:<hex>",
 *     "ServerDiscoPublic":"discokey:<hex>"[,"PresharedKey":"psk:<hex>"]
 *     [,"Region":[{...one DERP region...}] | ,"RegionID":n]}}
 *
 * A hub's file has a region and most often a pre-shared key; a spoke's has neither. Public values
 * are computed from the private key; ones in the file that differ are a sign of a damaged file and
 * refused.
 *
 * Others who may read a key file must be taken to know its keys. So it is refused when it belongs
 * to somebody else than us or root (root itself may read anybody's), and when group or others may
 * read or write it. One exception: root's file of group root may be readable to its group, which is
 * how a credential looks that systemd opens to a service by an ACL. Modes 0600 and 0400 are fine.
 */
#ifndef ZC_HOST_KEYFILE_H
#define ZC_HOST_KEYFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "crypto/secret.h"
#include "tunnel/derpmap.h"

#define ZC_KEYFILE_BYTES_MAX 65536
#define ZC_KEYFILE_NODES_MAX 4
#define ZC_KEYFILE_WHY_MAX 256

enum zc_keyfile_region {
    ZC_KEYFILE_REGION_NONE, /* a spoke's */
    ZC_KEYFILE_REGION_ID,   /* region_id; -1: chosen at each start */
    ZC_KEYFILE_REGION_FULL, /* region and nodes */
};

/* Holds secrets: wipe with zc_keyfile_done. */
struct zc_keyfile {
    struct zc_secret private_key;
    struct zc_key node_key;
    struct zc_secret disco_private;
    struct zc_key disco_key;
    bool has_psk;
    struct zc_secret psk;
    enum zc_keyfile_region region_kind;
    int64_t region_id;
    struct zc_derpmap_region region;
    struct zc_derpmap_node nodes[ZC_KEYFILE_NODES_MAX];
};

enum zc_keyfile_role { ZC_KEYFILE_HUB, ZC_KEYFILE_SPOKE };

/* A fresh identity. A hub's gets a pre-shared key and region id -1. */
void zc_keyfile_generate(enum zc_keyfile_role role, struct zc_keyfile *ret_keys);
/* Recomputes the public values and disco keys from private_key. */
void zc_keyfile_derive(struct zc_keyfile *keys);
/* Reads a file. ZC_ENOENT: there is none. Others: why goes on behind the path ("is no key file:
 * ..."), one line; ret_keys is untouched. */
ZC_MUST_CHECK int zc_keyfile_load(const char *path, struct zc_keyfile *ret_keys,
                                  char ret_why[ZC_KEYFILE_WHY_MAX]);
/* Writes a file of mode 0600 whole or not at all: temporary file, fsync, rename, fsync of the
 * directory. replace false: ZC_EEXIST when it is there. */
ZC_MUST_CHECK int zc_keyfile_save(const char *path, const struct zc_keyfile *keys, bool replace,
                                  char ret_why[ZC_KEYFILE_WHY_MAX]);
/* Loads, or when there is no file generates and saves. ret_made: it was made. */
ZC_MUST_CHECK int zc_keyfile_open(const char *path, enum zc_keyfile_role role,
                                  struct zc_keyfile *ret_keys, bool *ret_made,
                                  char ret_why[ZC_KEYFILE_WHY_MAX]);
/* The file's text. 0 or ZC_ENOMEM. Wipe with zc_secretfile_done. */
ZC_MUST_CHECK int zc_keyfile_encode(const struct zc_keyfile *keys, struct zc_buf *ret_text);
/* The text of a file. */
ZC_MUST_CHECK int zc_keyfile_decode(struct zc_slice text, struct zc_keyfile *ret_keys,
                                    char ret_why[ZC_KEYFILE_WHY_MAX]);
void zc_keyfile_done(struct zc_keyfile *keys);

#endif
