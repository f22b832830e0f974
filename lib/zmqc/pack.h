/*
 * The stored form of a message (item.h), packed for a hub without a log: what the row knows (name,
 * at) and what is the same as in the first one of the chunk is left out. Lives in memory only.
 *
 *   u8 flags | lengths, 7 bits a byte, low first: id, the part of it that is shared, from, by (the
 *   two unless SAME), headers, their number, payload | rest of id | from | by | headers | payload
 */
#ifndef ZC_ZMQC_PACK_H
#define ZC_ZMQC_PACK_H

#include "base/buf.h"
#include "zmqc/item.h"

/* What the first one of a chunk has. */
struct zc_pack_like {
    struct zc_slice id, from, by;
};

/* Room that is enough for item. */
size_t zc_pack_size(const struct zc_item *item);
/* Appends item, which has no times but at_ms, to out, where that room is; *ret_strings is where its
 * id begins there, with from and by behind it, when nothing was shared. */
void zc_pack(struct zc_buf *out, const struct zc_item *item, const struct zc_pack_like *like,
             size_t *ret_strings);
/* The stored form again, made with what it was packed with; NULL when memory is refused. */
struct zc_block *zc_pack_open(const uint8_t *packed, const struct zc_pack_like *like,
                              struct zc_slice name, int64_t at_ms);

#endif
