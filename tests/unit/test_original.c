/* The Go program's mailbox file against a naive model: random boxes and deliveries, read back in
 * the order that insertion by time gives. */
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "node/original.h"
#include "test.h"

#define MESSAGES 64

static uint64_t state = 1;

static uint32_t rnd(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static void add(struct zc_buf *b, const char *text)
{
    CHECK(zc_buf_append(b, text, strlen(text)) == 0);
}

/* A message whose payload and id are its number. */
static void add_message(struct zc_buf *b, int number, int box, int second)
{
    char text[32], json[300];
    uint8_t body[40] = "";
    int len = snprintf(text, sizeof(text), "%d", number);
    zc_text_base64_encode(body, zc_slice(text, (size_t)len));
    snprintf(json, sizeof(json),
             "{\"ID\":\"i%d\",\"Name\":\"box%d\",\"From\":\"al\",\"Body\":\"%s\",\"At\":\"2026-11-"
             "30T19:00:%02d.%09dZ\"}",
             number, box, (char *)body, second / 10, second % 10);
    add(b, json);
}

/* What is expected of one mailbox. */
struct model {
    int number[2 * MESSAGES], second[2 * MESSAGES];
    int len;
};

static void insert(struct model *m, int at, int number, int second)
{
    for (int i = m->len++; i > at; i--) {
        m->number[i] = m->number[i - 1];
        m->second[i] = m->second[i - 1];
    }
    m->number[at] = number;
    m->second[at] = second;
}

#define BOXES 3

/* Random deliveries: in time order, each before the first queued one that is later. */
static int build_held(struct zc_buf *b, struct model *models, int number)
{
    int count = (int)rnd(12), seconds[12], boxes[12];
    for (int i = 0; i < count; i++) {
        char text[64];
        seconds[i] = 2 * (int)rnd(290) + 1; /* odd: none as a queued one has */
        for (int k = 0; k < i; k++)
            if (seconds[k] == seconds[i])
                k = -1, seconds[i] = 2 * (int)rnd(290) + 1;
        boxes[i] = (int)rnd(BOXES);
        snprintf(text, sizeof(text), "%s\"d%d\":{\"ID\":\"d%d\",\"Msg\":", i > 0 ? "," : "", i, i);
        add(b, text);
        add_message(b, number + i, boxes[i], seconds[i]);
        add(b, ",\"Expires\":\"2026-11-30T19:09:54.553097404Z\"}");
    }
    /* The model: the earliest first, each put before the first that is later. */
    for (int second = 0; second < 600; second++) {
        for (int i = 0; i < count; i++) {
            struct model *m = &models[boxes[i]];
            int at = 0;
            if (seconds[i] != second)
                continue;
            while (at < m->len && m->second[at] < second)
                at++;
            insert(m, at, number + i, second);
        }
    }
    return count;
}

static void check_read(struct zc_buf *b, struct model *models, int count)
{
    struct zc_original o;
    struct zc_item item;
    int seen[BOXES] = {0}, r, given = 0;
    CHECK_INT(zc_original_open(&o, b->data, b->len), 0);
    while ((r = zc_original_next(&o, &item)) == 1) {
        char text[16] = "";
        int box = item.name.len == 4 ? item.name.data[3] - '0' : 0;
        memcpy(text, item.payload.data, item.payload.len < 15 ? item.payload.len : 15);
        CHECK(box >= 0 && box < BOXES && seen[box] < models[box].len);
        CHECK_INT(atoi(text), models[box].number[seen[box]]);
        CHECK(item.id.len > 1 && atoi((const char *)memcpy(text, item.id.data + 1, 1)) >= 0);
        seen[box]++;
        given++;
    }
    CHECK_INT(r, 0);
    CHECK(o.error == NULL);
    CHECK_INT(given, count);
    zc_original_done(&o);
}

TEST(original_gives_what_was_in_flight_its_place)
{
    for (int round = 0; round < 400; round++) {
        struct zc_buf b = {0};
        static struct model models[BOXES];
        int number = 0, boxes = (int)rnd(BOXES + 1), from = (int)rnd(BOXES);
        memset(models, 0, sizeof(models));
        add(&b, "{\"boxes\":{");
        for (int k = 0; k < boxes; k++) {
            char text[32];
            int box = (from + k) % BOXES;
            int n = (int)rnd(12), second = 0;
            snprintf(text, sizeof(text), "%s\"box%d\":[", k > 0 ? "," : "", box);
            add(&b, text);
            for (int i = 0; i < n; i++) {
                second += 2 * (int)rnd(20);
                add(&b, i > 0 ? "," : "");
                insert(&models[box], models[box].len, number, second);
                add_message(&b, number++, box, second);
            }
            add(&b, "]");
        }
        add(&b, "},\"inflight\":{");
        number += build_held(&b, models, number);
        add(&b, "}}");
        check_read(&b, models, number);
        zc_buf_done(&b);
    }
}

static bool parses(const char *text, int64_t want_s, uint32_t want_ns)
{
    struct zc_original_time at = {0};
    return zc_original_time(zc_slice_str(text), &at) && at.s == want_s && at.ns == want_ns;
}

TEST(original_time)
{
    struct zc_original_time at;
    CHECK(parses("1970-01-01T00:00:00Z", 0, 0));
    CHECK(parses("2026-11-30T19:08:14.551534909Z", 1796065694, 551534909));
    CHECK(parses("2026-11-30T20:38:14.5+01:30", 1796065694, 500000000));
    CHECK(parses("2024-02-29T00:00:00-00:01", 1709164860, 0));
    CHECK(parses("1900-03-01T00:00:00Z", -2203891200, 0));
    CHECK(parses("0001-01-01T00:00:00Z", -62135596800, 0));
    static const char *const bad[] = {"",
                                      "2026-11-30",
                                      "2026-11-30T19:08:14",
                                      "2026-11-30 19:08:14Z",
                                      "2026-13-30T19:08:14Z",
                                      "2026-00-30T19:08:14Z",
                                      "2026-11-00T19:08:14Z",
                                      "1900-02-29T00:00:00Z",
                                      "2026-11-30T24:00:00Z",
                                      "2026-11-30T19:60:14Z",
                                      "2026-11-30T19:08:61Z",
                                      "2026-11-30T19:08:14.Z",
                                      "2026-11-30T19:08:14.1234567890Z",
                                      "2026-11-30T19:08:14+24:00",
                                      "2026-11-30T19:08:14+1:00",
                                      "2026-11-30T19:08:14Zx",
                                      "2026-11-3aT19:08:14Z"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!zc_original_time(zc_slice_str(bad[i]), &at));
}

/* Every beginning of a good file is refused, and says where. */
TEST(original_cut_anywhere)
{
    static const char good[] =
        "{\"boxes\":{\"q\":[{\"ID\":\"a\",\"Name\":\"q\",\"From\":\"\",\"Body\":\"AP8=\",\"At\":"
        "\"2026-11-30T19:08:14Z\"}]},\"inflight\":{\"d\":{\"ID\":\"d\",\"Msg\":{\"Name\":\"q\"}}}}";
    for (size_t len = 0; len < sizeof(good) - 1; len++) {
        uint8_t copy[sizeof(good)];
        struct zc_original o;
        memcpy(copy, good, len);
        CHECK_INT(zc_original_open(&o, copy, len), ZC_EBADMSG);
        CHECK(o.error != NULL && o.error_at <= len);
        zc_original_done(&o);
    }
}
