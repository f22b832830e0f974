/* What goes on beside puts leaves the disk to them. */
#include "store/log_priv.h"
#include "store_user.h"

static struct user u;

/* What has to be done before a put of this moment is on disk. */
static void put_waits(uint64_t *writes, uint64_t *bytes)
{
    int64_t seq = user_put(&u);
    CHECK(seq > 0);
    *writes = *bytes = 0;
    for (int i = 0; u.msgs[seq].state == U_PENDING && i < 1000; i++) {
        int at = -1;
        user_ops(&u);
        for (int k = 0; k < u.disk.queued; k++) {
            if (u.disk.queue[k].kind == ZC_DISK_WRITE && u.disk.queue[k].id != ZC_LOG_SLOT_NEXT)
                at = k;
        }
        /* Nothing of what else goes on has to end first. */
        CHECK(at >= 0 || u.disk.queued == 0 || zc_log_writing(u.log));
        if (at >= 0) {
            ++*writes;
            *bytes += u.disk.queue[at].len;
            user_complete(&u, at);
        }
        user_events(&u);
    }
    CHECK_INT(u.msgs[seq].state, U_LIVE);
}

TEST(clean_leaves_the_disk_to_puts)
{
    /* The host's pool has four threads. However much is cleaned, removed, indexed and read, the
     * write that a put waits for has one of them, and little comes before it. */
    uint64_t kinds = 0, tidied = 0;
    user_init(&u, 14);
    u.segment_bytes = UINT64_C(1) << 20;
    user_open(&u);
    user_strew(&u, 50000, 3);
    for (int i = 0; i < 6000 && u.seq_next < USER_SEQS - 100; i++) {
        uint64_t seq = u.seq_next - 1 - fd_rand(&u.disk) % 20000, writes = 0, bytes = 0;
        if (u.msgs[seq].state == U_LIVE && u.disk.queued < FD_QUEUE / 2)
            CHECK_INT(
                zc_log_read(u.log, u.msgs[seq].place, user_len(&u, seq), (void *)(uintptr_t)seq),
                0);
        user_ops(&u);
        int beside = 0, tidying = 0;
        for (int k = 0; k < u.disk.queued; k++) {
            const struct zc_disk_op *op = &u.disk.queue[k];
            bool tidy = op->id == ZC_LOG_SLOT_CLEAN || op->id == ZC_LOG_SLOT_INDEX;
            beside += op->id != ZC_LOG_SLOT_WRITE && op->id != ZC_LOG_SLOT_BEHIND;
            tidying += tidy;
            kinds |= UINT64_C(1) << (op->id < 63 ? op->id : 63);
            CHECK(op->id != ZC_LOG_SLOT_INDEX || !op->inline_ok);
            CHECK(!tidy || op->kind != ZC_DISK_READ || op->len <= (256u << 10));
        }
        CHECK(beside <= 3);
        CHECK(tidying <= 1);
        tidied += (uint64_t)tidying;
        if (i % 40 == 0) {
            put_waits(&writes, &bytes);
            CHECK(writes <= 3);
            CHECK(bytes <= (2u << 20) + 65536);
        } else if (u.disk.queued > 0) {
            user_complete(&u, (int)(fd_rand(&u.disk) % (uint64_t)u.disk.queued));
        }
        user_events(&u);
        u.now.mono.ns += ZC_NS_PER_MS;
    }
    CHECK((kinds >> ZC_LOG_SLOT_CLEAN & 1) != 0 && (kinds >> ZC_LOG_SLOT_TRIM & 1) != 0);
    CHECK(tidied > 100 && u.moves > 1000);
    user_run(&u);
    user_done(&u);
}
