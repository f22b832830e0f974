/* Names of segment files: eight or more decimal digits and ".zlog"; of their indexes ".zidx". */
#include "store/disk.h"

#include <string.h>

#define SUFFIX ".zlog"
#define INDEX_SUFFIX ".zidx"
#define DIGITS 8

static void name(uint32_t segment, const char *suffix, char ret_name[ZC_DISK_NAME_MAX])
{
    char digits[10];
    size_t n = 0;
    for (uint32_t v = segment; v > 0 || n < DIGITS; v /= 10)
        digits[n++] = (char)('0' + v % 10);
    for (size_t i = 0; i < n; i++)
        ret_name[i] = digits[n - 1 - i];
    memcpy(ret_name + n, suffix, strlen(suffix) + 1);
}

void zc_disk_name(uint32_t segment, char ret_name[ZC_DISK_NAME_MAX])
{
    name(segment, SUFFIX, ret_name);
}

void zc_disk_index_name(uint32_t segment, char ret_name[ZC_DISK_NAME_MAX])
{
    name(segment, INDEX_SUFFIX, ret_name);
}

uint32_t zc_disk_number(const char *name)
{
    uint64_t v = 0;
    size_t n = 0;
    for (; name[n] >= '0' && name[n] <= '9'; n++) {
        v = v * 10 + (uint64_t)(name[n] - '0');
        if (v > ZC_DISK_SEGMENT_MAX)
            return 0;
    }
    /* One name for each number: leading zeros only up to the usual width. */
    if (n < DIGITS || (n > DIGITS && name[0] == '0') || strcmp(name + n, SUFFIX) != 0)
        return 0;
    return (uint32_t)v;
}
