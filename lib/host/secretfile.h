/*
 * Small files whose text is nobody else's business: a token, keys. Written whole or not at all with
 * mode 0600, read with a bound.
 */
#ifndef ZC_HOST_SECRETFILE_H
#define ZC_HOST_SECRETFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define ZC_SECRETFILE_WHY_MAX 256

/* Replaces path: temporary file, fsync, rename, fsync of the directory. The mode is 0600 whatever
 * the umask. why goes on behind the path ("cannot be written: ..."). */
ZC_MUST_CHECK int zc_secretfile_write(const char *path, struct zc_slice text,
                                      char ret_why[ZC_SECRETFILE_WHY_MAX]);
/* The same; replace false: ZC_EEXIST when path is there. */
ZC_MUST_CHECK int zc_secretfile_put(const char *path, struct zc_slice text, bool replace,
                                    char ret_why[ZC_SECRETFILE_WHY_MAX]);
/* Reads a regular file (or a pipe) of at most `most` bytes. ZC_ENOENT: there is none. The caller
 * wipes and frees ret_text. */
ZC_MUST_CHECK int zc_secretfile_read(const char *path, size_t most, struct zc_buf *ret_text,
                                     char ret_why[ZC_SECRETFILE_WHY_MAX]);
/* Wipes and frees. */
void zc_secretfile_done(struct zc_buf *text);

#endif
