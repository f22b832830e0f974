/*
 * Calls whose answers come later: puts that are only started, messages that were asked
 * for, and calls that the caller gives up.
 */
#include "scripted_hub.h"

#include <errno.h>
#include <sys/un.h>

#define ID_MAX sizeof hub.id

static void script_puts(struct hub *h)
{
    char first[ID_MAX], second[ID_MAX];
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"put\""));
    snprintf(first, sizeof first, "%s", h->id);
    CHECK(hub_read(h));
    snprintf(second, sizeof second, "%s", h->id);
    CHECK(strcmp(first, second) != 0);
    CHECK(hub_read(h));
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\"}", first);
    hub_send(h, "{\"op\":\"ping\",\"id\":\"hb\"}");
    hub_send(h,
             "{\"op\":\"err\",\"id\":\"%s\",\"error\":\"mailbox: queue full\",\"code\":\"full\"}",
             second);
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"pong\""));
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ping\""));
    hub_send(h, "{\"op\":\"pong\",\"id\":\"%s\"}", h->id);
}

TEST(started_puts_are_finished_in_order)
{
    CHECK_INT(start(script_puts), ZMQCAT_OK);
    struct zmqcat_put_options named = {.id = "mine"};
    CHECK_INT(zmqcat_put_finish(bus, 0), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_put_start(bus, "jobs", 4, "a", 1, &named), ZMQCAT_USAGE);
    for (int i = 0; i < 2; i++)
        CHECK_INT(zmqcat_put_start(bus, "jobs", 4, "a", 1, NULL), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_finish(bus, 0), ZMQCAT_TIMEOUT);
    CHECK(zmqcat_error_code(bus)[0] == '\0');
    CHECK_INT(zmqcat_put_start(bus, "jobs", 4, "a", 1, NULL), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_finish(bus, 5000), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_finish(bus, 5000), ZMQCAT_REFUSED);
    CHECK_INT(zmqcat_put_finish(bus, 5000), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_finish(bus, 5000), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_ping(bus, 5000), ZMQCAT_OK);
    stop();
}

static void script_puts_lost(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    hub_ok(h);
    CHECK(hub_read(h)); /* and the end, without an answer */
}

TEST(a_started_put_without_an_answer_is_told)
{
    CHECK_INT(start(script_puts_lost), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_start(bus, "jobs", 4, "a", 1, NULL), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_start(bus, "jobs", 4, "b", 1, NULL), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_finish(bus, 5000), ZMQCAT_OK);
    CHECK_INT(zmqcat_put_finish(bus, 5000), ZMQCAT_CLOSED);
    stop();
}

static void script_ask(struct hub *h)
{
    char second[ID_MAX];
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ready\""));
    CHECK(hub_saw(h, "\"lease\":7"));
    CHECK(!hub_saw(h, "\"wait\""));
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"wait\":0.2"));
    snprintf(second, sizeof second, "%s", h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ack\""));
    /* Both outcomes come before the answer of another call. */
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s1:a\",\"body\":\"eA==\",\"delivery\":\"d1\"}");
    hub_send(h, "{\"op\":\"err\",\"id\":\"%s\",\"error\":\"mailbox: empty\",\"code\":\"empty\"}",
             second);
    hub_ok(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"take\""));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s1:b\",\"body\":\"eQ==\"}");
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"take\""));
    hub_send(h, "{\"op\":\"msg\",\"id\":\"s1:c\",\"body\":\"eg==\"}");
}

TEST(what_was_asked_for_comes_by_next_also_after_other_calls)
{
    struct zmqcat_msg m;
    CHECK_INT(start(script_ask), ZMQCAT_OK);
    CHECK_INT(zmqcat_ask(bus, "put", "jobs", 4, 0, -1), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_ask(bus, "ready", "jobs", 4, 7, -1), ZMQCAT_OK);
    CHECK_INT(zmqcat_ask(bus, "ready", "jobs", 4, 0, 200), ZMQCAT_OK);
    CHECK_INT(zmqcat_ready(bus, "jobs", 4, 0, &m), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_sub(bus, "a", 1), ZMQCAT_USAGE);
    CHECK_INT(zmqcat_ack(bus, "d0", 2), ZMQCAT_OK);
    CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_OK);
    CHECK(m.delivery_len == 2 && memcmp(m.delivery, "d1", 2) == 0);
    CHECK(m.payload_len == 1 && memcmp(m.payload, "x", 1) == 0);
    CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_TIMEOUT);
    CHECK(strcmp(zmqcat_error_code(bus), "empty") == 0);
    /* All were given: the other calls work again. */
    CHECK_INT(zmqcat_take(bus, "jobs", 4, -1, &m), ZMQCAT_OK);
    CHECK_INT(zmqcat_ask(bus, "take", "jobs", 4, 0, -1), ZMQCAT_OK);
    CHECK_INT(zmqcat_next(bus, 5000, &m), ZMQCAT_OK);
    CHECK(m.payload_len == 1 && memcmp(m.payload, "z", 1) == 0);
    stop();
}

/* Gives up at its third call. */
static int gives_up(void *data, struct pollfd *waits, int timeout_ms)
{
    int *calls = data;
    CHECK(waits->fd >= 0 && timeout_ms != 0);
    if (++*calls < 3)
        return 0;
    errno = ECANCELED;
    return -1;
}

TEST(an_open_ends_when_the_caller_gives_up)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct zmqcat *b = NULL;
    int calls = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(un.sun_path, sizeof un.sun_path, "/tmp/zmqcat-silent-%ld", (long)getpid());
    CHECK(bind(fd, (const struct sockaddr *)&un, sizeof un) == 0 && listen(fd, 1) == 0);
    CHECK_INT(zmqcat_open_polled(un.sun_path, "me", 60000, gives_up, &calls, &b), ZMQCAT_STOPPED);
    CHECK_INT(calls, 3);
    CHECK_INT(zmqcat_fd(b), -1);
    zmqcat_free(b);
    unlink(un.sun_path);
    close(fd);
}

static void script_slow(struct hub *h)
{
    hub_hello(h);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ack\""));
    char late[ID_MAX];
    memcpy(late, h->id, sizeof late);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"ping\""));
    hub_send(h, "{\"op\":\"ok\",\"id\":\"%s\"}", late);
    hub_send(h, "{\"op\":\"pong\",\"id\":\"%s\"}", h->id);
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"take\""));
}

TEST(a_call_that_was_given_up_leaves_the_connection_unless_it_takes)
{
    struct zmqcat_msg m;
    int calls = 0;
    CHECK_INT(start(script_slow), ZMQCAT_OK);
    bus->poll = gives_up;
    bus->poll_data = &calls;
    CHECK_INT(zmqcat_ack(bus, "d1", 2), ZMQCAT_STOPPED);
    CHECK_INT(zmqcat_poll(bus), ZMQCAT_OK); /* it does not wait */
    bus->poll = NULL;
    CHECK_INT(zmqcat_ping(bus, 5000), ZMQCAT_OK);
    bus->poll = gives_up;
    CHECK_INT(zmqcat_take(bus, "jobs", 4, -1, &m), ZMQCAT_STOPPED);
    CHECK_INT(calls, 4);
    CHECK_INT(zmqcat_fd(bus), -1);
    stop();
}
