/*
 * Token bucket as one instant: the bucket is full at full_at, and each token taken moves that
 * instant one interval on. No timer and no rounding: tokens that are not there yet are time still
 * to pass.
 */
#include "base/rate.h"

void zc_rate_init(struct zc_rate *r, int64_t interval_ms, int64_t burst)
{
    *r = (struct zc_rate){.interval_ms = interval_ms, .burst = burst};
}

bool zc_rate_allow(struct zc_rate *r, struct zc_mono now)
{
    struct zc_mono full_at = r->full_at.ns > now.ns ? r->full_at : now;
    full_at = zc_mono_add_ms(full_at, r->interval_ms);
    /* One token each interval between now and full_at is missing; burst of them may be. */
    int64_t window_ms;
    if (r->burst <= 0 || __builtin_mul_overflow(r->interval_ms, r->burst, &window_ms))
        window_ms = r->burst <= 0 ? -1 : INT64_MAX;
    if (window_ms < 0 || full_at.ns > zc_mono_add_ms(now, window_ms).ns) {
        r->suppressed++;
        return false;
    }
    r->full_at = full_at;
    r->suppressed = 0;
    return true;
}
