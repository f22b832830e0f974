/*
 * The calls of the client library: what they send, and what they make of the answers.
 */
#include "scripted_hub.h"

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
    hub_send(h, "{\"op\":\"msg\",\"id\":\"%s\",\"text\":\"not leased\"}", h->id);
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

static void script_operate(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"hello\"") && hub_saw(h, "\"from\":\"w\"") &&
          hub_saw(h, "\"scope\":\"one\""));
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"put\"") && hub_saw(h, "\"if\":\"consumer\""));
    hub_send(h, "{\"op\":\"err\",\"id\":\"%s\",\"error\":\"nobody\",\"code\":\"unroutable\"}",
             h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"sub\"") && hub_saw(h, "\"filter\":\"a,!b\""));
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"peek\",") && hub_saw(h, "\"max\":2"));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"p\",\"text\":\"published\"}");
    hub_send(h, "{\"op\":\"msg\",\"id\":\"%s\",\"text\":\"1\",\"peek\":true}", h->id);
    hub_send(h, "{\"op\":\"msg\",\"id\":\"%s\",\"text\":\"2\",\"end\":true,\"peek\":true}", h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"move\"") && hub_saw(h, "\"name\":\"a\"") &&
          hub_saw(h, "\"to\":\"b\"") && !hub_saw(h, "max"));
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\",\"count\":7}", h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"purge\""));
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\",\"count\":8}", h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"bind\"") && hub_saw(h, "\"topic\":\"ev.\""));
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"unbind\""));
    hub_ok(h);
}

TEST(what_an_operator_asks)
{
    struct zmqcat_msg m;
    int64_t n = 0;
    CHECK_INT(start(script_operate), ZMQCAT_OK);
    CHECK_INT(zmqcat_hello(bus, "w", "one"), ZMQCAT_OK);
    struct zmqcat_put_options options = {.if_consumer = true};
    CHECK_INT(zmqcat_put(bus, "a", 1, "x", 1, &options), ZMQCAT_REFUSED);
    CHECK(strcmp(zmqcat_error_code(bus), "unroutable") == 0);
    CHECK_INT(zmqcat_set_filter(bus, "a,!b"), ZMQCAT_OK);
    CHECK_INT(zmqcat_sub(bus, "", 0), ZMQCAT_OK);
    CHECK_INT(zmqcat_peek(bus, "a", 1, 1025, &m), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_peek(bus, "a", 1, 2, &m), ZMQCAT_OK);
    CHECK(payload_is(&m, "1") && m.peek && !m.end);
    CHECK_INT(zmqcat_peek_next(bus, &m), ZMQCAT_OK);
    CHECK(payload_is(&m, "2") && m.peek && m.end);
    CHECK_INT(zmqcat_next(bus, 1000, &m), ZMQCAT_OK);
    CHECK(payload_is(&m, "published") && !m.peek);
    CHECK_INT(zmqcat_move(bus, "a", 1, "b", 1, 0, &n), ZMQCAT_OK);
    CHECK_INT(n, 7);
    CHECK_INT(zmqcat_purge(bus, "a", 1, &n), ZMQCAT_OK);
    CHECK_INT(n, 8);
    CHECK_INT(zmqcat_bind(bus, "a", 1, "ev.", 3), ZMQCAT_OK);
    CHECK_INT(zmqcat_unbind(bus, "a", 1, "ev.", 3), ZMQCAT_OK);
    stop();
}
