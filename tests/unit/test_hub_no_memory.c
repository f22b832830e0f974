/*
 * Every allocation of a durable hub fails once, and all from there on for a while: at its start
 * from a log that holds something of each kind, at work, while the log is rewritten, and at its
 * end. What was acknowledged is there when memory is back, and after a restart, once.
 *
 * Built with the linker's --wrap, where that is to be had.
 */
#include "node/hub_priv.h"
#include "test.h"

#ifdef ZC_TEST_WRAP

#include <limits.h>

#include "no_memory.h"

/* Only the hub's own allocations count, not those of the disk that is played. */
#define zc_hub_new(...) ALONE(zc_hub_new(__VA_ARGS__))
#define zc_hub_attach(...) ALONE(zc_hub_attach(__VA_ARGS__))
#define zc_hub_event(...) ALONE(zc_hub_event(__VA_ARGS__))
#define zc_hub_disk_op(...) ALONE(zc_hub_disk_op(__VA_ARGS__))
#define zc_hub_disk_done(...) ALONE_VOID(zc_hub_disk_done(__VA_ARGS__))
#define zc_hub_input(...) ALONE_VOID(zc_hub_input(__VA_ARGS__))
#define zc_hub_tick(...) ALONE_VOID(zc_hub_tick(__VA_ARGS__))
#define zc_hub_detach(...) ALONE_VOID(zc_hub_detach(__VA_ARGS__))
#define zc_hub_stop(...) ALONE_VOID(zc_hub_stop(__VA_ARGS__))

#include "bus_disk.h"

enum { KEPT = 24 };

static struct fd disk;
static struct zc_session *client;
static bool down;        /* the hub said that its log cannot be used, or ended */
static bool acked[KEPT]; /* puts into `safe` */
static bool bound;

static void attach(void)
{
    client = bus_attach();
    if (client == NULL)
        client = bus_attach();
}

/* All that wants to happen at this time does. */
static void pump(void)
{
    struct zc_hub_event ev;
    struct zc_disk_op op;
    for (int i = 0; i < 100000; i++) {
        bool any = false;
        while (zc_hub_event(bus_hub, bus_now, &ev)) {
            any = true;
            if (ev.kind == ZC_HUB_CLOSE) {
                CHECK(failed && ev.session == client);
                zc_hub_detach(bus_hub, ev.session, bus_now);
                client = NULL;
            }
            down |= ev.kind == ZC_HUB_UNUSABLE;
        }
        if (zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns) {
            zc_hub_tick(bus_hub, bus_now);
            any = true;
        }
        while (zc_hub_disk_op(bus_hub, bus_now, &op)) {
            struct zc_disk_completion done = {.id = op.id, .result = fd_do(&disk, &op, false)};
            zc_hub_disk_done(bus_hub, bus_now, &done);
            any = true;
        }
        if (!any)
            return;
    }
    CHECK(!"the hub never rests");
}

static void pass_ms(int ms)
{
    for (int i = 0; i < ms; i += 100) {
        bus_advance_ms(100);
        pump();
    }
}

static const char *call(const char *json)
{
    if (client == NULL)
        attach();
    if (client == NULL)
        return "";
    bus_send(client, json);
    pump();
    return client == NULL ? "" : bus_recv(client);
}

static bool is_ok(const char *out)
{
    return strstr(out, "\"op\":\"ok\"") != NULL;
}

static bool try_open(void)
{
    struct zc_hub_config c = bus_disk_config(&disk);
    c.hot_bytes = 20000; /* most bodies leave memory */
    down = false;
    client = NULL;
    bus_disk_hub(&c);
    if (bus_hub == NULL)
        return false;
    pump();
    return !down;
}

/* If there is no memory for it, once more with memory. */
static void open_hub(void)
{
    if (try_open())
        return;
    CHECK(failed);
    bus_end();
    fd_kill(&disk);
    no_memory(LONG_MAX, false);
    failed = true;
    CHECK(try_open());
}

static void close_hub(void)
{
    if (client != NULL)
        zc_hub_detach(bus_hub, client, bus_now);
    zc_hub_stop(bus_hub, bus_now);
    pass_ms(5000);
    bus_end();
}

static bool put(const char *name, const char *id, size_t size)
{
    char json[9000];
    int at = snprintf(json, sizeof(json),
                      "{\"op\":\"put\",\"id\":\"%s\",\"name\":\"%s\",\"text\":\"%s ", id, name, id);
    memset(json + at, 'x', size);
    memcpy(json + at + size, "\"}", 3);
    return is_ok(call(json));
}

static void keep(int from, int to)
{
    for (int n = from; n < to; n++) {
        char id[16];
        snprintf(id, sizeof(id), "keep%02d", n);
        acked[n] = put("safe", id, 3000);
    }
}

static void work(int n)
{
    char id[16];
    call("{\"op\":\"hello\",\"id\":\"h\",\"from\":\"w\",\"scope\":\"home\"}");
    keep(n, n + KEPT / 2);
    if (is_ok(call("{\"op\":\"bind\",\"id\":\"b\",\"name\":\"box\",\"topic\":\"t.\"}")))
        bound = true;
    call("{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.x\",\"text\":\"news\"}");
    call("{\"op\":\"bind\",\"id\":\"b\",\"name\":\"box2\",\"topic\":\"s.\"}");
    call("{\"op\":\"unbind\",\"id\":\"b\",\"name\":\"box2\",\"topic\":\"s.\"}");
    snprintf(id, sizeof(id), "once%d", n);
    put("c", id, 10);
    call("{\"op\":\"take\",\"id\":\"t\",\"name\":\"c\",\"wait\":0}");
    put("c", id, 10);
    call("{\"op\":\"put\",\"id\":\"d\",\"name\":\"later\",\"text\":\"x\",\"delay\":1,\"ttl\":2}");
    call("{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"safe\",\"lease\":1}"); /* comes back */
    for (int i = 0; i < 12; i++)
        put("bulk", "bulk", 8000);
    call("{\"op\":\"peek\",\"id\":\"k\",\"name\":\"safe\",\"max\":9}");
    call("{\"op\":\"move\",\"id\":\"m\",\"name\":\"bulk\",\"to\":\"moved\",\"max\":3}");
    call("{\"op\":\"take\",\"id\":\"t\",\"name\":\"moved\",\"wait\":0}");
    call("{\"op\":\"purge\",\"id\":\"u\",\"name\":\"bulk\"}");
    call("{\"op\":\"purge\",\"id\":\"u\",\"name\":\"moved\"}");
    zc_log_compact(bus_hub->log);
    pass_ms(3000);
}

/* Each that was acknowledged is there, once; the others at most once. */
static void check_kept(void)
{
    int seen[KEPT] = {0};
    for (int i = 0; i < 2 * KEPT; i++) {
        int n;
        const char *out = call("{\"op\":\"peek\",\"id\":\"k\",\"name\":\"safe\",\"max\":30}");
        for (const char *at = out; (at = strstr(at, "\"text\":\"keep")) != NULL; at++)
            if (sscanf(at, "\"text\":\"keep%d ", &n) == 1 && n >= 0 && n < KEPT)
                seen[n]++;
        if (strstr(out, "\"op\":\"err\"") == NULL)
            break;
    }
    for (int n = 0; n < KEPT; n++) {
        CHECK(seen[n] <= 1);
        CHECK(!acked[n] || seen[n] == 1);
    }
}

static void check_works(void)
{
    no_memory(LONG_MAX, false);
    pass_ms(6000);
    check_kept();
    CHECK(put("new", "new", 10));
    CHECK(strstr(call("{\"op\":\"take\",\"id\":\"t\",\"name\":\"new\"}"), "\"text\":\"new ") !=
          NULL);
    call("{\"op\":\"purge\",\"id\":\"u\",\"name\":\"box\"}");
    CHECK(is_ok(call("{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.y\",\"text\":\"more\"}")));
    if (bound)
        CHECK(strstr(call("{\"op\":\"take\",\"id\":\"t\",\"name\":\"box\",\"wait\":0}"),
                     "\"text\":\"more\"") != NULL);
}

/* A life in which the allocation after n others fails; false: there are not that many. */
static bool run(long n, bool for_good)
{
    disk = (struct fd){.seed = 5};
    memset(acked, 0, sizeof(acked));
    bound = false;
    no_memory(LONG_MAX, false);
    open_hub();
    work(0);
    close_hub();
    no_memory(n, for_good);
    open_hub();
    if (!failed)
        work(KEPT / 2);
    bool any = failed;
    for (int i = 0; i < KEPT; i++)
        CHECK(any || acked[i]);
    CHECK(any || bound);
    check_works();
    close_hub();
    open_hub();
    check_works();
    close_hub();
    fd_done(&disk);
    return any;
}

TEST(one_allocation_fails)
{
    long n = 0;
    while (run(n, false))
        n++;
    CHECK(n > 200);
}

TEST(memory_is_gone_for_a_while)
{
    for (long n = 0; run(n, true);)
        n++;
}

#endif
