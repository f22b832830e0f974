/* The broker's rules, driven by frames through a hub in memory. */
#include "bus.h"
#include "test.h"
#include "zmqc/msg.h"

static void start(void)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    bus_start(&c);
}

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

TEST(put_then_take)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    const char *out = bus_call(a, "{\"op\":\"put\",\"id\":\"a1\",\"name\":\"q\",\"text\":\"x\"}");
    CHECK(strcmp(out, "{\"v\":1,\"op\":\"ok\",\"id\":\"a1\",\"name\":\"q\"}\n") == 0);
    out = bus_call(b, "{\"op\":\"take\",\"id\":\"t\",\"name\":\"q\"}");
    HAS(out, "\"op\":\"msg\"");
    HAS(out, ":a1\"");
    HAS(out, "\"text\":\"x\",\"body\":\"eA==\"");
    HAS(out, "\"attempt\":1");
    HAS(out, "\"by\":\"uid:7\"");
    out = bus_call(b, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0,\"id\":\"w\"}");
    HAS(out, "mailbox: empty");
    HAS(out, "\"code\":\"empty\"");
    bus_end();
}

TEST(waiters_in_line)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach(), *c = bus_attach();
    bus_send(b, "{\"op\":\"take\",\"name\":\"q\"}");
    bus_send(c, "{\"op\":\"take\",\"name\":\"q\"}");
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"1\"}");
    HAS(bus_recv(b), "\"text\":\"1\"");
    CHECK(strcmp(bus_recv(c), "") == 0);
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"2\"}");
    HAS(bus_recv(c), "\"text\":\"2\"");
    bus_end();
}

TEST(unsent_take_returns_in_place)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    for (int i = 1; i <= 3; i++) {
        char json[64];
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"name\":\"q\",\"text\":\"m%d\"}", i);
        bus_call(a, json);
    }
    bus_send(b, "{\"op\":\"take\",\"name\":\"q\"}");
    HAS(bus_output(b, false), "m1"); /* the kernel never took it */
    zc_hub_detach(bus_hub, b, bus_now);
    const char *out = bus_call(a, "{\"op\":\"take\",\"name\":\"q\"}");
    HAS(out, "m1");
    HAS(out, "\"attempt\":2");
    HAS(bus_call(a, "{\"op\":\"take\",\"name\":\"q\"}"), "m2");
    bus_end();
}

/* The 24 digits after "delivery":" in a frame. */
static void token_of(const char *out, char ret_token[25])
{
    const char *at = strstr(out, "\"delivery\":\"");
    snprintf(ret_token, 25, "%s", at != NULL ? at + 12 : "");
}

static long long lease_of(const char *out)
{
    const char *at = strstr(out, "\"lease\":");
    return at != NULL ? strtoll(at + 8, NULL, 10) : 0;
}

TEST(lease_life)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    char token[25], json[128];
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"m1\"}");
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"m2\"}");
    const char *out = bus_call(b, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\",\"lease\":5}");
    HAS(out, "\"id\":\"r\"");
    CHECK(lease_of(out) == bus_now.wall.ms / 1000 + 5);
    token_of(out, token);
    snprintf(json, sizeof(json), "{\"op\":\"ack\",\"delivery\":\"%s\"}", token);
    HAS(bus_call(a, json), "delivery not found"); /* not the holder */
    snprintf(json, sizeof(json), "{\"op\":\"touch\",\"delivery\":\"%s\",\"lease\":20}", token);
    CHECK(lease_of(bus_call(b, json)) == bus_now.wall.ms / 1000 + 20);
    bus_advance_ms(19000);
    CHECK(strcmp(bus_call(b, "{\"op\":\"pong\"}"), "{\"v\":1,\"op\":\"ping\"}\n") == 0);
    bus_advance_ms(1100);
    snprintf(json, sizeof(json), "{\"op\":\"ack\",\"delivery\":\"%s\"}", token);
    HAS(bus_call(b, json), "delivery not found");
    out = bus_call(b, "{\"op\":\"reserve\",\"name\":\"q\"}");
    HAS(out, "m1"); /* the front, not behind m2 */
    HAS(out, "\"attempt\":2");
    token_of(out, token);
    snprintf(json, sizeof(json), "{\"op\":\"nack\",\"delivery\":\"%s\",\"delay\":2}", token);
    HAS(bus_call(b, json), "\"op\":\"ok\"");
    HAS(bus_call(b, "{\"op\":\"take\",\"name\":\"q\"}"), "m2");
    CHECK(strcmp(bus_call(b, "{\"op\":\"take\",\"name\":\"q\"}"), "") == 0);
    bus_advance_ms(2100);
    HAS(bus_recv(b), "m1");
    bus_end();
}

TEST(a_return_wakes_a_waiter_though_the_holder_reads_nothing)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    char token[25], nack[100];
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}");
    token_of(bus_call(a, "{\"op\":\"reserve\",\"name\":\"q\"}"), token);
    bus_call(b, "{\"op\":\"take\",\"name\":\"q\"}");
    snprintf(nack, sizeof(nack), "{\"op\":\"nack\",\"delivery\":\"%s\"}", token);
    bus_send(a, nack);
    CHECK(zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns);
    zc_hub_tick(bus_hub, bus_now);
    HAS(bus_recv(b), "\"attempt\":2");
    CHECK(zc_hub_deadline(bus_hub).ns > bus_now.mono.ns);
    bus_end();
}

TEST(batch_and_lists)
{
    start();
    struct zc_session *a = bus_attach();
    for (int i = 0; i < 3; i++)
        bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"m\"}");
    const char *out = bus_call(a, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\",\"max\":10}");
    int lines = 0, ends = 0;
    for (const char *p = out; (p = strstr(p, "\"op\":\"msg\"")) != NULL; p++)
        lines++;
    for (const char *p = out; (p = strstr(p, "\"end\":true")) != NULL; p++)
        ends++;
    CHECK_INT(lines, 3);
    CHECK_INT(ends, 1);
    char t1[25], t2[25], json[256];
    token_of(out, t1);
    token_of(strchr(out, '\n'), t2);
    snprintf(json, sizeof(json), "{\"op\":\"ack\",\"deliveries\":[\"%s\",\"zz\",\"%s\"]}", t1, t2);
    HAS(bus_call(a, json), "\"failed\":[\"zz\"]");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.leased, 1);
    CHECK_INT(st.queued, 0);
    bus_end();
}

TEST(request_and_reply)
{
    start();
    struct zc_session *c = bus_attach(), *w = bus_attach(), *x = bus_attach();
    bus_send(w, "{\"op\":\"ready\",\"name\":\"svc\"}");
    CHECK(strcmp(bus_call(c, "{\"op\":\"req\",\"id\":\"q1\",\"name\":\"svc\",\"text\":\"in\"}"),
                 "") == 0);
    const char *out = bus_recv(w);
    const char *id = strstr(out, "\"id\":\"");
    char mid[64], json[256];
    snprintf(mid, sizeof(mid), "%.*s", (int)strcspn(id + 6, "\""), id + 6);
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%s\",\"text\":\"spoof\"}", mid);
    HAS(bus_call(x, json), "\"op\":\"ok\"");
    CHECK(strcmp(bus_recv(c), "") == 0);
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%s\",\"text\":\"out\"}", mid);
    HAS(bus_call(w, json), "\"op\":\"ok\"");
    CHECK(strcmp(bus_recv(c), "{\"v\":1,\"op\":\"rep\",\"id\":\"q1\",\"from\":\"@\","
                              "\"text\":\"out\"}\n") == 0);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.leased, 0);
    bus_end();
}

TEST(publish_replay_and_drops)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.sub_buffer = 4;
    bus_start(&c);
    struct zc_session *p = bus_attach(), *s = bus_attach();
    for (int i = 0; i < 10; i++) {
        char json[80];
        snprintf(json, sizeof(json), "{\"op\":\"pub\",\"name\":\"ev.%d\",\"text\":\"v%d\"}", i, i);
        bus_call(p, json);
    }
    const char *out =
        bus_output((bus_send(s, "{\"op\":\"sub\",\"id\":\"s\",\"name\":\"ev.\"}"), s), false);
    CHECK(strncmp(out, "{\"v\":1,\"op\":\"ok\",\"id\":\"s\"", 24) == 0);
    int seen = 0;
    for (int round = 0; round < 20; round++) {
        for (const char *q = bus_recv(s); (q = strstr(q, "\"text\":\"v")) != NULL; q++)
            CHECK_INT(q[9] - '0', seen++);
    }
    CHECK_INT(seen, 10);
    for (int i = 0; i < 6; i++)
        HAS(bus_call(p, "{\"op\":\"pub\",\"name\":\"ev.x\",\"text\":\"n\"}"), "\"subs\":1");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.dropped_subs, 2);
    bus_end();
}

TEST(bad_frame_ends_that_session)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    const char *out = bus_call(a, "{\"op\":\"ping\",\"op\":\"ping\"}");
    HAS(out, "\"code\":\"bad_frame\"");
    CHECK_INT(bus_fate(a), ZC_HUB_CLOSE);
    HAS(bus_call(b, "{\"op\":\"ping\",\"id\":\"p\"}"), "\"op\":\"pong\",\"id\":\"p\"");
    CHECK_INT(bus_fate(b), ZC_HUB_OUTPUT);
    bus_end();
}

TEST(silent_session_ends_unless_it_holds_a_lease)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"m\"}");
    bus_call(b, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":60}");
    for (int i = 0; i < 17; i++) {
        bus_advance_ms(1000);
        LACKS(bus_recv(a), "pong");
        bus_recv(b);
    }
    CHECK_INT(bus_fate(a), ZC_HUB_CLOSE);
    zc_hub_detach(bus_hub, a, bus_now);
    CHECK_INT(bus_fate(b), ZC_HUB_OUTPUT);
    for (int i = 0; i < 50; i++) {
        bus_advance_ms(1000);
        bus_recv(b);
    }
    CHECK_INT(bus_fate(b), ZC_HUB_CLOSE);
    bus_end();
}

TEST(half_close_answers_first)
{
    start();
    struct zc_session *a = bus_attach();
    bus_send(a, "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"text\":\"m\"}");
    bus_send(a, "{\"op\":\"take\",\"name\":\"none\"}");
    zc_hub_eof(bus_hub, a, bus_now);
    CHECK_INT(bus_fate(a), ZC_HUB_OUTPUT);
    HAS(bus_recv(a), "\"op\":\"ok\",\"id\":\"1\"");
    CHECK_INT(bus_fate(a), ZC_HUB_CLOSE);
    bus_end();
}

TEST(times_of_a_message)
{
    start();
    struct zc_session *a = bus_attach();
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"later\",\"delay\":1.5}");
    bus_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"now\",\"ttl\":3}");
    HAS(bus_call(a, "{\"op\":\"stat\",\"name\":\"q\"}"), "\"depth\":1,\"leased\":0,\"delayed\":1");
    bus_advance_ms(1600);
    HAS(bus_call(a, "{\"op\":\"take\",\"name\":\"q\"}"), "later");
    bus_advance_ms(1500);
    HAS(bus_call(a, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "empty");
    HAS(bus_call(a, "{\"op\":\"list\"}"), "{\"names\":[],\"more\":false}");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.expired, 1);
    CHECK_INT(st.mailboxes, 0);
    bus_end();
}

TEST(input_split_at_every_byte)
{
    start();
    struct zc_session *a = bus_attach();
    const char *json = "{\"op\":\"ping\",\"id\":\"p\"}";
    uint8_t frame[64];
    zc_frame_header(frame, strlen(json));
    memcpy(frame + ZC_FRAME_HEADER, json, strlen(json));
    size_t len = ZC_FRAME_HEADER + strlen(json);
    for (size_t i = 0; i < len; i++) {
        uint8_t one = frame[i];
        zc_hub_input(bus_hub, a, bus_now, &one, 1);
        if (i + 1 < len)
            CHECK(strcmp(bus_recv(a), "") == 0);
    }
    HAS(bus_recv(a), "pong");
    bus_end();
}

TEST(slow_reader_stops_its_input)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.session_bytes = 4096;
    bus_start(&c);
    struct zc_session *a = bus_attach();
    for (int i = 0; i < 400 && zc_hub_wants_input(bus_hub, a); i++)
        bus_send(a, "{\"op\":\"ping\",\"id\":\"0123456789\"}");
    CHECK(!zc_hub_wants_input(bus_hub, a));
    bus_send(a, "{\"op\":\"ping\",\"id\":\"last\"}"); /* kept, not answered */
    const char *out = bus_recv(a);
    LACKS(out, "last");
    HAS(bus_recv(a), "last");
    CHECK(zc_hub_wants_input(bus_hub, a));
    bus_end();
}

TEST(a_flood_of_dear_questions_yields)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    char json[80];
    for (int i = 0; i < 3000; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"name\":\"box%d\",\"text\":\"m\"}", i);
        bus_call(a, json);
    }
    const char *list = "{\"op\":\"list\",\"name\":\"none\"}";
    size_t len = ZC_FRAME_HEADER + strlen(list), n = 500;
    uint8_t *flood = malloc(n * len);
    for (size_t i = 0; i < n; i++) {
        zc_frame_header(flood + i * len, strlen(list));
        memcpy(flood + i * len + ZC_FRAME_HEADER, list, strlen(list));
    }
    zc_hub_input(bus_hub, a, bus_now, flood, n * len);
    free(flood);
    CHECK(!zc_hub_wants_input(bus_hub, a));
    CHECK(zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns); /* more is to be done at once */
    HAS(bus_call(b, "{\"op\":\"ping\",\"id\":\"p\"}"), "pong");
    size_t answers = 0, turns = 0;
    for (; answers < n && turns < 100; turns++) {
        for (const char *p = bus_recv(a); (p = strstr(p, "names")) != NULL; p++)
            answers++;
        zc_hub_tick(bus_hub, bus_now);
    }
    CHECK_INT(answers, n);
    CHECK(turns > 5);
    CHECK(zc_hub_wants_input(bus_hub, a));
    bus_end();
}

TEST(stop_tells_waiters)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    bus_send(a, "{\"op\":\"take\",\"id\":\"t\",\"name\":\"q\"}");
    zc_hub_stop(bus_hub, bus_now);
    HAS(bus_recv(a), "\"error\":\"mailbox: closed\"");
    CHECK_INT(bus_fate(a), ZC_HUB_CLOSE);
    zc_hub_detach(bus_hub, a, bus_now);
    zc_hub_detach(bus_hub, b, bus_now);
    zc_hub_tick(bus_hub, bus_now);
    struct zc_hub_event ev;
    bool stopped = false;
    while (zc_hub_event(bus_hub, bus_now, &ev))
        stopped = stopped || ev.kind == ZC_HUB_STOPPED;
    CHECK(stopped);
    bus_end();
}

/* A client's id may be 1,024 bytes; with the hub's scope before it, it is longer, and works all the
 * same. */
TEST(the_longest_id_comes_back)
{
    start();
    struct zc_session *a = bus_attach(), *w = bus_attach();
    char id[1025], json[2400];
    memset(id, 'i', 1024);
    id[1024] = '\0';
    snprintf(json, sizeof(json), "{\"op\":\"req\",\"id\":\"%s\",\"name\":\"svc\",\"text\":\"in\"}",
             id);
    bus_send(a, json);
    char job[8192];
    snprintf(job, sizeof(job), "%s", bus_call(w, "{\"op\":\"ready\",\"name\":\"svc\"}"));
    static struct zc_msg m;
    const char *why;
    CHECK_INT(zc_msg_decode(&m, (uint8_t *)job, strcspn(job, "\n"), &why), 0);
    CHECK(m.invalid == NULL);
    CHECK(m.id.len > 1024);
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%.*s\",\"text\":\"out\"}", (int)m.id.len,
             (const char *)m.id.data);
    HAS(bus_call(w, json), "\"op\":\"ok\"");
    HAS(bus_recv(a), "\"text\":\"out\"");
    snprintf(json, sizeof(json), "{\"op\":\"put\",\"id\":\"%sx\",\"name\":\"q\"}", id);
    HAS(bus_call(a, json), "longer than 1,024");
    bus_end();
}

/* A take that the kernel never accepted is back, and so is its id. */
TEST(an_id_that_comes_back_counts_again)
{
    start();
    struct zc_session *a = bus_attach(), *b = bus_attach();
    bus_call(a, "{\"op\":\"put\",\"id\":\"x\",\"name\":\"q\",\"text\":\"m\"}");
    bus_send(b, "{\"op\":\"take\",\"name\":\"q\"}");
    zc_hub_detach(bus_hub, b, bus_now);
    HAS(bus_call(a, "{\"op\":\"put\",\"id\":\"x\",\"name\":\"q\",\"text\":\"m\"}"),
        "\"op\":\"ok\"");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.queued, 1);
    bus_end();
}

/* Caps that a stranger can reach, each answered with `full`. */
TEST(caps_of_one_session)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.session_bytes = UINT64_C(1) << 30;
    c.mailbox_cap = 100000;
    bus_start(&c);
    struct zc_session *a = bus_attach();
    char json[96];
    for (int i = 0; i < 16384; i++)
        bus_send(a, "{\"op\":\"take\",\"name\":\"none\"}");
    HAS(bus_call(a, "{\"op\":\"take\",\"name\":\"none\"}"), "\"code\":\"full\"");
    for (int i = 0; i < 16384; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"req\",\"id\":\"%d\",\"name\":\"svc\"}", i);
        bus_send(a, json);
    }
    CHECK(strcmp(bus_recv(a), "") == 0);
    HAS(bus_call(a, "{\"op\":\"req\",\"id\":\"x\",\"name\":\"svc\"}"), "\"code\":\"full\"");
    for (int i = 0; i < 1024; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"sub\",\"name\":\"t%d.\"}", i);
        bus_call(a, json);
    }
    HAS(bus_call(a, "{\"op\":\"sub\",\"name\":\"more\"}"), "\"code\":\"full\"");
    bus_end();
}

TEST(memory_of_a_hub_without_a_log_is_bounded)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.mailbox_cap = 100000;
    bus_start(&c);
    struct zc_session *a = bus_attach();
    size_t len = 1 << 20;
    char *json = malloc(len + 64), *text = malloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    snprintf(json, len + 64, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"%s\"}", text);
    int n = 0;
    while (n < 1200 && strstr(bus_call(a, json), "\"op\":\"ok\"") != NULL)
        n++;
    CHECK(n > 1000 && n < 1030);
    HAS(bus_call(a, json), "\"code\":\"full\"");
    free(json);
    free(text);
    bus_end();
}
