/* bind and unbind through a hub in memory. */
#include "bus.h"
#include "node/hub_priv.h"
#include "test.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

static void start(uint64_t cap)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.mailbox_cap = cap;
    c.mailboxes_max = 50;
    c.heartbeat_ms = 0;
    bus_start(&c);
}

static const char *bind(struct zc_session *s, const char *op, const char *name, const char *topic)
{
    char json[160];
    snprintf(json, sizeof(json), "{\"op\":\"%s\",\"id\":\"b\",\"name\":\"%s\",\"topic\":\"%s\"}",
             op, name, topic);
    return bus_call(s, json);
}

static const char *pub(struct zc_session *s, const char *topic, const char *text)
{
    char json[200];
    snprintf(json, sizeof(json),
             "{\"op\":\"pub\",\"id\":\"p\",\"name\":\"%s\",\"from\":\"f\",\"text\":\"%s\","
             "\"delay\":5,\"headers\":{\"k\":\"v\"}}",
             topic, text);
    return bus_call(s, json);
}

static const char *take(struct zc_session *s, const char *name)
{
    char json[100];
    snprintf(json, sizeof(json), "{\"op\":\"take\",\"name\":\"%s\",\"wait\":0}", name);
    return bus_call(s, json);
}

static uint64_t queued(void)
{
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    return st.queued;
}

TEST(a_publication_is_put_too)
{
    start(10);
    struct zc_session *s = bus_attach();
    CHECK(strcmp(bind(s, "bind", "box", "ev."),
                 "{\"v\":1,\"op\":\"ok\",\"id\":\"b\",\"name\":\"box\"}\n") == 0);
    HAS(pub(s, "ev.1", "one"), "\"op\":\"ok\",\"id\":\"p\",\"name\":\"ev.1\",\"subs\":0");
    HAS(pub(s, "other", "no"), "\"subs\":0");
    const char *out = take(s, "box");
    HAS(out, "\"name\":\"box\",\"from\":\"f\",\"text\":\"one\"");
    HAS(out, "\"headers\":{\"k\":\"v\"},\"attempt\":1");
    HAS(out, "\"by\":\"uid:7\"");
    LACKS(out, "\"id\":\"p\""); /* a new id, of 24 digits */
    CHECK_INT(strcspn(strstr(out, "\"id\":\"") + 6, "\""), 24);
    HAS(take(s, "box"), "mailbox: empty");
    HAS(pub(s, "ev.2", "two"), "\"ok\"");
    HAS(pub(s, "ev.2", "two"), "\"ok\""); /* twice: two messages */
    CHECK_INT(queued(), 2);
    HAS(bind(s, "unbind", "box", "ev"), "\"ok\""); /* another prefix: changes nothing */
    HAS(pub(s, "ev.2", "three"), "\"ok\"");
    CHECK_INT(queued(), 3);
    HAS(bind(s, "unbind", "box", "ev."), "\"op\":\"ok\",\"id\":\"b\",\"name\":\"box\"");
    HAS(bind(s, "unbind", "box", "ev."), "\"ok\"");
    HAS(pub(s, "ev.2", "four"), "\"ok\"");
    CHECK_INT(queued(), 3);
    bus_end();
}

TEST(one_copy_for_each_mailbox)
{
    start(10);
    struct zc_session *s = bus_attach(), *w = bus_attach();
    static const char *const names[] = {"", "e", "ev", "ev.", "ev.1", "ev.12"};
    for (size_t i = 0; i < 6; i++)
        for (int k = 0; k < 2; k++) /* the second time changes nothing */
            HAS(bind(s, "bind", "box", names[i]), "\"ok\"");
    HAS(bind(s, "bind", "all", ""), "\"ok\"");
    HAS(pub(s, "ev.1", "x"), "\"ok\"");
    CHECK_INT(queued(), 2);
    /* A waiter empties the mailbox between two matches. */
    take(s, "box");
    bus_send(w, "{\"op\":\"take\",\"name\":\"box\"}");
    bus_send(w, "{\"op\":\"take\",\"name\":\"box\"}");
    HAS(pub(s, "ev.1", "y"), "\"ok\"");
    zc_hub_tick(bus_hub, bus_now);
    const char *out = bus_recv(w);
    HAS(out, "\"y\"");
    LACKS(strchr(out, '\n') + 1, "\"y\"");
    bus_end();
}

TEST(a_full_mailbox_drops_and_counts)
{
    start(2);
    struct zc_session *s = bus_attach();
    bind(s, "bind", "box", "");
    bind(s, "bind", "other", "");
    for (int i = 0; i < 5; i++)
        HAS(pub(s, "t", "x"), "\"op\":\"ok\"");
    HAS(bus_call(s, "{\"op\":\"stat\",\"name\":\"box\"}"), "\"depth\":2");
    HAS(bus_call(s, "{\"op\":\"stat\",\"name\":\"box\"}"), "\"dropped\":3");
    take(s, "other");
    HAS(pub(s, "t", "x"), "\"op\":\"ok\"");
    HAS(bus_call(s, "{\"op\":\"stat\",\"name\":\"other\"}"), "\"depth\":2");
    HAS(bus_call(s, "{\"op\":\"stat\"}"), "\"dropped\":7");
    bus_end();
}

TEST(the_answer_comes_before_the_message)
{
    start(2);
    struct zc_session *s = bus_attach();
    bind(s, "bind", "box", "t");
    bus_send(s, "{\"op\":\"take\",\"name\":\"box\"}");
    const char *out = pub(s, "t", "x");
    CHECK(strncmp(out, "{\"v\":1,\"op\":\"ok\"", 16) == 0);
    LACKS(out, "\"op\":\"msg\"");
    HAS(bus_recv(s), "\"op\":\"msg\"");
    bus_end();
}

TEST(times_of_a_publication_go_along)
{
    start(10);
    struct zc_session *s = bus_attach();
    bind(s, "bind", "box", "t");
    HAS(bus_call(s, "{\"op\":\"pub\",\"name\":\"t\",\"ttl\":0}"), "\"ok\"");
    CHECK_INT(queued(), 0);
    HAS(bus_call(s, "{\"op\":\"pub\",\"name\":\"t\",\"ttl\":2}"), "\"ok\"");
    CHECK_INT(queued(), 1);
    bus_advance_ms(2100);
    CHECK_INT(queued(), 0);
    bus_end();
}

TEST(what_cannot_be_bound)
{
    start(2);
    struct zc_session *s = bus_attach();
    HAS(bus_call(s, "{\"op\":\"bind\",\"topic\":\"t\"}"), "\"code\":\"empty_name\"");
    HAS(bus_call(s, "{\"op\":\"unbind\",\"topic\":\"t\"}"), "\"code\":\"empty_name\"");
    HAS(bind(s, "bind", "$q", "t"), "\"code\":\"denied\"");
    HAS(bind(s, "bind", "q", "$t"), "\"code\":\"denied\"");
    HAS(bus_call(s, "{\"op\":\"bind\",\"name\":\"q\",\"topic\":7}"), "\"code\":\"bad_frame\"");
    struct zc_session *t = bus_attach();
    for (int i = 0; i < 60; i++) { /* more names than mailboxes may be */
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        HAS(bind(t, "bind", name, "t"), "\"ok\"");
    }
    HAS(pub(t, "t", "x"), "\"ok\"");
    CHECK_INT(queued(), 50);
    bus_end();
}

static void bind_many(struct zc_session *s, int count)
{
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        bind(s, "bind", name, "t");
        if (i % 3 == 0)
            bind(s, "bind", name, "");
    }
}

static void start_many(int count)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = 0;
    c.mailboxes_max = 10000;
    bus_start(&c);
    bind_many(bus_attach(), count);
}

static void ticks(int n)
{
    for (int i = 0; i < n; i++)
        zc_hub_tick(bus_hub, bus_now);
}

/* What lies in a mailbox, as the one letter texts, in order; it is emptied. */
static const char *letters(struct zc_session *s, int mailbox)
{
    static char text[16];
    char name[16];
    size_t n = 0;
    snprintf(name, sizeof(name), "n%d", mailbox);
    for (const char *at; n < sizeof(text) - 1; n++) {
        at = strstr(take(s, name), "\"text\":\"");
        if (at == NULL)
            break;
        text[n] = at[8];
    }
    text[n] = '\0';
    return text;
}

TEST(many_mailboxes_are_filled_in_steps)
{
    enum { COUNT = 5000 };
    start_many(COUNT);
    struct zc_session *p = bus_attach(), *q = bus_attach(), *r = bus_attach();
    bus_call(r, "{\"op\":\"sub\",\"name\":\"t\"}");
    bus_call(p, "{\"op\":\"take\",\"id\":\"own\",\"name\":\"n1\"}");
    bus_send(p, "{\"op\":\"ping\",\"id\":\"0\"}"); /* when this is read, its waiter stays aside */
    /* What the session sends behind it stays behind it. */
    bus_send(p, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"A\"}");
    bus_send(p, "{\"op\":\"put\",\"id\":\"2\",\"name\":\"n4999\",\"text\":\"B\"}");
    bus_send(p, "{\"op\":\"pub\",\"id\":\"3\",\"name\":\"t\",\"text\":\"C\"}");
    CHECK(queued() > 100 && queued() < 1100);
    const char *out = bus_recv(p);
    CHECK(strstr(out, "pong") != NULL && strstr(out, "\"ok\"") == NULL);
    CHECK(zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns);
    bus_send(q, "{\"op\":\"ping\"}");
    out = bus_call(q, "{\"op\":\"pub\",\"id\":\"4\",\"name\":\"t\",\"text\":\"D\"}");
    CHECK(strstr(out, "pong") != NULL && strstr(out, "\"ok\"") == NULL);
    CHECK(queued() < 2100); /* nor does its turn come when it reads */
    CHECK(!zc_hub_wants_input(bus_hub, p));
    ticks(40);
    HAS(bus_recv(q), "\"op\":\"ok\",\"id\":\"4\",\"name\":\"t\",\"subs\":1}");
    out = bus_recv(p);
    const char *ok = strstr(out, "\"op\":\"ok\",\"id\":\"1\""), *own = strstr(out, "\"A\"");
    CHECK(ok != NULL && own != NULL && ok < own);
    HAS(out, "\"op\":\"ok\",\"id\":\"3\",\"name\":\"t\",\"subs\":1}");
    out = bus_recv(r);
    const char *a = strstr(out, "\"A\""), *c = strstr(out, "\"C\""), *d = strstr(out, "\"D\"");
    CHECK(a != NULL && c != NULL && d != NULL && a < c && a < d);
    const char *want = c < d ? "ACD" : "ADC"; /* one order everywhere */
    CHECK_INT(queued(), 3 * COUNT);           /* with B, without what p took */
    for (int i = 2; i < COUNT - 1; i++)
        CHECK(strcmp(letters(q, i), want) == 0);
    const char *last = letters(q, 4999); /* B behind A and before C, wherever D is */
    CHECK(strlen(last) == 4 && strchr(last, 'A') < strchr(last, 'B') &&
          strchr(last, 'B') < strchr(last, 'C'));
    CHECK(zc_hub_deadline(bus_hub).ns > bus_now.mono.ns);
    CHECK(zc_hub_wants_input(bus_hub, p));
    bus_end();
}

/* A frame of about a mebibyte. */
static const char *large(const char *op)
{
    static char json[(1 << 20) + 100];
    int at =
        snprintf(json, sizeof(json), "{\"op\":\"%s\",\"id\":\"p\",\"name\":\"t\",\"text\":\"", op);
    memset(json + at, 'x', 1 << 20);
    memcpy(json + at + (1 << 20), "\"}", 3);
    return json;
}

TEST(the_bytes_of_a_step_are_bounded)
{
    start_many(100);
    struct zc_session *s = bus_attach();
    bus_send(s, large("pub"));
    CHECK_INT(queued(), 4);
    for (int i = 2; i < 25; i++) {
        ticks(1);
        CHECK_INT(queued(), 4 * i);
    }
    ticks(3);
    HAS(bus_recv(s), "\"subs\":0");
    CHECK_INT(queued(), 100);
    bus_end();
}

TEST(it_goes_on_when_its_session_ends)
{
    start_many(3000);
    struct zc_session *s = bus_attach(), *t = bus_attach(), *half = bus_attach();
    bus_send(s, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"A\"}");
    bus_send(t, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"B\"}");
    bus_send(half, "{\"op\":\"pub\",\"id\":\"h\",\"name\":\"t\",\"text\":\"C\"}");
    zc_hub_eof(bus_hub, half, bus_now);
    CHECK_INT(bus_fate(half), ZC_HUB_OUTPUT);
    zc_hub_detach(bus_hub, t, bus_now);
    zc_hub_detach(bus_hub, s, bus_now);
    ticks(20);
    CHECK_INT(queued(), 9000);
    HAS(bus_recv(half), "\"op\":\"ok\",\"id\":\"h\"");
    CHECK_INT(bus_fate(half), ZC_HUB_CLOSE);
    s = bus_attach();
    for (int i = 0; i < 3000; i++)
        CHECK(strcmp(letters(s, i), "ABC") == 0);
    /* And the hub may end in the middle of it. */
    bus_send(s, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"A\"}");
    bus_send(bus_attach(), "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"B\"}");
    bus_end();
}

static bool stopped(void)
{
    struct zc_hub_event ev;
    bool found = false;
    while (zc_hub_event(bus_hub, bus_now, &ev))
        found = found || ev.kind == ZC_HUB_STOPPED;
    return found;
}

TEST(a_hub_that_stops_ends_it_first)
{
    start_many(3000);
    struct zc_hub_stats st;
    struct zc_session *s = bus_attach();
    bus_send(s, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"A\"}");
    zc_hub_stop(bus_hub, bus_now);
    while (!zc_list_empty(&bus_hub->broker->sessions))
        zc_hub_detach(bus_hub,
                      ZC_CONTAINER(bus_hub->broker->sessions.next, struct zc_session, link),
                      bus_now);
    CHECK(!stopped());
    ticks(5);
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.queued, 3000);
    CHECK(stopped());
    bus_end();
}

TEST(bindings_change_meanwhile)
{
    enum { COUNT = 3000 };
    start_many(COUNT);
    struct zc_session *s = bus_attach(), *t = bus_attach();
    char name[16];
    for (int round = 0; round < 8; round++) {
        bus_send(s, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"A\"}");
        ticks(round % 3);
        for (int i = 0; i < COUNT; i++) {
            /* Any of them may be where it stands. */
            if (i % 8 != round)
                continue;
            snprintf(name, sizeof(name), "n%d", i);
            bind(t, "unbind", name, "");
            bind(t, "unbind", name, "t");
            bind(t, "bind", name, round % 2 ? "t" : "");
        }
        ticks(10);
        HAS(bus_recv(s), "\"op\":\"ok\",\"id\":\"1\"");
        for (int i = 0; i < COUNT; i++) {
            const char *got = letters(t, i);
            CHECK(strcmp(got, "A") == 0 || (i % 8 == round && strcmp(got, "") == 0));
        }
    }
    for (int i = 0; i < COUNT; i++) { /* all at once, to the last */
        snprintf(name, sizeof(name), "n%d", i);
        if (i == 0)
            bus_send(s, "{\"op\":\"pub\",\"id\":\"2\",\"name\":\"t\",\"text\":\"A\"}");
        bind(t, "unbind", name, "");
        bind(t, "unbind", name, "t");
    }
    ticks(3);
    HAS(bus_recv(s), "\"op\":\"ok\",\"id\":\"2\"");
    CHECK(queued() >= 1024 && queued() <= 2048);
    bus_end();
}

TEST(what_waits_for_its_turn_is_bounded)
{
    enum { SESSIONS = 160 };
    start_many(1200);
    struct zc_session *s[SESSIONS];
    int refused = 0, done = 0;
    for (int i = 0; i < SESSIONS; i++) {
        s[i] = bus_attach();
        bus_send(s[i], i == 0 ? "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\"}" : large("pub"));
        refused += strstr(bus_recv(s[i]), "\"code\":\"unavailable\"") != NULL;
    }
    CHECK(refused > 20 && refused < 50);
    HAS(bus_call(bus_attach(), "{\"op\":\"unbind\",\"name\":\"n0\",\"topic\":\"t\"}"), "ok");
    for (int i = 0; i < 1200; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        bind(s[SESSIONS - 1], "unbind", name, "t");
        bind(s[SESSIONS - 1], "unbind", name, "");
    }
    ticks(2 * SESSIONS);
    for (int i = 0; i < SESSIONS; i++)
        done += strstr(bus_recv(s[i]), "\"subs\":0") != NULL;
    CHECK_INT(done + refused, SESSIONS);
    HAS(bus_call(s[5], large("pub")), "\"subs\":0");
    CHECK_INT(bus_hub->broker->in_bytes, 0);
    bus_end();
}
