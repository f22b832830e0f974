/*
 * The client library and the stream: heartbeats, late answers, split frames, full buffers, and hubs
 * that leave or break the protocol.
 */
#include "scripted_hub.h"

static void script_heartbeat(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    char put_id[128];
    snprintf(put_id, sizeof put_id, "%s", h->id);
    for (int i = 0; i < 3; i++) {
        hub_send(h, "{\"op\":\"ping\",\"id\":\"hb%d\"}", i);
        CHECK(hub_read(h));
        char want[48];
        snprintf(want, sizeof want, "\"op\":\"pong\",\"id\":\"hb%d\"", i);
        CHECK(hub_saw(h, want));
    }
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\"}", put_id);
    hub_send(h, "{\"op\":\"ping\",\"id\":\"later\"}");
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"pong\",\"id\":\"later\""));
}

TEST(heartbeats_are_answered_while_waiting_and_by_poll)
{
    CHECK_INT(start(script_heartbeat), ZMQCAT_OK);
    CHECK_INT(put("x"), ZMQCAT_OK);
    int rc;
    while ((rc = zmqcat_poll(bus)) == ZMQCAT_OK)
        usleep(1000);
    CHECK_INT(rc, ZMQCAT_CLOSED); /* the script ends once it has its pong */
    stop();
}

static void script_late(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    char first[128];
    snprintf(first, sizeof first, "%s", h->id);
    CHECK(hub_read(h)); /* comes after the first was given up */
    CHECK(hub_saw(h, "\"op\":\"req\""));
    CHECK(strcmp(first, h->id) != 0);
    hub_send(h, "{\"op\":\"rep\",\"id\":\"%s\",\"body\":\"b25l\"}", first);
    hub_send(h, "{\"op\":\"rep\",\"id\":\"%s\",\"body\":\"dHdv\"}", h->id);
    CHECK(hub_read(h));
    hub_send(h, "{\"op\":\"rep\",\"id\":\"%s\",\"body\":\"b25l\"}", first);
    hub_ok(h);
}

TEST(a_late_answer_never_shifts_the_session)
{
    CHECK_INT(start(script_late), ZMQCAT_OK);
    struct zmqcat_msg m;
    int64_t before = now_ms();
    CHECK_INT(zmqcat_req(bus, NULL, "svc", 3, "a", 1, 50, &m), ZMQCAT_TIMEOUT);
    CHECK(now_ms() - before >= 50);
    CHECK_INT(zmqcat_req(bus, NULL, "svc", 3, "b", 1, 5000, &m), ZMQCAT_OK);
    CHECK(payload_is(&m, "two"));
    CHECK_INT(put("x"), ZMQCAT_OK);
    stop();
}

#define FLOOD (ZC_BUS_KEPT_MAX + 100)

static void script_flood(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    hub_ok(h);
    CHECK(hub_read(h));
    for (int i = 0; i < FLOOD; i++)
        hub_send(h, "{\"op\":\"msg\",\"name\":\"t\",\"text\":\"%d\"}", i);
    hub_ok(h);
    for (int i = 0; i < FLOOD; i++)
        hub_send(h, "{\"op\":\"msg\",\"name\":\"t\",\"text\":\"p%d\"}", i);
    hub_read(h);
}

TEST(what_is_kept_is_bounded_and_losses_are_counted)
{
    CHECK_INT(start(script_flood), ZMQCAT_OK);
    struct zmqcat_msg m;
    CHECK_INT(zmqcat_sub(bus, "", 0), ZMQCAT_OK);
    CHECK_INT(put("x"), ZMQCAT_OK);
    CHECK_INT(zmqcat_dropped(bus), 100);
    char text[32];
    for (int i = 0; i < ZC_BUS_KEPT_MAX; i++) {
        CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_OK);
        snprintf(text, sizeof text, "%d", i);
        CHECK(payload_is(&m, text));
    }
    /* poll stops reading instead: nothing more is lost. */
    int rc;
    while ((rc = zmqcat_poll(bus)) == ZMQCAT_OK)
        usleep(1000);
    CHECK_INT(rc, ZMQCAT_FULL);
    for (int i = 0; i < FLOOD; i++) {
        CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_OK);
        snprintf(text, sizeof text, "p%d", i);
        CHECK(payload_is(&m, text));
    }
    CHECK_INT(zmqcat_dropped(bus), 100);
    stop();
}

static void script_eof(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    hub_write(h, "ZMQC\0\0\0\x10{\"op\"", 13); /* cut in the middle */
}

TEST(the_end_of_the_stream_inside_a_frame)
{
    CHECK_INT(start(script_eof), ZMQCAT_OK);
    CHECK_INT(put("x"), ZMQCAT_CLOSED);
    CHECK_INT(put("x"), ZMQCAT_CLOSED);
    CHECK_INT(zmqcat_poll(bus), ZMQCAT_CLOSED);
    CHECK_INT(zmqcat_fd(bus), -1);
    stop();
}

static const char *nonsense;
static size_t nonsense_len;

static void script_nonsense(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    hub_write(h, nonsense, nonsense_len);
    hub_read(h);
}

TEST(a_hub_that_breaks_the_protocol_is_left)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", 28},
        {"ZMQC\0\0\0\0", 8},
        {"ZMQC\0\x20\0\x01", 8},
        {"ZMQC\0\0\0\x02[]", 10},
        {"ZMQC\0\0\0\x0f{\"op\":1,\"v\":1}", 23},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        nonsense = cases[i].bytes;
        nonsense_len = cases[i].len;
        CHECK_INT(start(script_nonsense), ZMQCAT_OK);
        CHECK_INT(put("x"), ZMQCAT_PROTOCOL);
        CHECK_INT(zmqcat_fd(bus), -1);
        stop();
    }
}

static void script_bytewise(struct hub *h)
{
    hub_hello(h);
    for (int round = 0; round < 2; round++) {
        CHECK(hub_read(h));
        char frame[256];
        int len = snprintf(frame + 8, sizeof frame - 8, "{\"op\":\"ok\",\"id\":\"%s\"}", h->id);
        memcpy(frame, "ZMQC\0\0\0", 7);
        frame[7] = (char)len;
        for (int i = 0; i < len + 8; i++) {
            hub_write(h, frame + i, 1);
            if (i % 16 == 0)
                usleep(1000);
        }
    }
}

TEST(frames_split_at_every_byte)
{
    CHECK_INT(start(script_bytewise), ZMQCAT_OK);
    CHECK_INT(put("x"), ZMQCAT_OK);
    CHECK_INT(put("y"), ZMQCAT_OK);
    stop();
}

static void script_both_full(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    hub_ok(h);
    /* 8 MiB before the hub reads anything: more than the kernel holds. */
    static char text[32001];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 256; i++)
        hub_send(h, "{\"op\":\"msg\",\"name\":\"t\",\"text\":\"%s\"}", text);
    CHECK(hub_read(h));
    CHECK_INT(strlen(h->json) > 1398000, 1);
    hub_ok(h);
}

TEST(two_full_directions_do_not_wait_for_each_other)
{
    CHECK_INT(start(script_both_full), ZMQCAT_OK);
    CHECK_INT(zmqcat_sub(bus, "", 0), ZMQCAT_OK);
    size_t len = 1u << 20;
    char *big = malloc(len);
    memset(big, 0xff, len);
    CHECK_INT(zmqcat_put(bus, "jobs", 4, big, len, NULL), ZMQCAT_OK);
    free(big);
    struct zmqcat_msg m;
    for (int i = 0; i < 256; i++)
        CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_OK);
    stop();
}

static void script_silent(struct hub *h)
{
    hub_hello(h);
    while (hub_read(h))
        ;
}

TEST(ping_has_a_deadline_and_free_is_safe)
{
    CHECK_INT(start(script_silent), ZMQCAT_OK);
    CHECK_INT(zmqcat_ping(bus, 30), ZMQCAT_TIMEOUT);
    CHECK(zmqcat_fd(bus) >= 0);
    stop();
    zmqcat_free(NULL);
    CHECK(strcmp(zmqcat_error_text(NULL), "out of memory") == 0);
}

static void script_gone(struct hub *h)
{
    hub_hello(h);
    hub_send(h, "{\"op\":\"err\",\"error\":\"hub unreachable: no path\",\"code\":\"unavailable\"}");
}

TEST(a_hub_that_left_before_we_sent_still_tells_why)
{
    CHECK_INT(start(script_gone), ZMQCAT_OK);
    pthread_join(hub_runs, NULL); /* its end is closed now: sending gives EPIPE, not SIGPIPE */
    CHECK_INT(put("x"), ZMQCAT_ERR);
    CHECK(strcmp(zmqcat_error_text(bus), "hub unreachable: no path") == 0);
    CHECK_INT(put("x"), ZMQCAT_CLOSED);
    zmqcat_free(bus);
}

TEST(ids_of_two_connections_differ)
{
    CHECK_INT(start(script_silent), ZMQCAT_OK);
    char first[ZC_BUS_ID_MAX];
    memcpy(first, bus->id, sizeof first);
    CHECK_INT(strlen(bus->id_prefix), 16);
    stop();
    CHECK_INT(start(script_silent), ZMQCAT_OK);
    CHECK(memcmp(first, bus->id_prefix, 16) != 0);
    stop();
}
