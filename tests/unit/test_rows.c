/* Messages at rest as rows, and their ids, against naive models. */
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "test.h"
#include "zmqc/row_ids.h"
#include "zmqc/rows.h"

enum { MOST = 6000, STEPS = 60000 };

struct known {
    struct zc_row *row; /* NULL: gone */
    uint64_t key[2];
    uint64_t from;
    int64_t at_ms;
    bool deduped;
};

static struct zc_rng rng;
static struct known all[MOST]; /* by sequence number */
static uint64_t seq_next, there;
static struct zc_rows rows;
static struct zc_row_ids ids;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(zc_rng_u64(&rng) % n);
}

static void begin(uint8_t seed)
{
    uint8_t bytes[32] = {seed};
    zc_rng_init(&rng, bytes);
    memset(all, 0, sizeof(all));
    seq_next = 1;
    there = 0;
}

static void push(unsigned kind)
{
    uint64_t seq = seq_next;
    struct known *k = &all[seq];
    seq_next += 1 + below(kind == 1 ? 5 : 1);
    *k = (struct known){.from = kind == 0 ? 7 : below(3), .at_ms = 5000000 + (int64_t)seq};
    if (kind == 2 && below(50) == 0)
        k->at_ms += (int64_t)below(2) * 100000000 - 4000000; /* the clock was put */
    struct zc_row_like like = {.seq = seq,
                               .from = k->from,
                               .at_ms = k->at_ms,
                               .body_len = 200 + below(100),
                               .payload_len = below(200)};
    struct zc_row *r = zc_rows_push(&rows, &ids, NULL, &like);
    CHECK(r != NULL || kind == 2);
    if (r == NULL)
        return;
    CHECK_INT(r->body_len - r->head_len, like.payload_len);
    CHECK_INT(zc_rows_last(&rows), seq);
    k->row = r;
    k->key[0] = zc_rng_u64(&rng);
    k->key[1] = zc_rng_u64(&rng);
    if (kind == 3) /* all want the same few places */
        k->key[0] = (k->key[0] & 7) | (uint64_t)below(4) << 32;
    k->deduped = below(4) != 0 && zc_row_ids_add(&ids, r, k->key) == 0;
    there++;
}

static void drop(uint64_t seq)
{
    struct known *k = &all[seq];
    zc_row_ids_drop(&ids, k->row);
    CHECK(!k->deduped || zc_row_ids_find(&ids, k->key) == NULL);
    zc_rows_drop(&rows, &ids, k->row);
    k->row = NULL;
    there--;
}

static uint64_t from(uint64_t seq)
{
    while (seq < seq_next && all[seq].row == NULL)
        seq++;
    return seq;
}

static void look(uint64_t seq)
{
    uint64_t want = from(seq);
    struct zc_row *r = zc_rows_from(&rows, seq);
    CHECK((r != NULL) == (want < seq_next));
    if (r == NULL)
        return;
    CHECK(r == all[want].row);
    CHECK_INT(zc_row_seq(r), want);
    CHECK_INT(zc_row_at_ms(r), all[want].at_ms);
    CHECK_INT(zc_row_from(r), all[want].from);
    uint64_t next = from(want + 1);
    CHECK(zc_rows_next(&rows, r) == (next < seq_next ? all[next].row : NULL));
    if (all[want].deduped)
        CHECK(zc_row_ids_find(&ids, all[want].key) == r);
    uint64_t other[2] = {all[want].key[0], all[want].key[1] ^ 1};
    CHECK(zc_row_ids_find(&ids, other) == NULL);
    other[0] ^= UINT64_C(1) << 63;
    CHECK(zc_row_ids_find(&ids, other) == NULL);
}

/* kind 0: one sender; 1: gaps; 2: the clock jumps; 3: ids that collide */
static void run(unsigned kind)
{
    begin((uint8_t)(kind + 1));
    for (int step = 0; step < STEPS && seq_next + 6 < MOST; step++) {
        bool fill = step / 3000 % 2 == 0;
        if (below(8) < (fill ? 6u : 2u)) {
            push(kind);
        } else if (there > 0) {
            uint64_t seq = from(below(4) > 0 ? 0 : below((uint32_t)seq_next));
            if (seq < seq_next)
                drop(seq);
        }
        look(below((uint32_t)seq_next + 2));
        look(0);
        CHECK_INT(rows.count, there);
    }
    CHECK(seq_next > 1000);
    CHECK(ids.cap < 4 * MOST); /* whatever collides */
    for (uint64_t seq = 1; seq < seq_next; seq++) {
        if (all[seq].row != NULL)
            drop(seq);
    }
    CHECK(rows.chunks == NULL && rows.count == 0);
    CHECK(ids.refs == NULL && ids.chunks == NULL && ids.len == 0);
}

TEST(rows_like_a_model)
{
    run(0);
    run(1);
}

TEST(rows_when_the_clock_jumps)
{
    run(2);
}

TEST(ids_that_collide_are_refused_or_told_apart)
{
    run(3);
}

TEST(what_a_row_cannot_tell_is_refused)
{
    struct zc_row_like good = {.seq = 1, .at_ms = 1000, .body_len = 100, .payload_len = 50};
    struct zc_row_like bad = good;
    bad.body_len = bad.payload_len = ZC_ROW_BODY_END;
    CHECK(zc_rows_push(&rows, &ids, NULL, &bad) == NULL);
    bad = good;
    bad.body_len = 50 + ZC_ROW_HEAD_END;
    CHECK(zc_rows_push(&rows, &ids, NULL, &bad) == NULL);
    bad = good;
    bad.at_ms = -1;
    CHECK(zc_rows_push(&rows, &ids, NULL, &bad) == NULL);
    CHECK_INT(rows.count, 0);
    struct zc_row *r = zc_rows_push(&rows, &ids, NULL, &good);
    CHECK(r != NULL);
    zc_rows_drop(&rows, &ids, r);
    CHECK(rows.chunks == NULL && ids.chunks == NULL);
}

/* One old message does not keep all later ones from being rows. */
TEST(chunks_that_are_nearly_empty_are_few)
{
    struct zc_row_like like = {.seq = 1, .at_ms = 1000, .body_len = 100, .payload_len = 50};
    struct zc_row *made[20];
    uint32_t n = 0;
    for (; n < ZC_ARRAY_LEN(made); n++) {
        if ((made[n] = zc_rows_push(&rows, &ids, NULL, &like)) == NULL)
            break;
        like.seq += ZC_ROW_SPAN;
    }
    CHECK(n > 2 && n < 10);
    while (n > 0)
        zc_rows_drop(&rows, &ids, made[--n]);
    CHECK(rows.chunks == NULL && ids.chunks == NULL);
}
