/* Where the spoke's token comes from, and reading it. */
#ifndef ZC_DAEMONS_SPOKE_TOKEN_H
#define ZC_DAEMONS_SPOKE_TOKEN_H

#include <limits.h>
#include <stdbool.h>

#include "spoke_options.h"
#include "tunnel/token.h"

struct zc_spoke_token {
    bool file;            /* --token-file: may come late, is read again on SIGHUP */
    char path[PATH_MAX];  /* file or credential; "": the token stood on the command line */
    char shown[PATH_MAX]; /* what messages call it, escaped */
    char fingerprint[ZC_TOKEN_FINGERPRINT_MAX]; /* of the token that was read; "": none */
    struct zc_buf argument;                     /* the command line's token */
};

/* Chooses the source; a token on the command line is copied and wiped there. 0 or the exit code
 * after it said why. */
int zc_spoke_token_init(struct zc_spoke_token *t, const struct zc_spoke_options *o);
/* Reads it. ZC_ENOENT: it is not there; ZC_EINVAL: it cannot be used. why is one line without the
 * token's name or text. *ret_changed: it is another one than before. */
ZC_MUST_CHECK int zc_spoke_token_read(struct zc_spoke_token *t, struct zc_token *ret_token,
                                      bool *ret_changed, char ret_why[ZC_TOKEN_WHY_MAX + 64]);
void zc_spoke_token_done(struct zc_spoke_token *t);

#endif
