/*
 * Every allocation of the broker fails once, and once from there on: a script of all operations is
 * run again and again, each time with another one. Nothing breaks, what was acknowledged is not
 * lost, and with memory back the hub works as before.
 *
 * Built with the linker's --wrap, where that is to be had.
 */
#include "bus.h"
#include "node/hub_priv.h"
#include "test.h"
#include "zmqc/group.h"

#ifdef ZC_TEST_WRAP

#include "no_memory.h"

enum { CLIENTS = 3 };
static struct zc_session *clients[CLIENTS];
static char token[25];
static unsigned kept; /* puts into `safe` that were acknowledged, as bits by number */

static void attach(int i)
{
    struct zc_peer peer = {"uid:7", "@", false};
    clients[i] = zc_hub_attach(bus_hub, bus_now, &peer, NULL);
}

/* Sessions that ended are gone, and come back if memory allows. */
static void reap(void)
{
    struct zc_hub_event ev;
    while (zc_hub_event(bus_hub, bus_now, &ev)) {
        for (int i = 0; ev.kind == ZC_HUB_CLOSE && i < CLIENTS; i++) {
            if (clients[i] == ev.session)
                clients[i] = NULL;
        }
        if (ev.kind == ZC_HUB_CLOSE)
            zc_hub_detach(bus_hub, ev.session, bus_now);
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i] == NULL)
            attach(i);
    }
}

/* What client i gets for json. */
static const char *call(int i, const char *json)
{
    static uint8_t frame[4096 + ZC_FRAME_HEADER];
    size_t len = strlen(json);
    if (clients[i] == NULL)
        return "";
    zc_frame_header(frame, len);
    memcpy(frame + ZC_FRAME_HEADER, json, len);
    zc_hub_input(bus_hub, clients[i], bus_now, frame, ZC_FRAME_HEADER + len);
    const char *out = bus_recv(clients[i]);
    const char *at = strstr(out, "\"delivery\":\"");
    if (at != NULL)
        snprintf(token, sizeof(token), "%s", at + 12);
    for (unsigned n = 0; n < 32; n++) {
        char mark[24];
        snprintf(mark, sizeof(mark), "\"id\":\"keep%02u\"", n);
        at = strstr(out, mark);
        if (at != NULL && at - out > 10 && strncmp(at - 10, "\"op\":\"ok\",", 10) == 0)
            kept |= 1u << n;
    }
    zc_hub_tick(bus_hub, bus_now);
    reap();
    return out;
}

static void call_token(int i, const char *op)
{
    char json[100];
    snprintf(json, sizeof(json), "{\"op\":\"%s\",\"id\":\"x\",\"delivery\":\"%s\"}", op, token);
    call(i, json);
}

static void bus_steps(void)
{
    for (int i = 0; i < 12; i++) {
        char json[120];
        snprintf(json, sizeof(json),
                 "{\"op\":\"put\",\"id\":\"keep%02d\",\"name\":\"safe\",\"text\":\"keep%02d\"}", i,
                 i);
        call(0, json);
    }
    call(0,
         "{\"op\":\"put\",\"id\":\"a\",\"name\":\"q\",\"text\":\"a\",\"headers\":{\"k\":\"v\"}}");
    call(0, "{\"op\":\"put\",\"id\":\"b\",\"name\":\"q\",\"text\":\"b\",\"delay\":1,\"ttl\":2}");
    call(1, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\",\"lease\":30}");
    call_token(1, "touch");
    call_token(1, "nack");
    call(1, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"q\",\"max\":5,\"wait\":1}");
    call_token(1, "ack");
    call(2, "{\"op\":\"reserve\",\"id\":\"t\",\"name\":\"q\",\"wait\":2,\"filter\":\"x,y\"}");
    call(2, "{\"op\":\"ready\",\"id\":\"t\",\"name\":\"q\",\"max\":2}");
    call(0, "{\"op\":\"put\",\"id\":\"c\",\"name\":\"q\",\"text\":\"c\",\"from\":\"x\"}");
    call(0, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"safe\",\"max\":3}");
    call(0, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}");
    call(0, "{\"op\":\"put\",\"id\":\"d\",\"name\":\"q\",\"text\":\"d\"}");
    call(0, "{\"op\":\"move\",\"id\":\"m\",\"name\":\"q\",\"to\":\"r\",\"max\":9}");
    call(0, "{\"op\":\"stat\",\"id\":\"s\",\"name\":\"safe\"}");
    call(0, "{\"op\":\"list\",\"id\":\"s\",\"name\":\"\"}");
    call(0, "{\"op\":\"info\",\"id\":\"i\"}");
}

static void topic_steps(void)
{
    call(0, "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t.a\",\"text\":\"1\",\"ttl\":5}");
    call(1, "{\"op\":\"sub\",\"id\":\"s\",\"name\":\"t.\",\"filter\":\"x\"}");
    call(2, "{\"op\":\"sub\",\"id\":\"s\",\"name\":\"t\"}");
    call(1, "{\"op\":\"sub\",\"id\":\"s\",\"name\":\"t\"}");
    call(0, "{\"op\":\"bind\",\"id\":\"b\",\"name\":\"bound\",\"topic\":\"t.\"}");
    for (int i = 0; i < 4; i++)
        call(0, "{\"op\":\"pub\",\"id\":\"2\",\"name\":\"t.b\",\"text\":\"2\",\"from\":\"x\"}");
    call(0, "{\"op\":\"unbind\",\"id\":\"b\",\"name\":\"bound\",\"topic\":\"t.\"}");
    call(1, "{\"op\":\"unsub\",\"id\":\"u\"}");
    call(1, "{\"op\":\"hello\",\"id\":\"h\",\"from\":\"w\",\"scope\":\"home\"}");
    call(1, "{\"op\":\"put\",\"id\":\"once\",\"name\":\"q2\",\"text\":\"1\"}");
    call(2, "{\"op\":\"take\",\"id\":\"t\",\"name\":\"q2\",\"wait\":0}");
    call(1, "{\"op\":\"put\",\"id\":\"once\",\"name\":\"q2\",\"text\":\"1\"}");
    call(1, "{\"op\":\"req\",\"id\":\"ask\",\"name\":\"svc\",\"text\":\"?\",\"wait\":3}");
    call(2, "{\"op\":\"reserve\",\"id\":\"w\",\"name\":\"svc\"}");
    char json[120];
    snprintf(json, sizeof(json),
             "{\"op\":\"rep\",\"delivery\":\"%s\",\"name\":\"svc\",\"text\":\"!\"}", token);
    call(2, json);
    bus_advance_ms(1500);
    reap();
    bus_advance_ms(4000);
    reap();
}

/* With memory: all that was acknowledged and not taken is there, once. */
static void check_works(void)
{
    reap();
    for (unsigned n = 0; n < 12; n++) {
        if ((kept & 1u << n) == 0)
            continue;
        char text[32];
        const char *out;
        snprintf(text, sizeof(text), "\"text\":\"keep%02u\"", n);
        do { /* one that was not acknowledged may be there as well */
            out = call(0, "{\"op\":\"take\",\"id\":\"t\",\"name\":\"safe\",\"wait\":0}");
        } while (strstr(out, text) == NULL && strstr(out, "\"op\":\"msg\"") != NULL);
        CHECK(strstr(out, text) != NULL);
    }
    CHECK(strstr(call(1, "{\"op\":\"put\",\"id\":\"z\",\"name\":\"new\",\"text\":\"z\"}"),
                 "\"op\":\"ok\"") != NULL);
    CHECK(strstr(call(2, "{\"op\":\"take\",\"id\":\"z\",\"name\":\"new\"}"), "\"text\":\"z\"") !=
          NULL);
    for (int i = 0; i < CLIENTS; i++)
        zc_hub_detach(bus_hub, clients[i], bus_now);
    CHECK_INT(bus_hub->broker->out_bytes, 0);
    CHECK_INT(bus_hub->broker->in_bytes, 0);
    CHECK_INT(bus_hub->broker->waiters_count, 0);
    bus_end();
}

/* False: the script ends before that many allocations. */
static bool run(long n, bool lasting_)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    bus_start(&c);
    for (int i = 0; i < CLIENTS; i++)
        attach(i);
    no_memory(n, lasting_);
    kept = 0;
    armed = true;
    bus_steps();
    topic_steps();
    armed = false;
    bool any = failed;
    CHECK(any || kept == (1u << 12) - 1);
    check_works();
    return any;
}

TEST(one_allocation_fails)
{
    long n = 0;
    while (run(n, false))
        n++;
    CHECK(n > 100);
}

TEST(memory_is_gone_from_then_on)
{
    for (long n = 0; run(n, true);)
        n++;
}

/* A message that comes back when there is no memory for it in `returned`. */
static void come_back(struct zc_mailbox *mb, struct zc_message *m)
{
    no_memory(0, true);
    armed = true;
    zc_mailbox_enter(mb, m);
    armed = false;
    CHECK(failed && !m->returned);
}

TEST(what_comes_back_without_memory_keeps_its_place)
{
    static const uint8_t key[16] = {1};
    enum { MESSAGES = 8 };
    struct zc_message all[MESSAGES] = {0}, *m;
    struct zc_mailbox *mb = zc_mailbox_new(zc_slice_str("q"));
    struct zc_filter *filter = NULL;
    CHECK_INT(zc_filter_new(key, zc_slice_str("b"), zc_slice_str(""), &filter), 0);
    for (int i = 0; i < MESSAGES; i++) {
        m = &all[i];
        *m = (struct zc_message){.seq = (uint64_t)i + 1, .mailbox = mb};
        zc_list_init(&m->link);
        m->from = zc_filter_hash(key, zc_slice_str(i % 3 == 1 ? "b" : "a"));
        zc_mailbox_count(mb, m, 1);
        zc_mailbox_enter(mb, m);
    }
    struct zc_group *g = zc_group_join(mb, filter);
    uint64_t looked = 0;
    /* Of the second, fifth and eighth, two are leased; another wants those of a. */
    CHECK(zc_group_find(mb, g, &looked) == &all[1]);
    zc_mailbox_take_out(mb, &all[1], ZC_MESSAGE_LEASED);
    zc_mailbox_take_out(mb, &all[2], ZC_MESSAGE_LEASED);
    CHECK(zc_group_find(mb, g, &looked) == &all[4]);
    zc_mailbox_take_out(mb, &all[4], ZC_MESSAGE_LEASED);
    CHECK(zc_group_find(mb, g, &looked) == &all[7]);
    zc_mailbox_take_out(mb, &all[0], ZC_MESSAGE_LEASED);
    come_back(mb, &all[4]);
    come_back(mb, &all[2]);
    CHECK(zc_group_find(mb, g, &looked) == &all[4]);
    come_back(mb, &all[1]);
    come_back(mb, &all[0]);
    CHECK(zc_group_find(mb, g, &looked) == &all[1]);
    for (int i = 0; i < MESSAGES; i++) {
        CHECK(zc_mailbox_peek(mb) == &all[i]);
        zc_mailbox_take_out(mb, &all[i], ZC_MESSAGE_REMOVING);
        zc_mailbox_count(mb, &all[i], -1);
        if (i == 1)
            CHECK(zc_group_find(mb, g, &looked) == &all[4]);
    }
    CHECK(zc_group_find(mb, g, &looked) == NULL);
    zc_group_leave(mb, g);
    zc_mailbox_free(mb);
}

#endif
