/* What hubs and spokes log while the other side cannot be reached for three days: at most ten lines
 * in the first minute, then one a minute, whatever the reason is and however it changes; and that
 * they are back at once when it can be. */
#define _GNU_SOURCE
#include "mesh.h"

#define MINUTE 60000
#define DAYS_MS (3 * 24 * 60 * (int64_t)MINUTE)
#define HOURS_MS (6 * 60 * (int64_t)MINUTE) /* where much is computed */
#define BACK_MS 10000

/* Time until something is due, without the milliseconds in which nothing is. */
static void pass(int64_t ms)
{
    int64_t end = mesh_now.mono.ns + ms * ZC_NS_PER_MS;
    while (mesh_now.mono.ns < end) {
        int64_t next = end;
        for (int i = 0; i < 4 && mesh_now.mono.ns < end; i++)
            mesh_step(); /* a packet and its answers */
        for (uint32_t i = 0; i < mesh_count; i++) {
            if (mesh[i].hub == NULL)
                continue;
            next = zc_mono_min((struct zc_mono){next}, zc_hub_deadline(mesh[i].hub)).ns;
            next = zc_mono_min((struct zc_mono){next}, mesh[i].dial_at).ns;
        }
        int64_t skip = (next - mesh_now.mono.ns) / ZC_NS_PER_MS;
        if (skip > 1) {
            mesh_now.mono.ns += (skip - 1) * ZC_NS_PER_MS;
            mesh_now.wall.ms += skip - 1;
        }
    }
}

/* The outage begins now. each: what happens in every minute besides, or NULL. */
static void stays_quiet_for(struct node *n, int64_t limit_ms, void (*each)(struct node *n))
{
    uint32_t before = n->lines, most = 0;
    for (int64_t ms = 0; ms < limit_ms; ms += MINUTE) {
        uint32_t at = n->lines;
        struct zc_mono start = mesh_now.mono;
        if (each != NULL)
            each(n);
        pass(MINUTE - zc_mono_diff_ms(start, mesh_now.mono));
        if (ms == 0)
            CHECK(n->lines - at <= 10 && n->lines > before);
        else if (n->lines - at > most)
            most = n->lines - at;
    }
    CHECK(most <= 1);
}

static void stays_quiet(struct node *n, void (*each)(struct node *n))
{
    stays_quiet_for(n, DAYS_MS, each);
}

/* A program that asks meanwhile is told, and adds no line. */
static void program(struct node *n)
{
    struct local *c = mesh_client(n, 7);
    mesh_send(c, "{\"op\":\"ping\",\"id\":\"p\"}");
    mesh_run_local(c);
    pass(31000);
    mesh_run_local(c);
    CHECK(strstr(mesh_recv(c, 0), "hub unreachable: ") != NULL);
    mesh_free(c);
}

static void comes_back(struct node *spoke)
{
    struct local *a = mesh_client(spoke, 7);
    mesh_send(a, "{\"op\":\"ping\",\"id\":\"p\"}");
    int64_t took = MESH_UNTIL(a, a->got.len > 0, 2 * BACK_MS);
    CHECK(took >= 0 && took <= BACK_MS);
    CHECK(strstr(mesh_recv(a, 0), "pong") != NULL);
    mesh_free(a);
    uint32_t before = spoke->lines;
    pass(2 * MINUTE);
    CHECK(spoke->lines - before <= 3);
}

/* All of them: from the start on, and after they had been connected. */
static void no_relay(int dial, int64_t ms, bool first)
{
    mesh_start();
    mesh_dial = first ? MESH_DIAL_WELL : dial;
    mesh_dial_ms = ms;
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    uint32_t hub_lines;
    if (first)
        pass(10 * MINUTE);
    mesh_dial = dial;
    relay_kill(&mesh_relay);
    mesh_relay.up = true;
    hub_lines = hub->lines;
    stays_quiet(spoke, ms == 50 ? program : NULL);
    CHECK(hub->lines - hub_lines <= 10 + DAYS_MS / MINUTE);
    mesh_dial = MESH_DIAL_WELL;
    comes_back(spoke);
    mesh_end();
}

TEST(relay_refuses)
{
    no_relay(MESH_DIAL_FAILS, 0, false);
    no_relay(MESH_DIAL_FAILS, 0, true);
}

TEST(relay_takes_no_connection)
{
    no_relay(MESH_DIAL_FAILS, 1500, true);
}

TEST(relay_without_the_right_certificate)
{
    no_relay(MESH_DIAL_FAILS, 50, true);
}

TEST(relay_whose_name_is_not_resolved)
{
    no_relay(MESH_DIAL_FAILS, 5000, false);
}

TEST(relay_that_swallows_the_handshake)
{
    no_relay(MESH_DIAL_HANGS, 0, false);
    no_relay(MESH_DIAL_HANGS, 0, true);
}

TEST(relay_that_swallows_the_login)
{
    no_relay(MESH_DIAL_MUTE, 0, true);
}

/* The hub's own count. */
TEST(hub_without_a_relay)
{
    mesh_start();
    struct node *hub = mesh_hub(1);
    pass(10 * MINUTE);
    mesh_dial = MESH_DIAL_FAILS;
    mesh_dial_ms = 20;
    relay_kill(&mesh_relay);
    mesh_relay.up = true;
    stays_quiet(hub, NULL);
    uint32_t online = hub->online;
    mesh_dial = MESH_DIAL_WELL;
    pass(BACK_MS);
    CHECK(hub->online > online);
    mesh_end();
}

static void hang_up(struct node *n)
{
    for (int i = 0; i < 4; i++) {
        pass(12000); /* it counts as having stood */
        if (n->conn >= 0)
            relay_close(&mesh_relay, n->conn);
    }
}

TEST(relay_that_hangs_up_again_and_again)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    pass(10 * MINUTE);
    stays_quiet_for(spoke, HOURS_MS, hang_up);
    comes_back(spoke);
    stays_quiet_for(hub, HOURS_MS, hang_up);
    mesh_end();
}

TEST(hub_that_is_not_there)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    pass(10 * MINUTE);
    mesh_kill(hub);
    stays_quiet(spoke, program);
    mesh_serve(hub, (struct zc_hub_tunnel_config){.psk = &mesh_psk});
    comes_back(spoke);
    mesh_end();
}

/* It keeps its connection to the relay, and does nothing. */
TEST(hub_that_hangs)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    pass(10 * MINUTE);
    struct zc_hub *hangs = hub->hub;
    hub->hub = NULL;
    stays_quiet(spoke, program);
    hub->hub = hangs;
    comes_back(spoke);
    mesh_end();
}

TEST(hub_with_another_secret)
{
    mesh_start();
    struct zc_secret other = {{3}};
    struct node *hub = mesh_hub(1), *spoke = mesh_spoke(2);
    mesh_join(spoke, hub, &other);
    stays_quiet_for(spoke, HOURS_MS, program);
    mesh_join(spoke, hub, &mesh_psk);
    comes_back(spoke);
    mesh_end();
}

TEST(hub_that_does_not_allow_it)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub), *other = mesh_spoke(3);
    pass(10 * MINUTE);
    struct zc_tunnel *t = zc_hub_tunnel(hub->hub);
    CHECK_INT(zc_tunnel_set_allow(t, mesh_now, true, &other->public, 1), 0);
    stays_quiet(spoke, program);
    CHECK_INT(zc_tunnel_set_allow(t, mesh_now, true, &spoke->public, 1), 0);
    comes_back(spoke);
    mesh_end();
}

/* As a host asks for the map: after 1, 2, 4 … 60 s, told another reason each time. */
static int64_t map_pause_s, map_left_s;
static uint32_t map_tries;

static void ask_for_the_map(struct node *n)
{
    char text[600];
    for (int s = 0; s < 60; s++, map_left_s--) {
        if (map_left_s == 0) {
            int len = snprintf(text, sizeof(text), "DERP map http://x: reason %u ", ++map_tries);
            memset(text + len, 'x', sizeof(text) - (size_t)len - 1);
            text[sizeof(text) - 1] = '\0';
            zc_hub_say_warning(n->hub, mesh_now, text);
            map_left_s = map_pause_s;
            map_pause_s = map_pause_s * 2 < 60 ? map_pause_s * 2 : 60;
        }
        pass(1000);
    }
}

TEST(map_that_cannot_be_fetched)
{
    mesh_start();
    struct node *spoke = mesh_spoke(2), *hub = mesh_hub(1);
    map_pause_s = 1;
    map_left_s = 0;
    stays_quiet(spoke, ask_for_the_map);
    mesh_join(spoke, hub, &mesh_psk);
    comes_back(spoke);
    mesh_end();
}
