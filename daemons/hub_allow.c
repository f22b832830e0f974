/*
 * The allow list. A line is one `nodekey:HEX`; # begins a comment. A line that is anything else
 * stops the start: a list that means something else than its writer thinks is worse than none.
 */
#include "hub_allow.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "host/secretfile.h"

#define FILE_MAX (8u << 20)

struct list {
    struct zc_key *keys;
    size_t count, cap;
};

static bool add(struct list *l, const struct zc_key *key)
{
    if (l->count == l->cap) {
        size_t cap = l->cap > 0 ? 2 * l->cap : 16;
        struct zc_key *more = realloc(l->keys, cap * sizeof(*more));
        if (more == NULL)
            return false;
        l->keys = more;
        l->cap = cap;
    }
    l->keys[l->count++] = *key;
    return true;
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

static int refuse(const struct zc_hub_options *o, struct zc_logsink *log, size_t line,
                  const char *why)
{
    char escaped[400];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(o->allow_file));
    if (line > 0)
        zc_logsink_line(log, ZC_LOGSINK_ERR, "--allow-file %s: line %zu %s", escaped, line, why);
    else
        zc_logsink_line(log, ZC_LOGSINK_ERR, "--allow-file %s %s", escaped, why);
    return ZC_OPTIONS_CONFIG;
}

/* Adds the keys of a file's text. */
static int parse(const struct zc_hub_options *o, struct zc_logsink *log, struct zc_slice text,
                 struct list *l)
{
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
            return refuse(o, log, line, "is no nodekey: and 64 hex digits");
        if (!add(l, &key))
            return refuse(o, log, line, "does not fit: out of memory");
    }
    return 0;
}

static int load_file(const struct zc_hub_options *o, struct zc_logsink *log, struct list *l)
{
    char why[ZC_SECRETFILE_WHY_MAX];
    struct zc_buf text = {0};
    if (zc_secretfile_read(o->allow_file, FILE_MAX, &text, why) != 0)
        return refuse(o, log, 0, why);
    size_t before = l->count;
    int r = parse(o, log, zc_slice(text.data, text.len), l);
    if (r == 0 && l->count == before && o->allow_count == 0)
        zc_logsink_line(log, ZC_LOGSINK_WARNING,
                        "--allow-file: it names no key: no spoke can come in");
    zc_buf_done(&text);
    return r;
}

int zc_hub_allow_load(const struct zc_hub_options *o, struct zc_logsink *log,
                      struct zc_key **ret_keys, uint32_t *ret_count)
{
    struct list l = {0};
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < o->allow_count; i++)
        if (!add(&l, &o->allow[i])) {
            zc_logsink_line(log, ZC_LOGSINK_ERR, "--allow: out of memory");
            r = 1;
        }
    if (r == 0 && o->allow_file != NULL)
        r = load_file(o, log, &l);
    if (r != 0) {
        free(l.keys);
        return r;
    }
    *ret_keys = l.keys;
    *ret_count = (uint32_t)l.count;
    return 0;
}
