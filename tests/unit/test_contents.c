/* The contents of a log against a naive model: random puts, moves between mailboxes, removals,
 * states, bindings and remembered ids. */
#include "base/le.h"
#include "node/contents.h"
#include "test.h"
#include "zmqc/item.h"

#define SEQS 300

struct known {
    int type; /* 0: gone */
    int box;
    uint32_t attempt;
    int64_t due_ms;
    uint64_t place;
    bool state;
};

static struct known known[2 * SEQS]; /* the second half: remembered ids */
static uint64_t rng = 5, place;
static struct zc_contents contents;

static uint32_t rnd(uint32_t n)
{
    rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static void give(enum zc_record_type type, uint64_t seq, const void *body, size_t len)
{
    struct zc_log_event ev = {.kind = ZC_LOG_RECORD,
                              .type = type,
                              .seq = seq,
                              .body = zc_slice(body, len),
                              .body_len = (uint32_t)len,
                              .place = ++place};
    CHECK_INT(zc_contents_record(&contents, &ev), 0);
}

static void put(uint64_t seq)
{
    char name[16];
    int box = (int)rnd(9);
    snprintf(name, sizeof(name), "box%d", box);
    struct zc_item item = {.name = zc_slice_str(name), .payload = zc_slice_str("x")};
    struct zc_block *b = zc_item_encode(&item, NULL, 0);
    CHECK(b != NULL);
    give(ZC_RECORD_PUT, seq, b->data, b->len);
    zc_block_unref(b);
    struct known *k = &known[seq];
    if (k->type != ZC_RECORD_PUT)
        *k = (struct known){.type = ZC_RECORD_PUT};
    k->box = box;
    k->place = place;
}

static void step(void)
{
    uint64_t seq = rnd(SEQS);
    uint8_t body[24] = {0};
    struct known *k = &known[seq];
    switch (rnd(7)) {
    case 0:
        zc_le_put(body, seq, 8);
        zc_le_put(body + 8, rnd(SEQS), 8);
        known[zc_le_get(body + 8, 8)].type = k->type = 0;
        give(ZC_RECORD_REMOVE, 0, body, 16);
        break;
    case 1:
        zc_le_put(body, rnd(100), 4);
        zc_le_put(body + 4, rnd(1000), 8);
        if (k->type == ZC_RECORD_PUT) {
            k->attempt = (uint32_t)zc_le_get(body, 4);
            k->due_ms = (int64_t)zc_le_get(body + 4, 8);
            k->state = true;
        }
        give(ZC_RECORD_STATE, seq, body, 12);
        break;
    case 2:
        if (k->type == ZC_RECORD_PUT)
            break;
        give(ZC_RECORD_BIND, seq, "\4\0\0\0name", 8);
        *k = (struct known){.type = ZC_RECORD_BIND, .place = place};
        break;
    case 3:
        zc_le_put(body + 8, seq, 8);
        zc_le_put(body + 16, rnd(1000), 8);
        give(ZC_RECORD_SEEN, rnd(2) * seq, body, 24);
        known[SEQS + seq] = (struct known){
            .type = ZC_RECORD_SEEN, .place = place, .due_ms = (int64_t)zc_le_get(body + 16, 8)};
        break;
    default:
        put(seq);
    }
}

static void check_entry(const struct zc_contents_entry *e)
{
    bool seen = e->type == ZC_RECORD_SEEN;
    const struct known *k = &known[seen ? SEQS + e->key : e->key];
    CHECK(e->type == k->type && e->place == k->place);
    CHECK(e->attempt == k->attempt && e->has_state == k->state);
    CHECK(e->due_ms == k->due_ms);
    if (e->type == ZC_RECORD_PUT)
        CHECK_INT(contents.boxes[e->box]->name[3] - '0', k->box);
}

static void check_all(void)
{
    uint32_t live = 0, boxes[10] = {0};
    for (int i = 0; i < 2 * SEQS; i++) {
        live += known[i].type != 0;
        boxes[known[i].box] += known[i].type == ZC_RECORD_PUT;
    }
    CHECK_INT(contents.live, live);
    CHECK_INT(contents.messages + contents.bindings + contents.seen, live);
    for (uint32_t i = 0; i < contents.boxes_len; i++)
        CHECK_INT(contents.boxes[i]->messages, boxes[contents.boxes[i]->name[3] - '0']);
    struct zc_contents_entry **all = zc_contents_sorted(&contents);
    CHECK(all != NULL);
    for (uint32_t i = 0; i < live; i++) {
        check_entry(all[i]);
        if (i == 0 || all[i]->type == ZC_RECORD_SEEN)
            continue;
        CHECK(all[i - 1]->type != ZC_RECORD_SEEN && all[i - 1]->key < all[i]->key);
    }
    free(all);
}

TEST(contents_are_what_the_records_say)
{
    for (int round = 0; round < 20; round++) {
        memset(known, 0, sizeof(known));
        for (int i = 0; i < 3000; i++) {
            step();
            if (i % 500 == 0)
                check_all();
        }
        check_all();
        zc_contents_expire(&contents, 500);
        for (int i = SEQS; i < 2 * SEQS; i++)
            known[i].type = known[i].due_ms <= 500 ? 0 : known[i].type;
        check_all();
        zc_contents_done(&contents);
    }
}

/* Many at once, so that the table grows often. */
TEST(contents_grow)
{
    memset(known, 0, sizeof(known));
    struct zc_item item = {.name = zc_slice_str("q")};
    struct zc_block *b = zc_item_encode(&item, NULL, 0);
    for (uint64_t seq = 1; seq <= 50000; seq++)
        give(ZC_RECORD_PUT, seq * 1000003, b->data, b->len);
    CHECK_INT(contents.live, 50000);
    for (uint64_t seq = 1; seq <= 50000; seq += 2) {
        uint8_t body[8];
        zc_le_put(body, seq * 1000003, 8);
        give(ZC_RECORD_REMOVE, 0, body, 8);
    }
    CHECK_INT(contents.messages, 25000);
    CHECK_INT(contents.boxes[0]->messages, 25000);
    give(ZC_RECORD_PUT, 7, "nonsense", 8);
    CHECK_INT(contents.unreadable, 1);
    CHECK_INT(contents.messages, 25000);
    zc_block_unref(b);
    zc_contents_done(&contents);
}

/* As a broker, which leaves them where they are. */
TEST(what_cannot_be_understood_is_counted)
{
    give(ZC_RECORD_PUT, 7, "nonsense", 8);
    give(ZC_RECORD_BIND, 8, "\4\0\0\0nam", 7);
    give(ZC_RECORD_BIND, 9, "\0\0\4\0name", 8);
    give(ZC_RECORD_SEEN, 10, "nonsense", 8);
    CHECK_INT(contents.unreadable, 4);
    CHECK_INT(contents.live, 0);
    zc_contents_done(&contents);
}
