/* Limits that clients meet, and what stands behind them in line, through a hub in memory. */
#include "bus.h"
#include "test.h"
#include "zmqc/broker.h"
#include "zmqc/job.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

static void start(void)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = 0;
    c.mailbox_cap = 100000;
    c.session_bytes = 100000;
    c.sub_buffer = 4;
    bus_start(&c);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

TEST(pages_of_names_are_in_order_whatever_came_first)
{
    enum { BOXES = 60, PAGE = 7 };
    start();
    struct zc_session *a = bus_attach();
    char json[100], after[8] = "";
    for (int i = 0; i < BOXES; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"name\":\"n%02d\",\"text\":\"\"}",
                 i * 37 % BOXES);
        bus_call(a, json);
    }
    int seen = 0;
    for (bool more = true; more;) {
        snprintf(json, sizeof(json), "{\"op\":\"list\",\"name\":\"n\",\"max\":%d,\"after\":\"%s\"}",
                 PAGE, after);
        const char *out = bus_call(a, json);
        int before = seen;
        for (const char *p = strstr(out, "\"names\":["); (p = strstr(p, "\"n")) != NULL; p++) {
            if (p[4] != '"')
                continue; /* "names" */
            CHECK_INT(atoi(p + 2), seen++);
            snprintf(after, sizeof(after), "%.3s", p + 1);
        }
        more = strstr(out, "\"more\":true") != NULL;
        CHECK_INT(seen - before, more ? PAGE : BOXES % PAGE);
        if (seen == before)
            break;
    }
    CHECK_INT(seen, BOXES);
    bus_end();
}

TEST(requests_that_are_refused)
{
    start();
    struct zc_session *a = bus_attach();
    HAS(bus_call(a, "{\"op\":\"req\",\"name\":\"svc\"}"), "\"code\":\"no_id\"");
    static char json[20000];
    size_t n =
        (size_t)snprintf(json, sizeof(json), "{\"op\":\"reserve\",\"name\":\"q\",\"filter\":\"");
    for (int i = 0; i < 1025; i++)
        n += (size_t)snprintf(json + n, sizeof(json) - n, "%sw%d", i > 0 ? "," : "", i);
    snprintf(json + n, sizeof(json) - n, "\"}");
    HAS(bus_call(a, json), "more than 1,024 names");
    /* Longer than anybody waits, and nothing wraps. */
    HAS(bus_call(a,
                 "{\"op\":\"put\",\"name\":\"q\",\"text\":\"far\",\"expires\":9007199254740991}"),
        "\"op\":\"ok\"");
    bus_advance_ms(INT64_C(86400000) * 365);
    HAS(bus_call(a, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "far");
    bus_end();
}

TEST(operations_under_way_in_one_session)
{
    start();
    struct zc_session *a = bus_attach();
    for (int i = 0; i < 40000; i++)
        bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}");
    for (int i = 0; i < ZC_JOB_MOST; i++)
        bus_send(a, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}");
    HAS(bus_call(a, "{\"op\":\"purge\",\"id\":\"more\",\"name\":\"q\"}"), "\"code\":\"full\"");
    int answers = 0;
    for (int i = 0; i < 100; i++) {
        bus_advance_ms(0);
        answers += count(bus_recv(a), "\"op\":\"ok\",\"id\":\"p\"");
    }
    CHECK_INT(answers, ZC_JOB_MOST);
    bus_end();
}

TEST(deliveries_in_one_session)
{
    start();
    struct zc_session *a = bus_attach();
    for (int i = 0; i < ZC_BROKER_LEASES_MAX + 10; i++)
        bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"\"}");
    int got = 0;
    for (int i = 0; i < ZC_BROKER_LEASES_MAX / 100 + 1; i++)
        got += count(bus_call(a, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\",\"max\":100}"),
                     "\"op\":\"msg\"");
    CHECK_INT(got, ZC_BROKER_LEASES_MAX);
    HAS(bus_call(a, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\"}"), "\"code\":\"full\"");
    /* Others get what is left. */
    HAS(bus_call(bus_attach(), "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\"}"),
        "\"op\":\"msg\"");
    bus_end();
}

TEST(who_has_read_goes_back_to_its_turns)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach(), *p = bus_attach();
    bus_send(a, "{\"op\":\"take\",\"name\":\"q\"}");
    bus_send(b, "{\"op\":\"take\",\"name\":\"q\"}");
    bus_send(a, "{\"op\":\"take\",\"name\":\"q\"}");
    bus_send(b, "{\"op\":\"take\",\"name\":\"q\"}");
    for (int i = 0; i < 20000 && zc_hub_wants_input(bus_hub, a); i++)
        bus_send(a, "{\"op\":\"ping\",\"id\":\"0123456789\"}");
    CHECK(!zc_hub_wants_input(bus_hub, a));
    while (!zc_hub_wants_input(bus_hub, a) || strcmp(bus_recv(a), "") != 0)
        bus_recv(a);
    static const char *const wanted[] = {"a", "b", "a", "b"};
    for (int i = 0; i < 4; i++) {
        bus_call(p, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}");
        bool to_a = strstr(bus_recv(a), "\"op\":\"msg\"") != NULL;
        bool to_b = strstr(bus_recv(b), "\"op\":\"msg\"") != NULL;
        CHECK(to_a != to_b && to_a == (*wanted[i] == 'a'));
    }
    bus_end();
}

/* A message is over at its time, whether or not its timer has been looked at. */
TEST(nobody_gets_what_is_over)
{
    start();
    struct zc_session *a = bus_attach();
    for (int i = 0; i < 4; i++) {
        static const char *const asks[] = {
            "{\"op\":\"take\",\"id\":\"t\",\"name\":\"q\",\"wait\":0}",
            "{\"op\":\"reserve\",\"id\":\"t\",\"name\":\"q\",\"wait\":0,\"max\":5}",
            "{\"op\":\"peek\",\"id\":\"t\",\"name\":\"q\"}",
            "{\"op\":\"move\",\"id\":\"t\",\"name\":\"q\",\"to\":\"r\"}",
        };
        bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"old\",\"ttl\":1}");
        bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"old\",\"ttl\":1}");
        bus_now.mono.ns += 2000 * ZC_NS_PER_MS;
        bus_send(a, asks[i]);
        zc_hub_tick(bus_hub, bus_now);
        LACKS(bus_recv(a), "old");
        LACKS(bus_call(a, "{\"op\":\"take\",\"name\":\"r\",\"wait\":0}"), "old");
        struct zc_hub_stats st;
        zc_hub_stats(bus_hub, &st);
        CHECK_INT(st.queued, 0);
        CHECK_INT(st.expired, 2 * (i + 1));
    }
    bus_end();
}

/* What is published while a replay waits for its reader is replayed too. */
TEST(a_replay_catches_up)
{
    start();
    struct zc_session *p = bus_attach(), *s = bus_attach();
    char json[100];
    for (int i = 0; i < 10; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"pub\",\"name\":\"e.%d\",\"text\":\"old\"}", i);
        bus_call(p, json);
    }
    bus_send(s, "{\"op\":\"sub\",\"name\":\"e.\"}");
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 10; i++) {
            snprintf(json, sizeof(json), "{\"op\":\"pub\",\"name\":\"e.%d\",\"text\":\"new%d\"}", i,
                     round);
            bus_call(p, json);
        }
    }
    int last = 0;
    for (int i = 0; i < 40; i++)
        last += count(bus_recv(s), "new3");
    CHECK_INT(last, 10);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.dropped_subs, 0);
    bus_call(p, "{\"op\":\"pub\",\"name\":\"e.z\",\"text\":\"live\"}");
    HAS(bus_recv(s), "live");
    bus_end();
}

static void pub(struct zc_session *p, const char *name, const char *text)
{
    char json[100];
    snprintf(json, sizeof(json), "{\"op\":\"pub\",\"name\":\"%s\",\"text\":\"%s\"}", name, text);
    bus_call(p, json);
}

/* Two subscriptions of a session are behind, and what is published meanwhile matches both. */
TEST(two_replays_that_catch_up_bring_one_copy)
{
    start();
    struct zc_session *p = bus_attach(), *s = bus_attach();
    char name[16];
    for (int i = 10; i < 20; i++) {
        snprintf(name, sizeof(name), "e.%d", i);
        pub(p, name, "old");
    }
    bus_send(s, "{\"op\":\"sub\",\"name\":\"e.1\"}");
    for (int i = 0; i < 3; i++)
        pub(p, "e.10", "full"); /* the last one finds no room */
    bus_send(s, "{\"op\":\"sub\",\"name\":\"e.\"}");
    pub(p, "e.20", "wide"); /* nor does this, which the first does not match */
    pub(p, "e.10", "both");
    pub(p, "e.11", "both");
    pub(p, "e.21", "wide");
    int both = 0, wide = 0;
    for (int i = 0; i < 40; i++) {
        const char *text = bus_recv(s);
        both += count(text, "both");
        wide += count(text, "wide");
    }
    CHECK_INT(both, 2);
    CHECK_INT(wide, 2);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.dropped_subs, 0);
    pub(p, "e.10", "live");
    CHECK_INT(count(bus_recv(s), "live"), 1);
    bus_end();
}
