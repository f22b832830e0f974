/*
 * What hub and spoke do alike about the tunnel: the key file, and where files lie.
 */
#ifndef ZC_DAEMONS_IDENTITY_H
#define ZC_DAEMONS_IDENTITY_H

#include <limits.h>

#include "host/keyfile.h"
#include "options.h"

/* NAME in $STATE_DIRECTORY (the first one of its list); false: there is none, or it is too long. */
bool zc_identity_state_path(const char *name, char ret_path[PATH_MAX]);
/* Where the copy of the DERP map lies: in the state directory, else in the user's cache, whose
 * directory is made. False: nowhere. */
bool zc_identity_map_path(char ret_path[PATH_MAX]);
/* Loads or makes the keys: --key-file, else `name` in the state directory, else fresh ones for this
 * run. ret_path is "" then. 0 or the exit code after it said why. ret_made: they are fresh. */
int zc_identity_open(const struct zc_options *o, const char *name, enum zc_keyfile_role role,
                     struct zc_keyfile *ret_keys, char ret_path[PATH_MAX], bool *ret_made);

#endif
