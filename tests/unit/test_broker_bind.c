/* bind and unbind through a hub in memory. */
#include "bus.h"
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

TEST(one_publication_for_many_mailboxes_is_bounded)
{
    static char json[(1 << 20) + 100];
    start(100);
    struct zc_session *s = bus_attach();
    for (int i = 0; i < 65; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i % 33);
        HAS(bind(s, "bind", name, i < 33 ? "t" : "tt"), "\"ok\"");
    }
    /* Each mailbox counts once: 33 MiB. */
    snprintf(json, sizeof(json), "{\"op\":\"pub\",\"id\":\"p\",\"name\":\"tt\",\"text\":\"");
    size_t at = strlen(json);
    memset(json + at, 'x', 1 << 20);
    memcpy(json + at + (1 << 20), "\"}", 3);
    HAS(bus_call(s, json), "\"subs\":0");
    CHECK_INT(queued(), 33);
    for (int i = 0; i < 32; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d", i);
        HAS(bind(s, "bind", name, "t"), "\"ok\"");
    }
    HAS(bus_call(s, json), "\"code\":\"too_large\"");
    CHECK_INT(queued(), 33); /* nobody has it */
    HAS(take(s, "m0"), "mailbox: empty");
    HAS(pub(s, "tt", "small"), "\"ok\"");
    bus_end();
}
