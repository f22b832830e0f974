/* Comparisons of borrowed bytes (declared in base/buf.h). */
#include "base/buf.h"

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
