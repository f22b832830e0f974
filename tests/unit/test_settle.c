/* Journal progress under the broker, with a journal that the test answers for. */
#include "test.h"
#include "zmqc/broker.h"
#include "zmqc/frame.h"

static struct zc_broker *broker;
static struct zc_now now = {{1000000000}, {1700000000000}};

/* The last ticket, the records of each kind, and how many more are taken. */
static int64_t ticket;
static int appended[4], forgotten, room;

static int64_t append(void *arg, enum zc_journal_kind kind, uint64_t seq, struct zc_slice body,
                      bool sync_wanted, uint64_t *place)
{
    (void)arg;
    (void)body;
    (void)sync_wanted;
    if (room == 0)
        return ZC_ENOSPC;
    room--;
    appended[kind]++;
    if (place != NULL)
        *place = seq;
    return ++ticket;
}

static int read_nothing(void *arg, uint64_t place, size_t body_len, void *cookie)
{
    (void)arg;
    (void)place;
    (void)body_len;
    (void)cookie;
    return ZC_EIO;
}

static void forget(void *arg, uint64_t place)
{
    (void)arg;
    (void)place;
    forgotten++;
}

static int status(void *arg, struct zc_buf *json)
{
    (void)arg;
    (void)json;
    return 0;
}

static void own(void *arg, uint64_t place, uint64_t *owner)
{
    (void)arg;
    (void)place;
    (void)owner;
}

static int64_t move(void *arg, enum zc_journal_kind kind, uint64_t seq, struct zc_slice body)
{
    (void)arg;
    (void)kind;
    (void)seq;
    (void)body;
    return ZC_EIO;
}

static const struct zc_journal journal = {NULL, append, read_nothing, forget, own, move, status};

static void start(void)
{
    static const uint8_t seed[32] = {9};
    struct zc_broker_limits limits = {.payload_max = 1 << 20,
                                      .mailbox_cap = 100,
                                      .sub_buffer = 64,
                                      .topics_max = 10,
                                      .headers_max = 64,
                                      .headers_bytes = 16384,
                                      .mailboxes_max = 100,
                                      .sessions_max = 100,
                                      .session_bytes = 1 << 20,
                                      .output_bytes = 4 << 20,
                                      .hot_bytes = 1 << 20,
                                      .hot_messages = 1000};
    ticket = 0;
    forgotten = 0;
    room = 1000;
    memset(appended, 0, sizeof(appended));
    broker = zc_broker_new(&limits, seed, now);
    broker->journal = &journal;
}

static struct zc_session *attach(void)
{
    return zc_broker_attach(broker, now, "uid:7", "@", false, NULL);
}

static void send(struct zc_session *s, const char *json)
{
    uint8_t frame[256];
    size_t len = strlen(json);
    zc_frame_header(frame, len);
    memcpy(frame + ZC_FRAME_HEADER, json, len);
    zc_broker_input(broker, s, now, frame, ZC_FRAME_HEADER + len);
    zc_broker_tick(broker, now);
}

static bool said(const struct zc_session *s, const char *text)
{
    struct zc_slice out[8];
    size_t n = zc_session_slices(s, out, 8);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k + strlen(text) <= out[i].len; k++) {
            if (memcmp(out[i].data + k, text, strlen(text)) == 0)
                return true;
        }
    }
    return false;
}

/* One message whose taker went before it read: on its way back into the log. */
static void put_back(void)
{
    struct zc_session *a = attach(), *taker = attach();
    send(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"kept\"}");
    CHECK(!said(a, "ok"));
    zc_broker_synced(broker, now, (uint64_t)ticket);
    CHECK(said(a, "\"ok\""));
    send(taker, "{\"op\":\"take\",\"name\":\"q\"}");
    CHECK(!said(taker, "kept"));
    zc_broker_synced(broker, now, (uint64_t)ticket);
    CHECK(said(taker, "kept"));
    zc_broker_detach(broker, taker, now);
    CHECK_INT(appended[ZC_JOURNAL_RETURN], 1);
}

TEST(a_return_that_fails_is_stored_once_more_and_no_more)
{
    start();
    put_back();
    zc_broker_failed(broker, now, (uint64_t)ticket - 2); /* the return and its attempts */
    CHECK_INT(appended[ZC_JOURNAL_RETURN], 2);
    CHECK(!zc_broker_settled(broker));
    struct zc_session *s = attach();
    send(s, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}");
    CHECK(said(s, "mailbox: empty")); /* memory alone has it */
    send(s, "{\"op\":\"take\",\"name\":\"q\"}");
    zc_broker_synced(broker, now, (uint64_t)ticket); /* the return */
    zc_broker_synced(broker, now, (uint64_t)ticket); /* the removal */
    CHECK(said(s, "\"attempt\":2"));
    CHECK(zc_broker_settled(broker));
    zc_broker_free(broker);
}

TEST(a_return_that_cannot_be_stored_waits_for_room)
{
    start();
    put_back();
    room = 0;
    zc_broker_failed(broker, now, (uint64_t)ticket - 2);
    CHECK_INT(appended[ZC_JOURNAL_RETURN], 1);
    CHECK(!zc_broker_settled(broker));
    room = 1000;
    zc_broker_store_again(broker);
    CHECK_INT(appended[ZC_JOURNAL_RETURN], 2);
    zc_broker_synced(broker, now, (uint64_t)ticket);
    CHECK(zc_broker_settled(broker));
    CHECK_INT(broker->count.queued, 1);
    zc_broker_free(broker);
}

TEST(a_put_that_fails_is_refused_and_leaves_nothing)
{
    start();
    struct zc_session *a = attach();
    send(a, "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"text\":\"x\"}");
    zc_broker_failed(broker, now, 0);
    CHECK(said(a, "\"code\":\"storage\""));
    CHECK_INT(broker->mailboxes.len, 0);
    CHECK(zc_broker_settled(broker));
    zc_broker_free(broker);
}

TEST(a_failure_says_nothing_of_the_tickets_below)
{
    start();
    struct zc_session *a = attach(), *b = attach();
    send(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}");
    send(b, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"y\"}");
    zc_broker_failed(broker, now, 1);
    CHECK(said(b, "\"code\":\"storage\""));
    CHECK(!said(a, "ok")); /* still with the disk */
    zc_broker_synced(broker, now, 1);
    CHECK(said(a, "\"op\":\"ok\""));
    CHECK_INT(broker->count.queued, 1);
    zc_broker_free(broker);
}

TEST(a_session_that_was_ended_gets_nothing_more)
{
    start();
    struct zc_session *a = attach(), *dead = attach();
    send(dead, "{\"op\":\"take\",\"name\":\"q\"}");
    send(dead, "{\"op\":\"ping\"}");
    now.mono.ns += (ZC_BROKER_STALL_MS + 1) * ZC_NS_PER_MS;
    zc_broker_tick(broker, now);
    CHECK_INT(dead->state, ZC_SESSION_CLOSED);
    send(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}");
    zc_broker_synced(broker, now, (uint64_t)ticket);
    CHECK_INT(appended[ZC_JOURNAL_REMOVE], 0);
    CHECK_INT(broker->count.queued, 1);
    zc_broker_detach(broker, dead, now);
    send(a, "{\"op\":\"take\",\"name\":\"q\"}");
    zc_broker_synced(broker, now, (uint64_t)ticket);
    CHECK(said(a, "\"attempt\":1"));
    zc_broker_free(broker);
}
