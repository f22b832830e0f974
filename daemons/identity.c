/* Key files and paths of the daemons; see identity.h. */
#include "identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "credential.h"
#include "host/limits.h"

bool zc_identity_state_path(const char *name, char ret_path[PATH_MAX])
{
    const char *dir = getenv("STATE_DIRECTORY");
    if (dir == NULL || dir[0] != '/')
        return false;
    int n = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)strcspn(dir, ":"), dir, name);
    return n > 0 && n < PATH_MAX;
}

bool zc_identity_map_path(char ret_path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (zc_identity_state_path("derpmap.json", ret_path))
        return true;
    bool xdg = cache != NULL && cache[0] == '/';
    if (!xdg && (home == NULL || home[0] != '/'))
        return false;
    int n = snprintf(ret_path, PATH_MAX, "%s%s/zmqcat", xdg ? cache : home, xdg ? "" : "/.cache");
    if (n <= 0 || n > PATH_MAX - 20)
        return false;
    char *slash = strrchr(ret_path, '/');
    *slash = '\0';
    (void)!mkdir(ret_path, 0700);
    *slash = '/';
    if (mkdir(ret_path, 0700) < 0 && errno != EEXIST)
        return false;
    strcpy(ret_path + n, "/derpmap.json");
    return true;
}

int zc_identity_open(const struct zc_options *o, const char *name, enum zc_keyfile_role role,
                     struct zc_keyfile *ret_keys, char ret_path[PATH_MAX], bool *ret_made)
{
    char why[ZC_KEYFILE_WHY_MAX], escaped[400];
    *ret_made = false;
    ret_path[0] = '\0';
    if (zc_limits_keep_secrets() < 0) {
        zc_logsink_line(o->log, ZC_LOGSINK_ERR, "the cryptographic library cannot be started");
        return 1;
    }
    if (o->key_file != NULL && strlen(o->key_file) >= PATH_MAX)
        return zc_options_bad(o, "key-file", o->key_file, "the path is too long");
    if (o->key_file != NULL) {
        strcpy(ret_path, o->key_file);
    } else if (!zc_identity_state_path(name, ret_path)) {
        ret_path[0] = '\0';
        zc_keyfile_generate(role, ret_keys);
        *ret_made = true;
        return 0;
    }
    if (zc_credential_missing(&zc_credential_key, ret_path, o->log))
        return 1; /* one that is there later is met by starting again */
    int err = zc_keyfile_open(ret_path, role, ret_keys, ret_made, why);
    if (err != 0) {
        int code = zc_options_bad(o, "key-file", ret_path, why);
        bool passes = err == ZC_ENOSPC || err == ZC_EIO || err == ZC_ENOMEM || err == ZC_EMFILE;
        return passes ? 1 : code;
    }
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(ret_path));
    if (*ret_made)
        zc_logsink_line(o->log, ZC_LOGSINK_NOTICE, "key file %s: made", escaped);
    return 0;
}
