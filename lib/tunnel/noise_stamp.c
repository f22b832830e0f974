/* Timestamps of initiations: see noise.h. */
#include <string.h>

#include "tunnel/noise.h"

#define TAI_EPOCH UINT64_C(0x400000000000000a)
#define STEP_NS (UINT32_C(1) << 24)

static void put_big(uint8_t *p, uint64_t value, int len)
{
    for (int i = len - 1; i >= 0; i--, value >>= 8)
        p[i] = (uint8_t)value;
}

static uint64_t get_big(const uint8_t *p, int len)
{
    uint64_t value = 0;
    for (int i = 0; i < len; i++)
        value = value << 8 | p[i];
    return value;
}

void zc_noise_stamp(struct zc_wall wall, const uint8_t last[ZC_NOISE_STAMP_BYTES],
                    uint8_t ret_stamp[ZC_NOISE_STAMP_BYTES])
{
    /* A clock before 1970 was never set. */
    uint64_t ms = wall.ms > 0 ? (uint64_t)wall.ms : 0;
    uint8_t stamp[ZC_NOISE_STAMP_BYTES];
    put_big(stamp, TAI_EPOCH + ms / 1000, 8);
    put_big(stamp + 8, ms % 1000 * 1000000 & ~(uint64_t)(STEP_NS - 1), 4);
    if (last != NULL && memcmp(stamp, last, sizeof(stamp)) <= 0) {
        uint64_t seconds = get_big(last, 8);
        uint64_t ns = (get_big(last + 8, 4) & ~(uint64_t)(STEP_NS - 1)) + STEP_NS;
        if (ns >= 1000000000) {
            seconds++;
            ns = 0;
        }
        put_big(stamp, seconds, 8);
        put_big(stamp + 8, ns, 4);
    }
    memcpy(ret_stamp, stamp, sizeof(stamp));
}
