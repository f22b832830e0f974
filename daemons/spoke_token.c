/* The spoke's token; see spoke_token.h. */
#include "spoke_token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "credential.h"
#include "host/secretfile.h"
#include "start.h"

/* White space around a token is fine, a file of another kind is not read whole. */
#define FILE_MAX 16384

/* Others may know what they can read. */
static void warn_if_open(const struct zc_spoke_token *t, struct zc_logsink *log)
{
    struct stat st;
    if (stat(t->path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH) != 0)
        zc_logsink_line(log, ZC_LOGSINK_WARNING,
                        "%s: everybody on this host can read it: chmod 600 it, and `zmqcat "
                        "rotate` at the hub if somebody did",
                        t->shown);
}

static int take_argument(struct zc_spoke_token *t, const struct zc_spoke_options *o)
{
    const char *text = o->shared.argument;
    size_t len = strlen(text);
    strcpy(t->shown, "the token on the command line");
    zc_logsink_line(o->shared.log, ZC_LOGSINK_WARNING,
                    "the token stands on the command line, where others on this host can read it: "
                    "use --token-file");
    if (zc_buf_append(&t->argument, text, len) != 0)
        return zc_start_no_memory(o->shared.log);
    /* From here on the list of processes does not show it. */
    memset((char *)(uintptr_t)text, 'x', len);
    return 0;
}

int zc_spoke_token_init(struct zc_spoke_token *t, const struct zc_spoke_options *o)
{
    char escaped[PATH_MAX - 32];
    *t = (struct zc_spoke_token){0};
    if (o->shared.argument != NULL)
        return take_argument(t, o);
    if (o->token_file == NULL && !zc_credential_path(&zc_credential_token, t->path)) {
        zc_logsink_line(o->shared.log, ZC_LOGSINK_ERR,
                        "no token: give --token-file FILE with what `zmqcat token` prints at the "
                        "hub, or the credential `token`");
        return ZC_OPTIONS_CONFIG;
    }
    t->file = o->token_file != NULL;
    if (!t->file) {
        strcpy(t->shown, "credential token (LoadCredential= of the service; on NixOS tokenFile)");
        return 0;
    }
    if (strlen(o->token_file) >= sizeof(t->path))
        return zc_options_bad(&o->shared, "token-file", o->token_file, "the path is too long");
    strcpy(t->path, o->token_file);
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(t->path));
    snprintf(t->shown, sizeof(t->shown), "--token-file \"%s\"", escaped);
    warn_if_open(t, o->shared.log);
    return 0;
}

/* The text of a token, decoded. */
static int decode(struct zc_spoke_token *t, struct zc_slice file, struct zc_token *ret_token,
                  bool *ret_changed, char *ret_why)
{
    struct zc_slice text;
    char fingerprint[ZC_TOKEN_FINGERPRINT_MAX];
    int err = zc_token_line(file, &text, ret_why);
    if (err == 0)
        err = zc_token_decode(text, ret_token, ret_why);
    if (err != 0)
        return ZC_EINVAL;
    if (zc_token_joinable(ret_token, ret_why) != 0) {
        zc_token_done(ret_token);
        return ZC_EINVAL;
    }
    zc_token_fingerprint(text, fingerprint);
    *ret_changed = strcmp(fingerprint, t->fingerprint) != 0;
    strcpy(t->fingerprint, fingerprint);
    return 0;
}

int zc_spoke_token_read(struct zc_spoke_token *t, struct zc_token *ret_token, bool *ret_changed,
                        char ret_why[ZC_TOKEN_WHY_MAX + 64])
{
    struct zc_buf text = {0};
    char why[ZC_SECRETFILE_WHY_MAX];
    if (t->path[0] == '\0')
        return decode(t, zc_slice(t->argument.data, t->argument.len), ret_token, ret_changed,
                      ret_why);
    int err = zc_secretfile_read(t->path, FILE_MAX, &text, why);
    if (err != 0) {
        snprintf(ret_why, ZC_TOKEN_WHY_MAX + 64, "%.240s", why);
        return err;
    }
    err = decode(t, zc_slice(text.data, text.len), ret_token, ret_changed, ret_why);
    zc_secretfile_done(&text);
    return err;
}

void zc_spoke_token_done(struct zc_spoke_token *t)
{
    zc_secretfile_done(&t->argument);
}
