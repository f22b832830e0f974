/*
 * Durations and sizes of options. Integer arithmetic only, so that "0.1s" is 100 ms on every
 * machine. Deliberately absent: exponents, white space, units above a day.
 */
#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MS_MAX (INT64_C(100) * 366 * 86400 * 1000)

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The ms of the unit at *p, which moves behind it; 0 when there is none. */
static int64_t unit_ms(const char **p)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t n = strlen(units[i].name);
        if (strncmp(*p, units[i].name, n) == 0) {
            *p += n;
            return units[i].ms;
        }
    }
    return 0;
}

/* Scans digits[.digits]; the fraction in millionths, rounded up. */
static int number(const char **p, int64_t *ret_whole, int64_t *ret_millionths)
{
    int64_t whole = 0, millionths = 0, scale = 100000;
    bool any = false;
    for (; digit(**p); (*p)++, any = true) {
        whole = whole * 10 + (**p - '0');
        if (whole > MS_MAX)
            return ZC_EINVAL;
    }
    if (**p == '.') {
        bool more = false;
        for ((*p)++; digit(**p); (*p)++, any = true) {
            millionths += (**p - '0') * scale;
            more = more || (scale == 0 && **p != '0');
            scale /= 10;
        }
        millionths += more;
    }
    if (!any)
        return ZC_EINVAL;
    *ret_whole = whole;
    *ret_millionths = millionths;
    return 0;
}

int zc_units_duration_ms(const char *text, int64_t *ret_ms)
{
    const char *p = text;
    bool negative = *p == '-';
    int64_t total = 0;
    if (*p == '-' || *p == '+')
        p++;
    if (*p == '\0')
        return ZC_EINVAL;
    for (bool first = true; *p != '\0'; first = false) {
        int64_t whole, millionths;
        int r = number(&p, &whole, &millionths);
        if (r < 0)
            return r;
        int64_t unit = unit_ms(&p);
        /* A number without its unit is seconds when it stands alone, else a mistake. */
        if (unit == 0 && !(first && *p == '\0'))
            return ZC_EINVAL;
        unit = unit == 0 ? 1000 : unit;
        if (whole > MS_MAX / unit)
            return ZC_EINVAL;
        total += whole * unit + (millionths * unit + 999999) / 1000000;
        if (total > MS_MAX)
            return ZC_EINVAL;
    }
    *ret_ms = negative ? -total : total;
    return 0;
}

int zc_units_count(const char *text, uint64_t *ret_count)
{
    uint64_t n = 0;
    if (*text == '\0')
        return ZC_EINVAL;
    for (const char *p = text; *p != '\0'; p++) {
        if (!digit(*p) || n > (UINT64_MAX - (uint64_t)(*p - '0')) / 10)
            return ZC_EINVAL;
        n = n * 10 + (uint64_t)(*p - '0');
    }
    *ret_count = n;
    return 0;
}

int zc_units_bytes(const char *text, uint64_t *ret_bytes)
{
    static const char letters[] = "bkmg";
    char digits[24];
    size_t len = strspn(text, "0123456789");
    if (len == 0 || len >= sizeof(digits))
        return ZC_EINVAL;
    memcpy(digits, text, len);
    digits[len] = '\0';
    uint64_t n;
    int r = zc_units_count(digits, &n);
    if (r < 0)
        return r;
    unsigned shift = 0;
    const char *p = text + len;
    if (*p != '\0') {
        const char *letter = strchr(letters, *p | 0x20);
        if (letter == NULL)
            return ZC_EINVAL;
        shift = 10 * (unsigned)(letter - letters);
        p++;
        if (shift > 0 && (*p | 0x20) == 'i' && (p[1] | 0x20) == 'b')
            p++;
        if (shift > 0 && (*p | 0x20) == 'b')
            p++;
    }
    if (*p != '\0' || n > (uint64_t)INT64_MAX >> shift)
        return ZC_EINVAL;
    *ret_bytes = n << shift;
    return 0;
}
