/* reload and revoke by the control socket, and the keys that are told because they were refused. */
#define _GNU_SOURCE
#include "mesh.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

#define KEY "nodekey:1111111111111111111111111111111111111111111111111111111111111111"
#define REVOKE "{\"op\":\"revoke\",\"id\":\"r\",\"name\":\"" KEY "\"}"
#define RELOAD "{\"op\":\"reload\",\"id\":\"l\"}"

/* A hub that allows one key. */
static struct node *listed_hub(uint8_t seed, const struct zc_key *allow)
{
    struct node *n = mesh_node(seed);
    mesh_serve(n, (struct zc_hub_tunnel_config){
                      .psk = &mesh_psk, .allow_on = true, .allow = allow, .allow_count = 1});
    return n;
}

TEST(reload)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct node *both[] = {hub, spoke};
    for (int i = 0; i < 2; i++) {
        struct local *c = mesh_session(both[i], true);
        HAS(mesh_call(c, RELOAD), "\"op\":\"ok\",\"id\":\"l\",\"result\":{}");
        both[i]->reload_why = "--allow-file /x: line 3 is no key";
        const char *got = mesh_call(c, RELOAD);
        HAS(got, "\"op\":\"err\"");
        HAS(got, "\"id\":\"l\"");
        HAS(got, "line 3 is no key");
        HAS(got, "\"code\":\"invalid\"");
        CHECK_INT(both[i]->reloads, 2);
        mesh_free(c);
    }
    /* what nobody waits for */
    zc_hub_reloaded(hub->hub, mesh_now, NULL);
    zc_hub_reloaded(hub->hub, mesh_now, "x");
    mesh_end();
}

TEST(revoke)
{
    mesh_start();
    struct node *hub = listed_hub(1, &mesh[0].public);
    struct local *c = mesh_session(hub, true);
    const char *got = mesh_call(c, REVOKE);
    HAS(got, "\"op\":\"ok\",\"id\":\"r\",\"result\":{}");
    CHECK_INT(hub->revokes, 1);
    CHECK_INT(hub->revoked.b[0], 0x11);
    CHECK_INT(hub->revoked.b[31], 0x11);
    hub->revoke_warning = "until the next start";
    HAS(mesh_call(c, REVOKE), "\"result\":{\"warning\":\"until the next start\"}");
    hub->revoke_why = "disk full";
    got = mesh_call(c, REVOKE);
    HAS(got, "disk full");
    HAS(got, "\"code\":\"storage\"");
    CHECK_INT(hub->revokes, 3);
    mesh_free(c);
    mesh_end();
}

TEST(keys_that_are_none)
{
    static const char *const names[] = {
        ",\"name\":\"\"",
        ",\"name\":\"nodekey:12\"",
        ",\"name\":\"nodekey:\"",
        ",\"name\":\"" KEY "1\"",
        ",\"name\":\"1111111111111111111111111111111111111111111111111111111111111111\"",
        "",
    };
    mesh_start();
    struct node *hub = listed_hub(1, &mesh[0].public), *open_hub = mesh_hub(2);
    struct local *c = mesh_session(hub, true), *o = mesh_session(open_hub, true);
    char json[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(json, sizeof(json), "{\"op\":\"revoke\",\"id\":\"r\"%s}", names[i]);
        HAS(mesh_call(c, json), "\"code\":\"invalid\"");
        HAS(mesh_call(o, json), "\"code\":\"invalid\"");
    }
    CHECK_INT(hub->revokes, 0);
    mesh_free(c);
    mesh_free(o);
    mesh_end();
}

/* Without a list a spoke that is shut out comes back with another key. */
TEST(no_list_no_revoke)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *c = mesh_session(hub, true), *s = mesh_session(spoke, true);
    struct local *a = mesh_client(spoke, 7);
    const char *got = mesh_call(c, REVOKE);
    HAS(got, "\"code\":\"denied\"");
    HAS(got, "zmqcat rotate");
    HAS(mesh_call(s, REVOKE), "\"code\":\"unknown_op\"");
    HAS(mesh_call(a, REVOKE), "\"code\":\"unknown_op\"");
    CHECK_INT(hub->revokes, 0);
    mesh_free(a);
    mesh_free(c);
    mesh_free(s);
    mesh_end();
}

/* Two administrators ask before the host has done what the first one wants. */
TEST(one_at_a_time)
{
    mesh_start();
    struct node *hub = listed_hub(1, &mesh[0].public);
    mesh_run(2000);
    struct local *a = mesh_session(hub, true), *b = mesh_session(hub, true);
    mesh_send(a, RELOAD);
    mesh_send(b, REVOKE);
    mesh_send(b, "{\"op\":\"rotate\",\"id\":\"t\"}");
    mesh_run_local(a);
    mesh_run_local(b);
    HAS(mesh_recv(a, 10), "\"op\":\"ok\",\"id\":\"l\"");
    HAS(mesh_recv(b, 10), "another one is under way");
    HAS(mesh_recv(b, 10), "another one is under way");
    HAS(mesh_call(b, REVOKE), "\"op\":\"ok\",\"id\":\"r\"");
    /* and who is gone gets no answer */
    mesh_send(a, RELOAD);
    mesh_run_local(a);
    mesh_free(a);
    mesh_run(2);
    HAS(mesh_call(b, RELOAD), "\"op\":\"ok\",\"id\":\"l\"");
    CHECK_INT(hub->reloads, 3);
    mesh_free(b);
    mesh_end();
}

TEST(who_is_refused_is_told_once)
{
    mesh_start();
    struct node *in = mesh_spoke(2), *out = mesh_spoke(3), *hub = listed_hub(1, &in->public);
    mesh_join(in, hub, &mesh_psk);
    mesh_join(out, hub, &mesh_psk);
    mesh_run(60000);
    CHECK_INT(hub->refusals, 1);
    CHECK(memcmp(&hub->refused, &out->public, sizeof(out->public)) == 0);
    struct zc_tunnel_status st;
    zc_tunnel_status(zc_hub_tunnel(hub->hub), &st);
    CHECK(st.refused > 5);
    zc_tunnel_status(zc_hub_tunnel(out->hub), &st);
    CHECK_INT(st.state, ZC_TUNNEL_MEOW); /* it hears nothing */
    mesh_end();
}
