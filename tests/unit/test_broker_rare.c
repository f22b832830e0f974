/* What hardly ever happens to a broker: bounds of all sessions together, a reader who asks and
 * never reads, heartbeats that are days apart, and what was given before its worker had a scope. */
#include "bus.h"
#include "node/hub_priv.h"
#include "test.h"
#include "zmqc/group.h"

static struct zc_session *start(int64_t heartbeat_ms, uint64_t session_bytes)
{
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.heartbeat_ms = heartbeat_ms;
    if (session_bytes > 0)
        c.session_bytes = session_bytes;
    bus_start(&c);
    return bus_attach();
}

static void end(struct zc_session *a, struct zc_session *b)
{
    zc_hub_detach(bus_hub, a, bus_now);
    zc_hub_detach(bus_hub, b, bus_now);
    bus_end();
}

/* Parts of frames have a bound together. The session that crosses it ends, the others go on. */
TEST(unfinished_frames_of_all_sessions_are_bounded)
{
    static uint8_t part[ZC_FRAME_HEADER + 100];
    struct zc_session *a = start(0, 0), *b = bus_attach();
    uint64_t *all = &bus_hub->broker->in_bytes;
    zc_frame_header(part, 1000);
    memset(part + ZC_FRAME_HEADER, ' ', 100);
    zc_hub_input(bus_hub, a, bus_now, part, sizeof(part));
    CHECK_INT(*all, sizeof(part));
    CHECK_INT(bus_fate(a), ZC_HUB_OUTPUT);
    *all += ZC_BROKER_IN_MAX - sizeof(part) - 50;
    zc_hub_input(bus_hub, b, bus_now, part, sizeof(part));
    CHECK_INT(bus_fate(b), ZC_HUB_CLOSE);
    CHECK_INT(*all, ZC_BROKER_IN_MAX - 50);
    CHECK_INT(bus_fate(a), ZC_HUB_OUTPUT);
    zc_hub_input(bus_hub, a, bus_now, part + ZC_FRAME_HEADER, 50);
    CHECK_INT(bus_fate(a), ZC_HUB_OUTPUT);
    *all -= ZC_BROKER_IN_MAX - sizeof(part) - 50;
    zc_hub_detach(bus_hub, a, bus_now);
    CHECK_INT(*all, 0);
    zc_hub_detach(bus_hub, b, bus_now);
    bus_end();
}

static void delivery_of(const char *out, char ret_token[25])
{
    const char *at = strstr(out, "\"delivery\":\"");
    ret_token[0] = '\0';
    if (at != NULL)
        snprintf(ret_token, 25, "%s", at + 12);
}

/* Replies come from others, so nothing can hold them back: who does not read them is cut. */
TEST(who_asks_and_never_reads_is_ended)
{
    enum { LARGE = 1000000, ASKED = 40 };
    struct zc_session *asker = start(0, 65536), *worker = bus_attach();
    char *json = malloc(LARGE + 200), token[25];
    bool closed = false;
    int answered = 0;
    for (int i = 0; i < ASKED; i++) {
        snprintf(json, 200, "{\"op\":\"req\",\"id\":\"r%d\",\"name\":\"svc\",\"text\":\"?\"}", i);
        bus_send(asker, json);
    }
    for (; answered < ASKED && !closed; answered++) {
        delivery_of(bus_call(worker, "{\"op\":\"ready\",\"id\":\"w\",\"name\":\"svc\"}"), token);
        CHECK(token[0] != '\0');
        int at = sprintf(json, "{\"op\":\"rep\",\"delivery\":\"%s\",\"text\":\"", token);
        memset(json + at, 'x', LARGE);
        memcpy(json + at + LARGE, "\"}", 3);
        bus_send(worker, json);
        closed = bus_fate(asker) == ZC_HUB_CLOSE;
    }
    CHECK(closed);
    CHECK(answered >= 8 && answered < ASKED);
    CHECK(strstr(bus_call(worker, "{\"op\":\"ping\",\"id\":\"p\"}"), "\"op\":\"pong\"") != NULL);
    free(json);
    end(asker, worker);
    CHECK(bus_hub == NULL);
}

/* A worker may be silent for six heartbeats, but a lease never lasts longer than any may. */
TEST(a_lease_of_rare_heartbeats_has_a_bound)
{
    static const struct {
        int64_t heartbeat_s, lease_s;
    } rows[] = {{5, 60}, {20, 120}, {86400, 86400}, {864000, 86400}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct zc_session *putter = start(rows[i].heartbeat_s * 1000, 0), *worker = bus_attach();
        char want[60];
        bus_call(putter, "{\"op\":\"put\",\"id\":\"a\",\"name\":\"q\",\"text\":\"a\"}");
        snprintf(want, sizeof(want), "\"lease\":%lld",
                 (long long)(bus_now.wall.ms / 1000 + rows[i].lease_s));
        CHECK(strstr(bus_call(worker, "{\"op\":\"ready\",\"id\":\"w\",\"name\":\"q\"}"), want) !=
              NULL);
        end(putter, worker);
    }
}

/* It is still the worker's, by the number of its session. */
TEST(a_scope_that_comes_after_a_job)
{
    struct zc_session *asker = start(0, 0), *worker = bus_attach();
    bus_send(asker, "{\"op\":\"req\",\"id\":\"r1\",\"name\":\"svc\",\"text\":\"?\"}");
    const char *got = bus_call(worker, "{\"op\":\"ready\",\"id\":\"w\",\"name\":\"svc\"}");
    char id[64] = "", json[160];
    const char *at = strstr(got, "\"id\":\"");
    CHECK(at != NULL && sscanf(at, "\"id\":\"%63[^\"]", id) == 1);
    bus_call(worker, "{\"op\":\"hello\",\"id\":\"h\",\"from\":\"w\",\"scope\":\"home\"}");
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%s\",\"name\":\"svc\",\"text\":\"!\"}",
             id);
    bus_send(worker, json);
    CHECK(strstr(bus_recv(asker), "\"text\":\"!\"") != NULL);
    CHECK_INT(bus_hub->broker->count.leased, 0);
    end(asker, worker);
}

/* A message that just fits a frame under its name does not under a longer one, and stays. */
TEST(a_move_to_a_name_that_is_too_long_for_it)
{
    enum { PAYLOAD = 1400 << 10, NAME = 1000 };
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.payload_max = PAYLOAD;
    c.headers_bytes = 40000;
    bus_start(&c);
    struct zc_session *s = bus_attach(), *other = bus_attach();
    char *json = malloc(PAYLOAD + 50000);
    const char *got = "";
    size_t large = 33000; /* of a header: too large, so that a frame is filled to its end */
    do {
        large -= 200;
        int at = sprintf(json, "{\"op\":\"put\",\"id\":\"a\",\"name\":\"q\",\"headers\":{\"k\":\"");
        memset(json + at, 'y', large);
        at += (int)large + sprintf(json + at + large, "\"},\"text\":\"");
        memset(json + at, 'x', PAYLOAD);
        memcpy(json + at + PAYLOAD, "\"}", 3);
        got = bus_call(s, json);
    } while (strstr(got, "too_large") != NULL && large > 20000);
    CHECK(strstr(got, "\"op\":\"ok\"") != NULL && large > 20000);
    int at = sprintf(json, "{\"op\":\"move\",\"id\":\"m\",\"name\":\"q\",\"to\":\"");
    memset(json + at, 'n', NAME);
    memcpy(json + at + NAME, "\"}", 3);
    got = bus_call(s, json);
    CHECK(strstr(got, "\"code\":\"too_large\"") != NULL);
    CHECK_INT(bus_hub->broker->count.queued, 1);
    got = bus_call(s, "{\"op\":\"move\",\"id\":\"m\",\"name\":\"q\",\"to\":\"r\"}");
    CHECK(strstr(got, "\"count\":1") != NULL);
    free(json);
    end(s, other);
}

/* A request that nobody answers in time is forgotten; its reply is nobody's then. */
TEST(a_request_is_forgotten)
{
    struct zc_session *asker = start(0, 0), *worker = bus_attach();
    char json[160], id[64] = "";
    bus_send(asker, "{\"op\":\"req\",\"id\":\"r1\",\"name\":\"svc\",\"text\":\"?\"}");
    const char *got =
        bus_call(worker, "{\"op\":\"ready\",\"id\":\"w\",\"name\":\"svc\",\"lease\":3600}");
    const char *at = strstr(got, "\"id\":\"");
    CHECK(at != NULL && sscanf(at, "\"id\":\"%63[^\"]", id) == 1);
    bus_advance_ms(ZC_REQUEST_MS - 1);
    CHECK_INT(bus_hub->broker->requests.by_id.len, 1);
    bus_advance_ms(1);
    CHECK_INT(bus_hub->broker->requests.by_id.len, 0);
    snprintf(json, sizeof(json), "{\"op\":\"rep\",\"id\":\"%s\",\"name\":\"svc\",\"text\":\"!\"}",
             id);
    CHECK(strstr(bus_call(worker, json), "\"op\":\"ok\"") != NULL);
    CHECK(strcmp(bus_recv(asker), "") == 0);
    CHECK_INT(bus_hub->broker->count.leased, 0);
    end(asker, worker);
}

/* Who waits with a filter is a consumer of what passes it, and of nothing else. */
TEST(a_consumer_with_a_filter)
{
    struct zc_session *s = start(0, 0), *worker = bus_attach();
    bus_call(worker, "{\"op\":\"reserve\",\"id\":\"w\",\"name\":\"q\",\"filter\":\"a\"}");
    CHECK(strstr(bus_call(s, "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"from\":\"b\","
                             "\"text\":\"1\",\"if\":\"consumer\"}"),
                 "\"op\":\"err\"") != NULL);
    CHECK(strstr(bus_call(s, "{\"op\":\"put\",\"id\":\"2\",\"name\":\"q\",\"from\":\"a\","
                             "\"text\":\"2\",\"if\":\"consumer\"}"),
                 "\"op\":\"ok\"") != NULL);
    CHECK(strstr(bus_recv(worker), "\"text\":\"2\"") != NULL);
    end(s, worker);
}

/* More filters than are remembered: those that nobody waits with make room, the others stay. */
TEST(filters_that_nobody_waits_with_make_room)
{
    struct zc_session *s = start(0, 0), *worker = bus_attach();
    char json[160], token[25];
    /* So that the mailbox stays. */
    bus_call(s, "{\"op\":\"put\",\"id\":\"z\",\"name\":\"q\",\"text\":\"z\"}");
    for (int i = 0; i < 2 * ZC_GROUPS_MAX; i++) {
        bool waits = i >= 3 && i < ZC_GROUPS_MAX;
        snprintf(json, sizeof(json),
                 "{\"op\":\"reserve\",\"id\":\"%d\",\"name\":\"q\",\"filter\":\"f%d\",\"wait\":%d}",
                 i, i, waits ? 1000 : 0);
        CHECK((strcmp(bus_call(worker, json), "") == 0) == waits);
    }
    for (int i = 3; i < ZC_GROUPS_MAX; i++) {
        char want[40];
        snprintf(json, sizeof(json),
                 "{\"op\":\"put\",\"id\":\"%d\",\"name\":\"q\",\"from\":\"f%d\",\"text\":\"t%d\"}",
                 i, i, i);
        bus_call(s, json);
        snprintf(want, sizeof(want), "\"text\":\"t%d\"", i);
        const char *got = bus_recv(worker);
        CHECK(strstr(got, want) != NULL);
        delivery_of(got, token);
        snprintf(json, sizeof(json), "{\"op\":\"ack\",\"id\":\"a\",\"delivery\":\"%s\"}", token);
        CHECK(strstr(bus_call(worker, json), "\"op\":\"ok\"") != NULL);
    }
    end(s, worker);
}
