/* Stamps of initiations within stored bounds; see stamps.h. */
#include "tunnel/stamps.h"

#include <stdio.h>
#include <string.h>

#define YEAR_MS (INT64_C(31557600) * 1000)
/* A ceiling so far ahead is of a clock that was wrong, or of a damaged file. To follow it would
 * bind all stamps to that time for good. Not to follow it costs little: peers that saw such stamps
 * forget them within nine minutes. */
#define ABSURD_MS (10 * YEAR_MS)
/* 2026-01-01. A machine without a battery for its clock starts in 1970, which says nothing about
 * what is stored. */
#define NOT_BEFORE_MS INT64_C(1767225600000)
#define MAX_MS INT64_C(253402300799000) /* the end of the year 9999 */
#define TAI_EPOCH UINT64_C(0x400000000000000a)
#define LABEL_LEN 25 /* '@', 16 digits of seconds, 8 of nanoseconds */

static struct zc_wall sane(struct zc_wall t)
{
    t.ms = t.ms < 0 ? 0 : t.ms > MAX_MS ? MAX_MS : t.ms;
    return t;
}

/* The ceiling for a clock, and for stamps that go up to `made`. */
static struct zc_wall ceiling(struct zc_wall clock, struct zc_wall made)
{
    int64_t by_clock = sane(clock).ms + ZC_STAMPS_AHEAD_MS;
    int64_t by_made = made.ms + ZC_STAMPS_BEHIND_MS;
    return (struct zc_wall){by_clock > by_made ? by_clock : by_made};
}

enum zc_stamps_verdict zc_stamps_begin(struct zc_wall stored, struct zc_wall clock,
                                       struct zc_stamps_bounds *ret_bounds)
{
    enum zc_stamps_verdict verdict = ZC_STAMPS_FINE;
    int64_t clock_ms = sane(clock).ms;
    stored = sane(stored);
    if (stored.ms > (clock_ms > NOT_BEFORE_MS ? clock_ms : NOT_BEFORE_MS) + ABSURD_MS) {
        verdict = ZC_STAMPS_ABSURD;
        stored.ms = 0;
    } else if (stored.ms > clock_ms + ZC_STAMPS_AHEAD_MS) {
        verdict = ZC_STAMPS_CLOCK_BEHIND;
    }
    *ret_bounds = (struct zc_stamps_bounds){true, stored, ceiling(clock, stored)};
    return verdict;
}

void zc_stamps_init(struct zc_stamps *s, const struct zc_stamps_bounds *bounds)
{
    *s = (struct zc_stamps){.bounds = *bounds};
    if (bounds->after.ms > 0)
        zc_noise_stamp(bounds->after, NULL, s->floor);
}

/* The wall time whose stamp this is: rounded up, since stamps are rounded down. */
static struct zc_wall wall_of(const uint8_t stamp[ZC_NOISE_STAMP_BYTES])
{
    uint64_t seconds = 0, ns = 0;
    for (int i = 0; i < 8; i++)
        seconds = seconds << 8 | stamp[i];
    for (int i = 8; i < ZC_NOISE_STAMP_BYTES; i++)
        ns = ns << 8 | stamp[i];
    if (seconds < TAI_EPOCH)
        return (struct zc_wall){0}; /* none was made */
    return (struct zc_wall){(int64_t)(seconds - TAI_EPOCH) * 1000 +
                            (int64_t)((ns + 999999) / 1000000)};
}

/* Asks for a later ceiling when the last stamp is about to reach it, or the clock is near. */
static void consider(struct zc_stamps *s, struct zc_wall clock, struct zc_wall made)
{
    struct zc_wall next = ceiling(clock, made);
    if (next.ms <= s->bounds.most.ms ||
        (made.ms + ZC_STAMPS_BEHIND_MS / 2 <= s->bounds.most.ms &&
         next.ms < s->bounds.most.ms + ZC_STAMPS_AHEAD_MS - ZC_STAMPS_RAISE_MS))
        return;
    s->wanted = true;
    s->want = next;
}

bool zc_stamps_next(struct zc_stamps *s, struct zc_wall clock, uint8_t last[ZC_NOISE_STAMP_BYTES])
{
    uint8_t stamp[ZC_NOISE_STAMP_BYTES], most[ZC_NOISE_STAMP_BYTES];
    bool limited = s->bounds.limited;
    zc_noise_stamp(limited && clock.ms > s->bounds.most.ms ? s->bounds.most : clock, last, stamp);
    if (limited) {
        zc_noise_stamp(s->bounds.most, NULL, most);
        consider(s, clock, wall_of(stamp));
        if (memcmp(stamp, most, sizeof(stamp)) > 0)
            return false;
    }
    memcpy(last, stamp, sizeof(stamp));
    if (memcmp(stamp, s->top, sizeof(stamp)) > 0)
        memcpy(s->top, stamp, sizeof(stamp));
    return true;
}

void zc_stamps_keep(struct zc_stamps *s, const uint8_t last[ZC_NOISE_STAMP_BYTES])
{
    if (memcmp(last, s->floor, ZC_NOISE_STAMP_BYTES) > 0)
        memcpy(s->floor, last, ZC_NOISE_STAMP_BYTES);
}

bool zc_stamps_wanted(struct zc_stamps *s, struct zc_wall *ret_most)
{
    bool wanted = s->wanted;
    s->wanted = false;
    if (wanted)
        *ret_most = s->want;
    return wanted;
}

void zc_stamps_raise(struct zc_stamps *s, struct zc_wall most)
{
    if (most.ms > s->bounds.most.ms)
        s->bounds.most = most;
}

struct zc_stamps_bounds zc_stamps_bounds(const struct zc_stamps *s)
{
    struct zc_stamps_bounds b = s->bounds;
    struct zc_wall top = wall_of(s->top);
    if (top.ms > b.after.ms)
        b.after = top;
    return b;
}

void zc_stamps_encode(struct zc_wall at, char ret_text[ZC_STAMPS_TEXT_MAX])
{
    uint64_t ms = (uint64_t)sane(at).ms;
    snprintf(ret_text, ZC_STAMPS_TEXT_MAX, "@%016llx%08x\n",
             (unsigned long long)(TAI_EPOCH + ms / 1000), (unsigned)(ms % 1000 * 1000000));
}

/* Lower-case hexadecimal digits; false: others are there, too. */
static bool hex(const uint8_t *p, int len, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (int i = 0; i < len; i++) {
        bool digit = p[i] >= '0' && p[i] <= '9';
        if (!digit && (p[i] < 'a' || p[i] > 'f'))
            return false;
        value = value << 4 | (uint64_t)(digit ? p[i] - '0' : p[i] - 'a' + 10);
    }
    *ret_value = value;
    return true;
}

bool zc_stamps_decode(struct zc_slice text, struct zc_wall *ret_ceiling)
{
    uint64_t seconds, ns;
    if (text.len == LABEL_LEN + 1 && text.data[LABEL_LEN] == '\n')
        text.len--;
    if (text.len != LABEL_LEN || text.data[0] != '@' || !hex(text.data + 1, 16, &seconds) ||
        !hex(text.data + 17, 8, &ns) || ns > 999999999 || seconds < TAI_EPOCH ||
        seconds - TAI_EPOCH >= MAX_MS / 1000)
        return false;
    /* Up, so that nothing below it is lost. */
    ret_ceiling->ms = (int64_t)(seconds - TAI_EPOCH) * 1000 + (int64_t)((ns + 999999) / 1000000);
    return true;
}
