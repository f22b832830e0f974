/* A hub's side of the tunnel: sessions of spokes, back-pressure, tokens, keys, its end. */
#define _GNU_SOURCE
#include "mesh.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

TEST(token_only_after_the_login)
{
    mesh_start();
    mesh_relay.up = false;
    struct node *hub = mesh_hub(1);
    struct local *c = mesh_session(hub, true);
    char text[ZC_HUB_TOKEN_MAX], why[ZC_TOKEN_WHY_MAX];
    mesh_run(1000);
    CHECK_INT(hub->online, 0);
    mesh_relay.up = true;
    mesh_run(6000);
    CHECK_INT(hub->online, 1);
    CHECK_INT(zc_hub_token(hub->hub, text), 0);
    static struct zc_token token;
    CHECK_INT(zc_token_decode(zc_slice_str(text), &token, why), 0);
    CHECK(memcmp(token.node_key.b, hub->public.b, 32) == 0);
    CHECK(token.has_psk && memcmp(token.psk.b, mesh_psk.b, 32) == 0);
    CHECK_INT(token.nodes_count, 1);
    CHECK(strcmp(token.nodes[0].host, "relay.example") == 0);
    CHECK_INT(zc_token_joinable(&token, why), 0);
    HAS(mesh_call(c, "{\"op\":\"token\",\"id\":\"t\"}"), text);
    for (uint32_t i = 0; i < hub->lines; i++)
        LACKS(hub->line[i], text + 20); /* it is a secret */
    mesh_free(c);
    mesh_end();
}

TEST(status_and_path)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *c = mesh_session(hub, true), *a = mesh_client(spoke, 7);
    char key[ZC_SECRET_TEXT_MAX], json[256];
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    const char *got = mesh_call(c, "{\"op\":\"status\",\"id\":\"s\"}");
    HAS(got, "\"tunnel\":{\"state\":\"online\",\"relay\":\"relay.example:443\"");
    HAS(got, "\"sessions\":1,");
    zc_secret_encode(ZC_SECRET_NODE_KEY, spoke->public.b, key);
    HAS(got, key);
    HAS(got, "\"path\":\"relay\"");
    LACKS(got, "\"rx\":0,");
    snprintf(json, sizeof(json), "{\"op\":\"path\",\"id\":\"p\",\"name\":\"%s\"}", key);
    HAS(mesh_call(c, json), "\"path\":\"relay\",\"why\":");
    HAS(mesh_call(c, "{\"op\":\"path\",\"name\":\"x\",\"id\":\"p\"}"), "\"code\":\"invalid\"");
    snprintf(json, sizeof(json), "{\"op\":\"path\",\"id\":\"p\",\"name\":\"nodekey:%064d\"}", 7);
    HAS(mesh_call(c, json), "no such peer");
    /* only the administrator may ask */
    HAS(mesh_call(a, "{\"op\":\"token\",\"id\":\"t\"}"), "unknown op");
    HAS(mesh_call(a, "{\"op\":\"rotate\",\"id\":\"t\"}"), "unknown op");
    mesh_free(a);
    mesh_free(c);
    mesh_end();
}

TEST(rotate)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *c = mesh_session(hub, true), *a = mesh_client(spoke, 7);
    char old[ZC_HUB_TOKEN_MAX], now[ZC_HUB_TOKEN_MAX];
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    CHECK_INT(zc_hub_token(hub->hub, old), 0);
    /* what cannot be saved is not taken into use */
    hub->psk_why = "disk full";
    const char *got = mesh_call(c, "{\"op\":\"rotate\",\"id\":\"r\"}");
    HAS(got, "\"code\":\"storage\"");
    HAS(got, "disk full");
    CHECK_INT(zc_hub_token(hub->hub, now), 0);
    CHECK(strcmp(old, now) == 0);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"2\"}"), "pong");
    hub->psk_why = NULL;
    got = mesh_call(c, "{\"op\":\"rotate\",\"id\":\"r\"}");
    CHECK_INT(zc_hub_token(hub->hub, now), 0);
    HAS(got, "\"id\":\"r\"");
    HAS(got, now);
    CHECK(strcmp(old, now) != 0);
    struct zc_hub_stats st;
    mesh_run(2);
    zc_hub_stats(hub->hub, &st);
    CHECK_INT(st.sessions, 0);
    /* the old token is of no use, the new one is */
    struct node *late = mesh_joined(3, hub), *good = mesh_spoke(4);
    mesh_join(good, hub, &hub->psk);
    struct local *b = mesh_client(good, 7);
    HAS(mesh_call(b, "{\"op\":\"ping\",\"id\":\"3\"}"), "pong");
    mesh_run(5000);
    CHECK(mesh_has(late, "pre-shared key"));
    mesh_free(a);
    mesh_free(b);
    mesh_free(c);
    mesh_end();
}

TEST(no_psk)
{
    mesh_start();
    struct node *hub = mesh_node(1), *spoke = mesh_spoke(2);
    mesh_serve(hub, (struct zc_hub_tunnel_config){.psk = NULL});
    mesh_join(spoke, hub, NULL);
    struct local *c = mesh_session(hub, true), *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    const char *got = mesh_call(c, "{\"op\":\"rotate\",\"id\":\"r\"}");
    HAS(got, "--no-psk");
    HAS(got, "\"code\":\"denied\"");
    CHECK_INT(hub->psks, 0);
    mesh_free(a);
    mesh_free(c);
    mesh_end();
}

TEST(allow_list)
{
    mesh_start();
    struct node *hub = mesh_node(1), *in = mesh_spoke(2), *out = mesh_spoke(3);
    mesh_serve(hub,
               (struct zc_hub_tunnel_config){
                   .psk = &mesh_psk, .allow_on = true, .allow = &in->public, .allow_count = 1});
    mesh_join(in, hub, &mesh_psk);
    mesh_join(out, hub, &mesh_psk);
    struct local *a = mesh_client(in, 7), *b = mesh_client(out, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    mesh_send(b, "{\"op\":\"ping\",\"id\":\"1\"}");
    CHECK(MESH_UNTIL(b, b->closed, 31000) >= 0);
    HAS(mesh_recv(b, 0), "hub unreachable: it does not answer");
    mesh_free(b);
    /* both are allowed now, without a restart */
    struct zc_key both[] = {out->public, in->public};
    CHECK_INT(zc_tunnel_set_allow(zc_hub_tunnel(hub->hub), mesh_now, true, both, 2), 0);
    b = mesh_client(out, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"2\"}"), "pong");
    mesh_send(b, "{\"op\":\"ping\",\"id\":\"2\"}");
    HAS(mesh_recv(b, 6000), "pong");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

TEST(fifty_spokes)
{
    mesh_start();
    mesh_heartbeat_ms = 5000;
    struct node *hub = mesh_hub(1);
    struct local *at[50];
    char json[128], want[32];
    for (uint8_t i = 0; i < 50; i++)
        at[i] = mesh_client(mesh_joined((uint8_t)(10 + i), hub), 7);
    for (int i = 0; i < 50; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"take\",\"id\":\"t\",\"name\":\"q%d\"}", i);
        mesh_send(at[i], json);
        mesh_run_local(at[i]);
    }
    for (int i = 0; i < 50; i++) {
        snprintf(json, sizeof(json), "{\"op\":\"put\",\"name\":\"q%d\",\"text\":\"x%d\"}",
                 (i + 1) % 50, i);
        mesh_send(at[i], json);
        mesh_run_local(at[i]);
    }
    for (int i = 0; i < 50; i++) {
        const char *got = mesh_recv(at[i], 10000);
        if (strstr(got, "\"op\":\"ok\"") != NULL)
            got = mesh_recv(at[i], 10000);
        snprintf(want, sizeof(want), "\"text\":\"x%d\"", (i + 49) % 50);
        HAS(got, want);
    }
    struct zc_hub_stats st;
    zc_hub_stats(hub->hub, &st);
    CHECK_INT(st.sessions, 50);
    for (int i = 0; i < 50; i++)
        mesh_free(at[i]);
    /* A reset that the relay drops is found out by the next heartbeat. */
    mesh_run(6000);
    zc_hub_stats(hub->hub, &st);
    CHECK_INT(st.sessions, 0);
    mesh_end();
}

/* A put of 1 MiB and its way back, base64 both times. */
TEST(large_payload)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    size_t len = 1048576;
    char *json = malloc(len + 100);
    size_t head = (size_t)sprintf(json, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"");
    memset(json + head, 'y', len);
    strcpy(json + head + len, "\"}");
    HAS(mesh_call(a, json), "\"op\":\"ok\"");
    mesh_send(a, "{\"op\":\"take\",\"name\":\"q\"}");
    const char *got = mesh_recv(a, 10000);
    HAS(got, "\"op\":\"msg\"");
    CHECK(strlen(got) > len);
    free(json);
    mesh_free(a);
    mesh_end();
}

/* A spoke's client that asks and asks and never reads: the hub stops reading from it, and its
 * memory stays bounded. */
TEST(slow_reader_is_bounded)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7), *b = mesh_session(hub, false);
    struct zc_hub_stats st;
    char json[4200];
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    int n = snprintf(json, sizeof(json), "{\"op\":\"hello\",\"name\":\"x\",\"id\":\"");
    memset(json + n, 'i', 1000);
    strcpy(json + n + 1000, "\"}");
    a->slow = true;
    for (int i = 0; i < 60000; i++)
        mesh_send(a, json);
    uint64_t most = 0;
    for (int ms = 0; ms < 8000; ms++) {
        mesh_step();
        mesh_run_local(a);
        zc_hub_stats(hub->hub, &st);
        most = st.memory_bytes > most ? st.memory_bytes : most;
    }
    CHECK(a->out.len > (1 << 20)); /* it was not read */
    CHECK(most < (24 << 20));
    HAS(mesh_call(b, "{\"op\":\"ping\",\"id\":\"2\"}"), "pong"); /* others go on */
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

/* What a waiting spoke is told when the hub stops; and the hub ends only after it was told. */
TEST(stop_tells_the_spokes)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    mesh_send(a, "{\"op\":\"take\",\"name\":\"q\",\"id\":\"t\"}");
    mesh_run_local(a);
    mesh_run(100);
    zc_hub_stop(hub->hub, mesh_now);
    CHECK(MESH_UNTIL(a, hub->stopped, 2500) >= 0);
    HAS(mesh_recv(a, 0), "mailbox: closed");
    CHECK(a->eof);
    mesh_free(a);
    mesh_end();
}

/* A spoke vanishes without a word: what it held comes back when TCP finds out. */
TEST(vanished_spoke)
{
    mesh_start();
    mesh_heartbeat_ms = 5000;
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7), *b = mesh_session(hub, false);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    HAS(mesh_call(b, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}"), "ok");
    HAS(mesh_call(a, "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":86400}"), "msg");
    mesh_kill(spoke);
    a->closed = true;
    mesh_run(500);
    HAS(mesh_call(b, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "mailbox: empty");
    mesh_free(b);
    mesh_run(70000);
    b = mesh_session(hub, false);
    HAS(mesh_call(b, "{\"op\":\"take\",\"name\":\"q\",\"wait\":0}"), "\"text\":\"x\"");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}
