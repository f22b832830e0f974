/* The wall clock steps an hour either way: leases, delays, ttls and waits go by the other clock. */
#include "bus.h"
#include "test.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)

static const int64_t steps[] = {3600000, -3600000, 0};

static void start(void)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = 0;
    bus_start(&c);
}

static struct zc_hub_stats stats(void)
{
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    return st;
}

static void step(int64_t ms)
{
    bus_now.wall.ms += ms;
    zc_hub_tick(bus_hub, bus_now);
}

TEST(leases)
{
    for (size_t i = 0; i < 3; i++) {
        start();
        struct zc_session *s = bus_attach();
        bus_call(s, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}");
        HAS(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":10}"), "\"attempt\":1");
        step(steps[i]);
        CHECK_INT(stats().leased, 1);
        bus_advance_ms(9900);
        CHECK_INT(stats().leased, 1);
        step(-steps[i]);
        CHECK_INT(stats().leased, 1);
        bus_advance_ms(200);
        CHECK_INT(stats().leased, 0);
        CHECK_INT(stats().queued, 1);
        /* What is told of a lease is told by the clock of that moment. */
        char want[40];
        step(steps[i]);
        snprintf(want, sizeof(want), "\"lease\":%lld", (long long)(bus_now.wall.ms / 1000 + 30));
        HAS(bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":30}"), want);
        bus_end();
    }
}

TEST(delays)
{
    for (size_t i = 0; i < 3; i++) {
        start();
        struct zc_session *s = bus_attach();
        char json[100], token[25];
        bus_call(s, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\",\"delay\":10}");
        step(steps[i]);
        bus_advance_ms(9900);
        CHECK_INT(stats().delayed, 1);
        bus_advance_ms(200);
        CHECK_INT(stats().queued, 1);
        const char *out = bus_call(s, "{\"op\":\"reserve\",\"name\":\"q\"}");
        snprintf(token, sizeof(token), "%s", strstr(out, "\"delivery\":\"") + 12);
        snprintf(json, sizeof(json), "{\"op\":\"nack\",\"delivery\":\"%s\",\"delay\":5}", token);
        HAS(bus_call(s, json), "\"op\":\"ok\"");
        step(-steps[i]);
        bus_advance_ms(4900);
        CHECK_INT(stats().delayed, 1);
        bus_advance_ms(200);
        CHECK_INT(stats().queued, 1);
        bus_end();
    }
}

TEST(ttls_and_waits)
{
    for (size_t i = 0; i < 3; i++) {
        start();
        struct zc_session *s = bus_attach();
        bus_call(s, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\",\"ttl\":10}");
        bus_call(s, "{\"op\":\"pub\",\"name\":\"t\",\"text\":\"x\",\"ttl\":10}");
        CHECK(strcmp(bus_call(s, "{\"op\":\"take\",\"name\":\"none\",\"wait\":10}"), "") == 0);
        step(steps[i]);
        bus_advance_ms(9900);
        CHECK_INT(stats().queued, 1);
        CHECK_INT(stats().topics, 1);
        CHECK(strcmp(bus_recv(s), "") == 0);
        bus_advance_ms(200);
        CHECK_INT(stats().queued, 0);
        CHECK_INT(stats().topics, 0);
        HAS(bus_recv(s), "mailbox: empty");
        bus_end();
    }
}

/* `expires` names a wall time, so what it means is settled when the message comes. */
TEST(expires)
{
    for (size_t i = 0; i < 3; i++) {
        start();
        struct zc_session *s = bus_attach();
        char json[120];
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"name\":\"q\",\"expires\":%lld}",
                 (long long)bus_now.wall.ms + 10000);
        bus_call(s, json);
        step(steps[i]);
        bus_advance_ms(9900);
        CHECK_INT(stats().queued, 1);
        bus_advance_ms(200);
        CHECK_INT(stats().queued, 0);
        bus_end();
    }
}
