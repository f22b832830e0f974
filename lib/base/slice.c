/* Comparisons of borrowed bytes (declared in base/buf.h). */
#include <string.h>

#include "base/buf.h"

struct zc_slice zc_slice_str(const char *s)
{
    return zc_slice(s, strlen(s));
}

bool zc_slice_eq(struct zc_slice a, struct zc_slice b)
{
    /* An empty slice may carry NULL, which memcmp must not see. */
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool zc_slice_is(struct zc_slice a, const char *s)
{
    return zc_slice_eq(a, zc_slice_str(s));
}

int zc_slice_cmp(struct zc_slice a, struct zc_slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool zc_slice_starts(struct zc_slice a, struct zc_slice prefix)
{
    return a.len >= prefix.len && zc_slice_eq(zc_slice(a.data, prefix.len), prefix);
}
