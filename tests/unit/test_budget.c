/* The bound of the output of all sessions together: who waits, who goes on, who ends. */
#include "bus.h"
#include "node/hub_priv.h"
#include "test.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)

#define BUDGET (UINT64_C(1) << 20)
#define TEXT 10000
#define FRAME 24000 /* a message of TEXT bytes at most: as text and as base64 */

static char big[TEXT + 100];

static void start(void)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.session_bytes = BUDGET / 4;
    c.output_bytes = BUDGET;
    c.topics_max = 0;
    bus_start(&c);
}

/* A request that carries TEXT bytes. */
static const char *with_text(const char *head)
{
    size_t n = (size_t)snprintf(big, sizeof(big), "{%s,\"text\":\"", head);
    memset(big + n, 'x', TEXT);
    memcpy(big + n + TEXT, "\"}", 3);
    return big;
}

static uint64_t memory(void)
{
    return bus_hub->broker->out_bytes;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

enum { CLOGGED = 40, ASKS = 40 };

/* Sessions that ask for much and read nothing. Nobody is ended for it: they are under twice. */
static void clog_all(struct zc_session *s[CLOGGED])
{
    bus_call(s[0], with_text("\"op\":\"put\",\"name\":\"q\""));
    for (int i = 0; i < CLOGGED; i++) {
        for (int k = 0; k < ASKS; k++)
            bus_send(s[i], "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\"}");
        CHECK(!zc_hub_wants_input(bus_hub, s[i]));
    }
}

TEST(output_of_all_is_bounded_and_all_is_answered_in_the_end)
{
    start();
    struct zc_session *s[CLOGGED];
    for (int i = 0; i < CLOGGED; i++)
        s[i] = bus_attach();
    clog_all(s);
    CHECK(memory() > BUDGET);
    CHECK(memory() < BUDGET + CLOGGED * FRAME + (100 << 10));
    int answers = 0;
    for (int round = 0; round < ASKS; round++) {
        for (int i = 0; i < CLOGGED; i++)
            answers += count(bus_recv(s[i]), "\"peek\":true");
    }
    CHECK_INT(answers, CLOGGED * ASKS);
    for (int i = 0; i < CLOGGED; i++)
        CHECK(zc_hub_wants_input(bus_hub, s[i]));
    for (int i = 0; i < CLOGGED; i++)
        zc_hub_detach(bus_hub, s[i], bus_now);
    CHECK_INT(memory(), 0);
    bus_end();
}

TEST(who_reads_goes_on)
{
    start();
    struct zc_session *s[CLOGGED], *a = bus_attach();
    for (int i = 0; i < CLOGGED; i++)
        s[i] = bus_attach();
    /* One waits for a message, and follows a topic. */
    bus_call(s[7], "{\"op\":\"take\",\"id\":\"t\",\"name\":\"w\"}");
    bus_call(s[7], "{\"op\":\"sub\",\"name\":\"n\"}");
    bus_call(a, "{\"op\":\"sub\",\"name\":\"n\"}");
    clog_all(s);
    for (int i = 0; i < 10; i++) {
        CHECK(zc_hub_wants_input(bus_hub, a));
        HAS(bus_call(a, with_text("\"op\":\"put\",\"name\":\"w\"")), "\"op\":\"ok\"");
        HAS(bus_call(a, "{\"op\":\"take\",\"name\":\"w\"}"), "\"op\":\"msg\"");
    }
    bus_call(a, "{\"op\":\"put\",\"name\":\"w\",\"text\":\"left\"}");
    const char *out = bus_call(a, "{\"op\":\"pub\",\"name\":\"n\",\"text\":\"news\"}");
    HAS(out, "news");
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.dropped_subs, 1);
    CHECK_INT(st.sessions, CLOGGED + 1);
    /* It has not read its own yet, though others have. */
    for (int i = 0; i < CLOGGED; i++) {
        if (i != 7)
            bus_recv(s[i]);
    }
    int got = 0;
    for (int round = 0; round < ASKS + 2; round++)
        got += count(bus_recv(s[7]), "\"text\":\"left\"");
    CHECK_INT(got, 1);
    bus_end();
}

TEST(a_clogged_session_waits_without_heartbeats_and_ends_when_it_stands_still)
{
    start();
    struct zc_session *s[CLOGGED];
    for (int i = 0; i < CLOGGED; i++)
        s[i] = bus_attach();
    clog_all(s);
    struct zc_slice slice;
    size_t n;
    for (int i = 0; i < 40; i++) { /* one reads a little, and is not heard because nobody listens */
        zc_hub_output(bus_hub, s[3], &slice, 1, &n);
        CHECK_INT(n, 1);
        zc_hub_sent(bus_hub, s[3], bus_now, 10);
        bus_advance_ms(1000);
    }
    struct zc_hub_event ev;
    int ended = 0;
    while (zc_hub_event(bus_hub, bus_now, &ev)) {
        CHECK(ev.kind != ZC_HUB_CLOSE || ev.session != s[3]);
        if (ev.kind == ZC_HUB_CLOSE) {
            zc_hub_detach(bus_hub, ev.session, bus_now);
            ended++;
        }
    }
    CHECK_INT(ended, CLOGGED - 1);
    CHECK(memory() < BUDGET / 2);
    bus_end();
}

TEST(at_twice_the_budget_who_stands_still_ends_and_nothing_is_lost)
{
    enum { MANY = 300 };
    start();
    static struct zc_session *s[MANY];
    struct zc_session *a = bus_attach(), *reader = bus_attach();
    uint64_t most = 0;
    int ended = 0;
    for (int i = 0; i < MANY; i++) {
        s[i] = bus_attach();
        bus_send(s[i], "{\"op\":\"take\",\"name\":\"q\"}");
        bus_call(a, with_text("\"op\":\"put\",\"name\":\"q\""));
        bus_advance_ms(1);
        most = memory() > most ? memory() : most;
        bus_send(reader, "{\"op\":\"take\",\"name\":\"r\"}");
        bus_call(a, with_text("\"op\":\"put\",\"name\":\"r\""));
        HAS(bus_recv(reader), "\"op\":\"msg\"");
        struct zc_hub_event ev;
        while (zc_hub_event(bus_hub, bus_now, &ev)) {
            if (ev.kind != ZC_HUB_CLOSE)
                continue;
            CHECK(ev.session == s[ended]); /* the first of those that are left */
            zc_hub_detach(bus_hub, ev.session, bus_now);
            s[ended++] = NULL;
        }
    }
    CHECK(ended > MANY / 3);
    CHECK(most > 2 * BUDGET - FRAME);
    CHECK(most < 2 * BUDGET + 2 * FRAME);
    int got = 0;
    for (int i = ended; i < MANY; i++)
        got += count(bus_recv(s[i]), "\"op\":\"msg\"");
    CHECK_INT(got, MANY - ended);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.queued, (uint64_t)ended);
    bus_end();
}

TEST(replies_to_one_that_does_not_read_are_bounded)
{
    enum { ASKERS = 20, REQS = 20 };
    start();
    struct zc_session *w = bus_attach(), *s[ASKERS];
    uint64_t most = 0;
    for (int i = 0; i < ASKERS; i++) {
        s[i] = bus_attach();
        for (int k = 0; k < REQS; k++) {
            char json[96];
            snprintf(json, sizeof(json), "{\"op\":\"req\",\"id\":\"r%d-%d\",\"name\":\"svc\"}", i,
                     k);
            bus_send(s[i], json);
        }
    }
    for (int i = 0; i < ASKERS * REQS; i++) {
        char head[200], id[100];
        const char *msg = bus_call(w, "{\"op\":\"take\",\"name\":\"svc\"}");
        const char *from = strstr(msg, "\"id\":\"");
        CHECK(from != NULL && sscanf(from, "\"id\":\"%99[^\"]", id) == 1);
        snprintf(head, sizeof(head), "\"op\":\"rep\",\"id\":\"%s\",\"name\":\"svc\"", id);
        bus_call(w, with_text(head));
        most = memory() > most ? memory() : most;
        bus_advance_ms(1);
        struct zc_hub_event ev;
        while (zc_hub_event(bus_hub, bus_now, &ev)) {
            if (ev.kind == ZC_HUB_CLOSE)
                zc_hub_detach(bus_hub, ev.session, bus_now);
        }
    }
    CHECK(most > BUDGET);
    CHECK(most < 2 * BUDGET + 2 * FRAME);
    HAS(bus_call(w, "{\"op\":\"ping\"}"), "pong");
    bus_end();
}

TEST(what_many_share_counts_once)
{
    enum { SUBS = 200, PUBS = 10 };
    start();
    struct zc_session *s[SUBS], *a = bus_attach();
    for (int i = 0; i < SUBS; i++) {
        s[i] = bus_attach();
        bus_call(s[i], "{\"op\":\"sub\",\"name\":\"n\"}");
    }
    for (int i = 0; i < PUBS; i++)
        bus_call(a, with_text("\"op\":\"pub\",\"name\":\"n\""));
    CHECK(memory() > PUBS * TEXT);
    CHECK(memory() < BUDGET);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK_INT(st.dropped_subs, 0);
    for (int i = 0; i < SUBS; i++)
        CHECK_INT(count(bus_recv(s[i]), "\"op\":\"msg\""), PUBS);
    CHECK_INT(memory(), 0);
    bus_end();
}

/* Many end at once, those whose output stands still the longest, and no more than must. */
TEST(the_slowest_end_first_however_many)
{
    enum { SESSIONS = 200, END = 150 };
    struct zc_session *s[SESSIONS];
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = 0;
    bus_start(&c);
    struct zc_session *p = bus_attach();
    bus_call(p, with_text("\"op\":\"put\",\"name\":\"q\""));
    for (int i = 0; i < SESSIONS; i++)
        s[i] = bus_attach();
    for (int i = 0; i < SESSIONS; i++) { /* 77 and 200 have no common divisor */
        bus_advance_ms(1);
        bus_send(s[i * 77 % SESSIONS], "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\"}");
    }
    bus_advance_ms(1);
    uint64_t each = memory() / SESSIONS;
    bus_hub->broker->limits.output_bytes = each * (SESSIONS - END) / 2 + each / 4;
    bus_call(p, "{\"op\":\"ping\"}");
    bool over[SESSIONS] = {false};
    for (struct zc_hub_event ev; zc_hub_event(bus_hub, bus_now, &ev);)
        for (int i = 0; ev.kind == ZC_HUB_CLOSE && i < SESSIONS; i++)
            over[i] = over[i] || ev.session == s[i];
    for (int i = 0; i < SESSIONS; i++)
        CHECK(over[i * 77 % SESSIONS] == (i < END));
    bus_end();
}
