/* One disk request as system calls. Blocks; runs on a thread of the pool or on the loop. */
#ifndef ZC_HOST_DISK_IO_H
#define ZC_HOST_DISK_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/disk.h"

/* The zc_err of an errno. */
int zc_disk_io_err(int error);
/* Reads up to len bytes, less only at the end of the file. Their count, or negative. */
int64_t zc_disk_io_read(int fd, uint8_t *ret_data, size_t len, uint64_t offset);
/* Makes the entries of the open directory durable. */
ZC_MUST_CHECK int zc_disk_io_sync_dir(int dir_fd);
/*
 * Carries out op in the directory. *fd is the open segment or -1; it is opened when needed and
 * then belongs to the caller, also after a failure. *ret_written becomes true when all bytes of a
 * WRITE are written and only its sync is left. Returns what zc_disk_completion.result says.
 */
int64_t zc_disk_io_run(int dir_fd, const struct zc_disk_op *op, int *fd, atomic_bool *ret_written);
/* READ or INDEX_READ of bytes that are in memory already: their count, or ZC_EAGAIN. Waits for the
 * disk at most to open the file; *fd as above. */
int64_t zc_disk_io_read_now(int dir_fd, const struct zc_disk_op *op, int *fd);

#endif
