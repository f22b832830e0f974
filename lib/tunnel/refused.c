/* Keys that were refused; see refused.h. */
#include "tunnel/refused.h"

void zc_refused_init(struct zc_refused *r)
{
    *r = (struct zc_refused){0};
    zc_rate_init(&r->rate, ZC_REFUSED_LINE_MS, ZC_REFUSED_BURST);
}

/* The place of the key, or one for it. */
static uint32_t place(const struct zc_refused *r, const struct zc_key *key)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < r->len; i++) {
        if (zc_secret_key_equal(&r->at[i].key, key))
            return i;
        if (r->at[i].told_at.ns < r->at[oldest].told_at.ns)
            oldest = i;
    }
    return r->len < ZC_REFUSED_KEYS ? r->len : oldest;
}

void zc_refused_note(struct zc_refused *r, struct zc_mono now, const struct zc_key *key)
{
    uint32_t i = place(r, key);
    bool known = i < r->len && zc_secret_key_equal(&r->at[i].key, key);
    if (known && zc_mono_diff_ms(r->at[i].told_at, now) < ZC_REFUSED_EVERY_MS)
        return;
    if (!zc_rate_allow(&r->rate, now))
        return; /* it will knock again */
    r->len += i == r->len;
    r->at[i].key = *key;
    r->at[i].told_at = now;
    r->at[i].due = true;
}

bool zc_refused_next(struct zc_refused *r, struct zc_key *ret_key)
{
    for (uint32_t i = 0; i < r->len; i++) {
        if (!r->at[i].due)
            continue;
        r->at[i].due = false;
        *ret_key = r->at[i].key;
        return true;
    }
    return false;
}
