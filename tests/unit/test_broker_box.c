/* peek, purge and move through a hub in memory. */
#include "bus.h"
#include "test.h"
#include "zmqc/session.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

static void start(uint64_t cap)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.mailbox_cap = cap;
    c.heartbeat_ms = 0;
    bus_start(&c);
}

static void fill(struct zc_session *s, const char *name, int from, int to, const char *more)
{
    char json[160];
    for (int i = from; i <= to; i++) {
        snprintf(json, sizeof(json),
                 "{\"op\":\"put\",\"name\":\"%s\",\"id\":\"%s%d\",\"text\":\"m%d\"%s}", name, name,
                 i, i, more);
        HAS(bus_call(s, json), "\"op\":\"ok\"");
    }
}

/* The numbers behind "text":"m in out, as one text. */
static const char *numbers(const char *out)
{
    static char text[8192];
    size_t n = 0;
    for (const char *p = out; (p = strstr(p, "\"text\":\"m")) != NULL; p++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d", n > 0 ? " " : "", atoi(p + 9));
    text[n] = '\0';
    return text;
}

static int count_of(const char *out, const char *part)
{
    int n = 0;
    for (const char *p = out; (p = strstr(p, part)) != NULL; p++)
        n++;
    return n;
}

static const char *take_all(struct zc_session *s, const char *name)
{
    static char all[65536];
    char json[80];
    size_t n = 0;
    snprintf(json, sizeof(json), "{\"op\":\"take\",\"name\":\"%s\",\"wait\":0}", name);
    for (;;) {
        const char *out = bus_call(s, json);
        if (strstr(out, "\"op\":\"msg\"") == NULL)
            break;
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s", out);
    }
    all[n] = '\0';
    return numbers(all);
}

static struct zc_hub_stats stats(void)
{
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    return st;
}

static void nack(struct zc_session *s, const char *out, const char *more)
{
    char json[160];
    const char *at = strstr(out, "\"delivery\":\"");
    snprintf(json, sizeof(json), "{\"op\":\"nack\",\"delivery\":\"%.24s\"%s}",
             at != NULL ? at + 12 : "", more);
    bus_call(s, json);
}

TEST(peek_shows_and_takes_nothing)
{
    start(1024);
    struct zc_session *s = bus_attach();
    HAS(bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\"}"), "\"code\":\"empty\"");
    HAS(bus_call(s, "{\"op\":\"peek\",\"id\":\"p\"}"), "\"code\":\"empty_name\"");
    CHECK_INT(stats().mailboxes, 0);
    fill(s, "q", 1, 3, ",\"from\":\"f\",\"headers\":{\"k\":\"v\"}");
    const char *out = bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\"}");
    HAS(out, "\"op\":\"msg\",\"id\":\"p\",\"name\":\"q\",\"from\":\"f\",\"text\":\"m1\"");
    HAS(out, "\"headers\":{\"k\":\"v\"},\"at\":");
    HAS(out, "\"by\":\"uid:7\",\"peek\":true}");
    LACKS(out, "delivery");
    CHECK_INT(count_of(out, "\"op\""), 1);
    out = bus_call(s, "{\"op\":\"peek\",\"name\":\"q\"}");
    HAS(out, ":q1\"");
    out = bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\",\"max\":2}");
    CHECK(strcmp(numbers(out), "1 2") == 0);
    CHECK_INT(count_of(out, "\"end\":true,\"peek\":true"), 1);
    HAS(strchr(out, '\n'), "\"end\":true");
    out = bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\",\"max\":1024}");
    CHECK(strcmp(numbers(out), "1 2 3") == 0);
    HAS(bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\",\"max\":1025}"), "\"invalid\"");
    CHECK_INT(stats().queued, 3);
    CHECK(strcmp(take_all(s, "q"), "1 2 3") == 0);
    CHECK_INT(stats().mailboxes, 0);
    bus_end();
}

TEST(peek_sees_the_order_and_the_attempts)
{
    start(1024);
    struct zc_session *s = bus_attach();
    static char held[60][1024];
    fill(s, "q", 1, 60, "");
    for (int i = 0; i < 60; i++)
        snprintf(held[i], sizeof(held[i]), "%s",
                 bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\"}"));
    HAS(bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\"}"), "mailbox: empty");
    fill(s, "q", 61, 70, "");
    for (int i = 0; i < 60; i++) /* 7 and 60 have no common divisor: all come back, mixed */
        nack(s, held[i * 7 % 60], i * 7 % 60 == 4 ? ",\"delay\":5" : "");
    const char *out = bus_call(s, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\",\"max\":66}");
    char want[512];
    size_t n = 0;
    for (int i = 1; i <= 67; i++) {
        if (i != 5) /* not to be seen yet */
            n += (size_t)snprintf(want + n, sizeof(want) - n, "%s%d", n > 0 ? " " : "", i);
    }
    CHECK(strcmp(numbers(out), want) == 0);
    CHECK_INT(count_of(out, "\"attempt\":1,"), 59);
    bus_end();
}

TEST(peek_waits_for_a_slow_reader)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = 0;
    c.session_bytes = 20000;
    bus_start(&c);
    struct zc_session *s = bus_attach(), *r = bus_attach();
    char big[6000], json[6200];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    for (int i = 0; i < 50; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"name\":\"q\",\"text\":\"%s\"}", big);
        bus_call(s, json);
    }
    bus_send(r, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\",\"max\":50}");
    int frames = 0, ends = 0;
    CHECK(zc_session_out_bytes(r) < 60000);
    for (int i = 0; i < 100; i++) {
        const char *out = bus_recv(r);
        frames += count_of(out, "\"peek\":true");
        ends += count_of(out, "\"end\":true");
        bus_advance_ms(1);
    }
    CHECK_INT(frames, 50);
    CHECK_INT(ends, 1);
    bus_send(r, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\",\"max\":50}");
    zc_hub_detach(bus_hub, r, bus_now); /* in the middle of it */
    CHECK_INT(stats().queued, 50);
    bus_end();
}

TEST(purge_leaves_what_is_leased)
{
    start(100000);
    struct zc_session *s = bus_attach();
    HAS(bus_call(s, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}"),
        "{\"v\":1,\"op\":\"ok\",\"id\":\"p\",\"count\":0}");
    HAS(bus_call(s, "{\"op\":\"purge\",\"id\":\"p\"}"), "\"code\":\"empty_name\"");
    fill(s, "q", 1, 5, "");
    fill(s, "q", 6, 8, ",\"delay\":10");
    fill(s, "r", 1, 1, "");
    static char held[2][1024];
    for (int i = 0; i < 2; i++)
        snprintf(held[i], sizeof(held[i]), "%s",
                 bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\"}"));
    nack(s, held[0], "");
    HAS(bus_call(s, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}"), "\"count\":7}");
    CHECK_INT(stats().queued, 1);
    CHECK_INT(stats().leased, 1);
    CHECK_INT(stats().delayed, 0);
    bus_advance_ms(20000);
    nack(s, held[1], "");
    CHECK(strcmp(take_all(s, "q"), "2") == 0);
    fill(s, "q", 1, 1, ""); /* its id is free again */
    CHECK(strcmp(take_all(s, "q"), "1") == 0);
    bus_end();
}

TEST(a_long_purge_goes_in_steps)
{
    start(100000);
    struct zc_session *s = bus_attach();
    fill(s, "q", 1, 5000, "");
    bus_send(s, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}");
    fill(s, "q", 5001, 5001, ""); /* not its business */
    CHECK(stats().queued > 1);
    CHECK(zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns);
    for (int i = 0; i < 10; i++)
        zc_hub_tick(bus_hub, bus_now);
    HAS(bus_recv(s), "\"count\":5000");
    CHECK(strcmp(take_all(s, "q"), "5001") == 0);
    CHECK(zc_hub_deadline(bus_hub).ns > bus_now.mono.ns);
    bus_end();
}

TEST(move_keeps_order_headers_and_attempts)
{
    start(1024);
    struct zc_session *s = bus_attach();
    fill(s, "a", 1, 2, "");
    fill(s, "b", 3, 3, "");
    fill(s, "a", 4, 6, ",\"headers\":{\"k\":\"v\"},\"from\":\"f\"");
    fill(s, "a", 7, 7, ",\"delay\":3");
    static char held[1024];
    snprintf(held, sizeof(held), "%s", bus_call(s, "{\"op\":\"reserve\",\"name\":\"a\"}"));
    nack(s, held, "");
    snprintf(held, sizeof(held), "%s", bus_call(s, "{\"op\":\"reserve\",\"name\":\"a\"}"));
    HAS(held, "m1");
    HAS(bus_call(s, "{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\",\"max\":2}"),
        "{\"v\":1,\"op\":\"ok\",\"id\":\"m\",\"count\":2}");
    HAS(bus_call(s, "{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":3}");
    HAS(bus_call(s, "{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":0}");
    nack(s, held, ""); /* leased ones stay */
    HAS(bus_call(s, "{\"op\":\"stat\",\"name\":\"b\"}"), "\"depth\":5,\"leased\":0,\"delayed\":1");
    const char *out = bus_call(s, "{\"op\":\"peek\",\"name\":\"b\",\"id\":\"p\",\"max\":9}");
    CHECK(strcmp(numbers(out), "2 3 4 5 6") == 0);
    CHECK_INT(count_of(out, "\"name\":\"b\",\"from\":\"f\""), 3);
    CHECK_INT(count_of(out, "\"headers\":{\"k\":\"v\"}"), 3);
    HAS(bus_call(s, "{\"op\":\"put\",\"name\":\"b\",\"id\":\"a4\"}"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 6); /* the id went along */
    fill(s, "a", 4, 4, "");
    CHECK(strcmp(take_all(s, "b"), "2 3 4 5 6") == 0);
    bus_advance_ms(3500);
    CHECK(strcmp(take_all(s, "b"), "7") == 0);
    HAS(bus_call(s, "{\"op\":\"take\",\"name\":\"a\"}"), "\"attempt\":3");
    CHECK(strcmp(take_all(s, "a"), "4") == 0);
    CHECK_INT(stats().mailboxes, 0);
    bus_end();
}

TEST(move_stops_when_the_target_is_full)
{
    start(4);
    struct zc_session *s = bus_attach(), *w = bus_attach();
    fill(s, "a", 1, 4, "");
    fill(s, "b", 9, 9, "");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":3}");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":0}");
    CHECK(strcmp(take_all(s, "b"), "1 2 3 9") == 0);
    bus_send(w, "{\"op\":\"take\",\"name\":\"b\"}");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":1}");
    zc_hub_tick(bus_hub, bus_now);
    HAS(bus_recv(w), "m4"); /* a waiter of the target gets it */
    CHECK_INT(stats().mailboxes, 0);
    bus_end();
}

TEST(moves_in_opposite_directions_end)
{
    start(100000);
    struct zc_session *s = bus_attach(), *r = bus_attach();
    fill(s, "a", 1, 3000, "");
    fill(s, "b", 3001, 6000, "");
    bus_send(s, "{\"op\":\"move\",\"id\":\"s\",\"name\":\"a\",\"to\":\"b\"}");
    bus_send(r, "{\"op\":\"move\",\"id\":\"r\",\"name\":\"b\",\"to\":\"a\"}");
    for (int i = 0; i < 50; i++)
        zc_hub_tick(bus_hub, bus_now);
    HAS(bus_recv(s), "\"op\":\"ok\",\"id\":\"s\"");
    HAS(bus_recv(r), "\"op\":\"ok\",\"id\":\"r\"");
    CHECK_INT(stats().queued, 6000);
    CHECK(zc_hub_deadline(bus_hub).ns > bus_now.mono.ns);
    bus_end();
}

/* Each would else read all messages that are not in memory. */
TEST(moves_out_of_one_mailbox_go_one_after_the_other)
{
    start(100000);
    struct zc_session *s = bus_attach(), *r = bus_attach(), *t = bus_attach();
    fill(t, "a", 1, 3000, "");
    bus_send(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"b\"}");
    bus_send(r, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"c\",\"max\":5}");
    CHECK(strcmp(bus_recv(r), "") == 0);
    zc_hub_detach(bus_hub, s, bus_now); /* in the middle of it: the next one's turn */
    for (int i = 0; i < 50; i++)
        zc_hub_tick(bus_hub, bus_now);
    HAS(bus_recv(r), "\"op\":\"ok\",\"count\":5}");
    HAS(bus_call(t, "{\"op\":\"stat\",\"name\":\"c\"}"), "\"depth\":5,");
    CHECK_INT(stats().queued, 3000);
    bus_end();
}

TEST(moves_that_cannot_be)
{
    start(4);
    struct zc_session *s = bus_attach();
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\"}"), "\"code\":\"empty_name\"");
    HAS(bus_call(s, "{\"op\":\"move\",\"to\":\"a\"}"), "\"code\":\"empty_name\"");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"$a\"}"), "\"code\":\"denied\"");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"a\"}"), "\"code\":\"invalid\"");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":0");
    CHECK_INT(stats().mailboxes, 0);
    bus_end();
}

TEST(a_moved_request_is_answered)
{
    start(4);
    struct zc_session *c = bus_attach(), *w = bus_attach();
    bus_send(c, "{\"op\":\"req\",\"id\":\"q1\",\"name\":\"a\",\"text\":\"in\"}");
    HAS(bus_call(w, "{\"op\":\"move\",\"name\":\"a\",\"to\":\"b\"}"), "\"count\":1}");
    const char *out = bus_call(w, "{\"op\":\"ready\",\"name\":\"b\"}");
    char json[160], id[64] = "";
    sscanf(strstr(out, "\"id\":\""), "\"id\":\"%63[^\"]", id);
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%s\",\"text\":\"out\"}", id);
    HAS(bus_call(w, json), "\"op\":\"ok\"");
    HAS(bus_recv(c), "\"op\":\"rep\",\"id\":\"q1\"");
    bus_end();
}

TEST(half_close_waits_for_the_answer)
{
    start(100000);
    struct zc_session *s = bus_attach();
    fill(s, "q", 1, 3000, "");
    bus_send(s, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}");
    zc_hub_eof(bus_hub, s, bus_now);
    CHECK_INT(bus_fate(s), ZC_HUB_OUTPUT);
    for (int i = 0; i < 5; i++)
        zc_hub_tick(bus_hub, bus_now);
    HAS(bus_recv(s), "\"count\":3000");
    CHECK_INT(bus_fate(s), ZC_HUB_CLOSE);
    bus_end();
}
