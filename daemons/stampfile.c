/* The file of the ceiling of stamps; see stampfile.h. */
#include "stampfile.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "credential.h"
#include "host/clock.h"
#include "host/secretfile.h"
#include "identity.h"

#define SUFFIX ".stamp"
#define BYTES_MAX 4096 /* of a file that is damaged */
/* What a peer does that remembers later stamps. */
#define KEPT_OUT "the other end may give no answer for nine minutes"

static void say(const struct zc_stampfile *f, int level, const char *what, const char *more)
{
    char escaped[400];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(f->path));
    zc_logsink_line(f->log, level, "%s %s%s", escaped, what, more);
}

/* Beside the key file; a credential's directory is read-only, and gone with the process. */
static bool find_path(struct zc_stampfile *f, const char *key_path, const char *name)
{
    char credential[PATH_MAX], own[64];
    snprintf(own, sizeof(own), "%s" SUFFIX, name);
    if (zc_credential_path(&zc_credential_key, credential) && strcmp(credential, key_path) == 0 &&
        zc_identity_state_path(own, f->path))
        return true;
    int n = snprintf(f->path, sizeof(f->path), "%s" SUFFIX, key_path);
    if (n > 0 && (size_t)n < sizeof(f->path))
        return true;
    f->path[0] = '\0';
    return false;
}

static void store(struct zc_stampfile *f, struct zc_wall ceiling)
{
    char text[ZC_STAMPS_TEXT_MAX], why[ZC_SECRETFILE_WHY_MAX], line[ZC_SECRETFILE_WHY_MAX + 256];
    zc_stamps_encode(ceiling, text);
    if (zc_secretfile_write(f->path, zc_slice_str(text), why) == 0) {
        f->failed = false;
        f->stored = ceiling;
        return;
    }
    snprintf(line, sizeof(line),
             "%s: should the clock be set back before the next start, " KEPT_OUT
             ": let the daemon write there, or name a --key-file elsewhere",
             why);
    if (!f->failed)
        say(f, ZC_LOGSINK_WARNING, line, "");
    f->failed = true;
}

/* What the file holds; 0: nothing of use, and that was told. */
static struct zc_wall read_stored(struct zc_stampfile *f, bool fresh)
{
    char why[ZC_SECRETFILE_WHY_MAX];
    struct zc_buf text = {0};
    struct zc_wall stored = {0};
    int err = zc_secretfile_read(f->path, BYTES_MAX, &text, why);
    if (err == ZC_ENOENT && !fresh)
        say(f, ZC_LOGSINK_INFO, "does not exist yet: made",
            "; if the clock is behind, " KEPT_OUT ": check the clock");
    else if (err == 0 && !zc_stamps_decode(zc_slice(text.data, text.len), &stored))
        say(f, ZC_LOGSINK_WARNING, "is damaged: made anew",
            "; if the clock is behind, " KEPT_OUT ": check the clock");
    else if (err != 0 && err != ZC_ENOENT) {
        f->failed = true; /* what keeps it from being read keeps it from being written */
        say(f, ZC_LOGSINK_WARNING, why,
            ": if the clock is behind, " KEPT_OUT ": let the daemon read it, or remove it");
    }
    zc_secretfile_done(&text);
    return stored;
}

void zc_stampfile_open(struct zc_stampfile *f, struct zc_logsink *log, const char *key_path,
                       const char *name, bool fresh, struct zc_stamps_bounds *ret_bounds)
{
    *f = (struct zc_stampfile){.log = log};
    *ret_bounds = (struct zc_stamps_bounds){0};
    if (key_path[0] == '\0' || !find_path(f, key_path, name))
        return;
    switch (zc_stamps_begin(read_stored(f, fresh), zc_clock_now().wall, ret_bounds)) {
    case ZC_STAMPS_ABSURD:
        say(f, ZC_LOGSINK_WARNING,
            "is of a clock that was years ahead, and not followed: ", KEPT_OUT ": check the clock");
        break;
    case ZC_STAMPS_CLOCK_BEHIND:
        say(f, ZC_LOGSINK_WARNING, "is ahead of the clock, which was set back: handshakes go on ",
            "from there: check the clock");
        break;
    default:
        break;
    }
    store(f, ret_bounds->most);
}

void zc_stampfile_save(struct zc_stampfile *f, struct zc_tunnel *t, struct zc_wall most)
{
    store(f, most);
    /* Also when it failed: to stop here would keep us out for sure. */
    zc_tunnel_stamps_raise(t, most);
}

void zc_stampfile_close(struct zc_stampfile *f, const struct zc_tunnel *t)
{
    if (f->path[0] == '\0' || f->failed || t == NULL)
        return;
    struct zc_wall last = zc_tunnel_stamps(t).after;
    if (last.ms < f->stored.ms)
        store(f, last);
}
