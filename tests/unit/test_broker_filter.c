/* Filters of reserve, ready and sub, and puts that want a consumer, through a hub in memory. */
#include "bus.h"
#include "test.h"
#include "zmqc/session.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)

static void start(uint64_t cap)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.mailbox_cap = cap;
    c.heartbeat_ms = 0;
    bus_start(&c);
}

static void put(struct zc_session *s, const char *from, int n)
{
    char json[128];
    snprintf(json, sizeof(json),
             "{\"op\":\"put\",\"name\":\"q\",\"from\":\"%s\",\"text\":\"%s%d\"}", from, from, n);
    bus_call(s, json);
}

static const char *reserve(struct zc_session *s, const char *filter, const char *more)
{
    char json[256];
    snprintf(json, sizeof(json), "{\"op\":\"reserve\",\"name\":\"q\",\"filter\":\"%s\"%s}", filter,
             more);
    return bus_call(s, json);
}

static void nack(struct zc_session *s, const char *out)
{
    char json[128];
    const char *at = strstr(out, "\"delivery\":\"");
    snprintf(json, sizeof(json), "{\"op\":\"nack\",\"delivery\":\"%.24s\"}",
             at != NULL ? at + 12 : "");
    bus_send(s, json);
}

TEST(each_gets_the_oldest_that_it_wants)
{
    start(1024);
    struct zc_session *s = bus_attach();
    put(s, "a", 1);
    put(s, "b", 1);
    put(s, "a", 2);
    put(s, "b", 2);
    HAS(reserve(s, "b", ""), "b1");
    HAS(reserve(s, "!a", ""), "b2");
    HAS(reserve(s, "b", ",\"wait\":0"), "mailbox: empty");
    HAS(reserve(s, "a", ""), "a1");
    HAS(bus_call(s, "{\"op\":\"take\",\"name\":\"q\",\"filter\":\"nobody\"}"), "a2");
    bus_end();
}

TEST(waiters_keep_their_turns)
{
    start(1024);
    struct zc_session *p = bus_attach(), *w[4];
    for (int i = 0; i < 4; i++)
        w[i] = bus_attach();
    CHECK(strcmp(reserve(w[0], "a", ""), "") == 0);
    CHECK(strcmp(reserve(w[1], "", ""), "") == 0);
    CHECK(strcmp(reserve(w[2], "a", ""), "") == 0);
    CHECK(strcmp(reserve(w[3], "!a", ""), "") == 0);
    put(p, "b", 1);
    HAS(bus_recv(w[1]), "b1"); /* came before w[3]; w[0] does not want it */
    put(p, "a", 1);
    HAS(bus_recv(w[0]), "a1");
    put(p, "b", 2);
    HAS(bus_recv(w[3]), "b2");
    put(p, "a", 2);
    HAS(bus_recv(w[2]), "a2");
    bus_end();
}

TEST(what_returns_is_found_again)
{
    start(1024);
    struct zc_session *s = bus_attach(), *w = bus_attach();
    put(s, "a", 1);
    put(s, "b", 1);
    put(s, "a", 2);
    static char first[1024];
    snprintf(first, sizeof(first), "%s", reserve(s, "a", ""));
    HAS(first, "a1");
    HAS(reserve(w, "a", ""), "a2"); /* it has looked past b1 */
    nack(s, first);
    HAS(reserve(w, "a", ""), "a1");
    CHECK(strcmp(reserve(w, "c", ""), "") == 0);
    put(s, "c", 1);
    HAS(bus_recv(w), "c1");
    HAS(reserve(w, "b,c", ""), "b1");
    bus_end();
}

TEST(a_batch_takes_only_what_fits)
{
    start(1024);
    struct zc_session *s = bus_attach();
    for (int i = 0; i < 6; i++)
        put(s, i % 2 ? "a" : "b", i);
    const char *out = reserve(s, "a", ",\"max\":10,\"id\":\"r\"");
    HAS(out, "a1");
    HAS(out, "a3");
    HAS(out, "a5");
    CHECK(strstr(out, "\"b") == NULL || strstr(out, "b0") == NULL);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.leased, 3);
    CHECK_INT(st.queued, 3);
    bus_end();
}

TEST(my_own_name)
{
    start(1024);
    struct zc_session *s = bus_attach();
    bus_call(s, "{\"op\":\"hello\",\"from\":\"me\"}");
    put(s, "you", 1);
    put(s, "me", 1);
    HAS(reserve(s, ".", ""), "me1");
    put(s, "me", 2);
    HAS(reserve(s, "!.", ""), "you1");
    bus_end();
}

/* Against a naive model: random waiters and messages, each message to the first who wants it. */
TEST(model)
{
    static const char *const filters[] = {"", "a", "b", "!a", "a,b", "!b,!c", "c", "*"};
    static const char *const allowed[] = {"abc", "a", "b", "bc", "ab", "a", "c", "abc"};
    enum { WAITERS = 40 };
    struct zc_session *w[WAITERS];
    int want[WAITERS] = {0};
    long turn[WAITERS] = {0}, turns = 0;
    uint64_t dice = 12345;
    start(1024);
    struct zc_session *p = bus_attach();
    for (int i = 0; i < WAITERS; i++) {
        w[i] = bus_attach();
        want[i] = -1;
    }
    for (int round = 0; round < 4000; round++) {
        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
        int i = (int)(dice >> 33) % WAITERS;
        if (want[i] < 0) {
            want[i] = (int)(dice >> 45) % 8;
            turn[i] = ++turns;
            CHECK(strcmp(reserve(w[i], filters[want[i]], ",\"lease\":1"), "") == 0);
        }
        char from[2] = {(char)('a' + (dice >> 50) % 3), 0};
        int best = -1;
        for (int k = 0; k < WAITERS; k++)
            if (want[k] >= 0 && strchr(allowed[want[k]], from[0]) != NULL &&
                (best < 0 || turn[k] < turn[best]))
                best = k;
        if (best < 0)
            continue;
        put(p, from, round);
        char text[24];
        snprintf(text, sizeof(text), "\"%s%d\"", from, round);
        const char *out = bus_recv(w[best]);
        HAS(out, text);
        want[best] = -1;
        char json[128];
        snprintf(json, sizeof(json), "{\"op\":\"ack\",\"delivery\":\"%.24s\"}",
                 strstr(out, "\"delivery\":\"") + 12);
        HAS(bus_call(w[best], json), "\"op\":\"ok\"");
    }
    bus_end();
}

TEST(subscriptions)
{
    start(1024);
    struct zc_session *p = bus_attach(), *s = bus_attach();
    bus_call(p, "{\"op\":\"pub\",\"name\":\"t.1\",\"from\":\"a\",\"text\":\"old a\"}");
    bus_call(p, "{\"op\":\"pub\",\"name\":\"t.2\",\"from\":\"b\",\"text\":\"old b\"}");
    const char *out = bus_call(s, "{\"op\":\"sub\",\"name\":\"t.\",\"filter\":\"!a\"}");
    HAS(out, "old b");
    CHECK(strstr(out, "old a") == NULL);
    HAS(bus_call(p, "{\"op\":\"pub\",\"name\":\"t.1\",\"from\":\"a\",\"text\":\"x\"}"),
        "\"subs\":0");
    CHECK(strcmp(bus_recv(s), "") == 0);
    HAS(bus_call(p, "{\"op\":\"pub\",\"name\":\"t.1\",\"from\":\"c\",\"text\":\"y\"}"),
        "\"subs\":1");
    HAS(bus_recv(s), "\"y\"");
    /* One more prefix, without a filter: one copy. The first one's filter then changes. */
    HAS(bus_call(s, "{\"op\":\"sub\",\"name\":\"t.1\"}"), "\"y\"");
    bus_call(p, "{\"op\":\"pub\",\"name\":\"t.1\",\"from\":\"c\",\"text\":\"once\"}");
    out = strstr(bus_recv(s), "once\"");
    CHECK(out != NULL && strstr(out + 1, "once\"") == NULL);
    bus_call(p, "{\"op\":\"pub\",\"name\":\"t.1\",\"from\":\"a\",\"text\":\"z\"}");
    HAS(bus_recv(s), "\"z\"");
    bus_call(s, "{\"op\":\"sub\",\"name\":\"t.\",\"filter\":\"a\"}");
    HAS(bus_call(p, "{\"op\":\"pub\",\"name\":\"t.2\",\"from\":\"b\",\"text\":\"w\"}"),
        "\"subs\":0");
    bus_end();
}

TEST(a_put_that_wants_a_consumer)
{
    static const char put_if[] = "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"from\":\"a\","
                                 "\"text\":\"x\",\"if\":\"consumer\"}";
    start(1024);
    struct zc_session *p = bus_attach(), *w = bus_attach();
    HAS(bus_call(p, put_if), "\"code\":\"unroutable\"");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.mailboxes, 0);
    HAS(bus_call(p, "{\"op\":\"put\",\"name\":\"q\",\"if\":\"consumers\"}"),
        "\"code\":\"invalid\"");
    CHECK(strcmp(reserve(w, "b", ""), "") == 0);
    HAS(bus_call(p, put_if), "\"code\":\"unroutable\""); /* it waits for others */
    CHECK(strcmp(bus_call(w, "{\"op\":\"take\",\"name\":\"other\"}"), "") == 0);
    HAS(bus_call(p, put_if), "\"code\":\"unroutable\"");
    bus_call(p, "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"from\":\"a\"}");
    HAS(bus_call(p, put_if), "\"op\":\"ok\""); /* it is there already */
    CHECK(strcmp(bus_call(w, "{\"op\":\"reserve\",\"name\":\"q\"}"), "") != 0);
    HAS(bus_call(p, put_if), "\"op\":\"ok\"");
    bus_call(p, "{\"op\":\"put\",\"id\":\"2\",\"name\":\"q\",\"from\":\"a\",\"if\":\"consumer\"}");
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.queued, 1); /* a worker that holds one will be back */
    zc_hub_detach(bus_hub, w, bus_now);
    for (int i = 0; i < 2; i++)
        HAS(bus_call(p, "{\"op\":\"take\",\"name\":\"q\"}"), "\"op\":\"msg\"");
    struct zc_session *t = bus_attach();
    CHECK(strcmp(bus_call(t, "{\"op\":\"take\",\"name\":\"q\"}"), "") == 0);
    HAS(bus_call(p, put_if), "\"op\":\"ok\"");
    HAS(bus_recv(t), "\"text\":\"x\"");
    HAS(bus_call(p, put_if), "\"code\":\"unroutable\"");
    bus_end();
}

TEST(bad_filters)
{
    start(1024);
    struct zc_session *s = bus_attach();
    HAS(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\",\"filter\":{\"kinds\":[1]}}"),
        "\"code\":\"invalid\"");
    HAS(bus_call(s, "{\"op\":\"sub\",\"name\":\"q\",\"filter\":{}}"), "\"code\":\"invalid\"");
    HAS(bus_call(s, "{\"op\":\"ready\",\"name\":\"q\",\"filter\":7}"), "\"code\":\"bad_frame\"");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.waiters, 0);
    CHECK_INT(st.mailboxes, 0);
    bus_end();
}

TEST(the_filters_of_a_mailbox_are_bounded)
{
    start(1024);
    struct zc_session *s = bus_attach();
    char filter[16];
    for (int i = 0; i < 1024; i++) {
        snprintf(filter, sizeof(filter), "n%d", i);
        CHECK(strcmp(reserve(s, filter, ""), "") == 0);
    }
    HAS(reserve(s, "one more", ""), "\"code\":\"full\"");
    CHECK(strcmp(reserve(s, "n5", ""), "") == 0); /* known: shares */
    HAS(bus_call(s, "{\"op\":\"put\",\"name\":\"q\",\"from\":\"n5\",\"text\":\"n51\"}"),
        "\"text\":\"n51\"");
    for (int i = 0; i < 100; i++) { /* those without waiters make room */
        snprintf(filter, sizeof(filter), "m%d", i);
        HAS(reserve(s, filter, ",\"wait\":0"), "\"code\":");
    }
    bus_end();
}

/* Much comes back at once and hundreds with filters of their own wait for it: others have their
 * turn before all are served. */
TEST(long_searches_are_cut)
{
    enum { WAITERS = 300, HELD = 4000 };
    start(10000);
    struct zc_session *p = bus_attach(), *w = bus_attach(), *worker = bus_attach();
    struct zc_hub_stats st;
    char filter[24];
    for (int i = 0; i < HELD; i++)
        put(p, "a", i);
    for (int i = 0; i < HELD; i++)
        bus_call(worker, "{\"op\":\"reserve\",\"name\":\"q\"}");
    put(p, "x", 0); /* stays, and is younger: what comes back is not in the queue */
    for (int i = 0; i < WAITERS; i++) {
        snprintf(filter, sizeof(filter), "!n%d,!x", i);
        CHECK(strcmp(reserve(w, filter, ",\"wait\":1"), "") == 0);
    }
    zc_hub_detach(bus_hub, worker, bus_now);
    zc_hub_stats(bus_hub, &st);
    CHECK(st.leased > 0 && st.leased < WAITERS);
    CHECK(zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns);
    HAS(bus_call(p, "{\"op\":\"ping\"}"), "pong");
    /* Who does not want to wait is not told that it is empty, nor those whose wait is over now. */
    bus_send(w, "{\"op\":\"reserve\",\"name\":\"q\",\"filter\":\"!y,!x\",\"wait\":0}");
    zc_hub_stats(bus_hub, &st);
    CHECK(st.leased < WAITERS);
    bus_now.mono.ns += 1000 * ZC_NS_PER_MS;
    for (int i = 0; i < 20; i++) {
        zc_hub_tick(bus_hub, bus_now);
        CHECK(strstr(bus_recv(w), "empty") == NULL);
    }
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.leased, WAITERS + 1);
    CHECK_INT(st.waiters, 0);
    bus_end();
}

TEST(a_search_is_charged_to_who_wants_it)
{
    enum { HELD = 4000 };
    start(10000);
    struct zc_session *p = bus_attach(), *w = bus_attach(), *worker = bus_attach();
    for (int i = 0; i < HELD; i++)
        put(p, "a", i);
    for (int i = 0; i < HELD; i++)
        bus_call(worker, "{\"op\":\"reserve\",\"name\":\"q\"}");
    zc_hub_detach(bus_hub, worker, bus_now);
    HAS(reserve(w, "b", ",\"wait\":0"), "empty");
    CHECK(w->cost > HELD / 100 && w->cost < HELD / 10);
    HAS(reserve(w, "b", ",\"wait\":0"), "empty"); /* which is known now */
    CHECK(w->cost < 10);
    bus_end();
}
