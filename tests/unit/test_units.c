/* Durations and sizes of options. */
#include "base/units.h"

#include "test.h"

TEST(durations)
{
    static const struct {
        const char *text;
        long long ms;
    } good[] = {
        {"5s", 5000},     {"300ms", 300},     {"1m30s", 90000}, {"5", 5000},
        {"0", 0},         {"-1s", -1000},     {"-1", -1000},    {"1.5s", 1500},
        {"0.1s", 100},    {"0.3", 300},       {".5s", 500},     {"2h", 7200000},
        {"1d", 86400000}, {"1h1ms", 3600001}, {"0.0001s", 1},   {"1.0000000001s", 1001},
        {"+3s", 3000},    {"0s", 0},          {"0.25ms", 1},    {"36500d", 3153600000000},
    };
    static const char *const bad[] = {
        "",
        "-",
        "abc",
        "5x",
        "s",
        "1m30",
        "1 s",
        "5s ",
        "--1s",
        "1e3",
        "1.2.3s",
        ".",
        ".s",
        "99999999999999999999s",
        "999999999999999999d",
        "40000d",
        "5S",
        "1s-1s",
        "0x10",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t ms = -7;
        CHECK_INT(zc_units_duration_ms(good[i].text, &ms), 0);
        CHECK_INT(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t ms = -7;
        if (zc_units_duration_ms(bad[i], &ms) != ZC_EINVAL)
            printf("accepted: %s\n", bad[i]);
        CHECK_INT(zc_units_duration_ms(bad[i], &ms), ZC_EINVAL);
        CHECK_INT(ms, -7);
    }
}

TEST(sizes)
{
    static const struct {
        const char *text;
        unsigned long long bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"64k", 65536},
        {"8m", 8388608},
        {"8M", 8388608},
        {"1g", 1 << 30},
        {"64kb", 65536},
        {"64KiB", 65536},
        {"12b", 12},
        {"007", 7},
        {"9223372036854775807", 9223372036854775807ull},
        {"8388607g", 8388607ull << 30},
    };
    static const char *const bad[] = {
        "",
        "k",
        "-1",
        "+1",
        "1.5m",
        "8 m",
        "8mm",
        "8mib ",
        "8ki",
        "1bb",
        "1ib",
        "1t",
        "1e6",
        "9223372036854775808",
        "99999999999999999999999999",
        "8589934592g",
        "0x10",
        "8\n",
        "8@",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t n = 7;
        CHECK_INT(zc_units_bytes(good[i].text, &n), 0);
        CHECK(n == good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t n = 7;
        if (zc_units_bytes(bad[i], &n) != ZC_EINVAL)
            printf("accepted: %s\n", bad[i]);
        CHECK_INT(zc_units_bytes(bad[i], &n), ZC_EINVAL);
        CHECK_INT(n, 7);
    }
}

TEST(counts)
{
    uint64_t n = 7;
    CHECK_INT(zc_units_count("18446744073709551615", &n), 0);
    CHECK(n == UINT64_MAX);
    CHECK_INT(zc_units_count("0", &n), 0);
    CHECK_INT(n, 0);
    n = 7;
    CHECK_INT(zc_units_count("18446744073709551616", &n), ZC_EINVAL);
    CHECK_INT(zc_units_count("", &n), ZC_EINVAL);
    CHECK_INT(zc_units_count("-1", &n), ZC_EINVAL);
    CHECK_INT(zc_units_count("1k", &n), ZC_EINVAL);
    CHECK_INT(n, 7);
}
