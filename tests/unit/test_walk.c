/* What a walk through a mailbox finds, against a naive model. */
#include "base/rng.h"
#include "test.h"
#include "zmqc/walk.h"

enum { MESSAGES = 400, ROUNDS = 300 };

static struct zc_rng rng;

static uint32_t upto(uint32_t n)
{
    return (uint32_t)(zc_rng_u64(&rng) % (n + 1));
}

/* A message in one of the states that a walk meets, or leased. */
static void place(struct zc_mailbox *mb, struct zc_message *m, uint64_t seq)
{
    *m = (struct zc_message){.seq = seq, .mailbox = mb, .state = ZC_MESSAGE_PENDING};
    zc_list_init(&m->link);
    zc_mailbox_count(mb, m, 1);
    uint32_t dice = upto(9);
    if (dice == 0) {
        zc_mailbox_set_state(mb, m, ZC_MESSAGE_DELAYED);
        return;
    }
    zc_mailbox_enter(mb, m);
    if (dice < 4)
        zc_mailbox_take_out(mb, m, ZC_MESSAGE_LEASED);
}

/* Some of what is leased comes back, some with a delay. */
static void give_back(struct zc_mailbox *mb, struct zc_message *m)
{
    if (m->state != ZC_MESSAGE_LEASED || upto(3) == 0)
        return;
    if (upto(3) == 0)
        zc_mailbox_set_state(mb, m, ZC_MESSAGE_DELAYED);
    else
        zc_mailbox_enter(mb, m);
}

static void check_walk(const struct zc_mailbox *mb, struct zc_message *all, uint32_t len)
{
    static struct zc_message *found[ZC_WALK_MAX];
    bool delayed = upto(1) == 1;
    uint32_t cap = upto(len + 5), n = 0, want = 0, late = 0;
    uint64_t limit = upto(len + 5);
    n = zc_walk_collect(mb, limit, delayed, found, cap);
    for (uint32_t i = 0; i < len; i++) {
        bool below = all[i].seq < limit;
        late += below && delayed && all[i].state == ZC_MESSAGE_DELAYED;
        if (!below || all[i].state != ZC_MESSAGE_QUEUED || want >= cap)
            continue;
        CHECK(want < n && found[want] == &all[i]);
        want++;
    }
    CHECK_INT(n, want + late < cap ? want + late : cap);
    for (uint32_t i = want; i < n; i++) {
        CHECK_INT(found[i]->state, ZC_MESSAGE_DELAYED);
        CHECK(found[i]->seq < limit);
        CHECK(i == want || found[i] != found[i - 1]);
    }
}

TEST(in_order_below_the_limit)
{
    static struct zc_message all[MESSAGES];
    uint8_t seed[32] = {3};
    zc_rng_init(&rng, seed);
    for (int round = 0; round < ROUNDS; round++) {
        struct zc_mailbox *mb = zc_mailbox_new(zc_slice_str("jobs"));
        uint32_t len = upto(MESSAGES);
        for (uint32_t i = 0; i < len; i++)
            place(mb, &all[i], i + 1);
        for (uint32_t i = 0; i < len; i++)
            give_back(mb, &all[i * 7919 % len]);
        for (int i = 0; i < 8; i++)
            check_walk(mb, all, len);
        for (uint32_t i = 0; i < len; i++) {
            if (all[i].state == ZC_MESSAGE_QUEUED)
                zc_mailbox_take_out(mb, &all[i], ZC_MESSAGE_REMOVING);
            else
                zc_mailbox_set_state(mb, &all[i], ZC_MESSAGE_REMOVING);
            zc_mailbox_count(mb, &all[i], -1);
        }
        CHECK(zc_mailbox_idle(mb));
        zc_mailbox_free(mb);
    }
}
