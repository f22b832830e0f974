/* The directory of a log: making it, refusing others' directories, its lock, its segments. */
#ifndef ZC_HOST_DISK_DIR_H
#define ZC_HOST_DISK_DIR_H

#include <dirent.h>
#include <limits.h>
#include <stdint.h>

#include "base/err.h"
#include "host/why.h"

struct zc_disk_dir {
    int fd;
    int lock_fd;
    uint32_t *segments;
    uint32_t count;
};

/* As zc_disk_open. Fills ret_dir; zc_disk_dir_done gives all back. */
ZC_MUST_CHECK int zc_disk_dir_open(const char *path, struct zc_disk_dir *ret_dir,
                                   char ret_why[ZC_WHY_MAX]);
/* One more segment. 0 or ZC_ENOMEM. */
ZC_MUST_CHECK int zc_disk_dir_add(struct zc_disk_dir *dir, uint32_t number);
/* The names in an open directory, which stays open, from the first on; NULL with errno. */
DIR *zc_disk_dir_list(int fd);
/* path with `end` behind it, wherever slashes are. 0, or ZC_EINVAL: that is too long. */
ZC_MUST_CHECK int zc_disk_dir_beside(const char *path, const char *end, char ret_path[PATH_MAX]);
/* The directory that holds path is synced. One that may not be read is not, and that is no error.
 */
ZC_MUST_CHECK int zc_disk_dir_sync_parent(const char *path);
void zc_disk_dir_done(struct zc_disk_dir *dir);

#endif
