/*
 * The mailbox file of the Go zmqcat becomes a log, once, when a hub starts with its path:
 *
 *   PATH.new is built and synced -> PATH becomes PATH.imported -> PATH.new becomes PATH
 *
 * A start that was cut short goes on where the names say: PATH is a file: from the beginning; there
 * is none, but PATH.imported and a PATH.new that says it is whole: with the last step. A file that
 * cannot be understood stays as it is, and nothing else is left.
 */
#ifndef ZC_HOST_IMPORT_H
#define ZC_HOST_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/why.h"

struct zc_rebuild;

/* Looks at path and imports when it is a file. *ret_count: messages, or -1 when nothing was to be
 * done (a directory, or nothing). 0, or an error with ret_why (without the path): ZC_EBADMSG: it is
 * no such file; ZC_EEXIST: something is in the way; ZC_EBUSY: another one is at it. Blocks. */
ZC_MUST_CHECK int zc_import_start(const char *path, uint64_t segment_bytes, int64_t *ret_count,
                                  char ret_why[ZC_WHY_MAX]);
/* Appends the messages of such a file, which is in data and is changed. Likewise. */
ZC_MUST_CHECK int zc_import_messages(struct zc_rebuild *r, uint8_t *data, size_t len,
                                     int64_t *ret_count, char ret_why[ZC_WHY_MAX]);

#endif
