/* The allow list, and the keys that were revoked; see hub_allow.h. */
#include "hub_allow.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "host/secretfile.h"

void zc_hub_allow_init(struct zc_hub_allow *a, const struct zc_hub_options *o,
                       const char *revoked_path)
{
    *a = (struct zc_hub_allow){.o = o};
    snprintf(a->path, sizeof(a->path), "%s", revoked_path);
}

bool zc_hub_allow_on(const struct zc_hub_allow *a)
{
    return a->o->allow_count > 0 || a->o->allow_file != NULL;
}

bool zc_hub_allow_is_revoked(const struct zc_hub_allow *a, const struct zc_key *key)
{
    return zc_hub_keys_find(&a->stored, key) || zc_hub_keys_has(&a->unsaved, key);
}

static int refuse(char ret_why[ZC_HUB_ALLOW_WHY_MAX], int err, const char *what, const char *path,
                  const char *why)
{
    char escaped[400];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(path));
    snprintf(ret_why, ZC_HUB_ALLOW_WHY_MAX, "%s %s: %s", what, escaped, why);
    return err;
}

static int no_memory(char ret_why[ZC_HUB_ALLOW_WHY_MAX])
{
    snprintf(ret_why, ZC_HUB_ALLOW_WHY_MAX, "--allow: out of memory");
    return ZC_ENOMEM;
}

/* ---- reading ---- */

static int read_allowed(const struct zc_hub_options *o, struct zc_hub_keys *l,
                        char ret_why[ZC_HUB_ALLOW_WHY_MAX])
{
    char why[ZC_HUB_KEYS_WHY_MAX];
    for (uint32_t i = 0; i < o->allow_count; i++)
        if (zc_hub_keys_add(l, &o->allow[i]) != 0)
            return no_memory(ret_why);
    int err = o->allow_file != NULL ? zc_hub_keys_read(l, o->allow_file, NULL, why) : 0;
    return err == 0 ? 0 : refuse(ret_why, err, "--allow-file", o->allow_file, why);
}

/* A file that is not there holds no key. */
static int read_revoked(const struct zc_hub_allow *a, struct zc_hub_keys *l, struct zc_buf *text,
                        char ret_why[ZC_HUB_ALLOW_WHY_MAX])
{
    char why[ZC_HUB_KEYS_WHY_MAX];
    int err = a->path[0] != '\0' ? zc_hub_keys_read(l, a->path, text, why) : 0;
    return err == 0 || err == ZC_ENOENT ? 0 : refuse(ret_why, err, "revoked keys", a->path, why);
}

/* What counts: the allowed keys without those of stored and unsaved. */
static int build(struct zc_hub_allow *a)
{
    struct zc_hub_keys in = {0};
    for (size_t i = 0; i < a->allowed.count; i++) {
        if (zc_hub_allow_is_revoked(a, &a->allowed.keys[i]))
            continue;
        if (zc_hub_keys_add(&in, &a->allowed.keys[i]) != 0) {
            zc_hub_keys_done(&in);
            return ZC_ENOMEM;
        }
    }
    zc_hub_keys_done(&a->in);
    a->in = in;
    return 0;
}

int zc_hub_allow_load(struct zc_hub_allow *a, char ret_why[ZC_HUB_ALLOW_WHY_MAX])
{
    struct zc_hub_allow next = *a;
    next.allowed = next.stored = next.in = (struct zc_hub_keys){0};
    int err = read_allowed(a->o, &next.allowed, ret_why);
    if (err == 0)
        err = read_revoked(a, &next.stored, NULL, ret_why);
    zc_hub_keys_sort(&next.stored);
    if (err == 0 && build(&next) != 0)
        err = no_memory(ret_why);
    struct zc_hub_allow *old = err == 0 ? a : &next;
    zc_hub_keys_done(&old->allowed);
    zc_hub_keys_done(&old->stored);
    zc_hub_keys_done(&old->in);
    if (err == 0)
        *a = next;
    return err;
}

const char *zc_hub_allow_warning(const struct zc_hub_allow *a)
{
    if (zc_hub_allow_on(a))
        return a->in.count == 0 ? "--allow, --allow-file: no key is allowed: no spoke can come in"
                                : NULL;
    return a->stored.count > 0 ? "keys were revoked, but no list of allowed keys is on: whoever "
                                 "has the token can come in: add --allow-file"
                               : NULL;
}

/* ---- revoking ---- */

/* Adds what is not in the file to its text. */
static int add_lines(struct zc_hub_allow *a, struct zc_hub_keys *stored, struct zc_buf *text)
{
    char line[ZC_SECRET_TEXT_MAX + 1];
    int err = text->len > 0 && text->data[text->len - 1] != '\n' ? zc_buf_append(text, "\n", 1) : 0;
    for (size_t i = 0; err == 0 && i < a->unsaved.count; i++) {
        const struct zc_key *key = &a->unsaved.keys[i];
        if (zc_hub_keys_has(stored, key))
            continue;
        zc_secret_encode(ZC_SECRET_NODE_KEY, key->b, line);
        strcat(line, "\n");
        err = zc_buf_append(text, line, strlen(line));
        if (err == 0)
            err = zc_hub_keys_add(stored, key);
    }
    return err;
}

/* Writes the revoked keys. */
static int save(struct zc_hub_allow *a, char ret_why[ZC_HUB_ALLOW_WHY_MAX])
{
    char why[ZC_SECRETFILE_WHY_MAX] = "out of memory";
    struct zc_hub_keys stored = {0};
    struct zc_buf text = {0};
    int err = read_revoked(a, &stored, &text, ret_why);
    if (err == 0) {
        err = add_lines(a, &stored, &text);
        if (err == 0 && text.len > ZC_HUB_KEYS_FILE_MAX) {
            snprintf(why, sizeof(why), "it is full");
            err = ZC_ENOSPC;
        }
        if (err == 0)
            err = zc_secretfile_write(a->path, zc_slice(text.data, text.len), why);
        if (err != 0)
            refuse(ret_why, err, "revoked keys", a->path, why);
    }
    zc_buf_done(&text);
    struct zc_hub_keys *old = err == 0 ? &a->stored : &stored;
    zc_hub_keys_done(old);
    if (err == 0) {
        zc_hub_keys_done(&a->unsaved);
        a->stored = stored;
        zc_hub_keys_sort(&a->stored);
    }
    return err;
}

int zc_hub_allow_revoke(struct zc_hub_allow *a, const struct zc_key *key, bool *ret_stored,
                        char ret_why[ZC_HUB_ALLOW_WHY_MAX])
{
    if (!zc_hub_keys_has(&a->unsaved, key) && zc_hub_keys_add(&a->unsaved, key) != 0)
        return no_memory(ret_why);
    *ret_stored = a->path[0] != '\0';
    int err = *ret_stored ? save(a, ret_why) : 0;
    return build(a) != 0 ? no_memory(ret_why) : err;
}

void zc_hub_allow_done(struct zc_hub_allow *a)
{
    zc_hub_keys_done(&a->allowed);
    zc_hub_keys_done(&a->stored);
    zc_hub_keys_done(&a->unsaved);
    zc_hub_keys_done(&a->in);
}
