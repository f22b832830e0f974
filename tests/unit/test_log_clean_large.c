/* Cleaning of segments that are larger than what is read at once. */
#include "store_user.h"

static struct user u;

/* A large segment is read in several pieces; a write may fail between them, as the first round of
 * cleaning does here between its requests 40 and 80. */
TEST(clean_fault_between_reads_of_a_segment)
{
    for (int n = 40; n < 80; n++) {
        user_init(&u, 900 + (uint64_t)n);
        u.segment_bytes = 1 << 20;
        user_open(&u);
        for (int i = 0; i < 14000; i++)
            CHECK(user_put(&u) > 0);
        user_run(&u);
        for (uint64_t seq = 1; seq < u.seq_next; seq++)
            if (seq % 16 != 0)
                CHECK_INT(user_remove(&u, seq), 0);
        u.disk.fail_at = u.disk.ops + (uint64_t)n;
        u.disk.fail_err = ZC_EIO;
        for (int i = 0; i < 40; i++) {
            user_wait(&u, 20);
            (void)user_put(&u);
        }
        user_wait(&u, 3000);
        u.disk.fail_at = 0;
        CHECK_INT(u.state, ZC_LOG_OK);
        for (uint64_t seq = 16; seq < u.seq_next; seq += 16) {
            CHECK_INT(
                zc_log_read(u.log, u.msgs[seq].place, user_len(&u, seq), (void *)(uintptr_t)seq),
                0);
            user_run(&u);
            CHECK_INT(u.read_err, 0);
        }
        user_done(&u);
    }
}
