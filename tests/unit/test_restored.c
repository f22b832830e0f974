/* What the log holds comes back into the mailboxes: any order of records, against a naive model. */
#include "test.h"
#include "zmqc/broker.h"
#include "zmqc/message.h"
#include "zmqc/rest.h"

#define SEQS 600
#define BOXES 3

struct model {
    bool there;
    int box;
    uint64_t place;
    uint32_t attempt;
    bool delayed;
};

static struct zc_broker *b;
static struct model models[SEQS + 3];
static bool kept[20 * SEQS]; /* places that the broker has not given up */
static uint64_t places, rnd_state;

static uint64_t rnd(uint64_t n)
{
    rnd_state = rnd_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (rnd_state >> 33) % n;
}

static void own(void *arg, uint64_t place, uint64_t *owner)
{
    (void)arg;
    CHECK(place > 0 && place <= places);
    CHECK(*owner == place);
    kept[place] = true;
}

static void forget(void *arg, uint64_t place)
{
    (void)arg;
    CHECK(kept[place]);
    kept[place] = false;
}

static int64_t append(void *arg, enum zc_journal_kind kind, uint64_t seq, struct zc_slice body,
                      bool sync_wanted, uint64_t *place)
{
    (void)arg, (void)kind, (void)seq, (void)body, (void)sync_wanted, (void)place;
    return ZC_EAGAIN; /* nothing here is to be written */
}

static const struct zc_journal journal = {.append = append, .forget = forget, .own = own};

static void start(uint64_t seed)
{
    static const uint8_t key[32] = {1};
    struct zc_broker_limits limits = {.mailboxes_max = 1, .hot_bytes = 100, .hot_messages = 1000};
    struct zc_now now = {.mono = {1000}, .wall = {1000000}};
    memset(models, 0, sizeof(models));
    memset(kept, 0, sizeof(kept));
    places = 0;
    rnd_state = seed;
    b = zc_broker_new(&limits, key, now);
    b->journal = &journal;
}

static void put(uint64_t seq, int box)
{
    char name[16];
    snprintf(name, sizeof(name), "box%d", box);
    struct zc_item item = {.name = zc_slice_str(name),
                           .id = zc_slice_str("id"),
                           .payload = zc_slice_str("payload"),
                           .at_ms = 5};
    struct zc_block *body = zc_item_encode(&item, NULL, 0);
    struct model *m = &models[seq];
    size_t len = rnd(2) == 0 ? body->len : zc_item_head(zc_block_slice(body));
    CHECK_INT(zc_broker_restore_put(b, seq, zc_slice(body->data, len), body->len, ++places), 0);
    zc_block_unref(body);
    if (!m->there)
        *m = (struct model){.there = true};
    m->box = box;
    m->place = places;
}

static void drop(uint64_t seq)
{
    zc_broker_restore_remove(b, seq);
    models[seq].there = false;
}

static void state(uint64_t seq, uint32_t attempt, bool delayed)
{
    zc_broker_restore_state(b, seq, attempt, delayed ? 2000000 : 0);
    models[seq].attempt = attempt;
    models[seq].delayed = delayed;
}

/* The mailboxes hold what the model says, in order. */
static void check(void)
{
    struct zc_now now = {.mono = {2000}, .wall = {1000001}};
    uint64_t kept_places = 0, there = 0;
    CHECK_INT(zc_broker_restored(b, now, SEQS), 0);
    CHECK_INT(b->ids.len, 0);
    for (int box = 0; box < BOXES; box++) {
        char name[16];
        const char *code, *text;
        snprintf(name, sizeof(name), "box%d", box);
        struct zc_mailbox *mb = zc_broker_mailbox(b, zc_slice_str(name), false, &code, &text);
        uint64_t queued = 0, delayed = 0;
        for (uint64_t seq = 1; seq <= SEQS; seq++) {
            const struct model *m = &models[seq];
            if (!m->there || m->box != box)
                continue;
            there++;
            CHECK(kept[m->place]);
            queued += !m->delayed;
            delayed += m->delayed;
            if (m->delayed)
                continue;
            uint64_t looked = 0;
            bool scarce;
            const struct zc_row *row = mb == NULL ? NULL : zc_rows_from(&mb->rows, seq);
            bool rested = row != NULL && zc_row_seq(row) == seq;
            struct zc_message *got =
                mb == NULL ? NULL : zc_rest_next(b, mb, NULL, &looked, &scarce);
            CHECK(got != NULL && got->seq == seq && got->place == m->place);
            CHECK(got != NULL && got->attempt == m->attempt && got->returned == rested);
            if (got == NULL)
                return;
            zc_message_free(b, got);
            mb = zc_broker_mailbox(b, zc_slice_str(name), false, &code, &text);
        }
        CHECK_INT(mb == NULL ? 0 : mb->delayed, delayed);
        CHECK_INT(mb == NULL ? 0 : mb->queued, 0);
        CHECK(mb == NULL || mb->pins == 0);
    }
    for (uint64_t i = 0; i <= places; i++)
        kept_places += kept[i];
    CHECK_INT(kept_places, there);
}

TEST(records_in_any_order)
{
    for (uint64_t seed = 0; seed < 300 && test_faults == 0; seed++) {
        uint64_t next = 1, copies = rnd(4);
        start(seed);
        for (int i = 0; i < 1200; i++) {
            uint64_t any = 1 + rnd(next), pick = rnd(10);
            if (pick < 4 && next < SEQS) {
                next += rnd(2); /* some come later, as copies only */
                put(next++, (int)rnd(BOXES));
            } else if (pick < 6) {
                drop(any); /* perhaps of nothing */
            } else if (pick < 7 && models[any].there) {
                state(any, (uint32_t)i, rnd(3) == 0);
            } else if (pick < 7 + copies && any < next) {
                put(any, models[any].there && rnd(4) > 0 ? models[any].box : (int)rnd(BOXES));
            }
        }
        check();
        zc_broker_free(b);
    }
}

TEST(only_copies_and_none_in_order)
{
    start(7);
    for (uint64_t seq = SEQS; seq > 0; seq--)
        put(seq, (int)(seq % BOXES));
    for (uint64_t seq = 2; seq <= SEQS; seq += 3)
        drop(seq);
    check();
    zc_broker_free(b);
}

TEST(what_was_consumed_leaves_no_table)
{
    start(8);
    for (int round = 0; round < 4; round++) {
        for (uint64_t seq = 1 + 100 * (uint64_t)round; seq <= 100 * (uint64_t)round + 100; seq++)
            put(seq, 0);
        CHECK(b->restored.cap <= 256);
        for (uint64_t seq = 1 + 100 * (uint64_t)round; seq <= 100 * (uint64_t)round + 95; seq++)
            drop(seq);
    }
    check();
    zc_broker_free(b);
}

TEST(what_came_back_is_not_gone)
{
    start(10);
    for (uint64_t seq = 1; seq <= 64; seq++) {
        put(seq, 0);
        drop(seq);
        put(seq, 1);
    }
    CHECK_INT(b->restored.gone, 0);
    put(65, 0);
    CHECK(b->restored.len == 65 && b->restored.cap >= 65);
    check();
    zc_broker_free(b);
}

TEST(a_broker_that_ends_before_all_is_there)
{
    start(9);
    for (uint64_t seq = SEQS; seq > 0; seq--) {
        put(seq, (int)(seq % BOXES));
        if (seq % 2 == 0 && seq < SEQS)
            put(seq + 1, 0);
    }
    zc_broker_free(b);
}
