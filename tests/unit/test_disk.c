/* The disk with real files: the directory and its lock, each request, descriptors, and a whole log
 * on top. */
#define _XOPEN_SOURCE 700 /* nftw */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/log.h"
#include "store_dir.h"

TEST(disk_directory_is_made)
{
    struct stat st;
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(count, 0);
    CHECK(stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
    char lock[160];
    snprintf(lock, sizeof(lock), "%s/lock", path);
    CHECK(stat(lock, &st) == 0 && (st.st_mode & 0777) == 0600);
    teardown();
}

TEST(disk_parent_is_not_made)
{
    setup();
    snprintf(path, sizeof(path), "%s/no/m", base);
    CHECK_INT(open_disk(), ZC_ENOENT);
    CHECK(strstr(why, "parent") != NULL);
    teardown();
}

TEST(disk_two_hubs)
{
    setup();
    CHECK_INT(open_disk(), 0);
    /* Another process, and another open in this one. */
    pid_t pid = fork();
    if (pid == 0) {
        struct zc_disk *other;
        char text[ZC_WHY_MAX], mine[32];
        int err = zc_disk_open(path, &other, &segments, &count, text);
        snprintf(mine, sizeof(mine), "process %ld:", (long)getppid());
        _exit(err == ZC_EBUSY && strstr(text, mine) != NULL ? 0 : 1);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct zc_disk *second;
    CHECK_INT(zc_disk_open(path, &second, &segments, &count, why), ZC_EBUSY);
    /* That failed open must not have dropped the first one's lock. */
    CHECK_INT(zc_disk_open(path, &second, &segments, &count, why), ZC_EBUSY);
    /* A lock ends with its process, whatever the file says. */
    zc_disk_close(disk);
    disk = NULL;
    pid = fork();
    if (pid == 0) {
        struct zc_disk *other;
        if (zc_disk_open(path, &other, &segments, &count, why) != 0)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK_INT(open_disk(), 0);
    teardown();
}

TEST(disk_refuses_what_is_not_a_log)
{
    setup();
    CHECK(mkdir(path, 0755) == 0);
    char name[160];
    snprintf(name, sizeof(name), "%s/thesis.txt", path);
    write_file(name, "years of work");
    CHECK_INT(open_disk(), ZC_EEXIST);
    CHECK(strstr(why, "thesis.txt") != NULL);
    struct stat st;
    snprintf(name, sizeof(name), "%s/lock", path);
    CHECK(stat(name, &st) != 0);
    /* Beside a log other files do no harm. */
    snprintf(name, sizeof(name), "%s/00000004.zlog", path);
    write_file(name, "");
    CHECK_INT(open_disk(), 0);
    CHECK(count == 1 && segments[0] == 4);
    teardown();

    setup();
    write_file(path, "hello");
    CHECK_INT(open_disk(), ZC_EEXIST);
    CHECK(strstr(why, "is a file") != NULL);
    CHECK(mkfifo("/dev/null", 0600) != 0);
    snprintf(path, sizeof(path), "%s/fifo", base);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_INT(open_disk(), ZC_EEXIST);
    teardown();
}

TEST(disk_requests)
{
    uint8_t buf[64];
    struct stat st;
    char name[160];
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(op_create(3), 0);
    CHECK_INT(op_create(3), ZC_EEXIST);
    snprintf(name, sizeof(name), "%s/00000003.zlog", path);
    CHECK(stat(name, &st) == 0 && st.st_size == 65536 && (st.st_mode & 0777) == 0600);
    CHECK(st.st_blocks * 512 >= 65536);
    CHECK_INT(op_write(3, 100, "hello"), 5);
    CHECK_INT(op_write(3, 65534, "beyond"), 6);
    CHECK(stat(name, &st) == 0 && st.st_size == 65540);
    CHECK_INT(op_write(9, 0, "x"), ZC_ENOENT);
    for (int uncached = 0; uncached < 2; uncached++) {
        memset(buf, 1, sizeof(buf));
        CHECK_INT(run((struct zc_disk_op){.kind = ZC_DISK_READ,
                                          .segment = 3,
                                          .offset = 99,
                                          .data = buf,
                                          .len = 8,
                                          .uncached = uncached == 1}),
                  8);
        CHECK(memcmp(buf, "\0hello\0\0", 8) == 0);
    }
    CHECK_INT(run((struct zc_disk_op){
                  .kind = ZC_DISK_READ, .segment = 3, .offset = 65530, .data = buf, .len = 64}),
              10);
    CHECK_INT(run((struct zc_disk_op){
                  .kind = ZC_DISK_READ, .segment = 3, .offset = 70000, .data = buf, .len = 64}),
              0);
    CHECK_INT(run((struct zc_disk_op){
                  .kind = ZC_DISK_READ, .segment = 8, .offset = 0, .data = buf, .len = 64}),
              ZC_ENOENT);
    CHECK_INT(run((struct zc_disk_op){.kind = ZC_DISK_WRITE, .segment = 3, .sync = true}), 0);
    CHECK_INT(run((struct zc_disk_op){.kind = ZC_DISK_REMOVE, .segment = 3, .sync_dir = true}), 0);
    CHECK(stat(name, &st) != 0);
    CHECK_INT(run((struct zc_disk_op){.kind = ZC_DISK_REMOVE, .segment = 3}), ZC_ENOENT);
    CHECK_INT(op_write(3, 0, "x"), ZC_ENOENT);
    teardown();
}

TEST(disk_sets_damaged_segments_aside)
{
    struct stat st;
    char name[160];
    setup();
    CHECK_INT(open_disk(), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(op_create(5), 0);
        CHECK_INT(run((struct zc_disk_op){
                      .kind = ZC_DISK_REMOVE, .segment = 5, .sync_dir = true, .aside = true}),
                  0);
    }
    static const char *const names[] = {"00000005.damaged", "00000005.damaged.1",
                                        "00000005.damaged.2"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s/%s", path, names[i]);
        CHECK(stat(name, &st) == 0 && st.st_size == 65536);
    }
    /* The attempt before got as far as the second name. */
    char second[160];
    CHECK_INT(op_create(6), 0);
    snprintf(name, sizeof(name), "%s/00000006.zlog", path);
    snprintf(second, sizeof(second), "%s/00000006.damaged", path);
    CHECK_INT(link(name, second), 0);
    CHECK_INT(run((struct zc_disk_op){
                  .kind = ZC_DISK_REMOVE, .segment = 6, .sync_dir = true, .aside = true}),
              0);
    CHECK(stat(name, &st) != 0);
    CHECK(stat(second, &st) == 0 && st.st_nlink == 1);
    reopen();
    CHECK_INT(count, 0);
    teardown();
}

TEST(disk_indexes_beside_segments)
{
    struct stat st;
    uint8_t got[32] = {0};
    char file[160];
    struct zc_disk_op op = {.kind = ZC_DISK_INDEX_READ, .segment = 3, .data = got, .len = 32};
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(op_create(3), 0);
    CHECK_INT(run(op), ZC_ENOENT);
    for (int again = 0; again < 2; again++) {
        uint8_t text[] = "indexed and longer";
        size_t len = again == 0 ? sizeof(text) : 7;
        CHECK_INT(run((struct zc_disk_op){
                      .kind = ZC_DISK_INDEX_WRITE, .segment = 3, .data = text, .len = len}),
                  (int64_t)len);
        CHECK_INT(run(op), (int64_t)len);
        CHECK(memcmp(got, text, len) == 0);
    }
    op.offset = 4;
    CHECK_INT(run(op), 3);
    /* The segment is another file, and neither is taken for something foreign. */
    snprintf(file, sizeof(file), "%s/00000003.zidx", path);
    CHECK(stat(file, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == 7);
    reopen();
    CHECK_INT(count, 1);
    CHECK_INT(run((struct zc_disk_op){.kind = ZC_DISK_REMOVE, .segment = 3, .sync_dir = true}), 0);
    CHECK(stat(file, &st) != 0);
    teardown();
}

TEST(disk_inline_after_measuring)
{
    uint8_t byte = 'x';
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(op_create(1), 0);
    struct zc_disk_op op = {.kind = ZC_DISK_WRITE,
                            .segment = 1,
                            .data = &byte,
                            .len = 1,
                            .sync = true,
                            .inline_ok = true};
    /* The first is never on the loop: how fast the disk is, is not known. */
    int before = completions, on_loop = 0;
    zc_disk_submit(disk, &op, on_done, &result);
    CHECK_INT(completions, before);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(completions, before + 1);
    for (int i = 0; i < 200; i++) {
        before = completions;
        op.offset = (uint64_t)i;
        zc_disk_submit(disk, &op, on_done, &result);
        on_loop += completions - before;
        uv_run(&loop, UV_RUN_DEFAULT);
        CHECK_INT(completions, before + 1);
        CHECK_INT(result, 1);
    }
    printf("  %d of 200 synced writes on the loop\n", on_loop);
    /* Cached bytes are read at once. */
    op = (struct zc_disk_op){
        .kind = ZC_DISK_READ, .segment = 1, .data = &byte, .len = 1, .inline_ok = true};
    CHECK_INT(run(op), 1);
    CHECK_INT(byte, 'x');
    teardown();
}

TEST(disk_reads_at_once_what_is_in_memory)
{
    /* Also the rest of a file, its end, and files that are not open yet; what is missing is told
     * as ever. */
    static const struct {
        uint64_t offset;
        size_t len;
        int64_t want;
    } reads[] = {{0, 16, 16}, {0, 1 << 20, 65536}, {65530, 16, 6}, {65536, 16, 0}, {70000, 16, 0}};
    static uint8_t got[1 << 20], text[65536];
    int on_loop = 0;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7 >> 3);
    setup();
    CHECK_INT(open_disk(), 0);
    CHECK_INT(op_create(5), 0);
    struct zc_disk_op op = {.segment = 5, .data = text, .len = sizeof(text), .kind = ZC_DISK_WRITE};
    CHECK_INT(run(op), sizeof(text));
    op.kind = ZC_DISK_INDEX_WRITE;
    CHECK_INT(run(op), sizeof(text));
    reopen();
    for (size_t i = 0; i < 2 * sizeof(reads) / sizeof(reads[0]); i++) {
        enum zc_disk_kind kind = i % 2 == 0 ? ZC_DISK_READ : ZC_DISK_INDEX_READ;
        int before = completions;
        op = (struct zc_disk_op){.kind = kind,
                                 .segment = 5,
                                 .offset = reads[i / 2].offset,
                                 .data = got,
                                 .len = reads[i / 2].len,
                                 .inline_ok = true};
        memset(got, 0, sizeof(got));
        zc_disk_submit(disk, &op, on_done, &result);
        on_loop += completions - before;
        uv_run(&loop, UV_RUN_DEFAULT);
        CHECK_INT(completions, before + 1);
        CHECK_INT(result, reads[i / 2].want);
        CHECK(result <= 0 || memcmp(got, text + op.offset, (size_t)result) == 0);
    }
    printf("  %d of 10 reads on the loop\n", on_loop);
    op.segment = 6;
    CHECK_INT(run(op), ZC_ENOENT);
    op.kind = ZC_DISK_READ;
    CHECK_INT(run(op), ZC_ENOENT);
    teardown();
}

TEST(disk_out_of_descriptors)
{
    uint8_t byte = 'y';
    setup();
    CHECK_INT(open_disk(), 0);
    for (uint32_t n = 1; n <= 40; n++) {
        CHECK_INT(op_create(n), 0);
        CHECK_INT(op_write(n, 0, "z"), 1);
    }
    struct rlimit old, none;
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    none = old;
    none.rlim_cur = 0;
    int fds[1024], n = 0;
    none.rlim_cur = 200;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    while (n < 1024 && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
        n++;
    /* The segments written last go on, and one more can be made; an old one can be read. */
    CHECK_INT(op_write(40, 8, "still"), 5);
    CHECK_INT(op_write(39, 8, "still"), 5);
    CHECK_INT(op_create(41), 0);
    CHECK_INT(op_write(41, 8, "still"), 5);
    CHECK_INT(run((struct zc_disk_op){
                  .kind = ZC_DISK_READ, .segment = 2, .offset = 0, .data = &byte, .len = 1}),
              1);
    CHECK_INT(byte, 'z');
    CHECK_INT(op_write(41, 8, "still"), 5);
    while (n > 0)
        close(fds[--n]);
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    teardown();
}

/* ---- a log on it ---- */

static struct zc_log *wal;
static bool ready, closed;
static uint64_t synced, records;

static struct zc_now now(void)
{
    return (struct zc_now){.mono = {(int64_t)uv_hrtime()}};
}

static void on_log_done(void *arg, const struct zc_disk_completion *done)
{
    (void)arg;
    zc_log_input(wal, now(), done);
}

static void pump(void)
{
    struct zc_log_event ev;
    struct zc_disk_op op;
    bool moved = true;
    while (moved) {
        moved = false;
        while (zc_log_event(wal, &ev)) {
            moved = true;
            ready = ready || ev.kind == ZC_LOG_READY;
            records += ev.kind == ZC_LOG_RECORD;
            if (ev.kind == ZC_LOG_SYNCED)
                synced = ev.ticket;
            if (ev.kind == ZC_LOG_STATE) {
                struct zc_log_status st;
                zc_log_status(wal, &st);
                closed = st.state == ZC_LOG_CLOSED;
            }
        }
        while (zc_log_op(wal, now(), &op)) {
            moved = true;
            zc_disk_submit(disk, &op, on_log_done, NULL);
        }
    }
}

/* Runs until *flag, or all is quiet. */
static void pump_until(const bool *flag)
{
    pump();
    while (!*flag && uv_loop_alive(&loop)) {
        uv_run(&loop, UV_RUN_ONCE);
        pump();
    }
}

static void open_log(void)
{
    struct zc_log_config config = {
        .segment_bytes = 1 << 20, .segments = segments, .segments_count = count};
    static struct zc_rng rng;
    uint8_t seed[32] = {7};
    zc_rng_init(&rng, seed);
    ready = closed = false;
    synced = records = 0;
    wal = zc_log_new(&config, &rng);
    pump_until(&ready);
    CHECK(ready);
}

static void close_log(void)
{
    zc_log_close(wal, now());
    pump_until(&closed);
    CHECK(closed);
    zc_log_free(wal);
}

TEST(disk_carries_a_log)
{
    uint8_t body[100];
    setup();
    CHECK_INT(open_disk(), 0);
    open_log();
    memset(body, 'b', sizeof(body));
    uint64_t start = uv_hrtime();
    for (uint64_t i = 1; i <= 2000; i++) {
        int64_t t = zc_log_append(wal, ZC_RECORD_PUT, i, zc_slice(body, sizeof(body)), true, NULL);
        CHECK(t == (int64_t)i);
        pump();
        while (synced < i && uv_loop_alive(&loop)) {
            uv_run(&loop, UV_RUN_ONCE);
            pump();
        }
        CHECK_INT(synced, i);
    }
    printf("  2000 puts one by one: %.1f us each\n", (double)(uv_hrtime() - start) / 2e6);
    start = uv_hrtime();
    for (uint64_t i = 2001; i <= 202000; i++) {
        CHECK(zc_log_append(wal, ZC_RECORD_PUT, i, zc_slice(body, sizeof(body)), true, NULL) > 0);
        if (i % 128 == 0) {
            pump();
            uv_run(&loop, UV_RUN_NOWAIT);
        }
    }
    bool never = false;
    pump_until(&never);
    CHECK_INT(synced, 202000);
    printf("  200000 puts in groups: %.2f us each\n", (double)(uv_hrtime() - start) / 2e8);
    close_log();
    reopen();
    CHECK(count > 20);
    start = uv_hrtime();
    open_log();
    printf("  202000 records read in %.1f ms\n", (double)(uv_hrtime() - start) / 1e6);
    CHECK_INT(records, 202000);
    close_log();
    teardown();
}
