/* When to dial a relay, and which one; see derp_dial.h. */
#include "tunnel/derp_dial.h"

#include <string.h>

#define PAUSE_UNIT_MS 10
#define PAUSE_MAX_MS 5000
#define HURRIED_FAILURES 9 /* the pause after one more is a second */
#define STOOD_MS 10000     /* a connection that stood so long was a good one */
#define HOLD_MAX_MS 60000  /* a relay cannot send us away for longer */

/* "192.0.2.1" */
static bool dial_is_v4(const char *s)
{
    for (int group = 0; group < 4; group++) {
        unsigned v = 0, digits = 0;
        if (group > 0 && *s++ != '.')
            return false;
        const char *start = s;
        for (; *s >= '0' && *s <= '9' && digits < 4; digits++)
            v = v * 10 + (unsigned)(*s++ - '0');
        if (digits == 0 || digits > 3 || v > 255 || (digits > 1 && *start == '0'))
            return false;
    }
    return *s == '\0';
}

static unsigned dial_hex_len(const char *s)
{
    return (unsigned)strspn(s, "0123456789abcdefABCDEF");
}

/* RFC 4291 section 2.2, without a zone. */
static bool dial_is_v6(const char *s)
{
    unsigned groups = 0;
    bool gap = false;
    if (strchr(s, ':') == NULL)
        return false;
    if (s[0] == ':' && s[1] != ':')
        return false;
    while (*s != '\0') {
        if (s[0] == ':' && s[1] == ':') {
            if (gap)
                return false;
            gap = true;
            s += 2;
            if (*s == ':')
                return false;
            continue;
        }
        if (groups > 0 && *s == ':')
            s++;
        unsigned n = dial_hex_len(s);
        if (s[n] == '.')
            return dial_is_v4(s) && groups + 2 <= (gap ? 7u : 8u) && (gap || groups == 6);
        if (n == 0 || n > 4 || (s[n] != '\0' && s[n] != ':'))
            return false;
        groups++;
        s += n;
    }
    return gap ? groups <= 7 : groups == 8;
}

static struct zc_derp_dial_way dial_way(const struct zc_derpmap_node *n, bool v6)
{
    struct zc_derp_dial_way way = {0};
    const char *own = v6 ? n->ipv6 : n->ipv4;
    bool (*is_own)(const char *) = v6 ? dial_is_v6 : dial_is_v4;
    bool (*is_other)(const char *) = v6 ? dial_is_v4 : dial_is_v6;
    if (own[0] != '\0') {
        way.use = is_own(own);
        way.address = way.use ? own : NULL;
    } else if (!is_other(n->host)) {
        way.use = true;
        way.address = is_own(n->host) ? n->host : NULL;
    }
    return way;
}

static bool dial_usable(const struct zc_derpmap_node *n)
{
    return !n->stun_only && n->host[0] != '\0' && (dial_way(n, false).use || dial_way(n, true).use);
}

/* The first usable node from index i on; nodes_count: none. */
static uint32_t dial_usable_from(const struct zc_derp_dial *d, uint32_t i)
{
    while (i < d->nodes_count && !dial_usable(&d->nodes[i]))
        i++;
    return i;
}

void zc_derp_dial_init(struct zc_derp_dial *d, const struct zc_derpmap_node *nodes,
                       uint32_t nodes_count, struct zc_mono now)
{
    *d = (struct zc_derp_dial){.nodes = nodes, .nodes_count = nodes_count, .at = now};
    d->node = dial_usable_from(d, 0);
    if (d->node == nodes_count)
        d->at = ZC_NEVER;
}

struct zc_mono zc_derp_dial_deadline(const struct zc_derp_dial *d)
{
    return d->state == ZC_DERP_DIAL_IDLE ? d->at : ZC_NEVER;
}

bool zc_derp_dial_next(struct zc_derp_dial *d, struct zc_mono now, struct zc_derp_dial_try *ret_try)
{
    if (d->state != ZC_DERP_DIAL_IDLE || d->at.ns == ZC_NEVER.ns || now.ns < d->at.ns)
        return false;
    const struct zc_derpmap_node *n = &d->nodes[d->node];
    struct zc_derp_dial_try t = {n, dial_way(n, false), dial_way(n, true)};
    if (d->v6_works && t.v6.use)
        t.v4.delay_ms = ZC_DERP_DIAL_STAGGER_MS;
    d->state = ZC_DERP_DIAL_DIALLING;
    d->began_at = now;
    d->hold = false;
    *ret_try = t;
    return true;
}

void zc_derp_dial_up(struct zc_derp_dial *d, struct zc_mono now, bool v6)
{
    if (d->state != ZC_DERP_DIAL_DIALLING)
        return;
    d->state = ZC_DERP_DIAL_UP;
    d->up_at = now;
    d->v6_works = v6;
}

/* When the next round of dials begins. The pause counts from the start of the last dial, so that
 * one that took long is not followed by a long pause. */
static struct zc_mono dial_pause(struct zc_derp_dial *d, struct zc_mono now, struct zc_rng *rng)
{
    int64_t n = d->failures < 100 ? d->failures : 100;
    int64_t ms = n * n * PAUSE_UNIT_MS;
    if (ms > PAUSE_MAX_MS)
        ms = PAUSE_MAX_MS;
    int64_t us = ms * 500 + (int64_t)(zc_rng_u64(rng) % (uint64_t)(ms * 1000 + 1));
    struct zc_mono from = d->state == ZC_DERP_DIAL_DIALLING ? d->began_at : now;
    int64_t at_ns = from.ns + us * 1000;
    return (struct zc_mono){at_ns > now.ns ? at_ns : now.ns};
}

void zc_derp_dial_failed(struct zc_derp_dial *d, struct zc_mono now, struct zc_rng *rng)
{
    uint32_t next = d->nodes_count;
    if (d->state == ZC_DERP_DIAL_IDLE)
        return;
    if (d->state == ZC_DERP_DIAL_DIALLING)
        next = dial_usable_from(d, d->node + 1);
    else if (zc_mono_diff_ms(d->up_at, now) >= STOOD_MS)
        d->failures = 0;
    struct zc_mono at = now;
    if (next == d->nodes_count) {
        next = dial_usable_from(d, 0);
        d->failures += d->failures < UINT32_MAX;
        at = dial_pause(d, now, rng);
    }
    d->state = ZC_DERP_DIAL_IDLE;
    d->node = next;
    if (!d->hold || at.ns > d->at.ns)
        d->at = at;
}

void zc_derp_dial_restarting(struct zc_derp_dial *d, struct zc_mono now, uint32_t in_ms)
{
    if (d->state == ZC_DERP_DIAL_IDLE)
        return;
    d->hold = true;
    d->at = zc_mono_add_ms(now, in_ms < HOLD_MAX_MS ? in_ms : HOLD_MAX_MS);
}

static void dial_at(struct zc_derp_dial *d, struct zc_mono at, uint32_t failures_max)
{
    if (d->failures > failures_max)
        d->failures = failures_max;
    if (d->state == ZC_DERP_DIAL_IDLE && !d->hold && d->at.ns != ZC_NEVER.ns)
        d->at = at;
}

void zc_derp_dial_hurry(struct zc_derp_dial *d, struct zc_mono now)
{
    dial_at(d, now, HURRIED_FAILURES);
}

void zc_derp_dial_soon(struct zc_derp_dial *d, struct zc_mono now, struct zc_rng *rng,
                       uint32_t spread_ms)
{
    dial_at(d, zc_mono_add_ms(now, (int64_t)(zc_rng_u64(rng) % spread_ms)), 0);
}
