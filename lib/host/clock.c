/*
 * CLOCK_BOOTTIME goes on while the machine sleeps, so that a lease does not outlive a suspend;
 * where it does not exist (macOS: CLOCK_MONOTONIC does the same there) the monotonic clock is used.
 */
#include "host/clock.h"

#include <time.h>

static int64_t clock_ns(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * ZC_NS_PER_S + t.tv_nsec;
}

struct zc_now zc_clock_now(void)
{
#ifdef CLOCK_BOOTTIME
    int64_t mono = clock_ns(CLOCK_BOOTTIME);
#else
    int64_t mono = clock_ns(CLOCK_MONOTONIC);
#endif
    return (struct zc_now){{mono}, {clock_ns(CLOCK_REALTIME) / ZC_NS_PER_MS}};
}
