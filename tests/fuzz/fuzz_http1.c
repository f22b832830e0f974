/*
 * Any bytes as the head of an HTTP response: whole and in pieces, with the same result.
 */
#include <string.h>

#include "base/check.h"
#include "tunnel/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct zc_http1 whole, parts;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Upgrade", "derp-public-key", "x", ""};
    struct zc_slice a, b;
    size_t piece = size > 0 ? data[size - 1] % 7u + 1 : 1, used = 0;
    memset(&whole, 0, sizeof(whole));
    memset(&parts, 0, sizeof(parts));
    size_t taken = zc_http1_input(&whole, data, size);
    ZC_ASSERT(taken <= size && whole.len <= ZC_HTTP1_HEAD_MAX);
    ZC_ASSERT(!(whole.complete && whole.error != NULL));
    ZC_ASSERT(taken == size || whole.complete || whole.error != NULL);
    while (used < size) {
        size_t n = zc_http1_input(&parts, data + used, size - used < piece ? size - used : piece);
        used += n;
        if (n == 0)
            break;
    }
    ZC_ASSERT(used == taken && parts.complete == whole.complete && parts.error == whole.error);
    if (!whole.complete)
        return 0;
    ZC_ASSERT(whole.status == parts.status && whole.status >= 100 && whole.status < 600);
    for (size_t i = 0; i < ZC_ARRAY_LEN(names); i++) {
        bool found = zc_http1_header(&whole, names[i], &a);
        ZC_ASSERT(found == zc_http1_header(&parts, names[i], &b));
        ZC_ASSERT(!found || zc_slice_eq(a, b));
    }
    return 0;
}
