/* RFC 3339 times as Go writes them, with up to nine digits of a second and any offset. */
#include "node/original.h"

/* n digits at *pos; -1: they are not there. */
static int64_t digits(struct zc_slice text, size_t *pos, size_t n)
{
    int64_t v = 0;
    if (text.len - *pos < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = text.data[(*pos)++];
        if (c < '0' || c > '9')
            return -1;
        v = v * 10 + (c - '0');
    }
    return v;
}

static bool mark(struct zc_slice text, size_t *pos, char c)
{
    return *pos < text.len && text.data[(*pos)++] == (uint8_t)c;
}

static bool leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970-01-01, by the Gregorian calendar. -1000000: no such day. */
static int64_t days(int64_t year, int64_t month, int64_t day)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    if (year < 0 || month < 1 || month > 12 || day < 1)
        return -1000000;
    int64_t len = before[month] - before[month - 1] + (month == 2 && leap(year));
    if (day > len)
        return -1000000;
    int64_t y = year - 1; /* whole years since 1 */
    int64_t n = y * 365 + (year == 0 ? 0 : y / 4 - y / 100 + y / 400);
    return n + before[month - 1] + (month > 2 && leap(year)) + day - 1 - 719162;
}

static bool fraction(struct zc_slice text, size_t *pos, uint32_t *ret_ns)
{
    uint32_t ns = 0, scale = 100000000;
    size_t start = *pos;
    for (; *pos < text.len && text.data[*pos] >= '0' && text.data[*pos] <= '9'; (*pos)++) {
        ns += (uint32_t)(text.data[*pos] - '0') * scale;
        scale /= 10;
    }
    *ret_ns = ns;
    return *pos > start && *pos - start <= 9;
}

/* `Z` or an offset; *ret_s is what it adds to UTC. */
static bool zone(struct zc_slice text, size_t *pos, int64_t *ret_s)
{
    if (*pos >= text.len)
        return false;
    uint8_t c = text.data[(*pos)++];
    *ret_s = 0;
    if (c == 'Z')
        return true;
    int64_t h = digits(text, pos, 2);
    if (!mark(text, pos, ':'))
        return false;
    int64_t m = digits(text, pos, 2);
    if ((c != '+' && c != '-') || h < 0 || h > 23 || m < 0 || m > 59)
        return false;
    *ret_s = (c == '-' ? -1 : 1) * (h * 3600 + m * 60);
    return true;
}

bool zc_original_time(struct zc_slice text, struct zc_original_time *ret_time)
{
    /* Each field and the mark behind it. */
    static const char marks[] = "--T::";
    int64_t field[6], offset_s;
    uint32_t ns = 0;
    size_t pos = 0;
    for (size_t i = 0; i < 6; i++) {
        field[i] = digits(text, &pos, i == 0 ? 4 : 2);
        if (field[i] < 0 || (i < 5 && !mark(text, &pos, marks[i])))
            return false;
    }
    if (pos < text.len && text.data[pos] == '.') {
        pos++;
        if (!fraction(text, &pos, &ns))
            return false;
    }
    int64_t day = days(field[0], field[1], field[2]);
    if (!zone(text, &pos, &offset_s) || pos != text.len || day == -1000000 || field[3] > 23 ||
        field[4] > 59 || field[5] > 60)
        return false;
    ret_time->s = day * 86400 + field[3] * 3600 + field[4] * 60 + field[5] - offset_s;
    ret_time->ns = ns;
    return true;
}
