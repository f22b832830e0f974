/*
 * Credentials of the service manager, systemd.exec(5): files in $CREDENTIALS_DIRECTORY.
 *
 * systemd itself does not say which file of LoadCredential= it has not found. So a unit gives such
 * a credential a value for that case, `missing:` and the path that it names, or nothing behind the
 * colon (SetCredential=token:missing:/run/secrets/token), and the daemon says it. No token and no
 * key file begins like that.
 */
#ifndef ZC_DAEMONS_CREDENTIAL_H
#define ZC_DAEMONS_CREDENTIAL_H

#include <limits.h>
#include <stdbool.h>

#include "host/logsink.h"

struct zc_credential {
    const char *name;    /* in $CREDENTIALS_DIRECTORY */
    const char *content; /* what belongs into its file */
    const char *option;  /* of services.zmqcat on NixOS */
};

extern const struct zc_credential zc_credential_token, zc_credential_key;

/* The path of a credential; false: there are none here, or it is too long. */
bool zc_credential_path(const struct zc_credential *c, char ret_path[PATH_MAX]);
/* Whether path is that of the credential, and holds what stands for its absence: then it has told
 * so, with the file that was meant and the options to change. */
bool zc_credential_missing(const struct zc_credential *c, const char *path, struct zc_logsink *log);
/* Says that the credential is not there. source: the file that should be, "": unknown. */
void zc_credential_say_missing(const struct zc_credential *c, const char *source,
                               struct zc_logsink *log);

#endif
