/*
 * Every allocation of the log fails once, and all from there on for a while: while it is opened,
 * written, read, cleaned, indexed and closed. What was acknowledged is there at the next start, and
 * with memory back the log works as before.
 *
 * Built with the linker's --wrap, where that is to be had.
 */
#include "store/log.h"
#include "test.h"

#ifdef ZC_TEST_WRAP

#include <limits.h>

#include "no_memory.h"

/* Only the log's own allocations count, not those of the disk and the user that are played. */
#define zc_log_new(...) ALONE(zc_log_new(__VA_ARGS__))
#define zc_log_append(...) ALONE(zc_log_append(__VA_ARGS__))
#define zc_log_move(...) ALONE(zc_log_move(__VA_ARGS__))
#define zc_log_read(...) ALONE(zc_log_read(__VA_ARGS__))
#define zc_log_op(...) ALONE(zc_log_op(__VA_ARGS__))
#define zc_log_event(...) ALONE(zc_log_event(__VA_ARGS__))
#define zc_log_input(...) ALONE_VOID(zc_log_input(__VA_ARGS__))
#define zc_log_tick(...) ALONE_VOID(zc_log_tick(__VA_ARGS__))
#define zc_log_close(...) ALONE_VOID(zc_log_close(__VA_ARGS__))

#include "store_user.h"

enum { MESSAGES = 700 };

static long refused_calls;

static void note(int64_t got)
{
    if (got >= 0)
        return;
    refused_calls++;
    CHECK(failed);
    CHECK(got == ZC_ENOMEM || got == ZC_EIO);
}

/* Opens it, a second time if there was no memory the first time; that one must succeed. */
static void open_again(struct user *u)
{
    for (int i = 0; i < 2; i++) {
        user_open_quiet(u);
        if (u->log != NULL)
            user_run(u);
        if (u->ready)
            return;
        CHECK(failed && (u->log == NULL || u->unusable));
        zc_log_free(u->log);
        fd_kill(&u->disk);
        no_memory(LONG_MAX, false);
        failed = true;
    }
    CHECK(!"it cannot be opened with memory");
}

static void read_some(struct user *u)
{
    for (uint64_t seq = 1; seq < u->seq_next; seq += 7) {
        struct user_msg *m = &u->msgs[seq];
        if (m->state == U_LIVE)
            note(zc_log_read(u->log, m->place, user_len(u, seq), (void *)(uintptr_t)seq));
    }
    user_run(u);
}

/* Puts, of which every fifth stays: what is full is cleaned and indexed on the way. */
static void work(struct user *u)
{
    uint64_t from = u->seq_next;
    for (int i = 0; i < MESSAGES; i++) {
        note(user_put(u));
        if (i % 50 == 0)
            note(user_mark(u, u->seq_next - 1));
        if (i % 9 == 0)
            user_run(u);
    }
    user_wait(u, 100);
    read_some(u);
    for (uint64_t seq = from; seq < u->seq_next; seq++)
        if (seq % 5 != 0 && u->msgs[seq].state == U_LIVE)
            note(user_remove(u, seq));
    user_wait(u, 2000);
}

/* Memory is back: the log is well, and takes what it is given. */
static void check_works(struct user *u)
{
    no_memory(LONG_MAX, false);
    user_wait(u, 5000);
    CHECK_INT(user_status(u).state, ZC_LOG_OK);
    int64_t seq = user_put(u);
    CHECK(seq > 0);
    user_wait(u, 100);
    CHECK(seq < 0 || u->msgs[seq].state == U_LIVE);
    user_close(u);
    user_open(u); /* checks all that was promised */
    CHECK(u->ready);
    CHECK_INT(u->missing, 0);
}

/* A life in which the allocation after n others fails; false: there are not that many. */
static bool run(long n, bool for_good)
{
    struct user u;
    user_init(&u, 7);
    u.heads = true;
    no_memory(LONG_MAX, false);
    user_open(&u);
    work(&u);
    user_close(&u);
    no_memory(n, for_good);
    open_again(&u);
    if (!failed)
        work(&u);
    else
        user_wait(&u, 100);
    bool any = failed;
    check_works(&u);
    user_done(&u);
    return any;
}

TEST(one_allocation_fails)
{
    long n = 0;
    while (run(n, false))
        n++;
    CHECK(n > 40);
    CHECK(refused_calls > 0);
}

TEST(memory_is_gone_for_a_while)
{
    for (long n = 0; run(n, true);)
        n++;
}

#endif
