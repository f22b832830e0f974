/*
 * Messages at rest: what one costs, counted at the allocator, and that they come back as they were,
 * also when the log moves their records or cannot read them.
 *
 * Built with the linker's --wrap, where that is to be had.
 */
#include "bus_disk.h"
#include "node/hub_priv.h"
#include "test.h"

static struct fd disk;
static struct zc_session *client;

#ifdef ZC_TEST_WRAP

#include <malloc.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static bool uncounted; /* the disk's own */
static int64_t bytes;

/* The allocator has a word of its own before each block. */
static void *note(void *p, int sign)
{
    if (p != NULL && !uncounted)
        bytes += sign * (int64_t)(malloc_usable_size(p) + sizeof(size_t));
    return p;
}

void *__wrap_malloc(size_t n)
{
    return note(__real_malloc(n), 1);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return note(__real_calloc(n, size), 1);
}

void *__wrap_realloc(void *p, size_t n)
{
    int64_t before = bytes;
    note(p, -1);
    void *q = __real_realloc(p, n);
    if (q == NULL)
        bytes = before;
    return note(q, 1);
}

void __wrap_free(void *p)
{
    note(p, -1);
    __real_free(p);
}

#define UNCOUNTED(on) (uncounted = (on))
#else
#define UNCOUNTED(on) ((void)(on))
#endif

static void pump(void)
{
    struct zc_hub_event ev;
    struct zc_disk_op op;
    for (bool any = true; any;) {
        any = false;
        while (zc_hub_event(bus_hub, bus_now, &ev))
            any = true;
        if (zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns) {
            zc_hub_tick(bus_hub, bus_now);
            any = true;
        }
        while (zc_hub_disk_op(bus_hub, bus_now, &op)) {
            UNCOUNTED(true);
            struct zc_disk_completion done = {.id = op.id, .result = fd_do(&disk, &op, false)};
            UNCOUNTED(false);
            zc_hub_disk_done(bus_hub, bus_now, &done);
            any = true;
        }
    }
}

static void open_hub(bool durable, uint64_t segment_bytes, uint64_t hot)
{
    struct zc_hub_config c = bus_disk_config(&disk);
    c.durable = durable;
    c.hot_messages = hot;
    c.mailbox_cap = 1000000;
    c.log.segment_bytes = segment_bytes;
    bus_disk_hub(&c);
    pump();
    client = bus_attach();
}

static void close_hub(void)
{
    zc_hub_detach(bus_hub, client, bus_now);
    zc_hub_stop(bus_hub, bus_now);
    for (int i = 0; i < 50; i++) {
        bus_advance_ms(100);
        pump();
    }
    bus_end();
}

static const char *call(const char *json)
{
    bus_send(client, json);
    pump();
    return bus_recv(client);
}

static void put(const char *name, int n)
{
    char json[300];
    snprintf(json, sizeof(json),
             "{\"op\":\"put\",\"id\":\"4f1d2c3b5a000001-%d\",\"name\":\"%s\","
             "\"text\":\"%0100d\"}",
             n, name, n);
    bus_send(client, json);
    if (n % 64 == 0) {
        pump();
        bus_recv(client);
    }
}

#ifdef ZC_TEST_WRAP

enum { MANY = 50000 };

/* Bytes for each of many messages of 100 bytes. */
static double cost(bool durable)
{
    double each;
    open_hub(durable, 4 << 20, 100);
    call("{\"op\":\"put\",\"name\":\"jobs\",\"text\":\"x\"}");
    int64_t before = bytes;
    for (int n = 1; n <= MANY; n++)
        put("jobs", n);
    pump();
    bus_recv(client);
    each = (double)(bytes - before) / MANY;
    CHECK_INT(bus_hub->broker->count.queued, MANY + 1);
    call("{\"op\":\"purge\",\"id\":\"p\",\"name\":\"jobs\"}");
    for (int i = 0; i < 200; i++) {
        bus_advance_ms(100);
        pump();
    }
    bus_recv(client);
    CHECK_INT(bus_hub->broker->count.queued, 0);
    CHECK(bytes - before < 400000);
    close_hub();
    UNCOUNTED(true);
    fd_done(&disk);
    UNCOUNTED(false);
    return each;
}

TEST(a_message_of_a_log_takes_64_bytes)
{
    if (test_round > 0)
        return; /* it chooses itself what is hot */
    double each = cost(true);
    CHECK(each > 40 && each <= 64);
}

TEST(a_message_in_memory_takes_200_bytes)
{
    if (test_round > 0)
        return; /* it chooses itself what is hot */
    double each = cost(false);
    CHECK(each > 140 && each <= 170);
}

static void work_off(void)
{
    char json[80];
    const char *out = call("{\"op\":\"reserve\",\"name\":\"q\",\"filter\":\"goes\",\"wait\":0}");
    const char *at = strstr(out, "\"delivery\":\"");
    CHECK(at != NULL && strstr(out, "\"from\":\"goes\"") != NULL);
    if (at == NULL)
        return;
    snprintf(json, sizeof(json), "{\"op\":\"ack\",\"delivery\":\"%.24s\"}", at + 12);
    call(json);
}

/* What a filter leaves behind costs no more than messages do. */
TEST(gaps_do_not_pile_up)
{
    if (test_round > 0)
        return; /* it chooses itself what is hot */
    enum { ROUND = 64, ROUNDS = 200 };
    char json[300];
    for (int durable = 0; durable < 2; durable++) {
        open_hub(durable, 4 << 20, 0);
        call("{\"op\":\"put\",\"name\":\"q\",\"from\":\"stays\",\"text\":\"x\"}");
        int64_t before = bytes;
        for (int n = 0; n < ROUNDS; n++) {
            for (int i = 0; i < ROUND; i++) {
                snprintf(json, sizeof(json),
                         "{\"op\":\"put\",\"name\":\"q\",\"from\":\"%s\",\"text\":\"%0100d\"}",
                         i == 0 ? "stays" : "goes", n);
                call(json);
            }
            /* The consumer is always behind, so that all become rows. */
            for (int i = 0; n > 4 && i < ROUND - 1; i++)
                work_off();
        }
        CHECK_INT(bus_hub->broker->count.queued, 1 + ROUNDS + 5 * (ROUND - 1));
        CHECK(bytes - before < 200000 + ROUNDS * 700);
        close_hub();
        UNCOUNTED(true);
        fd_done(&disk);
        UNCOUNTED(false);
    }
}

#endif

/* Takes all of the mailbox; they come in order, first to last. */
static void take_all(const char *name, int first, int last)
{
    char json[80], want[140];
    snprintf(json, sizeof(json), "{\"op\":\"take\",\"id\":\"t\",\"name\":\"%s\",\"wait\":0}", name);
    for (int n = first; n <= last; n++) {
        snprintf(want, sizeof(want), "-%d\",\"name\":\"%s\"", n, name);
        const char *out = call(json);
        CHECK(strstr(out, want) != NULL);
        snprintf(want, sizeof(want), "\"text\":\"%0100d\"", n);
        CHECK(strstr(out, want) != NULL);
    }
    CHECK(strstr(call(json), "mailbox: empty") != NULL);
}

TEST(records_of_rows_move)
{
    uint64_t hot = bus_hot_messages();
    char json[80];
    open_hub(true, 65536, hot);
    for (int n = 1; n <= 200; n++)
        put("stays", n);
    pump();
    bus_recv(client);
    /* What comes and goes beside them makes their segments useless. */
    for (int n = 1; n <= 3000; n++) {
        put("goes", 1000 + n);
        pump();
        snprintf(json, sizeof(json), "{\"op\":\"take\",\"name\":\"goes\",\"wait\":0}");
        call(json);
        bus_advance_ms(10);
    }
    struct zc_log_status st;
    zc_log_status(bus_hub->log, &st);
    CHECK(st.moved >= 200);
    CHECK_INT(bus_hub->broker->count.queued, 200);
    CHECK(strstr(call("{\"op\":\"peek\",\"id\":\"k\",\"name\":\"stays\",\"max\":9}"), "09\"") !=
          NULL);
    close_hub();
    open_hub(true, 65536, hot);
    CHECK_INT(bus_hub->broker->count.queued, 200);
    put("stays", 201);
    take_all("stays", 1, 201);
    close_hub();
    fd_done(&disk);
}

TEST(all_comes_back_as_it_was)
{
    static const char *const puts[] = {"\"text\":\"plain\"",
                                       "\"text\":\"\"",
                                       "\"body\":\"AAEC\"",
                                       "\"headers\":{\"a\":\"b\",\"\":\"\"},\"text\":\"x\"",
                                       "\"from\":\"else\",\"text\":\"y\"",
                                       "\"ttl_ms\":100000,\"text\":\"z\"",
                                       "\"delay_ms\":10,\"text\":\"w\""};
    char json[300], was[7][400], at[40];
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    bus_start(&c);
    client = bus_attach();
    snprintf(at, sizeof(at), "\"at\":%lld,", (long long)bus_now.wall.ms);
    for (int i = 0; i < 7; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"id\":\"%d\",\"name\":\"q\",%s}", i,
                 puts[i]);
        CHECK(strstr(bus_call(client, json), "\"op\":\"ok\"") != NULL);
        CHECK(strstr(bus_call(client, json), "\"op\":\"ok\"") != NULL); /* known */
    }
    bus_advance_ms(20);
    CHECK_INT(bus_hub->broker->count.queued, 7);
    CHECK(strstr(bus_call(client, "{\"op\":\"stat\",\"id\":\"s\",\"name\":\"q\"}"),
                 "oldest_ms\":20,") != NULL);
    /* As a waiter gets it who is there already, and so as it is without any rest. */
    for (int i = 0; i < 7; i++) {
        struct zc_session *s = bus_attach();
        bus_send(client, "{\"op\":\"take\",\"id\":\"t\",\"name\":\"other\"}");
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"id\":\"%d\",\"name\":\"other\",%s}", i,
                 puts[i]);
        bus_call(s, json);
        bus_advance_ms(20);
        snprintf(was[i], sizeof(was[i]), "%s", bus_recv(client));
        zc_hub_detach(bus_hub, s, bus_now);
    }
    for (int i = 0; i < 7; i++) {
        const char *now =
            bus_call(client, "{\"op\":\"take\",\"id\":\"t\",\"name\":\"q\",\"wait\":0}");
        CHECK(strstr(now, at) != NULL);
        const char *a = strstr(was[i], "\"from\""), *b = strstr(now, "\"from\"");
        const char *end = a != NULL ? strstr(a, ",\"at\":") : NULL;
        CHECK(end != NULL && b != NULL && strncmp(a, b, (size_t)(end - a) + 6) == 0);
        CHECK(strstr(now, ",\"by\":\"uid:7\"}") != NULL);
    }
    bus_end();
}
