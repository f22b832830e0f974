/* The queue of records against a naive model: what waits, in which order, and how many bytes. */
#include "store/batch.h"
#include "test.h"

#define MODEL_MAX 4096

/* Records by ticket: where each stands. */
static enum { GONE, WAITING, WRITTEN } model[MODEL_MAX];
static uint32_t sizes[MODEL_MAX];
static uint64_t last; /* ticket */
static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % n;
}

static uint64_t sum(int what)
{
    uint64_t bytes = 0;
    for (uint64_t t = 1; t <= last; t++)
        bytes += (int)model[t] == what ? sizes[t] : 0;
    return bytes;
}

/* What waits in q is what waits in the model, in order, with its own bytes. */
static void compare(const struct zc_batches *q)
{
    uint64_t t = 1;
    for (const struct zc_batch *b = q->at; b != NULL; b = b->next) {
        const uint8_t *record = b->data.data + b->written_pos;
        CHECK(b->kept <= b->written && b->written <= b->count);
        for (uint32_t i = b->written; i < b->count; i++) {
            while (t <= last && model[t] != WAITING)
                t++;
            CHECK(t <= last);
            CHECK_INT(b->ticket + i, t);
            CHECK_INT(zc_record_get64(record + 16), t);
            CHECK_INT(b->items[i].size, sizes[t]);
            record += b->items[i].size;
            t++;
        }
    }
    while (t <= last && model[t] != WAITING)
        t++;
    CHECK_INT(t, last + 1);
    CHECK_INT(q->waiting, sum(WAITING));
    CHECK_INT(q->unsynced, sum(WRITTEN));
}

static void append(struct zc_batches *q)
{
    static const uint8_t bytes[300];
    struct zc_slice body = zc_slice(bytes, below(sizeof(bytes)));
    last++;
    sizes[last] = (uint32_t)zc_record_size(body.len);
    model[last] = WAITING;
    CHECK_INT(zc_batch_append(q, last, ZC_RECORD_PUT, last, body, below(2) == 0, NULL), 0);
}

/* Some of what waits first is handed to the disk, now and then after a split. */
static void write_some(struct zc_batches *q)
{
    struct zc_batch *b = q->at;
    if (b == NULL || b->written == b->count)
        return;
    uint32_t n = 1 + below(b->count - b->written);
    if (below(2) == 0)
        zc_batch_split(q, b, b->written + n);
    b->closed = true;
    for (uint32_t i = 0; i < n; i++)
        model[b->ticket + b->written + i] = WRITTEN;
    zc_batch_written(q, n);
}

static void release(struct zc_batches *q)
{
    uint64_t upto = below((uint32_t)last + 1);
    for (uint64_t t = 1; t <= upto; t++)
        model[t] = model[t] == WRITTEN ? GONE : model[t];
    zc_batch_release(q, upto);
}

static void rewind_all(struct zc_batches *q)
{
    for (uint64_t t = 1; t <= last; t++)
        model[t] = model[t] == WRITTEN ? WAITING : model[t];
    zc_batch_rewind(q);
}

static void cut(struct zc_batches *q)
{
    struct zc_batch *b = q->at;
    while (b != NULL && b->next != NULL && below(2) == 0)
        b = b->next;
    if (b == NULL || b->written == b->count)
        return;
    uint32_t from = b->written + below(b->count - b->written);
    for (uint64_t t = b->ticket + from; t <= last; t++)
        model[t] = GONE;
    zc_batch_cut(q, b, from);
}

TEST(like_a_list)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct zc_batches q = {0};
        last = 0;
        state = seed;
        while (last < 300) {
            uint32_t what = below(100);
            if (what < 50)
                append(&q);
            else if (what < 75)
                write_some(&q);
            else if (what < 92)
                release(&q);
            else if (what < 96)
                rewind_all(&q);
            else
                cut(&q);
            compare(&q);
        }
        zc_batch_clear(&q);
        CHECK_INT(q.waiting + q.unsynced, 0);
        zc_batch_done(&q);
    }
}

TEST(memory_is_used_again)
{
    struct zc_batches q = {0};
    last = 0;
    for (int i = 0; i < 100; i++) {
        append(&q);
        q.at->closed = true;
        zc_batch_written(&q, 1);
        zc_batch_release(&q, last);
        CHECK(q.first == NULL && q.last == NULL && q.at == NULL);
        CHECK_INT(q.spare_count, 1);
    }
    zc_batch_done(&q);
}
