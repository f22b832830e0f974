/* Mailbox order against a naive model: always the lowest sequence number, whatever returned. */
#include "base/rng.h"
#include "test.h"
#include "zmqc/mailbox.h"

enum { MESSAGES = 300, STEPS = 20000 };

static struct zc_message *make(struct zc_mailbox *mb, uint64_t seq)
{
    struct zc_message *m = calloc(1, sizeof(*m));
    zc_list_init(&m->link);
    m->seq = seq;
    m->mailbox = mb;
    m->payload_len = (uint32_t)(seq % 7);
    m->state = ZC_MESSAGE_PENDING;
    zc_mailbox_count(mb, m, 1);
    return m;
}

static void drop(struct zc_mailbox *mb, struct zc_message *m)
{
    zc_mailbox_count(mb, m, -1);
    free(m);
}

TEST(lowest_first_whatever_returns)
{
    uint8_t seed[32] = {9};
    struct zc_rng rng;
    zc_rng_init(&rng, seed);
    struct zc_mailbox *mb = zc_mailbox_new(zc_slice_str("jobs"));
    struct zc_message *queued[MESSAGES] = {0}, *leased[MESSAGES] = {0};
    uint64_t seq = 1;
    for (int step = 0; step < STEPS; step++) {
        uint64_t dice = zc_rng_u64(&rng) % 10, slot = zc_rng_u64(&rng) % MESSAGES;
        struct zc_message *low = NULL;
        for (int i = 0; i < MESSAGES; i++) {
            if (queued[i] != NULL && (low == NULL || queued[i]->seq < low->seq))
                low = queued[i];
        }
        CHECK(zc_mailbox_peek(mb) == low);
        if (dice < 4 && queued[slot] == NULL && leased[slot] == NULL) {
            queued[slot] = make(mb, seq++);
            zc_mailbox_enter(mb, queued[slot]);
        } else if (dice < 7 && low != NULL) {
            zc_mailbox_take_out(mb, low, ZC_MESSAGE_LEASED);
            for (int i = 0; i < MESSAGES; i++) {
                if (queued[i] == low) {
                    queued[i] = NULL;
                    leased[i] = low;
                }
            }
        } else if (dice < 9 && leased[slot] != NULL) {
            zc_mailbox_enter(mb, leased[slot]); /* nack */
            queued[slot] = leased[slot];
            leased[slot] = NULL;
        } else if (leased[slot] != NULL) {
            drop(mb, leased[slot]); /* ack */
            leased[slot] = NULL;
        }
    }
    uint64_t n = 0, bytes = 0, held = 0;
    for (int i = 0; i < MESSAGES; i++) {
        struct zc_message *any = queued[i] != NULL ? queued[i] : leased[i];
        n += queued[i] != NULL;
        held += leased[i] != NULL;
        bytes += any != NULL ? any->payload_len : 0;
    }
    CHECK_INT(mb->queued, n);
    CHECK_INT(mb->leased, held);
    CHECK_INT(mb->bytes, bytes);
    for (int i = 0; i < MESSAGES; i++) {
        if (queued[i] != NULL) {
            zc_mailbox_take_out(mb, queued[i], ZC_MESSAGE_REMOVING);
            drop(mb, queued[i]);
        }
        if (leased[i] != NULL)
            drop(mb, leased[i]);
    }
    CHECK(zc_mailbox_idle(mb));
    zc_mailbox_free(mb);
}
