/*
 * How many files the process may open, on systems that allow less than their hard limit says: macOS
 * has "unlimited" there, and refuses what is more than its own maximum. limits.c is compiled into
 * this program with a stand-in for setrlimit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

static struct {
    rlim_t soft, hard, system_max;
    int calls;
} fake;

static int fake_getrlimit(int what, struct rlimit *r)
{
    (void)what;
    *r = (struct rlimit){fake.soft, fake.hard};
    return 0;
}

static int fake_setrlimit(int what, const struct rlimit *r)
{
    fake.calls++;
    if (what != RLIMIT_NOFILE)
        return 0;
    if (r->rlim_cur > fake.system_max || r->rlim_cur > fake.hard || r->rlim_max != fake.hard) {
        errno = EINVAL;
        return -1;
    }
    fake.soft = r->rlim_cur;
    return 0;
}

#define getrlimit fake_getrlimit
#define setrlimit fake_setrlimit
#include "../../lib/host/limits.c"
#undef getrlimit
#undef setrlimit

#include "test.h"

static int files(rlim_t soft, rlim_t hard, rlim_t system_max)
{
    fake.soft = soft;
    fake.hard = hard;
    fake.system_max = system_max;
    fake.calls = 0;
    int got = raise_files();
    CHECK_INT(got, fake.soft > FILES_MAX ? FILES_MAX : fake.soft);
    return got;
}

TEST(up_to_the_hard_limit)
{
    CHECK_INT(files(1024, 4096, RLIM_INFINITY), 4096);
    CHECK_INT(files(1024, 524288, RLIM_INFINITY), 524288);
    CHECK_INT(files(1024, RLIM_INFINITY, RLIM_INFINITY), FILES_MAX);
}

TEST(nothing_to_raise)
{
    CHECK_INT(files(4096, 4096, RLIM_INFINITY), 4096);
    CHECK_INT(fake.calls, 0);
    CHECK_INT(files(RLIM_INFINITY, RLIM_INFINITY, RLIM_INFINITY), FILES_MAX);
    CHECK_INT(fake.calls, 0);
}

/* What the system allows is found, to a half of it at least. */
TEST(system_allows_less)
{
    for (rlim_t max = 300; max < 4 * FILES_MAX; max = max * 5 / 4) {
        int got = files(256, RLIM_INFINITY, max);
        CHECK(got > 256 || max < 512);
        CHECK((rlim_t)got * 2 > max || got == FILES_MAX);
    }
}

TEST(system_allows_no_more)
{
    CHECK_INT(files(256, RLIM_INFINITY, 256), 256);
    CHECK(fake.calls < 32);
    CHECK_INT(files(0, RLIM_INFINITY, 0), 0);
    CHECK(fake.calls < 32);
}
