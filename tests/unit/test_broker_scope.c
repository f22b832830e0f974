/* Scopes: ids and leases that outlive a session, through a hub in memory. */
#include "bus.h"
#include "node/hub_priv.h"
#include "test.h"
#include "zmqc/scope.h"
#include "zmqc/seen.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

static void start(void)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = 0;
    c.mailbox_cap = 200000;
    bus_start(&c);
}

static struct zc_session *attach(const char *identity, const char *scope)
{
    struct zc_peer peer = {identity, "@", false};
    struct zc_session *s = zc_hub_attach(bus_hub, bus_now, &peer, NULL);
    char json[100];
    snprintf(json, sizeof(json), "{\"op\":\"hello\",\"id\":\"h\",\"from\":\"w\",\"scope\":\"%s\"}",
             scope);
    HAS(bus_call(s, json), "\"op\":\"ok\",\"id\":\"h\",\"from\":\"w\"");
    return s;
}

static const char *put(struct zc_session *s, const char *id, const char *name)
{
    char json[120];
    snprintf(json, sizeof(json), "{\"op\":\"put\",\"id\":\"%s\",\"name\":\"%s\",\"text\":\"x\"}",
             id, name);
    return bus_call(s, json);
}

static struct zc_hub_stats stats(void)
{
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    return st;
}

static void token_of(const char *out, char ret_token[25])
{
    const char *at = strstr(out, "\"delivery\":\"");
    snprintf(ret_token, 25, "%s", at != NULL ? at + 12 : "");
}

static const char *with_token(struct zc_session *s, const char *op, const char *token)
{
    char json[100];
    snprintf(json, sizeof(json), "{\"op\":\"%s\",\"delivery\":\"%s\"}", op, token);
    return bus_call(s, json);
}

TEST(numbers)
{
    struct zc_slice a = zc_slice_str("a");
    uint64_t n = zc_scope_number("uid:1", a);
    CHECK(n == UINT64_C(16241483581470639324));
    CHECK(n != zc_scope_number("uid:2", a));
    CHECK(n != zc_scope_number("uid:1", zc_slice_str("b")));
    CHECK(zc_scope_number("uid:1", zc_slice_str("1a")) != zc_scope_number("uid:11", a));
    CHECK(zc_scope_number("tcp:1.2.3.4:5", a) == zc_scope_number("tcp:1.2.3.4:99", a));
    CHECK(zc_scope_number("tcp:1.2.3.4:5", a) != zc_scope_number("tcp:1.2.3.5:5", a));
    CHECK(zc_scope_owns(zc_slice_str("s9223372036854775808:x")));
    CHECK(zc_scope_owns(zc_slice_str("s18446744073709551615:")));
    CHECK(!zc_scope_owns(zc_slice_str("s9223372036854775807:x")));
    CHECK(!zc_scope_owns(zc_slice_str("s18446744073709551616:x")));
    CHECK(!zc_scope_owns(zc_slice_str("s9223372036854775808")));
    CHECK(!zc_scope_owns(zc_slice_str("s9223372036854775808x:")));
    CHECK(!zc_scope_owns(zc_slice_str("s12:x")));
    CHECK(!zc_scope_owns(zc_slice_str("9223372036854775808:x")));
}

TEST(ids_mean_the_same_after_a_reconnect)
{
    start();
    struct zc_session *s = attach("uid:7", "one"), *other = attach("uid:7", "two");
    struct zc_session *foreign = attach("uid:8", "one"), *plain = bus_attach();
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    const char *out = bus_call(s, "{\"op\":\"peek\",\"name\":\"q\"}");
    char id[64] = "";
    sscanf(strstr(out, "\"id\":\""), "\"id\":\"%63[^\"]", id);
    CHECK(zc_scope_owns(zc_slice_str(id)));
    zc_hub_detach(bus_hub, s, bus_now);
    s = attach("uid:7", "one");
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 1);
    put(s, "a", "r");
    put(other, "a", "q");
    put(foreign, "a", "q");
    put(plain, "a", "q");
    CHECK_INT(stats().queued, 5);
    struct zc_session *twin = attach("uid:7", "one");
    HAS(put(twin, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 5);
    bus_end();
}

TEST(an_id_is_remembered_when_the_message_is_gone)
{
    start();
    struct zc_session *s = attach("uid:7", "one");
    char token[25];
    put(s, "a", "q");
    HAS(bus_call(s, "{\"op\":\"take\",\"name\":\"q\"}"), "\"op\":\"msg\"");
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 0);
    CHECK_INT(stats().mailboxes, 0); /* that costs no mailbox */
    put(s, "b", "q");
    token_of(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\"}"), token);
    HAS(with_token(s, "ack", token), "\"op\":\"ok\"");
    bus_call(s, "{\"op\":\"put\",\"id\":\"c\",\"name\":\"q\",\"ttl\":1}");
    put(s, "d", "q");
    HAS(bus_call(s, "{\"op\":\"move\",\"name\":\"q\",\"to\":\"r\"}"), "\"count\":2");
    put(s, "e", "q");
    HAS(bus_call(s, "{\"op\":\"purge\",\"name\":\"q\"}"), "\"count\":1");
    bus_advance_ms(2000);
    CHECK_INT(stats().queued, 1);
    for (int i = 0; i < 5; i++) {
        char id[2] = {(char)('a' + i), 0};
        HAS(put(s, id, "q"), "\"op\":\"ok\"");
    }
    CHECK_INT(stats().queued, 1);
    HAS(put(s, "d", "r"), "\"op\":\"ok\""); /* moved, it counts there too */
    CHECK_INT(stats().queued, 1);
    bus_now.wall.ms += 3600000; /* the wall clock does not matter */
    put(s, "a", "q");
    CHECK_INT(stats().queued, 1);
    bus_advance_ms(599000);
    HAS(put(s, "a", "q"), "\"op\":\"ok\""); /* ten minutes are over */
    CHECK_INT(stats().queued, 2);
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 2);
    bus_end();
}

TEST(an_id_is_remembered_anew_behind_one_that_lasts_longer)
{
    start();
    struct zc_session *s = attach("uid:7", "one");
    put(s, "a", "q");
    bus_advance_ms(500000);
    put(s, "b", "r");
    HAS(bus_call(s, "{\"op\":\"take\",\"name\":\"r\"}"), "\"op\":\"msg\"");
    HAS(bus_call(s, "{\"op\":\"take\",\"name\":\"q\"}"), "\"op\":\"msg\"");
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 0);
    bus_advance_ms(101000); /* that of `a` is over, that of `b` is not */
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 1);
    HAS(bus_call(s, "{\"op\":\"take\",\"name\":\"q\"}"), "\"op\":\"msg\"");
    HAS(put(s, "a", "q"), "\"op\":\"ok\"");
    CHECK_INT(stats().queued, 0);
    bus_end();
}

TEST(the_ids_of_a_mailbox_are_bounded)
{
    start();
    struct zc_session *s = attach("uid:7", "one");
    char id[16];
    for (int i = 0; i < 65540; i++) {
        snprintf(id, sizeof(id), "%d", i);
        put(s, id, "q");
        bus_call(s, "{\"op\":\"take\",\"name\":\"q\"}");
    }
    put(s, "65539", "q");
    put(s, "4", "q");
    CHECK_INT(stats().queued, 0);
    put(s, "3", "q"); /* forgotten */
    CHECK_INT(stats().queued, 1);
    bus_end();
}

TEST(the_ids_of_all_mailboxes_are_bounded)
{
    start();
    struct zc_broker *b = bus_hub->broker;
    struct zc_mailbox *mb = NULL;
    struct zc_message m = {.seen_s = 600};
    char name[16];
    for (uint32_t i = 0; i <= ZC_SEEN_MAX; i++) {
        if (i % ZC_SEEN_MAILBOX_MAX == 0) {
            zc_mailbox_free(mb);
            snprintf(name, sizeof(name), "q%u", i);
            CHECK((mb = zc_mailbox_new(zc_slice_str(name))) != NULL);
        }
        m.mailbox = mb;
        m.id_tag = i + 1;
        zc_seen_add(b, &m);
    }
    zc_mailbox_free(mb);
    CHECK_INT(b->seen.len, ZC_SEEN_MAX);
    CHECK(!zc_seen_has(b, 1)); /* the oldest is forgotten */
    CHECK(zc_seen_has(b, 2) && zc_seen_has(b, ZC_SEEN_MAX + 1));
    bus_end();
}

TEST(leases_outlive_the_session)
{
    start();
    struct zc_session *s = attach("uid:7", "one"), *other = attach("uid:7", "two");
    char kept[25], plain[25];
    put(other, "1", "q");
    put(other, "2", "q");
    struct zc_session *p = bus_attach();
    token_of(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":10}"), kept);
    token_of(bus_call(p, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":10}"), plain);
    zc_hub_detach(bus_hub, s, bus_now);
    zc_hub_detach(bus_hub, p, bus_now);
    CHECK_INT(stats().leased, 1);
    CHECK_INT(stats().queued, 1);
    HAS(with_token(other, "ack", kept), "delivery not found");
    s = attach("uid:7", "one");
    HAS(with_token(s, "ack", plain), "delivery not found");
    HAS(with_token(s, "touch", kept), "\"lease\":");
    struct zc_session *twin = attach("uid:7", "one");
    HAS(with_token(twin, "ack", kept), "\"op\":\"ok\"");
    HAS(with_token(s, "ack", kept), "delivery not found");
    token_of(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":10}"), kept);
    zc_hub_detach(bus_hub, s, bus_now);
    zc_hub_detach(bus_hub, twin, bus_now);
    bus_advance_ms(10100); /* until it ends, and no longer */
    CHECK_INT(stats().queued, 1);
    CHECK_INT(stats().leased, 0);
    s = attach("uid:7", "one");
    HAS(with_token(s, "ack", kept), "delivery not found");
    bus_end();
}

TEST(what_was_not_received_goes_back)
{
    start();
    struct zc_session *s = attach("uid:7", "one"), *other = attach("uid:7", "two");
    put(other, "1", "q");
    bus_send(s, "{\"op\":\"reserve\",\"name\":\"q\"}");
    CHECK_INT(stats().leased, 1);
    zc_hub_detach(bus_hub, s, bus_now); /* the kernel never took the frame */
    CHECK_INT(stats().leased, 0);
    s = attach("uid:7", "one");
    HAS(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\"}"), "\"attempt\":2");
    bus_end(); /* with a lease that only its session and its scope hold */
}

TEST(requests_go_on_after_a_reconnect)
{
    start();
    struct zc_session *c = attach("uid:7", "client"), *w = attach("uid:7", "worker");
    char json[160], id[64] = "";
    bus_send(c, "{\"op\":\"req\",\"id\":\"q1\",\"name\":\"svc\",\"text\":\"in\"}");
    const char *out = bus_call(w, "{\"op\":\"ready\",\"name\":\"svc\"}");
    sscanf(strstr(out, "\"id\":\""), "\"id\":\"%63[^\"]", id);
    zc_hub_detach(bus_hub, c, bus_now);
    zc_hub_detach(bus_hub, w, bus_now);
    c = attach("uid:7", "client");
    w = attach("uid:7", "worker");
    bus_send(c, "{\"op\":\"req\",\"id\":\"q1\",\"name\":\"svc\",\"text\":\"in\"}");
    CHECK_INT(stats().queued, 0); /* its worker still has it */
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%s\",\"text\":\"out\"}", id);
    HAS(bus_call(w, json), "\"op\":\"ok\"");
    HAS(bus_recv(c), "\"op\":\"rep\",\"id\":\"q1\"");
    /* Answered: the same request anew is done anew. */
    bus_send(c, "{\"op\":\"req\",\"id\":\"q1\",\"name\":\"svc\",\"text\":\"in\"}");
    CHECK_INT(stats().queued, 1);
    struct zc_session *twin = attach("uid:7", "client");
    bus_send(twin, "{\"op\":\"req\",\"id\":\"q1\",\"name\":\"svc\",\"text\":\"in\"}");
    CHECK_INT(stats().queued, 1);
    out = bus_call(w, "{\"op\":\"ready\",\"name\":\"svc\"}");
    HAS(bus_call(w, json), "\"op\":\"ok\"");
    HAS(bus_recv(twin), "\"op\":\"rep\",\"id\":\"q1\""); /* who asked last */
    CHECK(strcmp(bus_recv(c), "") == 0);
    bus_end();
}

TEST(when_a_scope_may_be_given)
{
    start();
    struct zc_session *s = bus_attach();
    char token[25];
    HAS(bus_call(s, "{\"op\":\"hello\",\"from\":\"a\"}"), "\"op\":\"ok\"");
    struct zc_session *p = bus_attach();
    put(p, "1", "q");
    HAS(bus_call(p, "{\"op\":\"hello\",\"from\":\"b\",\"scope\":\"x\"}"), "\"code\":\"invalid\"");
    HAS(bus_call(p, "{\"op\":\"ping\"}"), "pong");
    HAS(bus_call(p, "{\"op\":\"take\",\"name\":\"q\"}"), "\"from\":\"@\""); /* nothing changed */
    put(p, "1", "q");
    token_of(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\"}"), token);
    HAS(bus_call(s, "{\"op\":\"hello\",\"from\":\"b\",\"scope\":\"x\"}"), "\"op\":\"ok\"");
    HAS(bus_call(s, "{\"op\":\"hello\",\"from\":\"c\",\"scope\":\"x\"}"), "\"from\":\"c\"");
    HAS(bus_call(s, "{\"op\":\"hello\",\"from\":\"d\"}"), "\"from\":\"d\"");
    HAS(bus_call(s, "{\"op\":\"hello\",\"scope\":\"y\"}"), "\"code\":\"invalid\"");
    HAS(with_token(s, "ack", token), "\"op\":\"ok\""); /* from before the scope */
    put(s, "1", "q");
    HAS(bus_call(s, "{\"op\":\"hello\",\"from\":\"e\",\"scope\":\"x\"}"), "\"op\":\"ok\"");
    char long_scope[1200];
    memset(long_scope, 's', sizeof(long_scope));
    snprintf(long_scope, sizeof(long_scope), "{\"op\":\"hello\",\"scope\":\"%01025d\"}", 0);
    HAS(bus_call(bus_attach(), long_scope), "\"code\":\"invalid\"");
    bus_end();
}
