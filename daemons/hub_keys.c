/*
 * Lists of node keys; see hub_keys.h. A line of a file that is anything else is an error: a list
 * that means something else than its writer thinks is worse than none.
 */
#include "hub_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/secretfile.h"

int zc_hub_keys_add(struct zc_hub_keys *l, const struct zc_key *key)
{
    if (l->count == l->cap) {
        size_t cap = l->cap > 0 ? 2 * l->cap : 16;
        struct zc_key *more = realloc(l->keys, cap * sizeof(*more));
        if (more == NULL)
            return ZC_ENOMEM;
        l->keys = more;
        l->cap = cap;
    }
    l->keys[l->count++] = *key;
    return 0;
}

bool zc_hub_keys_has(const struct zc_hub_keys *l, const struct zc_key *key)
{
    for (size_t i = 0; i < l->count; i++)
        if (zc_secret_key_equal(&l->keys[i], key))
            return true;
    return false;
}

static int key_cmp(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct zc_key));
}

void zc_hub_keys_sort(struct zc_hub_keys *l)
{
    if (l->count > 0)
        qsort(l->keys, l->count, sizeof(*l->keys), key_cmp);
}

bool zc_hub_keys_find(const struct zc_hub_keys *l, const struct zc_key *key)
{
    return l->count > 0 && bsearch(key, l->keys, l->count, sizeof(*l->keys), key_cmp) != NULL;
}

static struct zc_slice trim(struct zc_slice s)
{
    const uint8_t *hash = s.len > 0 ? memchr(s.data, '#', s.len) : NULL;
    if (hash != NULL)
        s.len = (size_t)(hash - s.data);
    while (s.len > 0 &&
           (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t' || s.data[s.len - 1] == '\r'))
        s.len--;
    while (s.len > 0 && (*s.data == ' ' || *s.data == '\t')) {
        s.data++;
        s.len--;
    }
    return s;
}

static int refuse(int err, size_t line, const char *what, char ret_why[ZC_HUB_KEYS_WHY_MAX])
{
    snprintf(ret_why, ZC_HUB_KEYS_WHY_MAX, "line %zu %s", line, what);
    return err;
}

/* Adds the keys of a file's text. */
static int parse(struct zc_hub_keys *l, struct zc_slice text, char ret_why[ZC_HUB_KEYS_WHY_MAX])
{
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) /* some editors' */
        text = zc_slice(text.data + 3, text.len - 3);
    for (size_t line = 1; text.len > 0; line++) {
        const uint8_t *end = memchr(text.data, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.data) : text.len;
        struct zc_slice entry = trim(zc_slice(text.data, len));
        struct zc_key key;
        size_t used = end != NULL ? len + 1 : len;
        text = zc_slice(text.data + used, text.len - used);
        if (entry.len == 0)
            continue;
        if (zc_secret_parse(ZC_SECRET_NODE_KEY, entry, key.b) < 0)
            return refuse(ZC_EINVAL, line, "is no nodekey: and 64 hex digits", ret_why);
        if (zc_hub_keys_add(l, &key) != 0)
            return refuse(ZC_ENOMEM, line, "does not fit: out of memory", ret_why);
    }
    return 0;
}

int zc_hub_keys_read(struct zc_hub_keys *l, const char *path, struct zc_buf *ret_text,
                     char ret_why[ZC_HUB_KEYS_WHY_MAX])
{
    char why[ZC_SECRETFILE_WHY_MAX];
    struct zc_buf text = {0};
    int err = zc_secretfile_read(path, ZC_HUB_KEYS_FILE_MAX, &text, why);
    if (err != 0) {
        snprintf(ret_why, ZC_HUB_KEYS_WHY_MAX, "%s", why);
        return err;
    }
    err = parse(l, zc_slice(text.data, text.len), ret_why);
    if (err == 0 && ret_text != NULL)
        *ret_text = text;
    else
        zc_buf_done(&text);
    return err;
}

void zc_hub_keys_done(struct zc_hub_keys *l)
{
    free(l->keys);
    *l = (struct zc_hub_keys){0};
}
