/*
 * The client library against a scripted hub at the other end of a socket pair.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/bus.h"
#include "client/client.h"
#include "client/zmqcat.h"
#include "test.h"

#define JSON_MAX (3u << 20)

/* The scripted hub: runs in a thread of its own until its script ends, then closes. */
struct hub {
    int fd;
    void (*script)(struct hub *h);
    char json[JSON_MAX]; /* the last frame read */
    char id[128];        /* its id */
};

static bool read_bytes(int fd, void *data, size_t len)
{
    uint8_t *p = data;
    while (len > 0) {
        ssize_t n = read(fd, p, len);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* The next frame; false at the end. */
static bool hub_read(struct hub *h)
{
    uint8_t head[8];
    if (!read_bytes(h->fd, head, 8))
        return false;
    CHECK(memcmp(head, "ZMQC", 4) == 0);
    size_t len = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
    CHECK(len > 0 && len < JSON_MAX);
    if (!read_bytes(h->fd, h->json, len))
        return false;
    h->json[len] = '\0';
    h->id[0] = '\0';
    const char *id = strstr(h->json, "\"id\":\"");
    if (id != NULL)
        sscanf(id, "\"id\":\"%127[^\"]", h->id);
    return true;
}

static bool hub_saw(const struct hub *h, const char *text)
{
    return strstr(h->json, text) != NULL;
}

static void hub_write(struct hub *h, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        ssize_t n = send(h->fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

__attribute__((format(printf, 2, 3))) static void hub_send(struct hub *h, const char *format, ...)
{
    static char json[65536];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(json + 8, sizeof json - 8, format, list);
    va_end(list);
    memcpy(json, "ZMQC", 4);
    for (int i = 0; i < 4; i++)
        json[4 + i] = (char)(len >> (24 - 8 * i));
    hub_write(h, json, (size_t)len + 8);
}

static void hub_hello(struct hub *h)
{
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"hello\""));
    hub_send(h, "{\"v\":1,\"op\":\"ok\",\"id\":\"%s\",\"from\":\"me\"}", h->id);
}

static void hub_ok(struct hub *h)
{
    hub_send(h, "{\"v\":1,\"op\":\"ok\",\"id\":\"%s\"}", h->id);
}

static void *hub_thread(void *data)
{
    struct hub *h = data;
    h->script(h);
    close(h->fd);
    return NULL;
}

static struct hub hub;
static pthread_t hub_runs;
static struct zmqcat *bus;

/* Starts the script and connects to it; the result of the open. */
static int start(void (*script)(struct hub *h))
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    hub.fd = pair[1];
    hub.script = script;
    CHECK(pthread_create(&hub_runs, NULL, hub_thread, &hub) == 0);
    return zc_client_attach(pair[0], "me", &bus);
}

/* Ends the connection and waits for the script. */
static void stop(void)
{
    zmqcat_free(bus);
    bus = NULL;
    pthread_join(hub_runs, NULL);
}

static int put(const char *text)
{
    return zmqcat_put(bus, "jobs", 4, text, strlen(text), NULL);
}

static bool is(const char *data, size_t len, const char *want)
{
    return len == strlen(want) && memcmp(data, want, len) == 0;
}

static bool payload_is(const struct zmqcat_msg *m, const char *want)
{
    return is(m->payload, m->payload_len, want);
}

static int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void script_hello(struct hub *h)
{
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"hello\""));
    CHECK(hub_saw(h, "\"from\":\"me\""));
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ping\"")); /* one hello only */
    hub_send(h, "{\"op\":\"pong\",\"id\":\"%s\"}", h->id);
}

TEST(hello_is_sent_once_with_the_name)
{
    CHECK_INT(start(script_hello), ZMQCAT_OK);
    CHECK_INT(zmqcat_ping(bus, 5000), ZMQCAT_OK);
    stop();
}

static void script_refuse_hello(struct hub *h)
{
    hub_send(h, "{\"op\":\"err\",\"error\":\"too many sessions\",\"code\":\"unavailable\"}");
    hub_read(h);
}

TEST(refused_session_tells_why)
{
    CHECK_INT(start(script_refuse_hello), ZMQCAT_ERR);
    CHECK(strcmp(zmqcat_error_text(bus), "too many sessions") == 0);
    CHECK(strcmp(zmqcat_error_code(bus), "unavailable") == 0);
    CHECK_INT(put("x"), ZMQCAT_CLOSED);
    stop();
}

static void script_put(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"put\""));
    CHECK(hub_saw(h, "\"name\":\"jobs\",\"body\":\"aGVsbG8=\""));
    CHECK(!hub_saw(h, "\"text\""));
    /* Answers of others first: they must not count. */
    hub_send(h, "{\"op\":\"ok\",\"id\":\"another\"}");
    hub_send(h, "{\"op\":\"err\",\"id\":\"another\",\"error\":\"no\",\"code\":\"full\"}");
    hub_send(h, "{\"op\":\"pong\",\"id\":\"%s\"}", h->id);
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"id\":\"mine\",\"name\":\"jobs\""));
    CHECK(hub_saw(h, "\"headers\":{\"k\":\"v\"}"));
    CHECK(hub_saw(h, "\"delay\":1.5"));
    CHECK(hub_saw(h, "\"ttl\":60"));
    hub_ok(h);
}

TEST(put_sends_the_payload_once_and_matches_its_answer)
{
    CHECK_INT(start(script_put), ZMQCAT_OK);
    CHECK_INT(put("hello"), ZMQCAT_OK);
    struct zmqcat_header header = {"k", 1, "v", 1};
    struct zmqcat_put_options options = {
        .id = "mine", .headers = &header, .headers_count = 1, .delay_ms = 1500, .ttl_ms = 60000};
    CHECK_INT(zmqcat_put(bus, "jobs", 4, "x", 1, &options), ZMQCAT_OK);
    stop();
}

static const struct {
    const char *json;
    int rc;
    const char *code;
} errors[] = {
    {"\"error\":\"mailbox: queue full\",\"code\":\"full\"", ZMQCAT_REFUSED, "full"},
    {"\"error\":\"mailbox: queue full\"", ZMQCAT_REFUSED, "full"},
    {"\"error\":\"no\",\"code\":\"denied\"", ZMQCAT_REFUSED, "denied"},
    {"\"error\":\"no\",\"code\":\"unroutable\"", ZMQCAT_REFUSED, "unroutable"},
    {"\"error\":\"mailbox: empty\",\"code\":\"empty\"", ZMQCAT_TIMEOUT, "empty"},
    {"\"error\":\"mailbox: empty\"", ZMQCAT_TIMEOUT, "empty"},
    {"\"error\":\"mailbox: closed\"", ZMQCAT_CLOSED, "closed"},
    {"\"error\":\"mailbox: payload too large\"", ZMQCAT_ERR, "too_large"},
    {"\"error\":\"mailbox: empty name\",\"code\":\"empty_name\"", ZMQCAT_ERR, "empty_name"},
    {"\"error\":\"mailbox: empty name\"", ZMQCAT_ERR, ""},
    {"\"error\":\"disk\",\"code\":\"storage\"", ZMQCAT_ERR, "storage"},
};

static void script_errors(struct hub *h)
{
    hub_hello(h);
    for (size_t i = 0; i < ZC_ARRAY_LEN(errors); i++) {
        CHECK(hub_read(h));
        hub_send(h, "{\"op\":\"err\",\"id\":\"%s\",%s}", h->id, errors[i].json);
    }
    hub_read(h);
    hub_send(h, "{\"op\":\"err\",\"id\":\"%s\",\"error\":\"a\\u001b[31m\\nb\"}", h->id);
}

TEST(errors_of_the_hub_by_code_and_by_text)
{
    CHECK_INT(start(script_errors), ZMQCAT_OK);
    for (size_t i = 0; i < ZC_ARRAY_LEN(errors); i++) {
        CHECK_INT(put("x"), errors[i].rc);
        CHECK(strcmp(zmqcat_error_code(bus), errors[i].code) == 0);
        CHECK(zmqcat_error_text(bus)[0] != '\0');
    }
    CHECK_INT(put("x"), ZMQCAT_ERR);
    CHECK(strchr(zmqcat_error_text(bus), '\x1b') == NULL);
    CHECK(strchr(zmqcat_error_text(bus), '\n') == NULL);
    stop();
}

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

static void script_retry(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"id\":\"same\""));
    hub_send(h, "{\"op\":\"rep\",\"id\":\"same\",\"from\":\"w\",\"text\":\"yes\"}");
}

TEST(a_retry_with_the_same_id_gets_the_reply)
{
    CHECK_INT(start(script_retry), ZMQCAT_OK);
    struct zmqcat_msg m;
    CHECK_INT(zmqcat_req(bus, "same", "svc", 3, "a", 1, 50, &m), ZMQCAT_TIMEOUT);
    CHECK_INT(zmqcat_req(bus, "same", "svc", 3, "a", 1, 5000, &m), ZMQCAT_OK);
    CHECK(payload_is(&m, "yes"));
    CHECK(is(m.from, m.from_len, "w"));
    stop();
}

static void script_take(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"take\""));
    CHECK(hub_saw(h, "\"wait\":0.25"));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s1:a\",\"name\":\"jobs\",\"from\":\"x\",\"text\":\"hi\","
                "\"body\":\"aGk=\",\"headers\":{\"a\":\"1\",\"b\":\"\"},\"attempt\":2,\"at\":1234,"
                "\"by\":\"uid:7\"}");
    CHECK(hub_read(h));
    CHECK(!hub_saw(h, "wait"));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s1:b\",\"name\":\"jobs\",\"from\":\"x\"}");
    CHECK(hub_read(h));
    hub_send(h, "{\"op\":\"err\",\"id\":\"%s\",\"error\":\"mailbox: empty\",\"code\":\"empty\"}",
             h->id);
}

TEST(take_gives_all_fields)
{
    CHECK_INT(start(script_take), ZMQCAT_OK);
    struct zmqcat_msg m;
    CHECK_INT(zmqcat_take(bus, "jobs", 4, 250, &m), ZMQCAT_OK);
    CHECK(is(m.id, m.id_len, "s1:a") && is(m.name, m.name_len, "jobs"));
    CHECK(is(m.from, m.from_len, "x") && is(m.by, m.by_len, "uid:7"));
    CHECK(payload_is(&m, "hi"));
    CHECK_INT(m.attempt, 2);
    CHECK_INT(m.at_ms, 1234);
    CHECK_INT(m.headers_count, 2);
    CHECK(is(m.headers[0].key, m.headers[0].key_len, "a"));
    CHECK(is(m.headers[1].value, m.headers[1].value_len, ""));
    CHECK_INT(zmqcat_take(bus, "jobs", 4, -1, &m), ZMQCAT_OK);
    CHECK_INT(m.payload_len, 0);
    CHECK_INT(m.headers_count, 0);
    CHECK_INT(zmqcat_take(bus, "jobs", 4, 0, &m), ZMQCAT_TIMEOUT);
    CHECK_INT(zmqcat_take(bus, "jobs", 4, INT64_MAX, &m), ZMQCAT_USAGE);
    stop();
}

static void script_work(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"reserve\"") && hub_saw(h, "\"lease\":30"));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"other\",\"lease\":9,\"delivery\":\"d0\"}");
    hub_send(h, "{\"op\":\"msg\",\"id\":\"%s\",\"lease\":99,\"delivery\":\"d1\",\"text\":\"j\"}",
             h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"touch\"") && hub_saw(h, "\"delivery\":\"d1\""));
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\",\"lease\":130}", h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ready\""));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s9:q\",\"lease\":99,\"delivery\":\"d2\"}");
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"rep\",\"id\":\"s9:q\",\"name\":\"svc\",\"body\":\"cg==\""));
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"nack\"") && hub_saw(h, "\"delay\":2"));
    hub_send(h, "{\"op\":\"err\",\"id\":\"%s\",\"error\":\"mailbox: delivery not found\"}", h->id);
}

TEST(deliveries_are_settled_by_arguments_that_lie_in_the_last_message)
{
    CHECK_INT(start(script_work), ZMQCAT_OK);
    struct zmqcat_msg m;
    int64_t lease = 0;
    CHECK_INT(zmqcat_reserve(bus, "jobs", 4, 30, -1, &m), ZMQCAT_OK);
    CHECK(is(m.delivery, m.delivery_len, "d1"));
    CHECK_INT(m.lease, 99);
    CHECK_INT(zmqcat_touch(bus, m.delivery, m.delivery_len, 0, &lease), ZMQCAT_OK);
    CHECK_INT(lease, 130);
    CHECK_INT(zmqcat_ready(bus, "svc", 3, -1, &m), ZMQCAT_OK);
    CHECK(is(m.id, m.id_len, "s9:q"));
    CHECK_INT(zmqcat_rep(bus, m.id, m.id_len, "svc", 3, "r", 1), ZMQCAT_OK);
    CHECK_INT(zmqcat_nack(bus, "d2", 2, 2000), ZMQCAT_ERR);
    stop();
}

static void script_sub(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"sub\"") && hub_saw(h, "\"name\":\"ev.\""));
    hub_ok(h);
    hub_send(h, "{\"op\":\"msg\",\"name\":\"ev.0\",\"text\":\"last\"}");
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"pub\""));
    /* A delivery that carries the id of the request is still no answer to it. */
    hub_send(h, "{\"op\":\"msg\",\"id\":\"%s\",\"name\":\"ev.1\",\"text\":\"1\"}", h->id);
    hub_send(h, "{\"op\":\"msg\",\"name\":\"ev.2\",\"text\":\"2\"}");
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\",\"subs\":3}", h->id);
    hub_send(h, "{\"op\":\"msg\",\"name\":\"ev.3\",\"text\":\"3\"}");
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"unsub\""));
    hub_send(h, "{\"op\":\"msg\",\"name\":\"ev.4\",\"text\":\"4\"}");
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"take\""));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s1:x\",\"name\":\"jobs\",\"text\":\"job\"}");
}

TEST(deliveries_during_a_call_are_kept_in_order)
{
    CHECK_INT(start(script_sub), ZMQCAT_OK);
    struct zmqcat_msg m;
    int64_t subs = -1;
    CHECK_INT(zmqcat_sub(bus, "ev.", 3), ZMQCAT_OK);
    CHECK_INT(zmqcat_take(bus, "jobs", 4, 0, &m), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_pub(bus, "ev.1", 4, "1", 1, NULL, &subs), ZMQCAT_OK);
    CHECK_INT(subs, 3);
    static const char *const want[] = {"last", "1", "2", "3"};
    for (size_t i = 0; i < ZC_ARRAY_LEN(want); i++) {
        CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_OK);
        CHECK(payload_is(&m, want[i]));
    }
    CHECK_INT(zmqcat_next(bus, 20, &m), ZMQCAT_TIMEOUT);
    CHECK_INT(zmqcat_unsub(bus), ZMQCAT_OK);
    CHECK_INT(zmqcat_take(bus, "jobs", 4, -1, &m), ZMQCAT_OK);
    CHECK(payload_is(&m, "job"));
    CHECK_INT(zmqcat_dropped(bus), 0);
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

static void script_one_put(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "c21hbGw="));
    hub_ok(h);
}

TEST(what_cannot_be_sent_is_refused_before_sending)
{
    CHECK_INT(start(script_one_put), ZMQCAT_OK);
    size_t len = 1600000;
    char *big = calloc(1, len);
    CHECK_INT(zmqcat_put(bus, "jobs", 4, big, len, NULL), ZMQCAT_ERR);
    CHECK(strcmp(zmqcat_error_code(bus), "too_large") == 0);
    CHECK_INT(zmqcat_put(bus, "a\xff", 2, "x", 1, NULL), ZMQCAT_USAGE);
    struct zmqcat_header header = {"k", 1, "\xc3", 1};
    struct zmqcat_put_options options = {.headers = &header, .headers_count = 1};
    CHECK_INT(zmqcat_put(bus, "a", 1, "x", 1, &options), ZMQCAT_USAGE);
    options.headers_count = 257;
    CHECK_INT(zmqcat_put(bus, "a", 1, "x", 1, &options), ZMQCAT_USAGE);
    memset(big, 'i', 1025);
    struct zmqcat_put_options with_id = {.id = big};
    CHECK_INT(zmqcat_put(bus, "a", 1, "x", 1, &with_id), ZMQCAT_USAGE);
    free(big);
    CHECK_INT(put("small"), ZMQCAT_OK);
    stop();
}

static void script_query(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"list\"") && hub_saw(h, "\"name\":\"a\\\"b\",\"max\":5}"));
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\",\"result\":{\"names\":[\"a\"],\"more\":false}}",
             h->id);
    CHECK(hub_read(h));
    CHECK(!hub_saw(h, "name"));
    hub_ok(h);
}

TEST(query_gives_the_result_as_it_is)
{
    CHECK_INT(start(script_query), ZMQCAT_OK);
    const char *json;
    size_t len;
    CHECK_INT(zmqcat_query(bus, "list", "a\"b", 3, "\"max\":5", &json, &len), ZMQCAT_OK);
    CHECK(is(json, len, "{\"names\":[\"a\"],\"more\":false}"));
    CHECK_INT(zmqcat_query(bus, "stat", NULL, 0, NULL, &json, &len), ZMQCAT_OK);
    CHECK(is(json, len, "{}"));
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
