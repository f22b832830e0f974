/* Number literals of JSON, read without floating point: no value is ever rounded unseen. */
#include "base/json.h"

bool zc_json_int(struct zc_slice number, int64_t *ret_value)
{
    bool negative = number.len > 0 && number.data[0] == '-';
    int64_t v = 0;
    if (number.len == (negative ? 1u : 0u))
        return false;
    for (size_t i = negative; i < number.len; i++) {
        int digit = number.data[i] - '0';
        /* Counted down, because the least int64 has no positive twin. */
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, digit, &v))
            return false;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *ret_value = negative ? v : -v;
    return true;
}

/* Exponent digits of a literal from pos on, saturated far beyond any length of a frame. */
static int64_t json_exponent(struct zc_slice number, size_t pos)
{
    bool negative = number.data[pos] == '-';
    int64_t e = 0;
    if (number.data[pos] == '-' || number.data[pos] == '+')
        pos++;
    for (; pos < number.len && e < INT64_C(100000000000); pos++)
        e = e * 10 + (number.data[pos] - '0');
    return negative ? -e : e;
}

bool zc_json_seconds_ms(struct zc_slice number, int64_t max_s, int64_t *ret_ms)
{
    /* The value in ms is digits * 10^-scale, the digits being those without point and leading
     * zeros. */
    size_t end = 0, first = number.len;
    int64_t scale = -3;
    bool point = false;
    for (; end < number.len && (number.data[end] | 0x20) != 'e'; end++) {
        if (number.data[end] == '.')
            point = true;
        else
            scale += point;
        if (first == number.len && number.data[end] >= '1' && number.data[end] <= '9')
            first = end;
    }
    if (first == number.len) { /* no digit but 0: nought, whatever the exponent and sign */
        *ret_ms = 0;
        return true;
    }
    if (number.data[0] == '-')
        return false;
    if (end < number.len)
        scale -= json_exponent(number, end + 1);
    int64_t digits = 0;
    for (size_t i = first; i < end; i++)
        digits += number.data[i] != '.';
    int64_t whole = digits - scale; /* digits before the point of the value in ms */
    if (whole > 18)
        return false;
    int64_t ms = 0, taken = 0;
    bool rest = false;
    for (size_t i = first; i < end; i++) {
        if (number.data[i] == '.')
            continue;
        if (taken++ < whole)
            ms = ms * 10 + (number.data[i] - '0');
        else
            rest |= number.data[i] != '0';
    }
    for (; taken < whole; taken++)
        ms *= 10;
    ms += rest;
    if (max_s < INT64_MAX / 1000 && ms > max_s * 1000)
        return false;
    *ret_ms = ms;
    return true;
}
