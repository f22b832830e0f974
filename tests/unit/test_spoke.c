/* Spokes: local connections through the tunnel, held, ended, half-closed, forwarded. */
#define _GNU_SOURCE
#include "mesh.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)

TEST(put_here_take_there)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7), *b = mesh_session(hub, false);
    mesh_send(b, "{\"op\":\"take\",\"name\":\"q\",\"id\":\"t\"}");
    mesh_run_local(b);
    HAS(mesh_call(a, "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"text\":\"hello\"}"),
        "\"op\":\"ok\"");
    const char *got = mesh_recv(b, 1000);
    HAS(got, "\"text\":\"hello\"");
    HAS(got, "\"by\":\"nodekey:"); /* the spoke's identity */
    HAS(mesh_call(a, "{\"op\":\"hello\",\"id\":\"h\"}"), "\"from\":\"[fd7a:115c:a1e0:");
    HAS(mesh_call(b, "{\"op\":\"put\",\"name\":\"r\",\"text\":\"back\"}"), "\"op\":\"ok\"");
    HAS(mesh_call(a, "{\"op\":\"take\",\"name\":\"r\"}"), "\"text\":\"back\"");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

TEST(half_close_is_passed_on)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    mesh_send(a, "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"text\":\"x\"}");
    mesh_send(a, "{\"op\":\"take\",\"id\":\"2\",\"name\":\"q\"}");
    a->shut = true;
    CHECK(MESH_UNTIL(a, a->closed, 5000) >= 0);
    CHECK(!a->reset);
    HAS(mesh_recv(a, 0), "\"op\":\"ok\"");
    HAS(mesh_recv(a, 0), "\"op\":\"msg\"");
    mesh_free(a);
    /* the hub ends a session after a bad frame: the reason arrives, then the end */
    a = mesh_client(spoke, 7);
    mesh_write(a, "nonsense and more of it", 23);
    CHECK(MESH_UNTIL(a, a->eof, 5000) >= 0);
    HAS(mesh_recv(a, 0), "\"code\":\"bad_frame\"");
    CHECK(!a->closed);
    a->shut = true;
    CHECK(MESH_UNTIL(a, a->closed, 5000) >= 0);
    CHECK(!a->reset);
    mesh_free(a);
    mesh_end();
}

TEST(local_reset_ends_the_session)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7), *b = mesh_session(hub, false);
    HAS(mesh_call(b, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}"), "ok");
    HAS(mesh_call(a, "{\"op\":\"reserve\",\"name\":\"q\"}"), "msg");
    mesh_leave(a, true);
    mesh_run(100);
    struct zc_hub_stats st;
    zc_hub_stats(hub->hub, &st);
    CHECK_INT(st.sessions, 1);
    HAS(mesh_call(b, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "\"text\":\"x\"");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

TEST(held_until_a_token_and_a_hub_are_there)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_spoke(2);
    struct local *a = mesh_client(spoke, 7);
    mesh_send(a, "{\"op\":\"ping\",\"id\":\"1\"}");
    mesh_run_local(a);
    mesh_run(5000);
    CHECK_INT(a->got.len, 0);
    mesh_join(spoke, hub, &mesh_psk);
    HAS(mesh_recv(a, 2000), "\"op\":\"pong\"");
    mesh_free(a);
    mesh_end();
}

/* The relay keeps 32 packets for a node. */
TEST(many_that_are_held_are_opened_soon)
{
    enum { MANY = 400 };
    static struct local *held[MANY];
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_spoke(2);
    for (int i = 0; i < MANY; i++) {
        held[i] = mesh_client(spoke, 7);
        mesh_send(held[i], "{\"op\":\"ping\",\"id\":\"1\"}");
        mesh_run_local(held[i]);
    }
    mesh_leave(held[0], true);
    mesh_join(spoke, hub, &mesh_psk);
    for (int ms = 0; ms < 4000; ms++) {
        mesh_run(1);
        for (int i = 1; i < MANY; i++)
            mesh_run_local(held[i]);
    }
    for (int i = 1; i < MANY; i++)
        HAS(mesh_recv(held[i], 0), "\"op\":\"pong\"");
    for (int i = 0; i < MANY; i++)
        mesh_free(held[i]);
    mesh_end();
}

TEST(given_up_after_the_wait)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    mesh_kill(hub);
    struct local *a = mesh_client(spoke, 7), *f = mesh_client(spoke, 8081);
    mesh_send(a, "{\"op\":\"ping\",\"id\":\"1\"}");
    int64_t took = MESH_UNTIL(a, a->closed, 40000);
    CHECK(took > 29900 && took < 30100);
    CHECK(!a->reset);
    const char *got = mesh_recv(a, 0);
    HAS(got, "\"error\":\"hub unreachable: ");
    HAS(got, "\"code\":\"unavailable\"");
    CHECK(f->closed && f->reset);
    mesh_free(a);
    mesh_free(f);
    mesh_end();
}

/* The hub leaves, and in the moment in which the relay is dialled anew for that a wait ends. */
TEST(the_relay_is_not_blamed_for_the_hub)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(3, hub);
    mesh_run(2000);
    struct zc_hub *hangs = hub->hub;
    hub->hub = NULL;
    struct local *a = mesh_client(spoke, 7);
    CHECK(MESH_UNTIL(a, a->closed, 29990) < 0);
    hub->hub = hangs;
    mesh_kill(hub);
    CHECK(MESH_UNTIL(a, a->closed, 50) >= 0);
    CHECK(spoke->conn < 0);
    HAS(mesh_recv(a, 0), "hub unreachable: it does not answer: not running");
    mesh_free(a);
    mesh_end();
}

TEST(wrong_psk_is_said)
{
    mesh_start();
    struct zc_secret other = {{3}};
    struct node *hub = mesh_hub(1), *spoke = mesh_spoke(2);
    mesh_join(spoke, hub, &other);
    struct local *a = mesh_client(spoke, 7);
    CHECK(MESH_UNTIL(a, a->closed, 40000) >= 0);
    HAS(mesh_recv(a, 0), "pre-shared key");
    CHECK(mesh_has(spoke, "pre-shared key"));
    mesh_free(a);
    mesh_end();
}

TEST(hub_restarts)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    mesh_send(a, "{\"op\":\"take\",\"name\":\"q\"}"); /* idle when it happens */
    CHECK(MESH_UNTIL(a, a->out.len == 0, 3000) >= 0);
    mesh_run(500);
    mesh_kill(hub);
    mesh_run(2000);
    CHECK(!a->closed);
    struct local *b = mesh_client(spoke, 7); /* held */
    mesh_send(b, "{\"op\":\"ping\",\"id\":\"1\"}");
    mesh_run_local(b);
    mesh_run(1000);
    CHECK_INT(b->got.len, 0);
    mesh_serve(hub, (struct zc_hub_tunnel_config){.psk = &mesh_psk});
    int64_t took = MESH_UNTIL(b, b->got.len > 0, 10000);
    CHECK(took >= 0 && took <= 5000);
    HAS(mesh_recv(b, 0), "pong");
    CHECK(MESH_UNTIL(a, a->closed, 1000) >= 0);
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

TEST(open_connections_end_when_the_hub_stays_away)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    mesh_kill(hub);
    int64_t took = MESH_UNTIL(a, a->closed, 60000);
    CHECK(took > 29000 && took < 31000);
    mesh_free(a);
    mesh_end();
}

TEST(relay_blip_ends_nothing)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    relay_kill(&mesh_relay);
    mesh_run(4000);
    mesh_relay.up = true;
    mesh_send(a, "{\"op\":\"ping\",\"id\":\"2\"}");
    int64_t took = MESH_UNTIL(a, a->got.len > 0, 20000);
    CHECK(took >= 0 && took <= 10000);
    CHECK(!a->closed);
    CHECK_INT(hub->online, 2);
    mesh_free(a);
    mesh_end();
}

/* At most ten lines in the first minute, then one a minute. */
TEST(quiet_about_a_long_outage)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    mesh_run(2000);
    relay_kill(&mesh_relay);
    uint32_t before = spoke->lines;
    mesh_run(60000);
    CHECK(spoke->lines - before <= 10);
    CHECK(spoke->lines > before);
    before = spoke->lines;
    mesh_run(600000);
    CHECK(spoke->lines - before <= 10);
    mesh_relay.up = true;
    mesh_run(70000);
    CHECK(mesh_has(spoke, "the hub is reached"));
    mesh_end();
}

TEST(forwarded_port)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 8081);
    mesh_write(a, "echo me", 7);
    a->shut = true;
    CHECK(MESH_UNTIL(a, a->closed, 5000) >= 0);
    CHECK_INT(a->got.len, 7);
    CHECK(!a->reset);
    CHECK_INT(hub->services_count, 1);
    CHECK_INT(hub->services[0]->port, 8081);
    mesh_run(100);
    CHECK(hub->services[0]->closed);
    mesh_free(a);
    /* nobody listens behind it */
    hub->refuse = true;
    a = mesh_client(spoke, 8081);
    mesh_write(a, "x", 1);
    CHECK(MESH_UNTIL(a, a->closed || a->eof, 5000) >= 0);
    mesh_free(a);
    mesh_end();
}

TEST(bulk_both_ways_with_loss_and_slow_readers)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    mesh_relay.loss_permille = 5;
    size_t len = 8 << 20;
    uint8_t *data = malloc(len);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    struct local *a = mesh_client(spoke, 8081);
    mesh_write(a, data, len);
    a->shut = true;
    a->slow = true;
    int64_t took = MESH_UNTIL(a, a->closed, 60000);
    CHECK(took < 0); /* its own slowness holds all up, within bounds */
    a->slow = false;
    CHECK(MESH_UNTIL(a, a->closed, 600000) >= 0);
    CHECK_INT(a->got.len, len);
    CHECK(a->got.len == len && memcmp(a->got.data, data, len) == 0);
    free(data);
    mesh_free(a);
    mesh_end();
}

TEST(another_token)
{
    mesh_start();
    struct node *one = mesh_hub(1), *two = mesh_hub(3), *spoke = mesh_joined(2, one);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"one\"}"), "ok");
    mesh_join(spoke, two, &mesh_psk);
    CHECK(MESH_UNTIL(a, a->closed, 1000) >= 0);
    struct local *b = mesh_client(spoke, 7);
    HAS(mesh_call(b, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "mailbox: empty");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

/* The hub remembers the stamps of this key, whichever token it came with. */
TEST(joining_again_with_a_clock_that_was_set_back)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    for (int i = 0; i < 3; i++) {
        mesh_run(100);
        mesh_now.wall.ms -= 86400000;
        mesh_join(spoke, hub, &mesh_psk);
        struct local *a = mesh_client(spoke, 7);
        HAS(mesh_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"one\"}"), "ok");
        mesh_free(a);
    }
    mesh_end();
}

TEST(status_of_a_spoke)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_spoke(2);
    struct local *c = mesh_session(spoke, true);
    const char *got = mesh_call(c, "{\"op\":\"status\",\"id\":\"s\"}");
    HAS(got, "\"tunnel\":{\"state\":\"no token\",\"relay\":null");
    mesh_join(spoke, hub, &mesh_psk);
    mesh_run(2000);
    got = mesh_call(c, "{\"op\":\"status\",\"id\":\"s\"}");
    HAS(got, "\"state\":\"up\",\"relay\":\"relay.example:443\"");
    HAS(got, "\"path\":\"relay\",\"rtt_ms\":");
    HAS(got, "\"storage\":{\"state\":\"memory\"");
    char key[ZC_SECRET_TEXT_MAX], json[256];
    zc_secret_encode(ZC_SECRET_NODE_KEY, hub->public.b, key);
    HAS(got, key);
    snprintf(json, sizeof(json), "{\"op\":\"path\",\"id\":\"p\",\"name\":\"%s\"}", key);
    HAS(mesh_call(c, json), "\"path\":\"relay\"");
    HAS(mesh_call(c, "{\"op\":\"token\",\"id\":\"t\"}"), "unknown op");
    mesh_free(c);
    mesh_end();
}

TEST(trace_of_connections)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *c = mesh_session(spoke, true);
    HAS(mesh_call(c, "{\"op\":\"trace\",\"id\":\"t\",\"on\":true}"), "ok");
    struct local *a = mesh_client(spoke, 8081);
    mesh_write(a, "12345", 5);
    a->shut = true;
    CHECK(MESH_UNTIL(a, a->closed, 5000) >= 0);
    mesh_run(1);
    CHECK(mesh_has(spoke, "zmqcat c1 open port=8081"));
    CHECK(mesh_has(spoke, "zmqcat c1 close in=5 out=5"));
    mesh_free(a);
    mesh_free(c);
    mesh_end();
}
