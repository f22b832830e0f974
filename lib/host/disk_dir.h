/* The directory of a log: making it, refusing others' directories, its lock, its segments. */
#ifndef ZC_HOST_DISK_DIR_H
#define ZC_HOST_DISK_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct zc_disk_dir {
    int fd;
    int lock_fd;
    uint32_t *segments;
    uint32_t count;
};

/* As zc_disk_open. Fills ret_dir; zc_disk_dir_done gives all back. */
ZC_MUST_CHECK int zc_disk_dir_open(const char *path, struct zc_disk_dir *ret_dir, char *ret_why,
                                   size_t why_cap);
void zc_disk_dir_done(struct zc_disk_dir *dir);

#endif
