/*
 * A durable hub over a disk of which each request fails once: what was acknowledged is there, once,
 * what was refused is not, and the same after a restart. The script is about what the log keeps
 * beside plain puts: moves, purges, bindings, ids that are remembered, and bodies that left memory.
 */
#include "bus_disk.h"
#include "node/hub_priv.h"
#include "test.h"

enum { PUTS = 12 };

static struct fd disk;
static uint64_t fail_from, fail_to; /* requests that fail */
static uint64_t hot_bytes;
static bool hold_reads;
static struct zc_disk_op held[16]; /* reads that are not carried out yet */
static int held_count;
static struct zc_session *client;
static bool acked[PUTS], refused[PUTS], bound, published, once, purged;

/* One round of the loop; false: nothing wanted to happen. */
static bool pump_once(void)
{
    struct zc_hub_event ev;
    struct zc_disk_op op;
    bool any = false;
    while (zc_hub_event(bus_hub, bus_now, &ev))
        any = true;
    if (zc_hub_deadline(bus_hub).ns <= bus_now.mono.ns) {
        zc_hub_tick(bus_hub, bus_now);
        any = true;
    }
    while (zc_hub_disk_op(bus_hub, bus_now, &op)) {
        any = true;
        if (hold_reads && op.kind == ZC_DISK_READ && held_count < 16) {
            held[held_count++] = op;
            continue;
        }
        disk.fail_rate = disk.ops + 1 >= fail_from && disk.ops + 1 < fail_to ? 1000 : 0;
        struct zc_disk_completion done = {.id = op.id, .result = fd_do(&disk, &op, false)};
        zc_hub_disk_done(bus_hub, bus_now, &done);
    }
    return any;
}

/* Everything that wants to happen at this time does. */
static void pump(void)
{
    for (int i = 0; i < 10000; i++) {
        if (!pump_once())
            return;
    }
    CHECK(!"the hub never rests");
}

/* The reads that were held come back, or fail. */
static void release_reads(bool fail)
{
    hold_reads = false;
    for (int i = 0; i < held_count; i++) {
        struct zc_disk_completion done = {.id = held[i].id,
                                          .result = fail ? ZC_EIO : fd_do(&disk, &held[i], false)};
        zc_hub_disk_done(bus_hub, bus_now, &done);
    }
    held_count = 0;
    pump();
}

static void pass_ms(int ms)
{
    for (int i = 0; i < ms; i += 100) {
        bus_advance_ms(100);
        pump();
    }
}

static void open_hub(void)
{
    struct zc_hub_config c = bus_disk_config(&disk);
    c.hot_bytes = hot_bytes;
    bus_disk_hub(&c);
    pump();
    client = bus_attach();
    bus_call(client, "{\"op\":\"hello\",\"id\":\"h\",\"from\":\"w\",\"scope\":\"home\"}");
}

static void close_hub(void)
{
    zc_hub_detach(bus_hub, client, bus_now);
    zc_hub_stop(bus_hub, bus_now);
    pass_ms(5000);
    bus_end();
}

static const char *call(const char *json)
{
    bus_send(client, json);
    pump();
    return bus_recv(client);
}

static bool is_ok(const char *out)
{
    return strstr(out, "\"op\":\"ok\"") != NULL;
}

static void put(int n)
{
    char json[900];
    int at = snprintf(json, sizeof(json),
                      "{\"op\":\"put\",\"id\":\"%d\",\"name\":\"a\",\"text\":\"m%02d ", n, n);
    memset(json + at, 'x', 700);
    memcpy(json + at + 700, "\"}", 3);
    acked[n] = is_ok(call(json));
    refused[n] = !acked[n];
}

static void script(void)
{
    for (int n = 0; n < PUTS - 2; n++)
        put(n);
    bound = is_ok(call("{\"op\":\"bind\",\"id\":\"b\",\"name\":\"box\",\"topic\":\"t.\"}"));
    published = is_ok(call("{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.x\",\"text\":\"news\"}"));
    once = is_ok(call("{\"op\":\"put\",\"id\":\"once\",\"name\":\"c\",\"text\":\"once\"}"));
    call("{\"op\":\"take\",\"id\":\"t\",\"name\":\"c\",\"wait\":0}");
    if (once) /* known, though it is gone */
        call("{\"op\":\"put\",\"id\":\"once\",\"name\":\"c\",\"text\":\"once\"}");
    call("{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\",\"max\":6}");
    call("{\"op\":\"peek\",\"id\":\"k\",\"name\":\"a\",\"max\":9}");
    call("{\"op\":\"put\",\"id\":\"gone\",\"name\":\"d\",\"text\":\"purged\"}");
    purged = is_ok(call("{\"op\":\"purge\",\"id\":\"u\",\"name\":\"d\"}"));
    call("{\"op\":\"bind\",\"id\":\"b\",\"name\":\"box2\",\"topic\":\"s.\"}");
    call("{\"op\":\"unbind\",\"id\":\"b\",\"name\":\"box2\",\"topic\":\"s.\"}");
    put(PUTS - 2);
    put(PUTS - 1);
}

/* Takes all of a mailbox; how often each put came is added to seen. */
static int drain(const char *name, int seen[PUTS], const char *part)
{
    char json[80];
    int found = 0;
    snprintf(json, sizeof(json), "{\"op\":\"take\",\"id\":\"t\",\"name\":\"%s\",\"wait\":0}", name);
    for (int i = 0; i < 100; i++) {
        int n;
        const char *out = call(json), *text = strstr(out, "\"text\":\"");
        if (text == NULL)
            break;
        if (sscanf(text, "\"text\":\"m%d ", &n) == 1 && n >= 0 && n < PUTS)
            seen[n]++;
        found += strstr(text, part) != NULL;
    }
    return found;
}

/* All is as it was told. After a restart, what was refused may be there. */
static void check(bool restarted)
{
    int seen[PUTS] = {0};
    drain("a", seen, "m");
    drain("b", seen, "m");
    for (int n = 0; n < PUTS; n++) {
        CHECK(seen[n] <= 1);
        CHECK(!acked[n] || seen[n] == 1);
        CHECK(!refused[n] || restarted || seen[n] == 0);
    }
    int news = drain("box", seen, "news");
    CHECK(news <= 1 && (!bound || !published || news == 1));
    CHECK(drain("c", seen, "once") <= 1);
    int left = drain("d", seen, "purged");
    CHECK(left <= 1 && (!purged || left == 0));
    /* And it works: a binding that was made is there still. */
    CHECK(is_ok(call("{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.y\",\"text\":\"more\"}")));
    CHECK(!bound || drain("box", seen, "more") == 1);
    if (once)
        CHECK(is_ok(call("{\"op\":\"put\",\"id\":\"once\",\"name\":\"c\",\"text\":\"once\"}")));
}

/* `count` requests fail from number n on; false: there are not so many. */
static bool run(uint64_t n, uint64_t count, bool restart)
{
    disk = (struct fd){.seed = n};
    open_hub();
    fail_from = disk.ops + n;
    fail_to = fail_from + count;
    script();
    bool reached = fail_from <= disk.ops;
    fail_from = fail_to = 0;
    for (int i = 0; i < PUTS && !reached; i++)
        CHECK(acked[i]);
    CHECK(reached || (bound && published && once && purged));
    pass_ms(3000);
    if (restart) {
        close_hub();
        open_hub();
    }
    check(restart);
    close_hub();
    fd_done(&disk);
    return reached;
}

static void run_all(uint64_t count, bool restart)
{
    uint64_t n = 1;
    while (run(n, count, restart))
        n++;
    CHECK(n > 20);
}

TEST(one_request_fails)
{
    run_all(1, false);
    run_all(1, true);
}

TEST(what_mends_it_fails_too)
{
    for (uint64_t count = 2; count < 6; count++) {
        run_all(count, false);
        run_all(count, true);
    }
}

TEST(a_disk_that_fails_for_long)
{
    run_all(1000, false);
    run_all(1000, true);
}

TEST(all_is_rewritten)
{
    for (int rewritten = 0; rewritten < 2; rewritten++) {
        disk = (struct fd){.seed = 1};
        open_hub();
        script();
        zc_log_compact(bus_hub->log);
        pass_ms(3000);
        CHECK(!zc_log_compacting(bus_hub->log));
        struct zc_hub_stats st;
        zc_hub_stats(bus_hub, &st);
        CHECK(st.moved > PUTS);
        if (rewritten) {
            close_hub();
            open_hub();
        }
        check(false);
        close_hub();
        fd_done(&disk);
    }
}

/* While the body of a message is read for somebody, he goes, or the message does. */
static void meanwhile(const char *ask, int what, bool fail)
{
    int seen[PUTS] = {0};
    disk = (struct fd){.seed = 3};
    open_hub();
    struct zc_session *other = bus_attach();
    call("{\"op\":\"put\",\"id\":\"x\",\"name\":\"a\",\"text\":\"m01 \",\"ttl\":60}");
    call("{\"op\":\"put\",\"id\":\"y\",\"name\":\"a\",\"text\":\"m02 \"}");
    hold_reads = true;
    bus_send(other, ask);
    pump();
    CHECK(held_count > 0);
    const char *got = "";
    bool left = what == 0 || what > 3;
    if (left) {
        zc_hub_detach(bus_hub, other, bus_now);
        pump();
    }
    if (what == 1 || what == 4) {
        call("{\"op\":\"purge\",\"id\":\"p\",\"name\":\"a\"}");
    } else if (what == 2 || what == 5) {
        pass_ms(61000);
    } else if (what == 3) { /* the hub goes, with the read under way */
        hold_reads = false;
        held_count = 0;
        bus_end();
        fd_done(&disk);
        return;
    }
    release_reads(fail);
    if (!left)
        got = bus_recv(other);
    seen[1] += strstr(got, "\"text\":\"m01 ") != NULL && strstr(got, "\"peek\"") == NULL;
    pass_ms(100);
    if (!left)
        zc_hub_detach(bus_hub, other, bus_now);
    pump();
    drain("a", seen, "m");
    drain("b", seen, "m");
    CHECK(seen[1] <= 1 + (strstr(ask, "reserve") != NULL) && seen[2] <= 1);
    if (what == 0 && !fail)
        CHECK(seen[1] == 1);
    CHECK(what == 1 || what == 4 || seen[2] == 1);
    close_hub();
    fd_done(&disk);
}

TEST(while_a_body_is_read)
{
    static const char *const asks[] = {
        "{\"op\":\"take\",\"id\":\"t\",\"name\":\"a\"}",
        "{\"op\":\"reserve\",\"id\":\"t\",\"name\":\"a\"}",
        "{\"op\":\"peek\",\"id\":\"t\",\"name\":\"a\",\"max\":1}",
        "{\"op\":\"move\",\"id\":\"t\",\"name\":\"a\",\"to\":\"b\",\"max\":1}",
    };
    for (int i = 0; i < 24; i++) {
        meanwhile(asks[i / 6], i % 6, false);
        meanwhile(asks[i / 6], i % 6, true);
    }
}

/* A message is read for somebody who leaves, and moved before the disk answers: what is read then
 * bears the name of the other mailbox. */
TEST(a_move_overtakes_a_read)
{
    static const char *const asks[] = {
        "{\"op\":\"take\",\"id\":\"t\",\"name\":\"bb\"}",
        "{\"op\":\"ready\",\"id\":\"t\",\"name\":\"bb\"}",
        "{\"op\":\"peek\",\"id\":\"t\",\"name\":\"bb\"}",
    };
    for (int i = 0; i < 12; i++) {
        bool early = i / 3 % 2 == 1; /* asked for before the disk answers */
        disk = (struct fd){.seed = 4};
        open_hub();
        struct zc_session *other = bus_attach();
        call("{\"op\":\"put\",\"id\":\"x\",\"name\":\"a\",\"text\":\"m01 \"}");
        hold_reads = true;
        bus_send(other, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"a\"}");
        pump();
        CHECK_INT(held_count, 1);
        zc_hub_detach(bus_hub, other, bus_now);
        hold_reads = false; /* but this one */
        CHECK(is_ok(call("{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"bb\"}")));
        if (early)
            bus_send(client, asks[i % 3]);
        release_reads(i >= 6);
        if (!early)
            bus_send(client, asks[i % 3]);
        pump();
        const char *got = bus_recv(client);
        CHECK(strstr(got, "\"op\":\"msg\"") != NULL);
        CHECK(strstr(got, "\"name\":\"bb\"") != NULL);
        CHECK(strstr(got, "\"text\":\"m01 ") != NULL);
        close_hub();
        fd_done(&disk);
    }
}

/* What comes back while a move works does not take the place of what was there. */
TEST(a_move_takes_what_comes_back_as_well)
{
    static const char *const moves[] = {
        "{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\"}",
        "{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\",\"max\":9}",
        "{\"op\":\"move\",\"id\":\"m\",\"name\":\"a\",\"to\":\"b\",\"max\":2}",
    };
    for (int i = 0; i < 3; i++) {
        disk = (struct fd){.seed = 6};
        open_hub();
        struct zc_session *other = bus_attach();
        call("{\"op\":\"put\",\"id\":\"x\",\"name\":\"a\",\"text\":\"m01 \"}");
        call("{\"op\":\"put\",\"id\":\"y\",\"name\":\"a\",\"text\":\"m02 \"}");
        call("{\"op\":\"put\",\"id\":\"z\",\"name\":\"a\",\"text\":\"m03 \",\"delay\":60}");
        bus_send(other, "{\"op\":\"reserve\",\"id\":\"r\",\"name\":\"a\"}");
        pump();
        CHECK(strstr(bus_recv(other), "m01") != NULL);
        hold_reads = true;
        bus_send(client, moves[i]);
        pump();
        CHECK_INT(held_count, 1);
        zc_hub_detach(bus_hub, other, bus_now);
        pump();
        release_reads(false);
        CHECK(strstr(bus_recv(client), i < 2 ? "\"count\":3" : "\"count\":2") != NULL);
        close_hub();
        fd_done(&disk);
    }
}

/* A peek whose reads are slow, while all that it shows is copied elsewhere. */
TEST(a_peek_shows_what_moved_meanwhile)
{
    disk = (struct fd){.seed = 5};
    open_hub();
    struct zc_session *other = bus_attach();
    for (int n = 0; n < PUTS; n++)
        put(n);
    hold_reads = true;
    bus_send(other, "{\"op\":\"peek\",\"id\":\"k\",\"name\":\"a\",\"max\":100}");
    pump();
    CHECK_INT(held_count, 1);
    hold_reads = false; /* but this one */
    zc_log_compact(bus_hub->log);
    pass_ms(3000);
    struct zc_hub_stats st;
    zc_hub_stats(bus_hub, &st);
    CHECK(st.moved >= PUTS);
    release_reads(true);
    pass_ms(100);
    const char *got = bus_recv(other);
    for (int n = 0; n < PUTS; n++) {
        char text[24];
        snprintf(text, sizeof(text), "\"text\":\"m%02d ", n);
        got = strstr(got, text);
        CHECK(got != NULL);
        if (got == NULL)
            break;
    }
    zc_hub_detach(bus_hub, other, bus_now);
    close_hub();
    fd_done(&disk);
}

enum { BOXES = 2500 };

static void bind_boxes(void)
{
    char json[80];
    for (int i = 0; i < BOXES; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"bind\",\"name\":\"box%d\",\"topic\":\"t.\"}", i);
        bus_send(client, json);
        if (i % 100 == 99) {
            pump();
            bus_recv(client);
        }
    }
}

static int news(const char *out)
{
    int n = 0;
    for (; (out = strstr(out, "\"text\":\"news\"")) != NULL; out++)
        n++;
    return n;
}

/* Each bound mailbox has from least to most. */
static void check_boxes(int least, int most)
{
    for (int i = 0; i < BOXES; i += 7) {
        char json[80], depth[24];
        snprintf(json, sizeof(json), "{\"op\":\"stat\",\"id\":\"s\",\"name\":\"box%d\"}", i);
        const char *out = call(json);
        int n = least;
        while (n <= most &&
               (snprintf(depth, sizeof(depth), "\"depth\":%d,", n), strstr(out, depth) == NULL))
            n++;
        CHECK(n <= most);
    }
}

/* A publication for many mailboxes while requests fail: its answer is true, and the subscriber has
 * it in any case, once. */
static bool spread(uint64_t n, uint64_t count, bool restart)
{
    static const char *const json =
        "{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.x\",\"text\":\"news\"}";
    disk = (struct fd){.seed = n};
    open_hub();
    bind_boxes();
    struct zc_session *sub = bus_attach();
    bus_call(sub, "{\"op\":\"sub\",\"name\":\"t.x\"}");
    fail_from = disk.ops + n;
    fail_to = fail_from + count;
    bus_send(client, json);
    CHECK(strcmp(bus_recv(client), "") == 0); /* no answer before it is on disk */
    pump();
    bool reached = fail_from <= disk.ops;
    fail_from = fail_to = 0;
    pass_ms(3000);
    const char *out = bus_recv(client);
    bool ok = is_ok(out);
    CHECK(ok || strstr(out, "storage: not in all mailboxes that are bound") != NULL);
    CHECK(reached || ok);
    CHECK_INT(news(bus_recv(sub)), 1);
    if (restart) {
        zc_hub_detach(bus_hub, sub, bus_now);
        close_hub();
        open_hub();
    }
    check_boxes(ok, 1);
    if (!ok) { /* again, which may double it */
        CHECK(is_ok(call(json)));
        check_boxes(1, 2);
    }
    if (!restart)
        zc_hub_detach(bus_hub, sub, bus_now);
    close_hub();
    fd_done(&disk);
    return reached;
}

TEST(a_publication_for_many_mailboxes)
{
    static const uint64_t counts[] = {1, 3, 1000};
    for (int i = 0; i < 6; i++) {
        uint64_t n = 1;
        while (spread(n, counts[i / 2], i % 2 == 1))
            n++;
        CHECK(n > 5);
    }
}

TEST(the_answer_to_a_publication_comes_first)
{
    disk = (struct fd){.seed = 9};
    hot_bytes = 1 << 20;
    open_hub();
    hot_bytes = 0;
    bind_boxes();
    call("{\"op\":\"reserve\",\"id\":\"own\",\"name\":\"box0\"}");
    bus_send(client, "{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.x\",\"text\":\"news\"}");
    pump_once(); /* some of it is on disk */
    for (int i = 0; i < 10; i++)
        zc_hub_tick(bus_hub, bus_now); /* while the disk is slow */
    pump();
    const char *out = bus_recv(client), *ok = strstr(out, "\"op\":\"ok\",\"id\":\"p\""),
               *own = strstr(out, "\"delivery\"");
    CHECK(ok != NULL && own != NULL && ok < own);
    close_hub();
    fd_done(&disk);
}

static bool bind_op(const char *op)
{
    char json[80];
    snprintf(json, sizeof(json), "{\"op\":\"%s\",\"id\":\"b\",\"name\":\"box\",\"topic\":\"t.\"}",
             op);
    return is_ok(call(json));
}

/* A bind or unbind fails, though its record may be on disk, and so does all after it; then the
 * other one is asked for, and the hub is killed. What was acknowledged last holds. */
static void bind_again(uint64_t seed, bool want)
{
    disk = (struct fd){.seed = seed};
    open_hub();
    if (want)
        CHECK(bind_op("bind"));
    fail_from = disk.ops + 1;
    fail_to = fail_from + (seed % 3 == 0 ? 1 : 1000);
    CHECK(!bind_op(want ? "unbind" : "bind") || seed % 3 == 0);
    bool ok = bind_op(want ? "bind" : "unbind");
    CHECK(ok || seed % 3 != 0);
    fail_from = fail_to = 0;
    bus_end();
    open_hub();
    call("{\"op\":\"pub\",\"id\":\"p\",\"name\":\"t.x\",\"text\":\"news\"}");
    int seen[PUTS] = {0}, found = drain("box", seen, "news");
    CHECK(found == want || (!ok && found == !want));
    close_hub();
    fd_done(&disk);
}

TEST(what_was_answered_last_holds_for_a_binding)
{
    for (uint64_t seed = 1; seed < 60; seed++) {
        bind_again(seed, false);
        bind_again(seed, true);
    }
}

/* What is remembered of an id ends by the wall clock while no hub runs. */
TEST(ids_that_are_forgotten_while_the_hub_is_away)
{
    static const int minutes[] = {9, 11};
    for (int i = 0; i < 2; i++) {
        int seen[PUTS] = {0};
        bool over = minutes[i] > 10;
        disk = (struct fd){.seed = 8};
        open_hub();
        CHECK(is_ok(call("{\"op\":\"put\",\"id\":\"once\",\"name\":\"c\",\"text\":\"once\"}")));
        CHECK_INT(drain("c", seen, "once"), 1);
        CHECK_INT(bus_hub->broker->seen.len, 1);
        close_hub();
        bus_now.wall.ms += minutes[i] * 60000;
        open_hub();
        CHECK_INT(bus_hub->broker->seen.len, !over);
        CHECK(is_ok(call("{\"op\":\"put\",\"id\":\"once\",\"name\":\"c\",\"text\":\"once\"}")));
        CHECK_INT(drain("c", seen, "once"), over);
        close_hub();
        fd_done(&disk);
    }
}
