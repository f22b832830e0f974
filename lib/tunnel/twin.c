/* Signs that two processes use one key; see twin.h. */
#include "tunnel/twin.h"

bool zc_twin_sign(struct zc_twin *t, struct zc_now now)
{
    int64_t since_ms = t->signs > 0 ? zc_mono_diff_ms(t->last, now.mono) : ZC_TWIN_OVER_MS;
    if (since_ms < ZC_TWIN_APART_MS)
        return false;
    if (since_ms >= ZC_TWIN_OVER_MS)
        t->told = false;
    if (t->signs == 0 || zc_mono_diff_ms(t->first, now.mono) >= ZC_TWIN_FOR_MS) {
        t->signs = 0;
        t->first = now.mono;
    }
    t->last = now.mono;
    t->signs++;
    if (t->told || t->signs < ZC_TWIN_SIGNS)
        return false;
    t->told = true;
    return true;
}
