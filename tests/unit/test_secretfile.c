/* host/secretfile.h: modes, whole replacement, bounds, what cannot be read. */
#include "host/secretfile.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void make_dir(void)
{
    strcpy(dir, "/tmp/zc-secretfile-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

static void put(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(fd >= 0 && fchmod(fd, mode) == 0);
    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool holds(const char *path, const char *want)
{
    char why[ZC_SECRETFILE_WHY_MAX];
    struct zc_buf text = {0};
    bool is = zc_secretfile_read(path, 100, &text, why) == 0 &&
              zc_slice_is(zc_slice(text.data, text.len), want);
    zc_secretfile_done(&text);
    return is;
}

TEST(secretfile_write_replaces_and_closes)
{
    char why[ZC_SECRETFILE_WHY_MAX];
    struct stat st;
    make_dir();
    const char *path = in_dir("token");
    mode_t before = umask(0);
    put(path, "old and longer than the new one", 0666);
    CHECK_INT(zc_secretfile_write(path, zc_slice_str("new"), why), 0);
    umask(0777);
    CHECK_INT(zc_secretfile_write(path, zc_slice_str("new"), why), 0);
    umask(before);
    CHECK(stat(path, &st) == 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK(holds(path, "new"));
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(dir), 0); /* nothing else was left */
}

TEST(secretfile_write_failures_leave_the_old_one)
{
    char why[ZC_SECRETFILE_WHY_MAX] = "";
    make_dir();
    CHECK(zc_secretfile_write("/nonexistent/x", zc_slice_str("a"), why) < 0);
    CHECK(strstr(why, "its directory does not exist") != NULL);
    CHECK_INT(mkdir(in_dir("d"), 0700), 0);
    CHECK_INT(mkdir(in_dir("d/e"), 0700), 0);
    CHECK(zc_secretfile_write(in_dir("d"), zc_slice_str("a"), why) < 0);
    CHECK_INT(rmdir(in_dir("d/e")), 0);
    CHECK_INT(rmdir(in_dir("d")), 0);
    CHECK_INT(rmdir(dir), 0);
}

/* A killed writer's secret does not stay for ever; that of one at work does. */
TEST(secretfile_write_removes_what_the_dead_left)
{
    static const char *const stay[] = {".token.new-1", ".token.new-", ".token.new-2x",
                                       "token.new-9", ".tokens.new-2147483647"};
    char why[ZC_SECRETFILE_WHY_MAX];
    make_dir();
    put(in_dir(".token.new-2147483647"), "secret", 0600);
    put(in_dir(".token.new-2147483646"), "secret", 0600);
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
        put(in_dir(stay[i]), "secret", 0600);
    CHECK_INT(zc_secretfile_write(in_dir("token"), zc_slice_str("new"), why), 0);
    CHECK(access(in_dir(".token.new-2147483647"), F_OK) < 0);
    CHECK(access(in_dir(".token.new-2147483646"), F_OK) < 0);
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
        CHECK_INT(unlink(in_dir(stay[i])), 0);
    CHECK_INT(unlink(in_dir("token")), 0);
    CHECK_INT(rmdir(dir), 0);
}

/* A device in /dev must not become a file that holds a token. */
TEST(secretfile_write_replaces_only_files)
{
    char why[ZC_SECRETFILE_WHY_MAX] = "", fifo[128];
    struct stat st;
    make_dir();
    strcpy(fifo, in_dir("fifo"));
    CHECK_INT(mkfifo(fifo, 0600), 0);
    CHECK_INT(zc_secretfile_write(fifo, zc_slice_str("a"), why), ZC_EINVAL);
    CHECK(strstr(why, "no regular file") != NULL);
    CHECK(lstat(fifo, &st) == 0 && S_ISFIFO(st.st_mode));
    const char *link = in_dir("link");
    CHECK_INT(symlink("fifo", link), 0);
    CHECK_INT(zc_secretfile_write(link, zc_slice_str("a"), why), ZC_EINVAL);
    CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK_INT(unlink(link), 0);
    CHECK_INT(unlink(fifo), 0);
    CHECK_INT(rmdir(dir), 0); /* nothing else was left */
}

TEST(secretfile_read_bounds)
{
    char why[ZC_SECRETFILE_WHY_MAX] = "";
    struct zc_buf text = {0};
    make_dir();
    CHECK_INT(zc_secretfile_read(in_dir("none"), 10, &text, why), ZC_ENOENT);
    put(in_dir("f"), "0123456789", 0600);
    CHECK_INT(zc_secretfile_read(in_dir("f/x"), 10, &text, why), ZC_ENOENT);
    CHECK_INT(zc_secretfile_read(in_dir("f"), 10, &text, why), 0);
    CHECK_INT(text.len, 10);
    zc_secretfile_done(&text);
    CHECK(zc_secretfile_read(in_dir("f"), 9, &text, why) < 0);
    CHECK_INT(zc_secretfile_read(dir, 10, &text, why), ZC_EINVAL);
    CHECK(text.data == NULL);
    put(in_dir("f"), "", 0600);
    CHECK(holds(in_dir("f"), ""));
    unlink(in_dir("f"));
    CHECK_INT(rmdir(dir), 0);
}

static atomic_bool dribbling;

static void *dribble(void *arg)
{
    while (dribbling) {
        CHECK_INT(write(*(int *)arg, "x", 1), 1);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return NULL;
}

/* Each byte in time, and no end: the reader is an event loop. */
TEST(secretfile_read_ends_though_its_writer_does_not)
{
    char why[ZC_SECRETFILE_WHY_MAX] = "";
    struct zc_buf text = {0};
    struct timespec start, end;
    pthread_t thread;
    make_dir();
    CHECK_INT(mkfifo(in_dir("fifo"), 0600), 0);
    int fd = open(in_dir("fifo"), O_RDWR);
    CHECK(fd >= 0);
    dribbling = true;
    CHECK_INT(pthread_create(&thread, NULL, dribble, &fd), 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    CHECK(zc_secretfile_read(in_dir("fifo"), 60, &text, why) < 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    dribbling = false;
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(strstr(why, "timed out") != NULL);
    CHECK(end.tv_sec - start.tv_sec <= 5);
    close(fd);
    CHECK_INT(unlink(in_dir("fifo")), 0);
    CHECK_INT(rmdir(dir), 0);
}
