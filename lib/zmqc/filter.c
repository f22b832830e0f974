/* Filters over `from`, see filter.h. */
#include "zmqc/filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* While it is read: the allowed grow from the front, the excluded are a list of their own. */
struct lists {
    uint64_t allow[ZC_FILTER_NAMES_MAX], deny[ZC_FILTER_NAMES_MAX];
    uint32_t allow_n, deny_n;
};

uint64_t zc_filter_hash(const uint8_t key[16], struct zc_slice name)
{
    return zc_map_hash(key, name);
}

static struct zc_slice trim(struct zc_slice s)
{
    static const char blank[] = " \t\r\n";
    while (s.len > 0 && memchr(blank, s.data[0], 4) != NULL)
        s = zc_slice(s.data + 1, s.len - 1);
    while (s.len > 0 && memchr(blank, s.data[s.len - 1], 4) != NULL)
        s.len--;
    return s;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts, and drops what stands twice. */
static uint32_t tidy(uint64_t *names, uint32_t n)
{
    uint32_t kept = 0;
    qsort(names, n, sizeof(*names), by_value);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || names[kept - 1] != names[i])
            names[kept++] = names[i];
    }
    return kept;
}

/* One entry of the list; false: too many names. */
static bool read_entry(struct lists *l, const uint8_t key[16], struct zc_slice entry,
                       struct zc_slice self)
{
    bool deny = entry.data[0] == '!';
    struct zc_slice name = deny ? trim(zc_slice(entry.data + 1, entry.len - 1)) : entry;
    if (zc_slice_is(entry, "*")) {
        l->allow_n = l->deny_n = 0;
        return true;
    }
    if (deny && name.len == 0) {
        l->deny_n = 0;
        return true;
    }
    if (zc_slice_is(name, ".") || zc_slice_is(name, "~"))
        name = self;
    if (l->allow_n + l->deny_n >= ZC_FILTER_NAMES_MAX)
        return false;
    uint64_t hash = zc_filter_hash(key, name);
    if (deny) {
        l->deny[l->deny_n++] = hash;
        return true;
    }
    l->allow[l->allow_n++] = hash;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->deny_n; i++) {
        if (l->deny[i] != hash)
            l->deny[kept++] = l->deny[i];
    }
    l->deny_n = kept;
    return true;
}

int zc_filter_new(const uint8_t key[16], struct zc_slice text, struct zc_slice self,
                  struct zc_filter **ret_filter)
{
    struct lists l;
    l.allow_n = l.deny_n = 0;
    while (text.len > 0) {
        const uint8_t *comma = memchr(text.data, ',', text.len);
        size_t len = comma != NULL ? (size_t)(comma - text.data) : text.len;
        struct zc_slice entry = trim(zc_slice(text.data, len));
        if (entry.len > 0 && !read_entry(&l, key, entry, self))
            return ZC_EINVAL;
        len += comma != NULL;
        text = zc_slice(text.data + len, text.len - len);
    }
    l.allow_n = tidy(l.allow, l.allow_n);
    l.deny_n = tidy(l.deny, l.deny_n);
    *ret_filter = NULL;
    if (l.allow_n + l.deny_n == 0)
        return 0;
    struct zc_filter *f = malloc(sizeof(*f) + (l.allow_n + l.deny_n) * sizeof(f->names[0]));
    if (f == NULL)
        return ZC_ENOMEM;
    f->allow = l.allow_n;
    f->deny = l.deny_n;
    memcpy(f->names, l.allow, l.allow_n * sizeof(f->names[0]));
    memcpy(f->names + l.allow_n, l.deny, l.deny_n * sizeof(f->names[0]));
    *ret_filter = f;
    return 0;
}

static bool has(const uint64_t *names, uint32_t n, uint64_t name)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (names[mid] == name)
            return true;
        if (names[mid] < name)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

bool zc_filter_allows(const struct zc_filter *f, uint64_t from)
{
    if (f == NULL)
        return true;
    if (has(f->names + f->allow, f->deny, from))
        return false;
    return f->allow == 0 || has(f->names, f->allow, from);
}

bool zc_filter_equal(const struct zc_filter *a, const struct zc_filter *b)
{
    return a->allow == b->allow && a->deny == b->deny &&
           memcmp(a->names, b->names, (a->allow + a->deny) * sizeof(a->names[0])) == 0;
}
