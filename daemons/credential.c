/* Credentials of the service manager; see credential.h. */
#include "credential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "host/secretfile.h"

#define MISSING "missing:"
#define FILE_MAX 65536 /* as large as any of them may be */

const struct zc_credential zc_credential_token = {
    .name = "token",
    .content = "what `zmqcat token` prints at the hub",
    .option = "tokenFile",
};
const struct zc_credential zc_credential_key = {
    .name = "key",
    .content = "the key file",
    .option = "keyFile",
};

bool zc_credential_path(const struct zc_credential *c, char ret_path[PATH_MAX])
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    if (dir == NULL || dir[0] == '\0')
        return false;
    int n = snprintf(ret_path, PATH_MAX, "%s/%s", dir, c->name);
    return n > 0 && n < PATH_MAX;
}

void zc_credential_say_missing(const struct zc_credential *c, const char *source,
                               struct zc_logsink *log)
{
    char escaped[400];
    bool known = source[0] != '\0';
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(source));
    zc_logsink_line(log, ZC_LOGSINK_ERR,
                    "credential %s: %s does not exist: put %s %s%s, or name another file "
                    "(LoadCredential= of the service; on NixOS %s)",
                    c->name, known ? escaped : "its file", c->content,
                    known ? "there" : "into /etc/credstore/", known ? "" : c->name, c->option);
}

bool zc_credential_missing(const struct zc_credential *c, const char *path, struct zc_logsink *log)
{
    char own[PATH_MAX], why[ZC_SECRETFILE_WHY_MAX], source[PATH_MAX];
    const size_t len = strlen(MISSING);
    struct zc_buf text = {0};
    if (!zc_credential_path(c, own) || strcmp(own, path) != 0 ||
        zc_secretfile_read(path, FILE_MAX, &text, why) != 0)
        return false;
    bool missing = text.len >= len && memcmp(text.data, MISSING, len) == 0;
    if (missing) {
        snprintf(source, sizeof(source), "%.*s", (int)(text.len - len), (char *)text.data + len);
        zc_credential_say_missing(c, source, log);
    }
    zc_secretfile_done(&text);
    return missing;
}
