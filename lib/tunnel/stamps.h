/*
 * The stamps of our initiations, within bounds. A peer answers no initiation whose stamp is not
 * later than the last one it saw, and remembers that for nine minutes. So a process must go on
 * behind the stamps of the one before it, also when the clock was set back in between.
 *
 * It would be slow to write down each stamp. A ceiling is stored instead, ahead of the clock: no
 * stamp is later than it (`most`), and all of the next process are (`after`). The owner stores it
 * and gives it by value; a later one is wanted well before the ceiling is reached. Meanwhile stamps
 * stand still below it and only rise by the smallest step.
 */
#ifndef ZC_TUNNEL_STAMPS_H
#define ZC_TUNNEL_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/time.h"
#include "tunnel/noise.h"

/* How far the ceiling is ahead of the clock, and where a clock that runs has it raised. */
#define ZC_STAMPS_AHEAD_MS 3600000
#define ZC_STAMPS_RAISE_MS 1800000
/* And ahead of the last stamp when the clock is behind that; a process that is started again and
 * again moves it by no more. */
#define ZC_STAMPS_BEHIND_MS 2000
#define ZC_STAMPS_TEXT_MAX 27 /* with newline and NUL */

/* What the owner gives. All zero: no bounds. */
struct zc_stamps_bounds {
    bool limited;         /* most counts */
    struct zc_wall after; /* all stamps are later; 0: any is */
    struct zc_wall most;  /* none is later */
};

struct zc_stamps {
    struct zc_stamps_bounds bounds;
    /* The greatest stamp of peers that were removed, or the bound: those of a new one are later. */
    uint8_t floor[ZC_NOISE_STAMP_BYTES];
    uint8_t top[ZC_NOISE_STAMP_BYTES]; /* the latest of all that were made */
    bool wanted;
    struct zc_wall want; /* the ceiling that is wanted */
};

enum zc_stamps_verdict {
    ZC_STAMPS_FINE,
    ZC_STAMPS_CLOCK_BEHIND, /* the clock is behind the last process by more than the ceiling is */
    ZC_STAMPS_ABSURD,       /* what is stored is years ahead, and not followed */
};

/* The bounds of a process that starts and finds the ceiling `stored`; 0: none. Their `most` is to
 * be stored before the first use. */
enum zc_stamps_verdict zc_stamps_begin(struct zc_wall stored, struct zc_wall clock,
                                       struct zc_stamps_bounds *ret_bounds);

/* The next stamp after `last`, in place. False: it would be above the ceiling, and last stays. */
ZC_MUST_CHECK bool zc_stamps_next(struct zc_stamps *s, struct zc_wall clock,
                                  uint8_t last[ZC_NOISE_STAMP_BYTES]);
void zc_stamps_init(struct zc_stamps *s, const struct zc_stamps_bounds *bounds);
/* A peer with this last stamp is removed. */
void zc_stamps_keep(struct zc_stamps *s, const uint8_t last[ZC_NOISE_STAMP_BYTES]);
/* True once: store this ceiling, then zc_stamps_raise. */
bool zc_stamps_wanted(struct zc_stamps *s, struct zc_wall *ret_most);
void zc_stamps_raise(struct zc_stamps *s, struct zc_wall most);
/* What the one that takes over from s begins with: behind all stamps that were made. */
struct zc_stamps_bounds zc_stamps_bounds(const struct zc_stamps *s);

/* A ceiling as text: a TAI64N label in its usual form, "@4000000065920080000f4240\n". */
void zc_stamps_encode(struct zc_wall ceiling, char ret_text[ZC_STAMPS_TEXT_MAX]);
/* False: that is none, or before 1970, or later than year 9999. */
bool zc_stamps_decode(struct zc_slice text, struct zc_wall *ret_ceiling);

#endif
