/*
 * cJSON behind a strict layer, for documents that are read rarely and need a tree: relay maps and
 * key files. cJSON alone cuts strings at U+0000, keeps bad UTF-8, rounds big integers and takes the
 * first of two equal names; here such a document is refused. Names match without case, as the Go
 * programs that write these documents have it.
 */
#ifndef ZC_TUNNEL_JTREE_H
#define ZC_TUNNEL_JTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct cJSON;

/* Parses one object of at most values_max values. ZC_EBADMSG, ZC_ELIMIT or ZC_ENOMEM; ret_why gets
 * static text that says what is wrong. Free with zc_jtree_free. */
ZC_MUST_CHECK int zc_jtree_parse(struct zc_slice json, uint32_t values_max,
                                 struct cJSON **ret_object, const char **ret_why);
/* NULL is fine. `wipe`: it held secrets. */
void zc_jtree_free(struct cJSON *tree, bool wipe);

/*
 * Members of an object. Each returns true when the member is there with the right type, or is
 * absent or null (ret_ is then untouched), and false when its type or range is wrong.
 */
bool zc_jtree_member(const struct cJSON *object, const char *name, const struct cJSON **ret_value);
bool zc_jtree_text(const struct cJSON *object, const char *name, char *ret_text, size_t cap);
bool zc_jtree_int(const struct cJSON *object, const char *name, int64_t min, int64_t max,
                  int64_t *ret_value);
bool zc_jtree_bool(const struct cJSON *object, const char *name, bool *ret_value);

#endif
