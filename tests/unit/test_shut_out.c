/* Spokes that a hub shuts out: their sessions end at once, and they hear of it. */
#define _GNU_SOURCE
#include "mesh.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)

static uint64_t sessions(const struct node *hub)
{
    struct zc_hub_stats st;
    zc_hub_stats(hub->hub, &st);
    return st.sessions;
}

static void rotate(struct node *hub)
{
    struct local *c = mesh_session(hub, true);
    HAS(mesh_call(c, "{\"op\":\"rotate\",\"id\":\"r\"}"), "\"token\":");
    mesh_free(c);
}

static void allow(struct node *hub, const struct node *only)
{
    CHECK_INT(zc_tunnel_set_allow(zc_hub_tunnel(hub->hub), mesh_now, true, &only->public, 1), 0);
}

static const char *state(struct node *spoke)
{
    struct local *c = mesh_session(spoke, true);
    const char *got = mesh_call(c, "{\"op\":\"status\",\"id\":\"s\"}");
    mesh_free(c);
    return got;
}

TEST(rotate_ends_sessions_and_gives_leases_back)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7), *b = mesh_session(hub, false);
    HAS(mesh_call(b, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}"), "ok");
    HAS(mesh_call(a, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":86400}"), "msg");
    rotate(hub);
    int64_t took = MESH_UNTIL(a, a->closed, 1000);
    CHECK(took >= 0 && took < 100);
    CHECK(a->reset);
    HAS(mesh_call(b, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "\"text\":\"x\"");
    mesh_run(500);
    CHECK(mesh_has(spoke, "pre-shared key")); /* it asked, and knows why */
    mesh_join(spoke, hub, &hub->psk);
    mesh_free(a);
    a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

TEST(a_spoke_without_connections_finds_out_with_its_first)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    mesh_run(3000);
    HAS(state(spoke), "\"state\":\"up\"");
    rotate(hub);
    mesh_run(10000);
    struct local *a = mesh_client(spoke, 7);
    CHECK(MESH_UNTIL(a, mesh_has(spoke, "pre-shared key"), 2000) >= 0);
    mesh_free(a);
    mesh_end();
}

TEST(a_key_that_is_off_the_list)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *out = mesh_joined(2, hub), *in = mesh_joined(3, hub);
    struct local *a = mesh_client(out, 7), *b = mesh_client(in, 7), *c = mesh_session(hub, false);
    struct local *f = mesh_client(out, 8081);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    HAS(mesh_call(b, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    mesh_write(f, "12345", 5);
    CHECK(MESH_UNTIL(f, f->got.len == 5, 1000) >= 0);
    allow(hub, in);
    /* what comes from now on counts no more */
    mesh_send(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"late\"}");
    int64_t took = MESH_UNTIL(a, a->closed, 1000);
    CHECK(took >= 0 && took < 100);
    CHECK(f->closed && f->reset);
    CHECK_INT(a->got.len, 0);
    CHECK_INT(sessions(hub), 2);
    HAS(mesh_call(c, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "mailbox: empty");
    HAS(mesh_call(b, "{\"op\":\"ping\",\"id\":\"2\"}"), "pong");
    mesh_run(4500);
    CHECK(mesh_has(out, "hub unreachable: it does not answer"));
    HAS(state(out), "\"state\":\"joining\"");
    /* and back: also while it was still on its way out */
    zc_hub_tick(hub->hub, mesh_now);
    allow(hub, out);
    mesh_free(a);
    a = mesh_client(out, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"3\"}"), "pong");
    mesh_free(a);
    mesh_free(b);
    mesh_free(c);
    mesh_free(f);
    mesh_end();
}

TEST(back_before_it_had_left)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub), *other = mesh_spoke(3);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    allow(hub, other);
    mesh_run(3);
    allow(hub, spoke);
    mesh_free(a);
    mesh_run(50);
    a = mesh_client(spoke, 7);
    int64_t took =
        (mesh_send(a, "{\"op\":\"ping\",\"id\":\"2\"}"), MESH_UNTIL(a, a->got.len > 0, 5000));
    CHECK(took >= 0 && took < 3000);
    mesh_free(a);
    mesh_end();
}

/* More resets than fit any queue on the way. */
TEST(many_connections_of_many_spokes)
{
    enum { SPOKES = 20, EACH = 20 };
    mesh_start();
    struct node *hub = mesh_hub(1);
    struct local *at[SPOKES * EACH];
    for (int i = 0; i < SPOKES; i++) {
        struct node *spoke = mesh_joined((uint8_t)(10 + i), hub);
        mesh_run(200); /* the relay's queues are short */
        for (int j = 0; j < EACH; j++)
            at[i * EACH + j] = mesh_client(spoke, 7);
    }
    mesh_run(2000);
    CHECK_INT(sessions(hub), SPOKES * EACH);
    rotate(hub);
    mesh_run(100);
    CHECK_INT(sessions(hub), 0);
    int closed = 0;
    for (int i = 0; i < SPOKES * EACH; i++) {
        closed += at[i]->closed;
        mesh_free(at[i]);
    }
    CHECK_INT(closed, SPOKES * EACH);
    mesh_run(1500); /* and they are forgotten */
    mesh_end();
}

/* The relay is away at that moment: the hub forgets at once, the spoke finds out afterwards. */
TEST(while_the_relay_is_away)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    relay_kill(&mesh_relay);
    mesh_run(1000);
    rotate(hub);
    CHECK_INT(sessions(hub), 0);
    mesh_relay.up = true;
    mesh_run(10000);
    CHECK(mesh_has(spoke, "pre-shared key"));
    mesh_free(a);
    mesh_end();
}
