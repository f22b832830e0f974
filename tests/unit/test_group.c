/* Waiters with a filter: what a group finds, against a naive model, and how much it looks at. */
#include "base/rng.h"
#include "test.h"
#include "zmqc/group.h"

enum { MESSAGES = 700, GROUPS = 4 };

static const uint8_t key[16] = {1};
static struct zc_rng rng;
static struct zc_message all[20000];

static uint32_t below(uint32_t n)
{
    return (uint32_t)(zc_rng_u64(&rng) % n);
}

static struct zc_group *join(struct zc_mailbox *mb, const char *text)
{
    struct zc_filter *filter = NULL;
    CHECK_INT(zc_filter_new(key, zc_slice_str(text), zc_slice_str(""), &filter), 0);
    return zc_group_join(mb, filter);
}

static void make(struct zc_mailbox *mb, uint32_t i)
{
    static const char *const names[] = {"a", "b", "c"};
    struct zc_message *m = &all[i];
    *m = (struct zc_message){.seq = i + 1, .mailbox = mb};
    zc_list_init(&m->link);
    m->from = zc_filter_hash(key, zc_slice_str(names[below(3)]));
    zc_mailbox_count(mb, m, 1);
    zc_mailbox_enter(mb, m);
}

static void end(struct zc_mailbox *mb, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        if (all[i].state == ZC_MESSAGE_QUEUED)
            zc_mailbox_take_out(mb, &all[i], ZC_MESSAGE_REMOVING);
        zc_mailbox_count(mb, &all[i], -1);
    }
    zc_mailbox_free(mb);
}

static struct zc_message *oldest(const struct zc_group *g, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (all[i].state == ZC_MESSAGE_QUEUED && zc_filter_allows(g->filter, all[i].from))
            return &all[i];
    return NULL;
}

/* Some out of the order, some back, in waves, and what each group finds meanwhile. */
static void play(struct zc_mailbox *mb, struct zc_group *const *groups)
{
    uint32_t len = 0;
    for (int step = 0; step < 3000; step++) {
        struct zc_group *g = groups[below(GROUPS)];
        uint64_t looked = 0;
        uint32_t wave = below(20) == 0 ? 300 : below(3), dice = below(3);
        for (uint32_t i = 0; i < wave; i++) {
            struct zc_message *m = len > 0 ? &all[below(len)] : NULL;
            if (dice == 0 && len < MESSAGES)
                make(mb, len++);
            else if (dice == 1 && m != NULL && m->state == ZC_MESSAGE_QUEUED)
                zc_mailbox_take_out(mb, m, ZC_MESSAGE_LEASED);
            else if (dice == 2 && m != NULL && m->state == ZC_MESSAGE_LEASED)
                zc_mailbox_enter(mb, m);
        }
        struct zc_message *m = zc_group_find(mb, g, &looked);
        CHECK(m == oldest(g, len));
        if (m != NULL && below(2) == 0)
            zc_mailbox_take_out(mb, m, ZC_MESSAGE_LEASED);
    }
    end(mb, len);
}

TEST(the_oldest_that_it_wants)
{
    for (uint8_t n = 1; n < 12; n++) {
        uint8_t seed[32] = {n};
        zc_rng_init(&rng, seed);
        struct zc_mailbox *mb = zc_mailbox_new(zc_slice_str("q"));
        struct zc_group *groups[GROUPS] = {join(mb, "a"), join(mb, "a,b"), join(mb, "!c"),
                                           join(mb, "nobody")};
        play(mb, groups);
    }
}

/* A worker dies and all that it held comes back: what others look at to get it. */
TEST(looks_are_few_for_each_message)
{
    uint32_t len = ZC_ARRAY_LEN(all), found = 0;
    uint64_t looked = 0;
    struct zc_mailbox *mb = zc_mailbox_new(zc_slice_str("q"));
    struct zc_group *g = join(mb, "!c"), *other = join(mb, "a");
    for (uint32_t i = 0; i < len; i++) {
        make(mb, i);
        zc_mailbox_take_out(mb, &all[i], ZC_MESSAGE_LEASED);
    }
    for (uint32_t i = len; i > 0; i--)
        zc_mailbox_enter(mb, &all[i - 1]);
    CHECK_INT(mb->returned.len, len - 1); /* the first one found the queue empty */
    for (struct zc_message *m; (m = zc_group_find(mb, g, &looked)) != NULL; found++) {
        zc_mailbox_take_out(mb, m, ZC_MESSAGE_LEASED);
        if (found % 16 == 0) { /* it fails, and is given again */
            zc_mailbox_enter(mb, m);
            CHECK(zc_group_find(mb, g, &looked) == m);
            zc_mailbox_take_out(mb, m, ZC_MESSAGE_LEASED);
            CHECK(zc_group_find(mb, other, &looked) != m);
        }
    }
    CHECK(found > len / 2);
    CHECK(looked < (uint64_t)found * (2 * len / ZC_GROUP_NEAR + 20));
    end(mb, len);
}

/* Somebody waits with that filter, and no more: whether its group was remembered. */
static bool visit(struct zc_mailbox *mb, uint32_t n)
{
    char name[16];
    uint64_t idle = mb->groups_idle;
    snprintf(name, sizeof(name), "n%u", n);
    struct zc_group *g = join(mb, name);
    bool known = mb->groups_idle < idle;
    zc_group_leave(mb, g);
    return known;
}

TEST(without_waiters_those_that_had_some_last_are_remembered)
{
    struct zc_mailbox *mb = zc_mailbox_new(zc_slice_str("q"));
    join(mb, "held");
    for (uint32_t n = 0; n < ZC_GROUPS_IDLE; n++)
        CHECK(!visit(mb, n));
    CHECK(visit(mb, 0)); /* which makes it the youngest */
    CHECK(!visit(mb, ZC_GROUPS_IDLE));
    CHECK_INT(mb->groups_count, ZC_GROUPS_IDLE + 1);
    CHECK(visit(mb, 0));
    CHECK(visit(mb, 2));
    CHECK(!visit(mb, 1));
    CHECK_INT(mb->groups_count, ZC_GROUPS_IDLE + 1);
    zc_mailbox_free(mb);
}
