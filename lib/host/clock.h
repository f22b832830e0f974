/* The two clocks of the machine, read for the core. */
#ifndef ZC_HOST_CLOCK_H
#define ZC_HOST_CLOCK_H

#include "base/time.h"

struct zc_now zc_clock_now(void);

#endif
