/* The monotonic clock of the command. */
#ifndef ZC_CLI_CLOCK_H
#define ZC_CLI_CLOCK_H

#include <stdint.h>

int64_t zc_clock_us(void);
int64_t zc_clock_ms(void);

#endif
