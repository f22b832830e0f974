/* Lines for the administrator: prefix, level, rate, and a reader that does not read. */
#include "host/logsink.h"

#include <fcntl.h>
#include <unistd.h>

#include "test.h"

/* Everything in the pipe, NUL-terminated. */
static char *drain(int fd)
{
    static char text[1 << 20];
    ssize_t n;
    size_t len = 0;
    while (len < sizeof(text) - 1 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

static void make_pipe(int fds[2])
{
    CHECK_INT(pipe(fds), 0);
    CHECK_INT(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
}

static void close_pipe(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

TEST(prefix_and_level)
{
    int fds[2];
    struct zc_logsink log;
    make_pipe(fds);
    zc_logsink_init(&log, fds[1], ZC_LOGSINK_WARNING, false);
    zc_logsink_line(&log, ZC_LOGSINK_INFO, "not shown");
    zc_logsink_line(&log, ZC_LOGSINK_WARNING, "what: %s", "why");
    zc_logsink_raw(&log, ZC_LOGSINK_DEBUG, "as it is");
    CHECK(strcmp(drain(fds[0]), "zmqcat: what: why\nas it is\n") == 0);
    zc_logsink_init(&log, fds[1], ZC_LOGSINK_INFO, true);
    zc_logsink_line(&log, ZC_LOGSINK_INFO, "a");
    zc_logsink_line(&log, ZC_LOGSINK_ERR, "b");
    CHECK(strcmp(drain(fds[0]), "<6>zmqcat: a\n<3>zmqcat: b\n") == 0);
    close_pipe(fds);
}

TEST(long_lines_are_cut_and_stay_one_line)
{
    int fds[2];
    struct zc_logsink log;
    char *big = malloc(100000);
    memset(big, 'x', 99999);
    big[99999] = '\0';
    make_pipe(fds);
    zc_logsink_init(&log, fds[1], ZC_LOGSINK_INFO, true);
    zc_logsink_line(&log, ZC_LOGSINK_INFO, "%s", big);
    zc_logsink_raw(&log, ZC_LOGSINK_INFO, big);
    char *got = drain(fds[0]), *first_end = strchr(got, '\n');
    CHECK(first_end != NULL && first_end - got < ZC_LOGSINK_LINE_MAX);
    CHECK(first_end != NULL && memcmp(first_end - 3, "...", 3) == 0);
    CHECK(first_end != NULL && strncmp(first_end + 1, "<6>xxx", 6) == 0);
    CHECK(got[strlen(got) - 1] == '\n');
    free(big);
    close_pipe(fds);
}

TEST(rate)
{
    int fds[2], lines = 0;
    struct zc_logsink log;
    struct zc_mono now = {ZC_NS_PER_S * 1000};
    make_pipe(fds);
    zc_logsink_init(&log, fds[1], ZC_LOGSINK_INFO, false);
    for (int i = 0; i < 1000; i++)
        zc_logsink_limited(&log, now, ZC_LOGSINK_WARNING, "noise");
    for (char *p = drain(fds[0]); (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    CHECK_INT(lines, 20);
    zc_logsink_limited(&log, zc_mono_add_ms(now, 1000), ZC_LOGSINK_WARNING, "later");
    CHECK(strcmp(drain(fds[0]), "zmqcat: 980 lines like these left out\nzmqcat: later\n") == 0);
    zc_logsink_limited(&log, zc_mono_add_ms(now, 2000), ZC_LOGSINK_WARNING, "again");
    CHECK(strcmp(drain(fds[0]), "zmqcat: again\n") == 0);
    close_pipe(fds);
}

/* A full pipe neither blocks nor tears a line, and is told of later. */
TEST(reader_that_does_not_read)
{
    int fds[2], whole = 0;
    struct zc_logsink log;
    make_pipe(fds);
    zc_logsink_init(&log, fds[1], ZC_LOGSINK_INFO, false);
    for (int i = 0; i < 20000; i++)
        zc_logsink_line(&log, ZC_LOGSINK_INFO, "a line of thirty-two characters");
    CHECK(log.lost > 10000);
    unsigned long long lost = log.lost;
    char want[120];
    for (char *p = drain(fds[0]); *p != '\0'; p = strchr(p, '\n') + 1, whole++)
        CHECK(strncmp(p, "zmqcat: a line of thirty-two characters\n", 40) == 0);
    CHECK_INT(whole + (long long)lost, 20000);
    zc_logsink_line(&log, ZC_LOGSINK_INFO, "on");
    snprintf(want, sizeof(want),
             "zmqcat: %llu lines lost: standard error was not read in time\nzmqcat: on\n", lost);
    CHECK(strcmp(drain(fds[0]), want) == 0);
    close_pipe(fds);
}

TEST(level_names)
{
    CHECK_INT(zc_logsink_level("err"), 3);
    CHECK_INT(zc_logsink_level("error"), 3);
    CHECK_INT(zc_logsink_level("info"), 6);
    CHECK_INT(zc_logsink_level("debug"), 7);
    CHECK_INT(zc_logsink_level("Info"), -1);
    CHECK_INT(zc_logsink_level(""), -1);
}
